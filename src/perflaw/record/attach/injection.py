"""Has a running process create a thread of ours, which loads the extension and calls its function ``perflaw_attach``.

One thread of the process is stopped (ptrace) where it certainly holds no lock of the C library: in a system call that
waits, or while it executes Python code itself. It calls ``mmap`` for a few pages and ``pthread_create`` for the new thread;
then it has its registers back and goes on, mostly within a millisecond. The other threads run all the time. All else happens
in the new thread: the code for it is written to the pages, and no code of the program is changed.
"""

from __future__ import annotations

import errno
import json
import os
import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from perflaw.errors import TargetError
from perflaw.record.attach.priority import hastened, urgent
from perflaw.record.attach.process import (
    NO_PTRACE,
    Attachable,
    Place,
    ended,
    find_functions,
    image_of,
    known_image,
    other_machine,
    yama_refusal,
)  # fmt: skip
from perflaw.record.attach.seccomp import check_filters
from perflaw.record.attach.stopping import WAITING, Unusable, seize, stopped_thread

SYMBOL: Final = "perflaw_attach"
"""Function of the extension that the new thread calls (native/python/attach.c)."""
PATIENCE_S: Final = 5.0
"""Time in which a thread has to come to a place where it can be used."""
_LIBC_FUNCTIONS: Final = {"pthread_create", "dlopen", "dlsym", "dlerror", "syscall"}
_PAGE: Final = 4096
_CAP_SYS_RESOURCE: Final = 24
"""Its bit, of ``linux/capability.h``."""
_HEAD: Final = struct.Struct("<QQQQ")
"""``AttachRequest`` of native/python/attach.h: size, failure, settings, message."""

_RECORDS_ALREADY: Final = 2
"""``has_failed`` of a library that records already (native/compiled/inject/launch.c)."""

_MMAP, _MPROTECT, _MUNMAP = 9, 10, 11
_READ_WRITE, _READ_EXECUTE, _PRIVATE_ANONYMOUS = 3, 5, 0x22


@dataclass(frozen=True, slots=True)
class NewThread:
    """The thread that was created in a process."""

    pid: int
    """Id of the process."""
    pages: int
    """Address of what it was given."""
    message: int
    """Address of the message there."""
    stopped_ms: float
    """How long the thread that created it was stopped."""

    def failure(self) -> str:
        """Why it could not load the extension, in the words of the system's loader, or records nothing; empty if not known."""
        # Of a process that is gone, nothing is known.
        with suppress(OSError), (Path("/proc") / str(self.pid) / "mem").open("rb", buffering=0) as memory:
            _, failed, *_ = _HEAD.unpack(os.pread(memory.fileno(), _HEAD.size, self.pages))
            if failed == _RECORDS_ALREADY:
                return "another recorder has begun at the same moment"
            if failed:
                return os.pread(memory.fileno(), 500, self.message).split(b"\0")[0].decode(errors="replace")
        return ""


def refusal() -> tuple[str, str] | None:
    """Why processes of the same user cannot be attached to here, and the way out; None if they can. Tries it out."""
    if why := other_machine():
        return why, "perflaw record -- COMMAND"
    if os.geteuid() and (refused := yama_refusal()):
        return refused
    with subprocess.Popen(["sleep", "10"]) as process:
        try:
            seize(process.pid)
        except PermissionError:
            return NO_PTRACE
        finally:
            process.kill()
    return None


def start_thread(program: Attachable, extension: Path, settings: Mapping[str, str], loaded: int = 0) -> NewThread:
    """Create the thread. TargetError if the process ended, cannot be traced, or has no thread that can be used.

    ``loaded``: the address of ``SYMBOL`` in an extension that the process has loaded before; 0 if it is to load this one.

    A helper process does it, in a session of its own: a thread that is being used dies if its tracer does, so the helper
    completes its few milliseconds of work even where the recorder is killed meanwhile.
    """
    reading, writing = os.pipe()
    helper = os.fork()
    if not helper:
        _answer(program.pid, writing, lambda: _start_thread(program, extension, settings, loaded))
    os.close(writing)
    with open(reading, "rb") as answer:  # noqa: PTH123 (a descriptor)
        text = answer.read()
    os.waitpid(helper, 0)
    if not text:
        raise TargetError(f"process {program.pid}", "the process that attaches to it was killed", "perflaw doctor")
    result = json.loads(text)
    if isinstance(result, list):
        raise TargetError(*result)
    return NewThread(**result)


