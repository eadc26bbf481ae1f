"""What surrounds a recorded program: signals to the recorder, a time limit, its standard input, its kept output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from perflaw.errors import DataError, StoreError
from perflaw.record.machine import BEGAN, PARENT, cpu_ns_of, stat_of
from perflaw.record.output_tee import FIRST, LAST
from perflaw.record.plan import OutputPattern
from perflaw.record.tree.core import load
from perflaw.store.features import STREAMS, find_number, output_path, read_output

RELAYED: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that reach the recorder alone, so it passes them on. Ctrl-C reaches the program too: same process group."""
INTERRUPT_S: Final = 1.0
"""Seconds that the program has to end after SIGINT, before it is told that the recorder has got it."""
_INTERRUPTS: Final = {"core_watch_interrupts": (ctypes.c_int,), "core_interrupted_by_terminal": (ctypes.c_int,)}
"""The functions of native/core/base/interrupt.h."""
_GROUP, _FOREGROUND = 2, 5
"""Places of a process's group, and of the group that its terminal sends Ctrl-C to, among the fields of its state."""


class SignalRelay:
    """While entered, a signal to the recorder goes to the program, and the recorder stays to keep what was recorded.

    SIGINT is sent by terminals and by some tools to the whole group of processes, by others to the recorder alone. Only that
    a terminal sent it can be seen. Where none did, and the program does not end, the recorder sends it to the program.

    A second SIGTERM while the program holds the first one back, because it hangs where no signal reaches it, ends the
    program by SIGKILL. A second signal after the program has ended has its usual effect: nothing that the recorder still
    does may keep it. A relay that is entered within another one tells that of each signal.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._interrupted_at: float | None = None
        """When SIGINT came that the program may not have got."""
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = False
        """Whether the program has ended, or is no longer recorded; set by whoever saves the recording."""
        self._previous: dict[int, Any] = {}
        self._library: ctypes.CDLL | None = None

    def tell_senders_by(self, library: Path) -> None:
        """Have the native core tell who sends SIGINT; call this while entered. Else it counts whether a terminal may do so."""
        loaded = load(library, _INTERRUPTS)
        if not loaded.core_watch_interrupts():
            self._library = loaded

    def __enter__(self) -> SignalRelay:
        for number in (signal.SIGINT, *RELAYED):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it: that stays
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.ended and self.received is not None:
            self.__exit__()
            os.kill(os.getpid(), number)
            return
        insists = number == self.received == signal.SIGTERM
        self.received = number
        is_told = self._library.core_interrupted_by_terminal() if self._library else -1
        if number == signal.SIGINT and not (_is_in_foreground() if is_told < 0 else is_told):
            self._interrupted_at = time.monotonic()
        outer = getattr(self._previous.get(number), "__self__", None)
        if isinstance(outer, SignalRelay):
            outer._handle(number, frame)
        if number in RELAYED and self.process is not None:
            held_back = insists and _holds_back(self.process.pid, number)
            self.process.send_signal(signal.SIGKILL if held_back else number)

    def pass_on(self) -> None:
        """Send the program a SIGINT that it has probably not got; call this often while it runs."""
        if self._interrupted_at is not None and time.monotonic() - self._interrupted_at >= INTERRUPT_S:
            self._interrupted_at = None
            if self.process is not None:
                self.process.send_signal(signal.SIGINT)


def _is_in_foreground() -> bool:
    """Whether Ctrl-C in a terminal reaches this process and the program, which is of the same group."""
    fields = stat_of(os.getpid())
    return bool(fields) and fields[_GROUP] == fields[_FOREGROUND]


def _holds_back(pid: int, number: int) -> bool:
    """Whether a signal to a process waits, because all its threads block it."""
    with suppress(OSError):  # it has ended
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("ShdPnd:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


GRACE_S = 3.0
"""Seconds between SIGTERM and SIGKILL."""
ProcessStarts = dict[int, str]
"""Process id → when the process began."""


def _everyone() -> dict[int, list[str]]:
    """Id of each process → the fields of its state."""
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return {number: fields for number in pids if (fields := stat_of(number))}


def family_of(pid: int) -> ProcessStarts:
    """A process and its descendants, in an order in which parents come first."""
    everyone = _everyone()
    family: ProcessStarts = {}
    waiting = [pid]
    while waiting:
        number = waiting.pop()
        if number in everyone and number not in family:
            family[number] = everyone[number][BEGAN]
            waiting += [child for child, fields in everyone.items() if fields[PARENT] == str(number)]
    return family


def busiest_child(pid: int) -> int | None:
    """The descendant of a process that has used the most CPU time, if that is more than the process itself has used.

    This process, and what it has started, is not meant where it is a descendant itself, as of the shell of a container.
    """
    family = family_of(pid)
    own = family_of(os.getpid()) if os.getpid() in family else {}
    cpu_ns = {one: cpu_ns_of(one) for one in family if one not in own}
    busiest = max(cpu_ns, key=lambda one: cpu_ns[one], default=pid)  # the process is the first of several
    return None if busiest == pid else busiest


def siblings_of(pid: int) -> list[int]:
    """Other processes that the parent of a process has started and that run the program of both, as workers of a server do."""

    def program(one: int) -> str:
        try:
            return str(Path(f"/proc/{one}/exe").readlink())
        except OSError:  # it has ended, or is another user's
            return ""

    everyone = _everyone()
    if pid not in everyone:
        return []
    own, parent = program(pid), int(everyone[pid][PARENT])
    if parent == os.getpid() or not own or program(parent) != own:
        return []
    children = (one for one, fields in everyone.items() if fields[PARENT] == str(parent))
    return [one for one in children if one not in (pid, os.getpid()) and program(one) == own]


@dataclass(frozen=True, slots=True)
class BusySibling:
    """A process that works while its sibling, which is measured, does not."""

    pid: int
    """The sibling of the process that is measured."""
    cpu_ns: int
    """CPU time that it has used."""
    own_ns: int
    """CPU time that the measured process has used meanwhile."""
    seconds: float
    """How long that was."""

    def words(self, pid: int) -> str:
        """What this says of the process that is measured."""
        own = f"process {pid} has used {self.own_ns / 1e9:.2f} s of CPU time in {self.seconds:.0f} s"
        return f"{own}, its sibling {self.pid} (same parent, same program) {self.cpu_ns / 1e9:.2f} s"


class Siblings:
    """The CPU time of a process and of its siblings: who attaches to a worker may have named one that has nothing to do."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.restart()

    def restart(self) -> None:
        """Count CPU time from now on."""
        self._begun, self._before = time.monotonic(), self._cpu_ns()

    def _cpu_ns(self) -> dict[int, int]:
        return {one: cpu_ns_of(one) for one in (self.pid, *siblings_of(self.pid))}

    def busiest(self, least_ns: float) -> BusySibling | None:
        """The sibling that used the most CPU time, if that is ``least_ns`` and more than the process used itself."""
        used = {one: cpu_ns - self._before.get(one, 0) for one, cpu_ns in self._cpu_ns().items()}
        busiest = max(used, key=lambda one: used[one])  # the process is the first of several
        if busiest == self.pid or used[busiest] < least_ns:
            return None
        return BusySibling(busiest, used[busiest], used[self.pid], time.monotonic() - self._begun)


