"""Spans of OpenTelemetry in protobuf, read by the C core (native/core/traces/otlp.h) as :mod:`perflaw.imports.otlp` reads them.

The Python reader reads the file where there is no library, and where the core refuses it, to tell what is wrong.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.imports.spans import (
    DUPLICATES,
    FAILED,
    FILES,
    LINKS,
    MAX_CATEGORY,
    ORPHANS,
    OUTLIVES,
    OVERLAPS,
    shown_name,
)
from perflaw.imports.streaming import text_table
from perflaw.imports.tracks import CATEGORY, TOO_MANY_FEATURES, ProcessEvents, Trace
from perflaw.record.tree.core import Core, TreeTables, load
from perflaw.record.tree.reservoir import scramble
from perflaw.types import Component

_KEYS: Final = (1 << 31) - 1
_SERVICES, _NAMES, _FILES, _ATTRIBUTES, _TEXTS, _COMPONENTS, _KEY_TEXTS = range(7)
"""Tables of texts of native/core/traces/otlp.h."""
_HANDLE, _U64, _U32, _I32, _INT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32, ctypes.c_int
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "otlp_open": (_HANDLE, ctypes.c_char_p, _U64, ctypes.POINTER(_INT)),
    "otlp_texts": (_U32, _HANDLE, _U32, ctypes.POINTER(_HANDLE), ctypes.POINTER(_HANDLE)),
    "otlp_counts": (None, _HANDLE, _HANDLE),
    "otlp_play": (_INT, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _HANDLE, _I32, _I32, _I32, _HANDLE),
    "otlp_close": (None, _HANDLE),
}
"""Result and arguments of each function of native/core/traces/otlp.h."""


class SpanProcess:
    """All spans of a file as one process; implements :class:`perflaw.imports.tracks.TraceProcess`."""

    def __init__(self, data: bytes, library: Path) -> None:
        """ValueError where the core refuses the message."""
        self._data, self._file, self._library = data, library, load(library, _FUNCTIONS)
        error = _INT()
        self._handle: int | None = self._library.otlp_open(data, len(data), error)
        if not self._handle or error.value == errno.ENOMEM:
            raise MemoryError
        if error.value:
            raise ValueError(os.strerror(error.value))
        words = np.zeros(8, np.int64)
        self._library.otlp_counts(self._handle, words.ctypes.data)
        self.count, duplicates, orphans, outlive, overlap, self._first, failed, links = words.tolist()
        self._last, self._known = self._first, ProcessEvents("")
        self.notes: Counter[str] = self._known.notes
        self.notes.update({DUPLICATES: duplicates, ORPHANS: orphans, OUTLIVES: outlive, OVERLAPS: overlap})
        self.definitions, self.pid = self._known.definitions, 0
        services = self._texts(_SERVICES)[1:]
        self._several = len(services) > 1
        self.name = services[0] if services and not self._several else ""
        self._extra = [
            self._known.feature(name) or -1 if any_ else 0 for name, any_ in ((FAILED, failed), (LINKS, links))
        ]

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.otlp_close(self._handle)

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
        if self._library.otlp_play(
            self._handle, core.handle, *(array.ctypes.data for array in arrays), failed, links,
            scramble(seed) & _KEYS, outcome.ctypes.data,
        ):  # fmt: skip
            raise MemoryError
        self._last, self.notes[TOO_MANY_FEATURES] = outcome.tolist()
        return core.finish()


def read(data: bytes, library: Path) -> Trace | None:
    """The calls of all spans; None where the Python reader tells what is wrong."""
    try:
        process = SpanProcess(data, library)
    except ValueError:
        return None
    return Trace("OTLP", (process,) if process.count else (), 1, epoch=True)
