"""What programs print: values in JSON, values found by a pattern, lines that are readings, and the streams themselves."""

from __future__ import annotations

import json
import math
import os
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from perflaw.explore.target.process import StartedCommand
from perflaw.types.studies import Reading, StudyMetric

KEPT_BYTES: Final = 4 << 20
"""Bytes of each stream that are kept of its beginning, and as many of its end."""
_READ_BYTES: Final = 1 << 16
_READS: Final = 16
"""Blocks that are read at once: a program that prints without end must not keep perflaw from watching the clock."""
_LINE_BYTES: Final = 1 << 20


def value_at(document: Any, path: str) -> Any:
    """Return the value at ``a.b.0`` of a JSON document; ValueError where there is none.

    >>> value_at({"a": {"b": [7]}}, "a.b.0")
    7
    """
    value = document
    for part in path.split(".") if path else []:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ValueError(f"its result has nothing at {path!r}")
    return value


def last_match(pattern: str, text: str) -> str | None:
    """Return the last match of a pattern, or its first group where it has one; None where nothing matches."""
    last = deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)
    return next((str(found[1] if found.re.groups else found[0]) for found in last), None)


def number_at(document: Any, path: str) -> float:
    """Return the number at ``a.b.0`` of a JSON document; ValueError where there is none."""
    return _finite(value_at(document, path))


def matched_number(pattern: str, text: str) -> float:
    """Return the number in the last match of a pattern; ValueError where there is none.

    >>> matched_number(r"took ([0-9.]+) ms", "took 3 ms, took 4.5 ms")
    4.5
    """
    found = last_match(pattern, text)
    if found is None:
        raise ValueError(f"nothing that it printed matches {pattern!r}")
    return _finite(found)


def _finite(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def document_of(text: str) -> Any:
    """Return the JSON document of a text: the whole text, or its last line that is one; None where there is none."""
    for part in (text, *reversed(text.splitlines())):
        if not part.lstrip().startswith(("{", "[")):
            continue
        try:
            return json.loads(part)
        except ValueError:
            continue
    return None


def readings_of(metrics: Sequence[StudyMetric], line: str, at_s: float) -> list[Reading]:
    """Return the readings of a streamed line: a JSON object, or a text that the pattern of a metric matches."""
    document, readings = document_of(line), []
    for metric in metrics:
        with suppress(ValueError):  # the line is about something else
            if "regex" in metric.source:
                readings.append(Reading(metric.name, at_s, matched_number(str(metric.source["regex"]), line)))
            elif "path" in metric.source and document is not None:
                readings.append(Reading(metric.name, at_s, number_at(document, str(metric.source["path"]))))
    return readings


class PrintedOutput:
    """Standard output and standard error of a running command.

    Reading never waits: children may keep the pipes open for ever. Of huge outputs the beginning and the end are kept.
    """

    def __init__(self, started: StartedCommand, on_line: Callable[[str], None] | None = None) -> None:
        """``on_line`` is given every complete line of standard output."""
        self._on_line, self._incomplete = on_line, b""
        self._streams: list[tuple[int, _KeptStream]] = []
        for pipe in (started.process.stdout, started.process.stderr):
            assert pipe is not None  # StartedCommand always requests both
            os.set_blocking(pipe.fileno(), False)
            self._streams.append((pipe.fileno(), _KeptStream()))

    def descriptors(self) -> list[int]:
        """Return the descriptors that become readable when something is printed, without those at their end."""
        return [descriptor for descriptor, stream in self._streams if not stream.ended]

    def read(self) -> None:
        """Read what is there."""
        for place, (descriptor, stream) in enumerate(self._streams):
            with suppress(BlockingIOError):  # nothing more is there for now
                for _ in range(_READS):
                    if stream.ended:
                        break
                    data = os.read(descriptor, _READ_BYTES)
                    stream.ended = not data
                    stream.add(data)
                    if self._on_line and place == 0:
                        *lines, self._incomplete = (self._incomplete + data).split(b"\n")
                        self._incomplete = self._incomplete[-_LINE_BYTES:]
                        for line in lines:
                            self._on_line(line.decode("utf-8", "replace"))

    @property
    def stdout(self) -> str:
        """Standard output so far."""
        return self._streams[0][1].text()

    @property
    def stderr(self) -> str:
        """Standard error so far."""
        return self._streams[1][1].text()

    def last_line(self) -> str:
        """Return the last line that is not empty, of standard error first; for messages."""
        for text in (self.stderr, self.stdout):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return lines[-1][:200]
        return ""


class _KeptStream:
    """Beginning and end of a stream."""

    def __init__(self) -> None:
        self._first, self._last, self.ended = bytearray(), bytearray(), False

    def add(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > 2 * KEPT_BYTES:
            del self._last[:-KEPT_BYTES]

    def text(self) -> str:
        return (self._first + self._last[-KEPT_BYTES:]).decode("utf-8", "replace")
