"""Spans of OpenTelemetry in protobuf, read by the C core (native/core/traces/otlp.h) as :mod:`perflaw.imports.otlp` reads them.

The Python reader reads the file where there is no library, and where the core refuses it, to tell what is wrong.
"""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from struct import pack
from typing import IO, Any, Final

import numpy as np

from perflaw.errors import DataError
from perflaw.imports.protobuf import field
from perflaw.imports.spans import (
    DUPLICATES,
    FAILED,
    FILES,
    LINKS,
    MAX_CATEGORY,
    ORPHANS,
    OUTLIVES,
    OVERLAPS,
    ForeignSpan,
    shown_name,
)
from perflaw.imports.streaming import text_table
from perflaw.imports.tracks import CATEGORY, TOO_MANY_FEATURES, ProcessEvents, Trace
from perflaw.record.tree.core import Core, TreeTables, load
from perflaw.record.tree.reservoir import scramble
from perflaw.types import Component

_KEYS: Final = (1 << 31) - 1
RUN_BYTES: Final = 1 << 23
"""Bytes of spans that are in memory; those of larger files go to a temporary file, in parts by their trace."""
_BATCH: Final = 512
"""Spans of a message."""
_SERVICES, _NAMES, _FILES, _ATTRIBUTES, _TEXTS, _COMPONENTS, _KEY_TEXTS = range(7)
"""Tables of texts of native/core/traces/otlp.h."""
_HANDLE, _U64, _U32, _I32, _INT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32, ctypes.c_int
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "otlp_open": (_HANDLE, _INT, _U32),
    "otlp_feed": (_INT, _HANDLE, ctypes.c_char_p, _U64),
    "otlp_finish": (_INT, _HANDLE),
    "otlp_texts": (_U32, _HANDLE, _U32, ctypes.POINTER(_HANDLE), ctypes.POINTER(_HANDLE)),
    "otlp_counts": (None, _HANDLE, _HANDLE),
    "otlp_play": (_INT, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _I32, _I32, _I32, _HANDLE),
    "otlp_close": (None, _HANDLE),
}
"""Result and arguments of each function of native/core/traces/otlp.h."""


class SpanProcess:
    """All spans of a file as one process; implements :class:`perflaw.imports.tracks.TraceProcess`."""

    def __init__(self, messages: Iterable[bytes], library: Path) -> None:
        """ValueError where the core refuses a message."""
        self._file, self._library = library, load(library, _FUNCTIONS)
        self._beside: IO[bytes] = tempfile.TemporaryFile(prefix="perflaw-")  # noqa: SIM115 (it lives as long as this)
        self._handle: int | None = self._library.otlp_open(self._beside.fileno(), RUN_BYTES)
        if not self._handle:
            raise MemoryError
        for data in messages:
            self._check(self._library.otlp_feed(self._handle, data, len(data)))
        self._check(self._library.otlp_finish(self._handle))
        self._known = ProcessEvents("")
        self.notes: Counter[str] = self._known.notes
        self.count, self._first, failed, links = self._counts()
        self._last = self._first
        self.definitions, self.pid = self._known.definitions, 0
        services = self._texts(_SERVICES)[1:]
        self._several = len(services) > 1
        self.name = services[0] if services and not self._several else ""
        self._extra = [
            self._known.feature(name) or -1 if any_ else 0 for name, any_ in ((FAILED, failed), (LINKS, links))
        ]

    def _check(self, error: int) -> None:
        """Raise what the number of an error means."""
        if error == errno.ENOMEM:
            raise MemoryError
        if error == errno.EBADMSG:
            raise ValueError(os.strerror(error))
        if error:
            why = f"a file in {tempfile.gettempdir()} takes its spans: {os.strerror(error).lower()}"
            raise DataError("the trace cannot be read", why, "TMPDIR=FOLDER perflaw import FILE")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.otlp_close(self._handle)
        if beside := getattr(self, "_beside", None):
            beside.close()

    def _counts(self) -> tuple[int, int, int, int]:
        """Spans, their first stamp, whether any failed, whether any has links; and the notes, whole once they are played."""
        words = np.zeros(8, np.int64)
        self._library.otlp_counts(self._handle, words.ctypes.data)
        count, duplicates, orphans, outlive, overlap, first, failed, links = words.tolist()
        for note, number in ((DUPLICATES, duplicates), (ORPHANS, orphans), (OUTLIVES, outlive), (OVERLAPS, overlap)):
            self.notes[note] = number
        return count, first, failed, links

    def _table(self, table: int) -> list[bytes]:
        return text_table(self._library.otlp_texts, self._handle, table)

    def _texts(self, table: int) -> list[str]:
        return [text.decode(errors="replace") for text in self._table(table)]

    def first_stamp(self) -> int:
        """See :class:`perflaw.imports.tracks.TraceProcess`."""
        return self._first

    def last_stamp(self) -> int:
        """See :class:`perflaw.imports.tracks.TraceProcess`."""
        return self._last

    def _codes(self) -> list[int]:
        """Number of the function of each component of the file."""
        services, names, files = map(self._texts, (_SERVICES, _NAMES, _FILES))
        rows = np.frombuffer(b"".join(self._table(_COMPONENTS)), "<u4").reshape(-1, 4).tolist()
        shown = [
            Component(shown_name(services[service], names[name], self._several), files[file], line)
            for service, name, file, line in rows
        ]
        return [0, *map(self._known.component, shown)]

    def _features(self, keys: list[str]) -> tuple[list[int], list[int], list[int]]:
        """Number of the feature of each key for its numbers, and for its texts; number of each text of a category.

        0 is no feature, -1 one that is left out.
        """
        texts = self._texts(_TEXTS)
        pairs = np.frombuffer(b"".join(self._table(_KEY_TEXTS)), "<u4").reshape(-1, 2)
        different = np.bincount(pairs[pairs[:, 1] > 0, 0], minlength=len(keys)).tolist()
        features, numbers = [0] * len(keys), [0] * len(texts)
        for key, count in enumerate(different):
            if 1 < count <= MAX_CATEGORY and keys[key] not in FILES:
                features[key] = self._known.feature(keys[key], CATEGORY) or -1
                for text in pairs[(pairs[:, 0] == key) & (pairs[:, 1] > 0), 1].tolist():
                    numbers[text] = self._known.category(texts[text])
        of_numbers = [0] * len(keys)
        for key in sorted(pairs[pairs[:, 1] == 0, 0].tolist()):
            of_numbers[key] = self._known.feature(keys[key]) or -1
        return of_numbers, features, numbers

    def tree(self, library: Path | None, seed: int) -> TreeTables:
        """See :class:`perflaw.imports.tracks.TraceProcess`; the library is the one that has read the file."""
        core = Core(self._file, seed, self.definitions.lanes())
        of_numbers, of_texts, categories = self._features(self._texts(_ATTRIBUTES))
        arrays = [np.array(one, np.int32) for one in (self._codes(), self._known.sites(), of_numbers, of_texts)]
        arrays += [np.array(categories, np.float64)]
        outcome = np.zeros(2, np.int64)
        failed, links = self._extra
        error = self._library.otlp_play(
            self._handle, core.handle, *(array.ctypes.data for array in arrays), failed, links,
            scramble(seed) & _KEYS, outcome.ctypes.data,
        )  # fmt: skip
        if error == errno.EBADMSG:
            why = "spans are their own ancestors: parentSpanId leads in a circle"
            raise DataError("the trace cannot be read", why, "export the trace anew and import it")
        self._check(error)
        self._counts()
        self._last, self.notes[TOO_MANY_FEATURES] = outcome.tolist()
        return core.finish()


