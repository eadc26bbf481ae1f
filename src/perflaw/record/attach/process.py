"""A running process: whether it can be recorded, which Python runs in it, and what its program is called."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from perflaw.errors import TargetError
from perflaw.notices import notice
from perflaw.record.compiled.elf import Elf, open_elf
from perflaw.record.launch import package_of_script, parse
from perflaw.record.machine import stat_of
from perflaw.record.python.interpreter import Interpreter, probe
from perflaw.record.rights import Rights, User, read_regular

EVALUATION: Final = "_PyEval_EvalFrameDefault"
"""The function of CPython that executes Python code."""
_MACHINE: Final = "EM_X86_64"
_LIBC: Final = ("libc.", "libc-", "ld-musl", "libpthread", "libdl")
"""Beginnings of the names of the files in which a C library has its functions; the first that has one counts."""
DELETED: Final = " (deleted)"
"""End of the path of a mapped file that was removed."""
_LIST: Final = "ps -ef"
YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
"""Says which processes may be traced; it does not exist on systems without Yama."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function is in the memory of a process."""

    address: int
    """Its first byte."""
    size: int
    """Bytes of its code."""


class Attachable(Protocol):
    """A process in which a thread can be created."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def evaluation(self) -> Place:
        """Code whose execution holds no lock of the C library."""

    @property
    def user(self) -> User | None:
        """Its user; None if that is ours."""


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """A compiled program that runs."""

    pid: int
    """Process id."""
    argv: tuple[str, ...]
    """Command line."""
    executable: Path
    """Its file."""
    evaluation: Place
    """Its own code, without that of libraries."""
    user: User | None = None
    """Its user; None if that is ours."""

    @property
    def name(self) -> str:
        """Short name of the program."""
        return self.executable.name


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """A Python program that runs."""

    pid: int
    """Process id."""
    argv: tuple[str, ...]
    """Command line."""
    name: str
    """Short name of the program: ``app.py``, ``-m json.tool``."""
    main: str
    """Module name under which functions of the main script are shown."""
    own: str
    """Top-level package that belongs to the person wherever it is installed; empty if there is none."""
    interpreter: Interpreter
    """The Python that runs it."""
    evaluation: Place
    """Its function that executes Python code."""
    user: User | None = None
    """Its user; None if that is ours."""


def running_program(pid: int) -> RunningProgram:
    """The program of a process; TargetError if it cannot be recorded, as far as that is known without touching it."""
    what = f"process {pid}"
    if why := other_machine():
        raise TargetError(what, why, "perflaw record -- COMMAND")
    _check_state(pid, what)
    user = _foreign_user(pid, what)
    try:
        executable = (Path("/proc") / str(pid) / "exe").readlink()
    except PermissionError as error:
        raise not_permitted(pid) from error
    except OSError as error:
        raise TargetError(what, "it runs no program (is it a thread of the kernel?)", _LIST) from error
    try:
        evaluation, argv = _evaluation(pid, what, executable), _command_line(pid)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise TargetError(*ended(pid)) from error
    with Rights(user):
        main, own, name = _names(pid, argv)
    return RunningProgram(pid, argv, name, main, own, probe(str(executable), user), evaluation, user)


def asking_program(pid: int) -> RunningProgram:
    """The program of a process that asks for its own recording, so nothing of its memory need be known.

    TargetError if it has ended.
    """
    try:
        executable, argv = (Path("/proc") / str(pid) / "exe").readlink(), _command_line(pid)
    except OSError as error:
        raise TargetError(*ended(pid)) from error
    main, own, name = _names(pid, argv)
    return RunningProgram(pid, argv, name, main, own, probe(str(executable)), Place(0, 0))


def native_program(pid: int) -> NativeProgram | None:
    """The compiled program of a process; None if it is Python itself, or nothing is known of it without touching it.

    A program that has Python built in, such as unbound or gdb, is a compiled one: its Python functions are not recorded.
    """
    try:
        executable = (Path("/proc") / str(pid) / "exe").readlink()
        files = mapped_files(pid)
    except OSError:  # running_program says which
        return None
    if other_machine() or executable.name.startswith(("python", "pypy")) or str(executable).endswith(DELETED):
        return None
    what = f"process {pid}"
    _check_state(pid, what)
    user = _foreign_user(pid, what)
    if not _is_same(inside(pid, str(executable)), executable):
        raise _in_other_root(what)
    with open_elf(inside(pid, str(executable))) as elf:
        if elf is None or elf.file["e_machine"] != _MACHINE:
            raise _foreign(what, elf, executable)
        if not elf.is_dynamic:
            raise TargetError(what, "it is linked statically, so no library can be loaded", "link it without -static")
        shift = _shift(elf, files.get(str(executable), 0))
        code = [
            segment for segment in elf.file.iter_segments() if segment["p_type"] == "PT_LOAD" and segment["p_flags"] & 1
        ]
    if any(Path(path).name.startswith(("libpython", "libpypy")) for path in files):
        notice(f"{executable.name} has Python built in: its compiled functions are recorded, and not its Python ones")
    place = Place(shift + code[0]["p_vaddr"], code[0]["p_filesz"]) if code else Place(0, 0)
    return NativeProgram(pid, _command_line(pid), executable, place, user)


def _in_other_root(what: str) -> TargetError:
    why = "it runs in another root folder (chroot, a container), which does not have the files of this one"
    return TargetError(what, why, "install perflaw there and attach from inside")


def _foreign(what: str, elf: Elf | None, executable: Path) -> TargetError:
    """The error of a program that is not one for x86-64."""
    if elf and elf.file.elfclass == 32:
        return TargetError(what, f"it is a 32-bit program ({executable})", "build it for x86-64 (without -m32)")
    return TargetError(what, f"it runs code of another machine than this ({executable})", f"file {executable}")


def other_machine() -> str:
    """Why no process of this machine can be recorded while it runs, in words; empty on the right kind of machine."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        return ""
    return f"running processes are recorded on Linux on x86-64; this is {platform.system()} on {platform.machine()}"


