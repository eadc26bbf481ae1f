"""From the tables that the C core exports (native/export.h) to a :class:`CallTree`. A test compares the sizes of rows.

Exact sums are two columns, low word first. A table of lanes has one row a lane for every row of the table before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import Any, Final

import numpy as np

from perflaw.collect.call_tree import CallTree, Link, LinkSums, Node, Sample, Sums

Rows = np.ndarray[Any, np.dtype[Any]]


class Table(IntEnum):
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


_HEAD = "lanes calls seen first last folded links_left_out pairs_left_out lost full memory"
_COLUMNS: Final[dict[Table, str]] = {
    Table.HEAD: _HEAD,
    Table.NODES: "parent site code depth n open",
    Table.NODE_LANES: "sum_x: sum_xx: min_x max_x",
    Table.PAIRS: "node i j",
    Table.PAIR_LANES: "sum_yy:",
    Table.LINKS: "ancestor descendant n n_once sum_k: sum_kk:",
    Table.LINK_LANES: "sum_ky: sum_y: sum_yy: sum_yx:",
    Table.HISTOGRAM: "node bucket count",
    Table.WAITS: "node n sum_w: sum_ww: least most",
    Table.CODES: "code closed recorded",
    Table.CODE_LANES: "total: self:",
    Table.SAMPLES: "code sequence node started uniform_key stratum_key callees features",
    Table.COSTS: "cost",
    Table.CALLEES: "node calls time cpu",
    Table.FEATURES: "number value*",
}
"""Columns of each table: int64, or a sum (``:``), or a float64 (``*``)."""


def _dtype(columns: str) -> np.dtype[Any]:
    kinds: dict[str, Any] = {":": [("low", "<u8"), ("high", "<i8")], "*": "<f8"}
    return np.dtype([(name.rstrip(":*"), kinds.get(name[-1], "<i8")) for name in columns.split()])


DTYPES: Final = {table: _dtype(columns) for table, columns in _COLUMNS.items()}
"""Row of each table."""


def call_tree(metrics: tuple[str, ...], tables: dict[Table, Rows]) -> CallTree:
    """The finished tree that the tables hold."""
    head = dict(zip(_HEAD.split(), tables[Table.HEAD][0].tolist(), strict=True))
    nodes = _nodes(tables, len(metrics))
    totals, selves = _codes(tables, len(metrics))
    return CallTree(
        metrics,
        nodes,
        totals,
        selves,
        _strata(nodes),
        _samples(tables, len(metrics)),
        head["calls"],
        head["first"] if head["seen"] else None,
        head["last"],
        head["folded"],
        head["links_left_out"],
    )


def _sums(column: Rows) -> list[int]:
    """Whole numbers of a column of sums."""
    high, low = column["high"].tolist(), column["low"].tolist()
    return [(upper << 64) + lower for upper, lower in zip(high, low, strict=True)]


def _columns(rows: Rows) -> Iterator[tuple[Any, ...]]:
    """The rows as tuples of plain numbers."""
    names = rows.dtype.names or ()
    columns = [_sums(rows[name]) if rows[name].dtype.names else rows[name].tolist() for name in names]
    return zip(*columns, strict=True)


def _nodes(tables: dict[Table, Rows], lanes: int) -> list[Node]:
    sums = (Sums(*row) for row in _columns(tables[Table.NODE_LANES]))
    nodes = [Node(*row) for row in _columns(tables[Table.NODES])]
    for each in nodes:
        each.lanes = list(islice(sums, lanes))
    products = (total for (total,) in _columns(tables[Table.PAIR_LANES]))
    for node, i, j in _columns(tables[Table.PAIRS]):
        nodes[node].pairs[i, j] = list(islice(products, lanes))
    parts = (LinkSums(*row) for row in _columns(tables[Table.LINK_LANES]))
    for ancestor, descendant, *counts in _columns(tables[Table.LINKS]):
        link = nodes[ancestor].links[descendant] = Link(*counts)
        link.lanes = list(islice(parts, lanes))
    for node, bucket, count in _columns(tables[Table.HISTOGRAM]):
        nodes[node].histogram[bucket] = count
    for node, *waits in _columns(tables[Table.WAITS]):
        nodes[node].waits = waits
    return nodes


def _codes(tables: dict[Table, Rows], lanes: int) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    totals, selves = {}, {}
    sums = _columns(tables[Table.CODE_LANES])
    for code, closed, recorded in _columns(tables[Table.CODES]):
        total, own = zip(*islice(sums, lanes), strict=True)
        if closed:
            totals[code] = list(total)
        if recorded:
            selves[code] = list(own)
    return totals, selves


def _strata(nodes: list[Node]) -> dict[int, dict[int, int]]:
    """A stratum is a power of two, which has four buckets in the nodes' histograms."""
    strata: dict[int, dict[int, int]] = {}
    for node in nodes:
        for bucket, count in node.histogram.items():
            counts = strata.setdefault(node.code, {})
            counts[bucket // 4] = counts.get(bucket // 4, 0) + count
    return strata


def _samples(tables: dict[Table, Rows], lanes: int) -> dict[int, list[Sample]]:
    samples: dict[int, list[Sample]] = {}
    costs = iter(tables[Table.COSTS]["cost"].tolist())
    callees, features = iter(tables[Table.CALLEES].tolist()), iter(tables[Table.FEATURES].tolist())
    for code, *sample, callee_count, feature_count in _columns(tables[Table.SAMPLES]):
        counts = ((costs, lanes), (callees, callee_count), (features, feature_count))
        samples.setdefault(code, []).append(Sample(*sample, *(tuple(islice(rows, count)) for rows, count in counts)))
    return samples
