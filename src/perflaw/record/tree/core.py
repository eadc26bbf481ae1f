"""The C core of the call tree (native/core/library/core.h): rings go in, the tables of a finished call tree come out.

ctypes releases the GIL during a call, so several cores can work at once; one core belongs to one thread. A test compares
the sizes of the tables' rows with those of native/core/library/rows.h.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.record.tree.records import DEFAULT_LANES, MAX_DISTANCE, RECORD, TreeLimits
from perflaw.store.columns import WIDE, Array, Column


class Export(IntEnum):
    """Exported tables: their numbers, as in native/core/library/rows.h, and their columns.

    A column is int64; a sum of 128 bits (``:``), low word first; or float64 (``*``).
    """

    HEAD = 0, "lanes calls seen first last folded links_left_out pairs_left_out lost full memory unread_rings"
    NODES = 1, "parent site code depth n open counted"
    NODE_LANES = 2, "sum_x: sum_xx: min_x max_x"
    PAIRS = 3, "node i j"
    PAIR_LANES = 4, "sum_yy:"
    LINKS = 5, "ancestor descendant n n_once sum_k: sum_kk:"
    LINK_LANES = 6, "sum_ky: sum_y: sum_yy: sum_yx:"
    HISTOGRAM = 7, "node bucket count"
    WAITS = 8, "node n sum_w: sum_ww: least most"
    CODES = 9, "code closed recorded"
    CODE_LANES = 10, "total: self:"
    SAMPLES = 11, "code sequence node started uniform_key stratum_key waited resumes callees features parts"
    COSTS = 12, "cost"
    CALLEES = 13, "node calls time cpu"
    FEATURES = 14, "number value*"
    WORST = 15, "code sequence node started time cpu events spans"
    SPANS = 16, "node parent started time"
    PATH_CODES = 17, "code dropped"
    PATH_SEEN = 18, "code observation begin end points nested"
    PATH_PIECES = 19, "code node observation clock scale zeros buckets levels"
    PATH_BUCKETS = 20, "index count"
    PATH_BATCHES = 21, "batches sum squares:"
    PARTS = 22, "node calls time cpu"

    row: np.dtype[Any]
    """Type of a row."""

    def __new__(cls, number: int, columns: str) -> Export:
        """A table and the type of its rows."""
        table, kinds = int.__new__(cls, number), {":": WIDE, "*": "<f8"}
        table._value_ = number
        table.row = np.dtype([(name.rstrip(":*"), kinds.get(name[-1], "<i8")) for name in columns.split()])
        return table


def rows_of(table: Array) -> Iterator[Any]:
    """The rows of an exported table as tuples of Python's numbers."""
    return zip(*(Column(table[name]).plain() for name in table.dtype.names or ()), strict=True)


@dataclass(frozen=True, slots=True)
class TreeTables:
    """A finished call tree in columns. The tables of a recording are made from it without an object a row."""

    metrics: tuple[str, ...]
    """Metric of each lane."""
    tables: dict[Export, Array]
    """All tables. A table of lanes has a row a lane for every row of the table before it."""

    def head(self, name: str) -> int:
        """The value of a column of the table HEAD, which has one row."""
        return int(self.tables[Export.HEAD][name][0])

    @property
    def calls(self) -> int:
        """Number of completed invocations."""
        return self.head("calls")

    @property
    def first(self) -> int | None:
        """Stamp of the first entry or exit; None if there was none."""
        return self.head("first") if self.head("seen") else None

    @property
    def nodes(self) -> Array:
        """The nodes by number; 0 is the root."""
        return self.tables[Export.NODES]

    @property
    def is_empty(self) -> bool:
        """Whether the tree has no node but the root: no call was recorded."""
        return len(self.nodes) < 2

    def by_lane(self, table: Export) -> Array:
        """A table of lanes with shape (rows of the table before it, lanes)."""
        return self.tables[table].reshape(-1, len(self.metrics))


PATHS_BYTES: Final = 64 << 20
"""Memory for durations by call path; beyond it, the functions of least time are dropped."""
STEP: Final = 1 << 16
"""Maximum number of records that one step takes: a few milliseconds."""

_HANDLE, _U64, _U32, _SIZE = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_size_t
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "core_open": (_HANDLE, _U64, _U32),
    "core_limits": (None, _HANDLE, _U32, _U32, _U32, _U32, _U32),
    "core_metrics": (None, _HANDLE, _U32),
    "core_paths": (ctypes.c_int, _HANDLE, _U32, _U64),
    "core_attach": (ctypes.c_int, _HANDLE, ctypes.c_char_p),
    "core_step": (_U64, _HANDLE, _U64),
    "core_awaits_ring": (ctypes.c_int, _HANDLE),
    "core_stop": (None, _HANDLE),
    "core_detach": (None, _HANDLE),
    "core_finish": (None, _HANDLE),
    "core_export": (_SIZE, _HANDLE, _U32, _HANDLE, _SIZE),
    "core_row_size": (_SIZE, _U32),
    "core_event_layout": (ctypes.c_char_p,),
    "core_clock_source": (ctypes.c_char_p, ctypes.c_char_p),
    "core_clock_step": (ctypes.c_double,),
    "core_close": (None, _HANDLE),
}
"""Result and arguments of each function of native/core/library/core.h."""


