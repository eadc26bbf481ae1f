"""A helper process that passes on what a program prints and keeps the first and the last of it.

Run by its path, with the standard library alone. It is a process of its own so that the program, and children of it that
live on, can print whatever becomes of the recorder. Where the reader on the other side has gone it goes as well, and the
program is told of that as it would be without it.

A file kept has three parts: FIRST bytes, a ring of LAST bytes, and how many bytes there were in all (8, little-endian).
"""

import contextlib
import fcntl
import os
import select
import signal
import sys
import termios

FIRST = LAST = 1 << 20
BLOCK = 1 << 16


class Stream:
    """One stream: where it comes from, where it goes, and the file that keeps it."""

    def __init__(self, source: int, sink: int, kept: int) -> None:
        self.source, self.sink, self.kept, self.count = source, sink, kept, 0

    def move(self) -> bool:
        """Pass on what is there; False when no more can come, or nobody takes it."""
        try:
            block = os.read(self.source, BLOCK)
        except OSError:  # a terminal's other side was closed
            return False
        if not block:
            return False
        with contextlib.suppress(OSError):  # a full disk: the output goes on
            self._keep(block)
        view = memoryview(block)
        while view:
            try:
                view = view[os.write(self.sink, view) :]
            except BlockingIOError:
                select.select([], [self.sink], [])
            except OSError:
                return False
        return True

    def resize(self) -> None:
        """Give the program's terminal the size that the person's terminal has now."""
        with contextlib.suppress(OSError):  # a stream that is no terminal has no size
            size = fcntl.ioctl(self.sink, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self.source, termios.TIOCSWINSZ, size)

    def _keep(self, block: bytes) -> None:
        while block:
            if self.count < FIRST:
                place, room = self.count, FIRST - self.count
            else:
                turn = (self.count - FIRST) % LAST
                place, room = FIRST + turn, LAST - turn
            written = os.pwrite(self.kept, block[:room], place)
            self.count += written
            block = block[written:]
        os.pwrite(self.kept, self.count.to_bytes(8, "little"), FIRST + LAST)


def main(words: list[str]) -> None:
    """Each word is a stream: ``SOURCE:SINK:KEPT``, three open files."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # meant for the program, which may have last words
    streams = {stream.source: stream for stream in (Stream(*map(int, word.split(":"))) for word in words)}

    def resize(number: int, frame: object) -> None:
        for stream in streams.values():
            stream.resize()

    signal.signal(signal.SIGWINCH, resize)
    while streams:
        for source in select.select(list(streams), [], [])[0]:
            if not streams[source].move():
                os.close(source)
                del streams[source]


if __name__ == "__main__":
    main(sys.argv[1:])
