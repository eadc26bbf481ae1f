"""What a run prints, kept where that is asked for: through a pipe, or a terminal of its own where ours is one."""

from __future__ import annotations

import os
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

from perflaw.errors import DataError, StoreError
from perflaw.record.output_tee import FIRST, LAST
from perflaw.record.plan import OutputPattern
from perflaw.store.output import STREAMS, find_number, output_path, read_output

TEE: Final = Path(__file__).parent / "output_tee.py"
WAIT_S = 0.5
"""How long the output of children is waited for once the program has ended."""
_HELPERS: list[subprocess.Popen[bytes]] = []
"""Helpers that still pass on what children print which live on."""


class KeptOutput:
    """The output of one run, standard output and standard error apart. Made before the program starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[IO[bytes]] = []
        self.targets: list[int] = []
        """What the program gets as standard output and standard error."""
        with ExitStack() as ours:
            words, passed = [], []
            for sink, name in enumerate(STREAMS, 1):
                source, target = _channel(sink)
                self.targets.append(target)
                ours.callback(os.close, source)
                file = _open(folder / f"{name}.part")
                self.files.append(file)
                words.append(f"{source}:{sink}:{file.fileno()}")
                passed += [source, file.fileno()]
            command = [sys.executable, "-I", "-S", str(TEE), *words]
            self.helper = subprocess.Popen(command, pass_fds=passed, stdin=subprocess.DEVNULL)

    def started(self) -> None:
        """The program has its ends; ours are closed, so that the end of its output is seen."""
        while self.targets:
            os.close(self.targets.pop())

    def finish(self) -> None:
        """The program has ended: write what was kept into the run's folder."""
        try:
            self.helper.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            _HELPERS.append(self.helper)
        for name, file in zip(STREAMS, self.files, strict=True):
            with file, suppress(OSError):  # a full disk costs the output, not the recording
                _write(output_path(self.folder, name), _kept(file))
            (self.folder / f"{name}.part").unlink(missing_ok=True)


def read_features(folder: Path, patterns: Sequence[OutputPattern]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Features that the kept output says, and of those that it does not, why."""
    texts, found, problems = read_output(folder) or [] if patterns else [], {}, []
    for one in patterns:
        try:
            found[one.name] = find_number(texts, one.pattern)
        except DataError as error:
            problems.append(f"feature {one.name}: {error} (pattern {one.pattern!r})")
    return found, tuple(problems)


def _open(path: Path) -> IO[bytes]:
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "df -h") from error


def _channel(sink: int) -> tuple[int, int]:
    """The two ends, ours first: of a terminal like ours where the person would see it on one, else of a pipe."""
    if not os.isatty(sink):
        return os.pipe()
    ours, theirs = os.openpty()
    modes = termios.tcgetattr(sink)
    modes[1] &= ~termios.OPOST  # the real terminal does that once more
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    termios.tcsetwinsize(theirs, termios.tcgetwinsize(sink))
    return ours, theirs


def _kept(file: IO[bytes]) -> bytes:
    """First and last part, what lies between said in a line of its own."""
    descriptor = file.fileno()
    count = int.from_bytes(os.pread(descriptor, 8, FIRST + LAST), "little")
    first = os.pread(descriptor, min(count, FIRST), 0)
    beyond = max(0, count - FIRST)
    if beyond <= LAST:
        return first + os.pread(descriptor, beyond, FIRST)
    ring = os.pread(descriptor, LAST, FIRST)
    turn = beyond % LAST
    return first + f"\n[… {beyond - LAST} bytes left out …]\n".encode() + ring[turn:] + ring[:turn]


def _write(path: Path, data: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(data)