def _answer(pid: int, descriptor: int, work: Callable[[], NewThread]) -> NoReturn:
    """The life of the helper: write the new thread, or the three parts of an error, as JSON."""
    try:
        os.setsid()
        result: object = asdict(work())
    except (FileNotFoundError, ProcessLookupError):  # what is read of it below /proc
        result = ended(pid)
    except TargetError as error:
        result = [error.what, error.why, error.next_command]
    except BaseException as error:
        result = ["perflaw attach", f"unexpected {type(error).__name__}: {error}", "perflaw doctor"]
    try:
        os.write(descriptor, json.dumps(result).encode())
    finally:
        os._exit(0)


def _start_thread(program: Attachable, extension: Path, settings: Mapping[str, str], loaded: int) -> NewThread:
    """Create the thread from this process."""
    functions = find_functions(program.pid, set(_LIBC_FUNCTIONS))
    if missing := sorted(_LIBC_FUNCTIONS - functions.keys()):
        why = f"its C library has no function {missing[0]} (is it linked statically?)"
        raise TargetError(f"process {program.pid}", why, "perflaw record -- COMMAND")
    check_filters(program.pid)
    image = known_image(program)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for thread in _threads(program.pid):
            with suppress(Unusable):  # the next thread may be usable, or this one later
                return _use(program, image, thread, functions, partial(_layout, functions, extension, settings, loaded))
        time.sleep(0.002)
    why = f"for {PATIENCE_S:g} s every thread of it was inside a long call into C"
    raise TargetError(f"process {program.pid}", why, f"perflaw attach {program.pid}")