def ended(pid: int) -> tuple[str, str, str]:
    """The parts of the error that a process ended too early."""
    return f"process {pid}", "it ended before it could be recorded", _LIST


def _check_state(pid: int, what: str) -> None:
    fields = stat_of(pid)
    if not fields:
        raise TargetError(what, "there is no such process", _LIST)
    if fields[0] in "ZX":
        raise TargetError(what, "it has ended, and only its parent has not noticed", _LIST)
    if fields[0] in "Tt" and not tracer_of(pid):
        raise TargetError(what, "it is stopped by a signal", f"kill -CONT {pid}")
    if pid == os.getpid():
        raise TargetError(what, "that is this perflaw itself", _LIST)
    with suppress(OSError):  # it ended, or may not be looked at, which is said later
        if not Path(f"/proc/{pid}/ns/pid").samefile("/proc/self/ns/pid"):
            why = "it runs in another namespace of processes (a container), where this one has no number"
            raise TargetError(what, why, "install perflaw there and attach from inside")
    with suppress(OSError):  # as above
        for task in Path(f"/proc/{pid}/task").iterdir():  # a debugger may trace some of its threads only
            if tracer := tracer_of(int(task.name)):
                raise _traced(pid, tracer)


def _foreign_user(pid: int, what: str) -> User | None:
    """The user of a process that is not ours, which takes root: TargetError without the rights for it."""
    user = user_of(pid)
    if user is None or user.uid == os.geteuid():  # what has ended is refused by the checks that follow
        return None
    try:
        with Rights(user):
            return user
    except PermissionError as error:
        if os.geteuid():
            why = f"it belongs to another user (uid {user.uid}), which takes root"
            raise TargetError(what, why, f"sudo perflaw attach {pid}") from error
        why = (
            f"it belongs to another user (uid {user.uid}), whose rights this root may not take (CAP_SETUID, CAP_SETGID)"
        )
        raise TargetError(what, why, "docker run --cap-add=SETUID --cap-add=SETGID …") from error


def user_of(pid: int) -> User | None:
    """Whose files a process opens; None if it has ended.

    The owner of its files below ``/proc`` is root for a service that has given up root's rights.
    """
    with suppress(OSError):  # it has ended
        fields = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        return User(int(fields["Uid"].split()[3]), int(fields["Gid"].split()[3]))
    return None


def tracer_of(pid: int) -> int:
    """Id of the process that traces this one; 0 if there is none."""
    with suppress(OSError):  # nobody traces a process that ended
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
    return 0


def _traced(pid: int, tracer: int) -> TargetError:
    why = f"process {tracer} traces it already (a debugger, strace?)"
    return TargetError(f"process {pid}", why, f"ps -p {tracer}")


def not_permitted(pid: int, thread: int = 0) -> TargetError:
    """Why the kernel refuses access to a process, or to a thread of it, in words."""
    if tracer := tracer_of(thread or pid):
        return _traced(pid, tracer)
    return TargetError(f"process {pid}", *(yama_refusal() or NO_PTRACE))


NO_PTRACE: Final = (
    "the kernel does not permit to trace processes (ptrace): a container needs the capability SYS_PTRACE",
    "docker run --cap-add=SYS_PTRACE …",
)
"""Why the kernel refuses to trace any process, and the way out."""


def yama_refusal() -> tuple[str, str] | None:
    """Why Yama refuses to trace processes of one's own, and the way out; None if it does not."""
    scope = ""
    with suppress(OSError):  # a kernel without Yama
        scope = YAMA.read_text().strip()
    if scope in ("", "0"):
        return None
    why = f"Yama lets a process trace none but its own children (kernel.yama.ptrace_scope is {scope})"
    return why, "sudo sysctl kernel.yama.ptrace_scope=0"