def load(library: Path, functions: Mapping[str, tuple[Any, ...]] = _FUNCTIONS) -> ctypes.CDLL:
    """The shared library with these functions declared; OSError if it cannot be loaded."""
    loaded = ctypes.CDLL(str(library))
    for name, (result, *arguments) in functions.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def clock_words(library: Path, clock: str) -> str:
    """How the native tracer reads the ``clock`` or the ``cpu`` time on this machine, in words."""
    return str(load(library).core_clock_source(clock.encode()).decode())


@cache
def clock_tick(library: Path) -> float:
    """Step of the native tracer's clock on this machine, ns."""
    return float(load(library).core_clock_step())


class Core:
    """The call tree of one process."""

    def __init__(
        self,
        library: Path,
        seed: int,
        metrics: tuple[str, ...] = DEFAULT_LANES,
        limits: TreeLimits | None = None,
        max_distance: int = MAX_DISTANCE,
    ) -> None:
        self.metrics = metrics
        self._library = load(library)
        self._handle: int | None = self._library.core_open(seed, max_distance)
        if not self._handle:
            raise MemoryError("no address space for a call tree: lift the limit of virtual memory (ulimit -v)")
        self._library.core_metrics(self._handle, len(metrics))
        if limits:
            bounds = (limits.nodes, limits.links, limits.pairs, limits.components, limits.spans)
            self._library.core_limits(self._handle, *bounds)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def collect_paths(self, with_cpu: bool, most_bytes: int = PATHS_BYTES) -> None:
        """Also keep durations by call path, of CPU time too if ``with_cpu``. Call it before the first step."""
        if error := self._library.core_paths(self._handle, 1 + with_cpu, most_bytes):
            raise MemoryError(os.strerror(error))

    def attach(self, path: Path) -> None:
        """Read this ring from now on; OSError if it cannot be read or has another version."""
        if error := self._library.core_attach(self._handle, os.fsencode(path)):
            raise OSError(error, os.strerror(error), str(path))

    def step(self, most: int = STEP) -> int:
        """Read the records that have arrived, at most ``most``, some of each ring in turn; returns their number."""
        return int(self._library.core_step(self._handle, most))

    @property
    def handle(self) -> int:
        """The core itself, for functions of the library that give it events."""
        assert self._handle
        return self._handle

    def asks(self) -> bool:
        """Whether a record waits for a ring that is not attached yet; the next step reads it in any case."""
        return bool(self._library.core_awaits_ring(self._handle))

    def stop(self) -> None:
        """Ask the writers of all rings to write no more."""
        self._library.core_stop(self._handle)

    def leave(self) -> None:
        """Unmap all rings; the tree stays."""
        self._library.core_detach(self._handle)

    def finish(self) -> TreeTables:
        """The call tree. Open invocations are counted and give no sample. The core is closed afterwards."""
        self._library.core_finish(self._handle)
        tables = {}
        for table in Export:
            size = self._library.core_export(self._handle, table, None, 0)
            rows = np.empty(size // table.row.itemsize, table.row)
            self._library.core_export(self._handle, table, rows.ctypes.data, size)
            tables[table] = rows
        self.close()
        return TreeTables(self.metrics, tables)

    def close(self) -> None:
        """Free everything; nothing else may be called afterwards."""
        self._library.core_close(self._handle)
        self._handle = None


_RING_MAGIC: Final = int.from_bytes(b"PRFRING1", "little")
_RING_VERSION: Final = 1
_RING_RECORDS: Final = 4096
"""Offset of the records in a ring file (native/core/base/ring.h)."""
_RING_WRITTEN: Final = 64
"""Offset of the number of written records."""
RING_CAPACITY: Final = 1 << 14
"""Records that a ring holds by default, a power of two."""


class RingWriter:
    """The writer's end of a ring file, for a core that takes all records between two calls of ``append``."""

    def __init__(self, path: Path, capacity: int = RING_CAPACITY) -> None:
        """Make the file."""
        self.path, self.capacity, self.count = path, capacity, 0
        head = np.array([_RING_MAGIC], "<u8").tobytes() + np.array([_RING_VERSION, capacity], "<u4").tobytes()
        path.write_bytes(head.ljust(_RING_RECORDS + capacity * RECORD.itemsize, b"\0"))
        self.bytes = np.memmap(path, np.uint8, "r+")

    def append(self, rows: Array) -> None:
        """Write records, at most as many as the ring holds; the reader has taken all earlier ones."""
        places = np.arange(self.count, self.count + len(rows)) % self.capacity
        self.bytes[_RING_RECORDS:].view(RECORD)[places] = rows
        self.count += len(rows)
        self.bytes[_RING_WRITTEN : _RING_WRITTEN + 8].view("<u8")[0] = self.count
