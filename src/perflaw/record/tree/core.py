"""The C core of the call tree (native/core.h) as the recorder uses it: rings go in, a :class:`CoreTree` comes out.

ctypes lets go of the GIL for the length of a call, so several cores can work at once; one core belongs to one thread.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.record.tree.call_tree import Limits
from perflaw.record.tree.core_tables import DTYPES, CoreTree, Export

MAX_DISTANCE: Final = 16
"""How far links reach."""
PATHS_BYTES: Final = 64 << 20
"""What durations by call path may take of memory: the functions of least time are dropped beyond it."""
STEP: Final = 1 << 16
"""Records that one step takes at most: a few milliseconds."""

_HANDLE, _U64, _U32, _SIZE = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_size_t
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "core_open": (_HANDLE, _U64, _U32),
    "core_limits": (None, _HANDLE, _U32, _U32, _U32, _U32, _U32),
    "core_metrics": (None, _HANDLE, _U32),
    "core_paths": (ctypes.c_int, _HANDLE, _U32, _U64),
    "core_ring": (ctypes.c_int, _HANDLE, ctypes.c_char_p),
    "core_step": (_U64, _HANDLE, _U64),
    "core_asks": (ctypes.c_int, _HANDLE),
    "core_stop": (None, _HANDLE),
    "core_leave": (None, _HANDLE),
    "core_finish": (None, _HANDLE),
    "core_export": (_SIZE, _HANDLE, _U32, _HANDLE, _SIZE),
    "core_row_size": (_SIZE, _U32),
    "core_event_layout": (ctypes.c_char_p,),
    "core_way": (ctypes.c_char_p, ctypes.c_char_p),
    "core_tick": (ctypes.c_double,),
    "core_close": (None, _HANDLE),
}
"""Result and arguments of each function of native/core.h."""


def load(library: Path) -> ctypes.CDLL:
    """The shared library, its functions declared; OSError if it cannot be loaded."""
    loaded = ctypes.CDLL(str(library))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def way(library: Path, of: str) -> str:
    """How this machine's ``clock`` or ``cpu`` time is known to the native tracer, in words."""
    return str(load(library).core_way(of.encode()).decode())


def tick(library: Path) -> float:
    """Step of the native tracer's clock on this machine, ns."""
    return float(load(library).core_tick())


class Core:
    """The call tree of one process."""

    def __init__(
        self,
        library: Path,
        seed: int,
        metrics: tuple[str, ...] = ("time", "cpu", "events"),
        limits: Limits | None = None,
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
        """Keep durations by call path too, of CPU time as well where that is measured; before the first step."""
        if error := self._library.core_paths(self._handle, 1 + with_cpu, most_bytes):
            raise MemoryError(os.strerror(error))

    def attach(self, path: Path) -> None:
        """Read this ring from now on; OSError if it cannot be read or is of another version."""
        if error := self._library.core_ring(self._handle, os.fsencode(path)):
            raise OSError(error, os.strerror(error), str(path))

    def step(self, most: int = STEP) -> int:
        """Take in what has arrived, at most so many records, some of each ring in turn; how many there were."""
        return int(self._library.core_step(self._handle, most))

    def asks(self) -> bool:
        """Whether a record waits for rings that are not attached yet; the next step takes it in anyway."""
        return bool(self._library.core_asks(self._handle))

    def stop(self) -> None:
        """Ask the writers of all rings to write no more."""
        self._library.core_stop(self._handle)

    def leave(self) -> None:
        """Unmap all rings; the tree stays."""
        self._library.core_leave(self._handle)

    def finish(self) -> CoreTree:
        """The call tree; what is still open is counted and gives no sample. The core is closed then."""
        self._library.core_finish(self._handle)
        tables = {table: self._export(table) for table in Export}
        self.close()
        return CoreTree(self.metrics, tables)

    def close(self) -> None:
        """Give everything back; nothing else may be called afterwards."""
        self._library.core_close(self._handle)
        self._handle = None

    def _export(self, table: Export) -> np.ndarray[Any, np.dtype[Any]]:
        size = self._library.core_export(self._handle, table, None, 0)
        rows = np.empty(size // DTYPES[table].itemsize, DTYPES[table])
        self._library.core_export(self._handle, table, rows.ctypes.data, size)
        return rows