class TimeLimit:
    """The time limit of one run. After it, the program and everything it started get SIGTERM, and later SIGKILL.

    Like ``timeout``, which signals its whole process group; here that group is also the recorder's.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.begun = time.monotonic()
        self.family: ProcessStarts = {}
        """The processes that SIGTERM was sent to."""
        self.sent: signal.Signals | None = None
        """The strongest signal sent so far."""

    @property
    def message(self) -> str:
        """How the run was ended, in words; empty if it kept to its time."""
        return f"ran over its {self.seconds:g} s, ended by {self.sent.name}" if self.sent else ""

    def enforce(self, process: subprocess.Popen[bytes]) -> None:
        """Send a signal if it is due; call this often while the program runs."""
        if self.seconds is None:
            return
        passed = time.monotonic() - self.begun
        if self.sent is None and passed >= self.seconds:
            self.family = family_of(process.pid)
            self._send(signal.SIGTERM)
        elif self.sent is signal.SIGTERM and passed >= self.seconds + GRACE_S:
            self._send(signal.SIGKILL)

    def finish(self) -> None:
        """Give what the ended program started the rest of the grace period to end as well."""
        while self.sent and self._alive() and time.monotonic() < self.begun + (self.seconds or 0) + GRACE_S:
            time.sleep(0.01)
        if self.sent and self._alive():
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        self.sent = number
        for pid in self._alive():
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or belongs to another user by now
                os.kill(pid, number)

    def _alive(self) -> list[int]:
        """Ids of the processes that are still the same and have not ended."""
        states = ((pid, began, stat_of(pid)) for pid, began in self.family.items())
        return [pid for pid, began, fields in states if fields and fields[BEGAN] == began and fields[0] != "Z"]


class StandardInput:
    """The standard input of a session, given to each of its programs.

    A terminal or device is inherited. A file is opened anew for each run. A pipe is read only as fast as the programs read
    it, because it may never end; what was read is kept and comes first in the next run.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self.descriptor = descriptor
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # it is closed
            mode = 0
        self.is_file = stat.S_ISREG(mode)
        is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self.kept: IO[bytes] | None = tempfile.TemporaryFile() if is_pipe else None  # noqa: SIM115 (lives as long as this)
        self.size: int | None = None

    def open(self) -> tuple[int | None, Feeder | None]:
        """Standard input for a run: a descriptor to inherit (None: the recorder's own), and for a pipe its feeder."""
        if self.is_file:
            copy = os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY)
            self.size = os.fstat(copy).st_size
            return copy, None
        if self.kept is not None:
            reading, writing = os.pipe()
            return reading, Feeder(self, self.kept, writing)
        return None, None


