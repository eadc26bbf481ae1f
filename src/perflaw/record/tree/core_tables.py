"""A finished call tree as the tables that the C core exports (native/export.h). A test compares the sizes of rows.

Exact sums are two columns, low word first. A table of lanes has one row a lane for every row of the table before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np

from perflaw.store.columns import WIDE, Array


class Export(IntEnum):
    """Numbers of the tables, as in native/core.h."""

    HEAD = 0
    NODES = 1
    NODE_LANES = 2
    PAIRS = 3
    PAIR_LANES = 4
    LINKS = 5
    LINK_LANES = 6
    HISTOGRAM = 7
    WAITS = 8
    CODES = 9
    CODE_LANES = 10
    SAMPLES = 11
    COSTS = 12
    CALLEES = 13
    FEATURES = 14
    WORST = 15
    SPANS = 16
    PATH_CODES = 17
    PATH_SEEN = 18
    PATH_PIECES = 19
    PATH_BUCKETS = 20
    PATH_BATCHES = 21


_HEAD: Final = "lanes calls seen first last folded links_left_out pairs_left_out lost full memory"
COLUMNS: Final[dict[Export, str]] = {
    Export.HEAD: _HEAD,
    Export.NODES: "parent site code depth n open",
    Export.NODE_LANES: "sum_x: sum_xx: min_x max_x",
    Export.PAIRS: "node i j",
    Export.PAIR_LANES: "sum_yy:",
    Export.LINKS: "ancestor descendant n n_once sum_k: sum_kk:",
    Export.LINK_LANES: "sum_ky: sum_y: sum_yy: sum_yx:",
    Export.HISTOGRAM: "node bucket count",
    Export.WAITS: "node n sum_w: sum_ww: least most",
    Export.CODES: "code closed recorded",
    Export.CODE_LANES: "total: self:",
    Export.SAMPLES: "code sequence node started uniform_key stratum_key callees features",
    Export.COSTS: "cost",
    Export.CALLEES: "node calls time cpu",
    Export.FEATURES: "number value*",
    Export.WORST: "code sequence node started time cpu events spans",
    Export.SPANS: "node parent started time",
    Export.PATH_CODES: "code dropped",
    Export.PATH_SEEN: "code observation begin end points nested",
    Export.PATH_PIECES: "code node observation clock scale zeros buckets levels",
    Export.PATH_BUCKETS: "index count",
    Export.PATH_BATCHES: "batches sum squares:",
}
"""Columns of each table: int64, or a sum (``:``), or a float64 (``*``)."""


def _dtype(columns: str) -> np.dtype[Any]:
    kinds: dict[str, Any] = {":": WIDE, "*": "<f8"}
    return np.dtype([(name.rstrip(":*"), kinds.get(name[-1], "<i8")) for name in columns.split()])


DTYPES: Final = {table: _dtype(columns) for table, columns in COLUMNS.items()}
"""Row of each table."""


@dataclass(frozen=True, slots=True)
class CoreTree:
    """A finished call tree in columns: what the tables of a recording are made of without an object a row."""

    metrics: tuple[str, ...]
    """Name of each lane."""
    tables: dict[Export, Array]
    """All tables."""

    def told(self, name: str) -> int:
        """A column of the table HEAD."""
        return int(self.tables[Export.HEAD][name][0])

    @property
    def calls(self) -> int:
        """Completed invocations."""
        return self.told("calls")

    @property
    def first(self) -> int | None:
        """Stamp of the first entry or exit."""
        return self.told("first") if self.told("seen") else None

    @property
    def nodes(self) -> Array:
        """The nodes by number; 0 is the root."""
        return self.tables[Export.NODES]

    def by_lane(self, table: Export) -> Array:
        """A table of lanes as (row of the table before it, lane)."""
        return self.tables[table].reshape(-1, len(self.metrics))