# ---- its files ----


def mapped_files(pid: int) -> dict[str, int]:
    """Path of each file that is mapped as code or data → lowest address; PermissionError where that is not told."""
    lowest: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[5].startswith("/"):
            address = int(words[0].split("-")[0], 16)
            lowest[words[5]] = min(address, lowest.get(words[5], address))
    return lowest


def image_of(pid: int) -> bytes:
    """What tells the program in a process from another one that takes its place (exec); empty if it ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/auxv").read_bytes()
    return b""


def known_image(program: Attachable) -> bytes:
    """The image of a program that is going to be changed; TargetError if it has ended, or is another user's now.

    A process may become a program of more rights than its user has (setuid) at any moment. Whoever is about to write to its
    memory stops it first and then compares its image with this one.
    """
    image = image_of(program.pid)  # first: who had the right user afterwards had it before as well
    if not image or (program.user and user_of(program.pid) != program.user):
        raise TargetError(*ended(program.pid))
    return image


def inside(pid: int, path: str) -> Path:
    """The path by which this process reaches a file of another one, which may have another root folder."""
    return Path(f"/proc/{pid}/root{path}")


def find_functions(pid: int, names: set[str]) -> dict[str, Place]:
    """Functions of the process's C library; those that it does not have are missing."""
    found: dict[str, Place] = {}
    files = mapped_files(pid)
    for start in _LIBC:
        for path in (path for path in files if Path(path).name.startswith(start)):
            found = {**_functions_in(inside(pid, path), files[path], names), **found}
    return found


def _functions_in(path: Path, loaded: int, names: set[str]) -> dict[str, Place]:
    """Functions of a file whose image begins at an address."""
    with open_elf(path) as elf:
        if elf is None:
            return {}
        return {
            symbol.symbol: Place(_shift(elf, loaded) + symbol.address, symbol.size)
            for symbol in elf.functions()
            if symbol.symbol in names
        }


def _shift(elf: Elf, loaded: int) -> int:
    """What is added to the addresses in a file; a program that is not relocatable has them as they are."""
    return 0 if elf.file["e_type"] == "ET_EXEC" else loaded - elf.base


def _evaluation(pid: int, what: str, executable: Path) -> Place:
    """The interpreter's function that executes code; TargetError if the process runs no Python that can be recorded."""
    if str(executable).endswith(DELETED):
        why = f"its program was replaced since it was started ({executable})"
        raise TargetError(what, why, "start it again, then perflaw attach")
    try:
        files = mapped_files(pid)
    except PermissionError as error:
        raise not_permitted(pid) from error
    image = inside(pid, str(executable))
    with open_elf(image) as elf:
        if elf and elf.file["e_machine"] != _MACHINE:
            raise _foreign(what, elf, executable)
    libraries = [path for path in files if Path(path).name.startswith("libpython3")]
    for path in (*libraries, str(executable)):
        if path.endswith(DELETED):
            why = f"its Python was replaced since it was started ({path})"
            raise TargetError(what, why, "start it again, then perflaw attach")
        if found := _functions_in(inside(pid, path), files.get(path, 0), {EVALUATION}):
            if not _is_same(image, executable):
                raise _in_other_root(what)
            return found[EVALUATION]
    raise TargetError(what, f"not a Python program: it runs {executable}", _LIST)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is gone
        return False


# ---- its names ----


def _command_line(pid: int) -> tuple[str, ...]:
    text = Path(f"/proc/{pid}/cmdline").read_bytes()
    return tuple(word.decode(errors="surrogateescape") for word in text.removesuffix(b"\0").split(b"\0"))


def _names(pid: int, argv: tuple[str, ...]) -> tuple[str, str, str]:
    """Name of the main module, own package, and short name, as ``launch.understand`` gives them of a command."""
    line = parse(argv)
    if line.kind == "module":
        return line.what, line.what.split(".")[0], line.name
    if line.kind != "script":
        return "__main__", "", "python" if line.kind == "nothing" else line.name
    for script in _scripts(pid, line.what):
        if script.is_dir():
            return script.name, "", script.name
        # A script that cannot be read has its own name.
        with suppress(OSError):  # it cannot be read
            head = read_regular(script)[:1024].decode(errors="replace")
            package = package_of_script(head) if head.startswith("#!") and not script.suffix else ""
            return script.stem, package, script.name
    return Path(line.what).stem, "", line.name


def _scripts(pid: int, what: str) -> Iterator[Path]:
    """Where a script may be that was named on the command line; the process may have changed its folder since."""
    with suppress(OSError):  # the folder may be hidden
        yield Path(os.path.normpath(Path(f"/proc/{pid}/cwd").readlink() / what))
