"""Standard input for every run of a recording: passed through as it comes, counted, and given again to later runs."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import tempfile
import threading
from typing import IO


class StandardInput:
    """Our standard input, to be given to several targets.

    A terminal or device is inherited as it is. A file is opened anew for each run. A pipe is read only as the targets
    read it (it may never end); what was read is kept and comes first in the next run.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self.descriptor = descriptor
        self.kind = _kind(descriptor)
        self.kept: IO[bytes] | None = tempfile.TemporaryFile() if self.kind == "pipe" else None  # noqa: SIM115 (lives as long as we)
        self.size: int | None = None

    def open(self) -> tuple[int | None, Feeder | None]:
        """What to give a run as its standard input: a descriptor to inherit (None: ours), and a feeder for a pipe."""
        if self.kind == "file":
            copy = os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY)
            self.size = os.fstat(copy).st_size
            return copy, None
        if self.kept is not None:
            reading, writing = os.pipe()
            return reading, Feeder(self, self.kept, writing)
        return None, None


def _kind(descriptor: int) -> str:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return "none"
    if stat.S_ISREG(mode):
        return "file"
    return "pipe" if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else "device"


class Feeder:
    """Copies the kept part and then our standard input into one run's pipe, in a thread of its own."""

    def __init__(self, source: StandardInput, kept: IO[bytes], writing: int) -> None:
        self.source, self.kept, self.writing, self.count = source, kept, writing, 0
        self.stopped, self._stop = os.pipe()
        self.thread = threading.Thread(target=self._copy, daemon=True)
        self.thread.start()

    def finish(self) -> int:
        """Stop feeding, the target being gone; returns how many bytes it was given."""
        os.write(self._stop, b"x")
        self.thread.join(5)
        os.close(self._stop)
        os.close(self.stopped)
        return self.count

    def _copy(self) -> None:
        with contextlib.suppress(OSError):  # the program no longer reads: nobody waits for the rest
            self.kept.seek(0)
            while block := self.kept.read(1 << 16):
                self._give(block)
            while block := self._next():
                self.kept.write(block)
                self._give(block)
        os.close(self.writing)

    def _give(self, block: bytes) -> None:
        view = memoryview(block)
        while view:
            written = os.write(self.writing, view)
            self.count += written
            view = view[written:]

    def _next(self) -> bytes:
        """The next block of our standard input, empty at its end or when the run is over."""
        ready, _, _ = select.select([self.source.descriptor, self.stopped], [], [])
        return b"" if self.stopped in ready else os.read(self.source.descriptor, 1 << 16)