def _threads(pid: int) -> Iterator[int]:
    """Ids of the threads, those that wait first; TargetError if the process has ended."""
    try:
        found = [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # the process is gone, which is said below
        found = []
    if not found:
        raise TargetError(*ended(pid))
    yield from sorted(found, key=lambda thread: (not _seems_to_wait(pid, thread), thread))


def _seems_to_wait(pid: int, thread: int) -> bool:
    """Whether a thread is in a system call that waits, as far as the kernel says without stopping it."""
    with suppress(OSError, ValueError):  # it runs, has ended, or the kernel does not say
        return int(Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()[0]) in WAITING
    return False


def _use(
    program: Attachable, image: bytes, thread: int, functions: Mapping[str, Place], layout_at: Callable[[int], _Layout]
) -> NewThread:
    """Have this thread create the new one; Unusable if it is at another place."""
    # The new thread gets the policy of the one that creates it, but of its priority only what is usual.
    try:
        is_usual = os.getpriority(os.PRIO_PROCESS, thread) == 0
    except ProcessLookupError as gone:
        raise Unusable from gone
    with urgent(), hastened([thread] if is_usual else []), stopped_thread(program.pid, thread) as stopped:
        if not stopped.is_between_calls(program.evaluation):
            raise Unusable
        with stopped.kept(), stopped.memory() as memory:
            if image_of(program.pid) != image:  # the thread is stopped, and will never be of another one than this
                raise TargetError(*ended(program.pid))
            gate = stopped.find_syscall(functions["syscall"])
            size = len(layout_at(0).image)
            # Memory that is code from its beginning, because some services let no other become code.
            pages = stopped.syscall(gate, _MMAP, 0, size, _READ_EXECUTE, _PRIVATE_ANONYMOUS, -1 & 2**64 - 1, 0)
            layout = layout_at(pages)
            try:
                if os.pwrite(memory, layout.image, pages) != len(layout.image):  # the program has ended just now
                    raise TargetError(*ended(program.pid))
                stopped.syscall(gate, _MPROTECT, pages, layout.code - pages, _READ_WRITE)
                error = stopped.call(layout.code)
            except TargetError:
                stopped.syscall(gate, _MUNMAP, pages, size)
                raise
            if error:
                stopped.syscall(gate, _MUNMAP, pages, size)
                if error == errno.EAGAIN:
                    raise _no_thread(program.pid)
                why = f"it cannot create a thread: {os.strerror(error)}"
                raise TargetError(f"process {program.pid}", why, f"cat /proc/{program.pid}/limits")
    return NewThread(program.pid, pages, layout.message, stopped.stopped_ms)


def _no_thread(pid: int) -> TargetError:
    """A process that may create no more threads."""
    why = "it may create no more threads (ulimit -u; haproxy sees to that itself, unless it has insecure-fork-wanted)"
    if os.geteuid() or _may_raise_limits():
        way_out = f"sudo prlimit --pid {pid} --nproc=unlimited"
        return TargetError(f"process {pid}", f"{why}, and a recording needs one", way_out)
    why = f"{why}, and root may not raise limits here (CAP_SYS_RESOURCE)"
    return TargetError(f"process {pid}", why, "docker run --cap-add=SYS_RESOURCE")


def _may_raise_limits() -> bool:
    """Whether this process may give others higher limits; root of a container often may not."""
    held = re.search(r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(held and int(held[1], 16) >> _CAP_SYS_RESOURCE & 1)


# ---- what is written to the process ----


@dataclass(frozen=True, slots=True)
class _Layout:
    """The pages of the new thread: the request and its strings, then a page of code."""

    image: bytes
    """Their content."""
    code: int
    """Address of the code, which begins with the call of ``pthread_create``."""
    message: int
    """Address of the message if the extension cannot be loaded."""


def _layout(
    functions: Mapping[str, Place], extension: Path, settings: Mapping[str, str], loaded: int, pages: int
) -> _Layout:
    strings = bytearray()

    def add(text: bytes) -> int:
        strings.extend(text + b"\0")
        return pages + _HEAD.size + len(strings) - len(text) - 1

    path, symbol = add(os.fsencode(extension)), add(SYMBOL.encode())
    pairs = (part for name, value in settings.items() for part in (f"PERFLAW_TARGET_{name}", value))
    given = add(b"".join(os.fsencode(part) + b"\0" for part in pairs))
    identity, message = add(bytes(16)), add(bytes(_PAGE))  # the id of the thread; the loader's message
    code = pages + (_HEAD.size + len(strings) + _PAGE - 1) // _PAGE * _PAGE
    at = {name: struct.pack("<Q", function.address) for name, function in functions.items()}
    create = b"".join(
        (
            b"\x48\xbf" + struct.pack("<Q", identity),  # mov rdi, identity
            b"\x31\xf6",  # xor esi, esi: default attributes
            b"\x48\xba" + struct.pack("<Q", code + 64),  # mov rdx, the body
            b"\x48\xb9" + struct.pack("<Q", pages),  # mov rcx, its argument
            b"\x48\xb8" + at["pthread_create"] + b"\xff\xd0",  # mov rax, pthread_create; call rax
            b"\xcc",  # int3
        )
    )
    call = b"".join(
        (
            b"\x48\x89\xdf\x5b",  # mov rdi, rbx: the request; pop rbx
            b"\xff\xe0",  # jmp rax: it returns to the C library, so that it may unmap this code
        )
    )
    find = b"".join(
        (
            b"\x48\x89\xc7",  # mov rdi, rax
            b"\x48\xbe" + struct.pack("<Q", symbol),  # mov rsi, symbol
            b"\x48\xb8" + at["dlsym"] + b"\xff\xd0",  # mov rax, dlsym; call rax
            b"\x48\x85\xc0\x74" + bytes([len(call)]),  # test rax, rax; jz failed
        )
    )
    body = b"".join(
        (
            b"\xf3\x0f\x1e\xfa\x53\x48\x89\xfb",  # endbr64; push rbx; mov rbx, rdi
            b"\x48\xbf" + struct.pack("<Q", path),  # mov rdi, path
            b"\xbe\x02\x00\x00\x00",  # mov esi, RTLD_NOW
            b"\x48\xb8" + at["dlopen"] + b"\xff\xd0",  # mov rax, dlopen; call rax
            b"\x48\x85\xc0\x74" + bytes([len(find) + len(call)]),  # test rax, rax; jz failed
            find,
            call,
            b"\x48\xb8" + at["dlerror"] + b"\xff\xd0",  # failed: mov rax, dlerror; call rax
            b"\x48\x89\xc6\x48\xbf" + struct.pack("<Q", message),  # mov rsi, rax; mov rdi, message
            b"\xac\xaa\x84\xc0\x75\xfa",  # copy: lodsb; stosb; test al, al; jnz copy
            b"\x48\xc7\x43\x08\x01\x00\x00\x00",  # mov qword [rbx + 8], 1
            b"\x31\xc0\x5b\xc3",  # xor eax, eax; pop rbx; ret
        )
    )
    if loaded:
        body = (
            b"\xf3\x0f\x1e\xfa\x48\xb8" + struct.pack("<Q", loaded) + b"\xff\xe0"
        )  # endbr64; mov rax, loaded; jmp rax
    head = _HEAD.pack(code + _PAGE - pages, 0, given, message)
    data = (head + bytes(strings)).ljust(code - pages, b"\0")
    return _Layout(data + (create.ljust(64, b"\xcc") + body).ljust(_PAGE, b"\xcc"), code, message)