class Feeder:
    """Copies the kept part and then the session's standard input into one run's pipe, in a thread of its own."""

    def __init__(self, source: StandardInput, kept: IO[bytes], writing: int) -> None:
        self.source, self.kept, self.writing, self.count = source, kept, writing, 0
        self.stopped, self._stop = os.pipe()
        self.thread = threading.Thread(target=self._copy, daemon=True)
        self.thread.start()

    def finish(self) -> int:
        """Stop after the program has ended; returns the number of bytes that it was given."""
        os.write(self._stop, b"x")
        self.thread.join(5)
        os.close(self._stop)
        os.close(self.stopped)
        return self.count

    def _copy(self) -> None:
        with contextlib.suppress(OSError):  # the program no longer reads: nothing waits for the rest
            self.kept.seek(0)
            while block := self.kept.read(1 << 16):
                self._give(block)
            while True:
                ready, _, _ = select.select([self.source.descriptor, self.stopped], [], [])
                block = b"" if self.stopped in ready else os.read(self.source.descriptor, 1 << 16)
                if not block:  # the end of the session's standard input, or of the run
                    break
                self.kept.write(block)
                self._give(block)
        os.close(self.writing)

    def _give(self, block: bytes) -> None:
        view = memoryview(block)
        while view:
            written = os.write(self.writing, view)
            self.count += written
            view = view[written:]


TEE: Final = Path(__file__).parent / "output_tee.py"
WAIT_S: Final = 0.5
"""Time for which the output of children is waited for once the program has ended."""
_HELPERS: Final[list[subprocess.Popen[bytes]]] = []
"""Helpers that still pass on the output of children that outlive their program."""


class KeptOutput:
    """The output of one run, standard output and standard error apart. It goes through a pipe.

    Where the recorder's own output is a terminal, it goes through a terminal instead. Made before the program starts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[IO[bytes]] = []
        self.targets: list[int] = []
        """Descriptors of the program's standard output and standard error."""
        with ExitStack() as ours:
            words, passed = [], []
            for sink, name in enumerate(STREAMS, 1):
                if os.isatty(sink):  # the program gets a terminal like the one on which the person sees the output
                    source, target = os.openpty()
                    modes = termios.tcgetattr(sink)
                    modes[1] &= ~termios.OPOST  # the real terminal processes the output again
                    termios.tcsetattr(target, termios.TCSANOW, modes)
                    termios.tcsetwinsize(target, termios.tcgetwinsize(sink))
                else:
                    source, target = os.pipe()
                self.targets.append(target)
                ours.callback(os.close, source)
                path = folder / f"{name}.part"
                try:
                    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b")
                except OSError as error:
                    raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "df -h") from error
                self.files.append(file)
                words.append(f"{source}:{sink}:{file.fileno()}")
                passed += [source, file.fileno()]
            command = [sys.executable, "-I", "-S", str(TEE), *words]
            self.helper = subprocess.Popen(command, pass_fds=passed, stdin=subprocess.DEVNULL)

    def started(self) -> None:
        """The program has its descriptors; close the recorder's, so that the end of the output is noticed."""
        while self.targets:
            os.close(self.targets.pop())

    def finish(self) -> None:
        """Write the output of the ended program into the run's folder."""
        try:
            self.helper.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            _HELPERS.append(self.helper)
        for name, file in zip(STREAMS, self.files, strict=True):
            with file, suppress(OSError):  # a full disk costs the output, not the recording
                path = output_path(self.folder, name)
                path.touch(0o600)
                # The helper kept the first and the last part; a line between them says how much is left out.
                descriptor = file.fileno()
                count = int.from_bytes(os.pread(descriptor, 8, FIRST + LAST), "little")
                first = os.pread(descriptor, min(count, FIRST), 0)
                beyond = max(0, count - FIRST)
                if beyond <= LAST:
                    path.write_bytes(first + os.pread(descriptor, beyond, FIRST))
                else:
                    ring = os.pread(descriptor, LAST, FIRST)
                    turn = beyond % LAST
                    path.write_bytes(
                        first + f"\n[… {beyond - LAST} bytes left out …]\n".encode() + ring[turn:] + ring[:turn]
                    )
            (self.folder / f"{name}.part").unlink(missing_ok=True)


def printed_features(folder: Path, patterns: Sequence[OutputPattern]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Features read from the kept output by these patterns, and a message for each that it does not contain."""
    texts: list[str] = (read_output(folder) or []) if patterns else []
    features: dict[str, float] = {}
    problems = []
    for each in patterns:
        try:
            features[each.name] = find_number(texts, each.pattern)
        except DataError as error:
            problems.append(f"feature {each.name}: {error.reason} (pattern {each.pattern!r})")
    return features, tuple(problems)