def messages_of(spans: Iterable[ForeignSpan]) -> Iterator[bytes]:
    """Spans of another format as messages, some spans each; ValueError where a span cannot be told in OTLP."""
    batch: list[bytes] = []
    service = ""
    for span in spans:
        if batch and (span.service != service or len(batch) == _BATCH):
            yield _message(service, batch)
            batch.clear()
        service = span.service
        batch.append(field(2, b"".join(_parts(span))))
    if batch:
        yield _message(service, batch)


def _message(service: str, spans: list[bytes]) -> bytes:
    resource = field(1, field(1, b"service.name") + field(2, field(1, service.encode())))
    return field(1, field(1, resource) + field(2, b"".join(spans)))


def _parts(span: ForeignSpan) -> Iterator[bytes]:
    """The fields of a message ``Span``."""
    trace, own = span.identity
    end = 0 if span.end is None else span.end
    if span.end == 0 or min(span.start, end) < 0 or (span.parent and span.parent[0] != trace):
        raise ValueError("times before 1970, or a parent of another trace")
    yield field(1, trace.encode()) + field(2, own.encode()) + field(5, span.name.encode())
    yield b"\x39" + span.start.to_bytes(8, "little") + b"\x41" + end.to_bytes(8, "little")
    if span.parent:
        yield field(4, span.parent[1].encode())
    for key, value in span.attributes.items():
        if isinstance(value, str):
            told = field(1, value.encode())
        elif isinstance(value, bool):
            told = field(2, int(value))
        elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            told = field(3, value & (1 << 64) - 1)
        elif isinstance(value, int | float | Decimal):
            told = b"\x21" + pack("<d", value)
        else:
            continue
        yield field(9, field(1, key.encode()) + field(2, told))
    yield field(13, b"") * span.links
    if span.failed:
        yield field(15, field(3, 2))


def read(messages: Iterable[bytes], library: Path, tool: str = "OTLP") -> Trace | None:
    """The calls of all spans; None where the Python reader tells what is wrong."""
    try:
        process = SpanProcess(messages, library)
    except ValueError:
        return None
    return Trace(tool, (process,) if process.count else (), 1, epoch=True)
