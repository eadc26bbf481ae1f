"""What programs print: numbers in JSON, numbers found by a pattern, lines that are readings."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from perflaw.explore.target.process import Started
from perflaw.types.studies import Reading, StudyMetric


def matched(pattern: str, text: str) -> float:
    """The number in the last match: of its first group, or the whole. ValueError where there is none.

    >>> matched(r"took ([0-9.]+) ms", "took 3 ms, took 4.5 ms")
    4.5
    """
    found = None
    for found in re.finditer(pattern, text, re.MULTILINE):  # noqa: B007 (the last match is wanted)
        pass
    if found is None:
        raise ValueError(f"nothing it printed matches {pattern!r}")
    return number(found[1] if found.re.groups else found[0])


def at_path(document: Any, path: str) -> float:
    """The number at ``a.b.0`` of a document; ValueError where there is none.

    >>> at_path({"a": {"b": [7]}}, "a.b.0")
    7.0
    """
    value = document
    for part in path.split(".") if path else []:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ValueError(f"its result has nothing at {path!r}")
    return number(value)


def number(value: Any) -> float:
    """A finite number; ValueError otherwise."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no number") from None
    if not math.isfinite(found):
        raise ValueError(f"{value!r} is no finite number")
    return found


def document_of(text: str) -> Any:
    """The JSON of a text: the whole, or its last line that is an object; None where there is none."""
    for part in (text, *reversed(text.splitlines())):
        if not part.lstrip().startswith(("{", "[")):
            continue
        try:
            return json.loads(part)
        except ValueError:
            continue
    return None


def readings_of(metrics: Sequence[StudyMetric], line: str, at_s: float) -> list[Reading]:
    """What a streamed line says of the metrics: a JSON object, or a text that a metric's pattern matches."""
    document, found = document_of(line), []
    for metric in metrics:
        try:
            if "regex" in metric.source:
                value = matched(str(metric.source["regex"]), line)
            elif "path" in metric.source and document is not None:
                value = at_path(document, str(metric.source["path"]))
            else:
                continue
        except ValueError:
            continue  # another kind of line
        found.append(Reading(metric.name, at_s, value))
    return found


# ---- What a running command prints, read as it comes, bounded: of giant outputs the beginning and the end stay.

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
