"""What a running command prints, read as it comes, bounded: of giant outputs the beginning and the end stay."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from perflaw.explore.target.process import Started

MOST: Final = 4 << 20
"""Bytes kept of each stream: so many of its beginning, and so many of its end."""
_READ: Final = 1 << 16
_LINE: Final = 1 << 20


class Printed:
    """Standard output and standard error of a command. Never waits: children may keep the pipes open for ever."""

    def __init__(self, started: Started, on_line: Callable[[str], None] | None = None) -> None:
        """``on_line`` is given every line of standard output when it is whole."""
        self._on_line, self._rest = on_line, b""
        self._streams: list[tuple[int, _Kept]] = []
        for pipe in (started.process.stdout, started.process.stderr):
            assert pipe is not None  # Started always asks for both
            os.set_blocking(pipe.fileno(), False)
            self._streams.append((pipe.fileno(), _Kept()))

    def descriptors(self) -> list[int]:
        """What becomes readable when something was printed; without those at their end."""
        return [descriptor for descriptor, kept in self._streams if not kept.over]

    def read(self) -> None:
        """Take what is there."""
        for place, (descriptor, kept) in enumerate(self._streams):
            for data in _available(descriptor, kept):
                kept.add(data)
                if self._on_line and place == 0:
                    self._lines(data)

    def _lines(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_LINE:]
        for line in lines:
            if self._on_line:
                self._on_line(line.decode("utf-8", "replace"))

    @property
    def stdout(self) -> str:
        """What it printed so far."""
        return self._streams[0][1].text()

    @property
    def stderr(self) -> str:
        """What it said on standard error so far."""
        return self._streams[1][1].text()

    def last(self) -> str:
        """Its last line that says something, of standard error first; for messages."""
        for text in (self.stderr, self.stdout):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return lines[-1][:200]
        return ""


class _Kept:
    def __init__(self) -> None:
        self._first, self._last, self.over = bytearray(), bytearray(), False

    def add(self, data: bytes) -> None:
        room = MOST - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > 2 * MOST:
            del self._last[:-MOST]

    def text(self) -> str:
        return (self._first + self._last[-MOST:]).decode("utf-8", "replace")


def _available(descriptor: int, kept: _Kept) -> list[bytes]:
    """At most a megabyte at once: who prints without end must not keep us from looking at the clock."""
    found: list[bytes] = []
    with suppress(BlockingIOError):
        while not kept.over and len(found) < 16:
            data = os.read(descriptor, _READ)
            if data:
                found.append(data)
            else:
                kept.over = True
    return found
