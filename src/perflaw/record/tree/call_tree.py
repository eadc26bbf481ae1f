"""A finished call tree as objects, and its conversion to and from tables (:class:`TreeTables`), exactly.

Sums are exact integers. A lane is a metric: time, CPU time, events, then whatever else was measured. Costs are inclusive:
the invocation's own cost and that of its callees, in the unit of the lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from perflaw.record.tree.core import Export, TreeTables, rows_of
from perflaw.store.columns import WIDE, Array, wide

if TYPE_CHECKING:
    from perflaw.record.tree.path_builder import FunctionPaths


@dataclass
class LaneSums:
    """Sums of one lane of a node: inclusive costs X of its completed invocations."""

    sum_x: int = 0
    """ΣX."""
    sum_xx: int = 0
    """ΣX²."""
    min_x: int = 0
    """Smallest X; 0 if no invocation completed."""
    max_x: int = 0
    """Largest X; 0 if no invocation completed or none has a positive cost."""


@dataclass
class LinkSums:
    """Sums of one lane of a link: cost Y of a descendant within invocations of its ancestor, whose cost is X."""

    sum_ky: int = 0
    """ΣKY, where K is the number of calls of the descendant within the invocation."""
    sum_y: int = 0
    """ΣY."""
    sum_yy: int = 0
    """ΣY²."""
    sum_yx: int = 0
    """ΣYX."""


@dataclass
class TreeLink:
    """Sums over the invocations of an ancestor that called a descendant, directly or not."""

    n: int = 0
    """Number of these invocations."""
    n_once: int = 0
    """Number of these invocations that called the descendant exactly once."""
    sum_k: int = 0
    """ΣK."""
    sum_kk: int = 0
    """ΣK²."""
    lanes: list[LinkSums] = field(default_factory=list)
    """Sums by lane."""


@dataclass
class TreeNode:
    """A calling context and the sums over its completed invocations."""

    parent: int
    """Number of the caller's node; -1 for the root."""
    site: int
    """Call site within the caller's code; -2 for contexts that were put together because a limit was reached."""
    code: int
    """Number of the function; -1 for the root."""
    depth: int
    """Number of edges to the root."""
    n: int = 0
    """Completed invocations."""
    open: int = 0
    """Invocations that never completed."""
    counted: int = 0
    """Calls that were counted and not timed; the lane of events has them as well, and no other lane."""
    lanes: list[LaneSums] = field(default_factory=list)
    """Sums by lane."""
    pairs: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Parts i <= j of the cost (LOCAL, OTHER or a callee's node) → ΣY_i·Y_j by lane."""
    links: dict[int, TreeLink] = field(default_factory=dict)
    """Node of a descendant → its sums."""
    histogram: dict[int, int] = field(default_factory=dict)
    """Logarithmic bucket of the time → number of invocations."""
    waits: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    """n, ΣW, ΣW², minimum and maximum of the time W that generators and coroutines were suspended; X excludes W."""


@dataclass
class SampledCall:
    """A sampled invocation."""

    sequence: int
    """Its place in the order of completion, from 1."""
    node: int
    """Number of its node."""
    started: int
    """Stamp of its start."""
    uniform_key: int
    """Its priority in the function's uniform sample; -1 if it is in its stratum's sample only."""
    stratum_key: int
    """Its priority in its stratum's sample."""
    waited: int = 0
    """How long it was suspended, of a generator or coroutine, and no consumer had a value of it; its time excludes that."""
    resumes: int = 0
    """How often generators and coroutines went on within it, itself included."""
    costs: tuple[int, ...] = ()
    """Inclusive cost by lane."""
    callees: tuple[tuple[int, int, int, int], ...] = ()
    """Node, calls, time and CPU time of each direct callee."""
    features: tuple[tuple[int, float], ...] = ()
    """Number and value of each feature read at its entry."""
    parts: tuple[tuple[int, int, int, int], ...] = ()
    """Of an observation in the uniform sample: node, calls, own time and own CPU time of all work within it."""


@dataclass(frozen=True)
class CallSpan:
    """A call within one of the longest invocations, or the segment of a generator or coroutine between suspensions."""

    node: int
    """Number of its node."""
    parent: int
    """Index of the enclosing span; -1 for the invocation itself."""
    started: int
    """ns since the start of the invocation."""
    time: int
    """Duration, ns."""


@dataclass
class LongestCall:
    """One of the longest invocations of a function."""

    sequence: int
    """Its place in the order of completion, from 1."""
    node: int
    """Number of its node."""
    started: int
    """Stamp of its start."""
    time: int
    """Duration, ns."""
    cpu: int
    """CPU time, ns."""
    events: int
    """Number of calls within it, itself included."""
    spans: tuple[CallSpan, ...] = ()
    """Its longest spans, callers first."""


@dataclass
class RecordedTree:
    """Everything that a builder learnt from the events of a process."""

    metrics: tuple[str, ...]
    """Metric of each lane."""
    nodes: list[TreeNode]
    """Nodes by number; 0 is the root, which stands for everything outside recorded calls."""
    totals: dict[int, list[int]]
    """Function → inclusive cost by lane; recursion counts once."""
    selves: dict[int, list[int]]
    """Function → own cost by lane."""
    strata: dict[int, dict[int, int]]
    """Function → stratum (bits of the time) → completed invocations."""
    samples: dict[int, list[SampledCall]]
    """Function → its sampled invocations, in order of completion."""
    calls: int = 0
    """Completed invocations."""
    first: int | None = None
    """Stamp of the first entry or exit."""
    last: int = 0
    """Stamp of the last entry or exit."""
    folded: int = 0
    """Calls that went to coarser nodes because a limit was reached; usually 0."""
    unlinked: int = 0
    """How often the part of a descendant in an invocation was dropped because there were too many links."""
    dropped: int = 0
    """Records that were lost because the recorder had no memory."""
    worst: dict[int, list[LongestCall]] = field(default_factory=dict)
    """Function → its longest invocations, in order of completion."""
    paths: dict[int, FunctionPaths] = field(default_factory=dict)
    """Function → durations by call path; empty unless they were asked for."""


def strata_of(nodes: list[TreeNode]) -> dict[int, dict[int, int]]:
    """Function → stratum → invocations. A stratum is a power of two, which has four buckets in the histograms."""
    strata: dict[int, dict[int, int]] = {}
    for node in nodes:
        for bucket, count in node.histogram.items():
            counts = strata.setdefault(node.code, {})
            counts[bucket // 4] = counts.get(bucket // 4, 0) + count
    return strata


def costs_of_codes(tree: TreeTables) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Totals and selves by function, as in :class:`RecordedTree`."""
    totals, selves = {}, {}
    sums = rows_of(tree.tables[Export.CODE_LANES])
    for code, closed, recorded in rows_of(tree.tables[Export.CODES]):
        total, own = zip(*islice(sums, len(tree.metrics)), strict=True)
        if closed:
            totals[code] = list(total)
        if recorded:
            selves[code] = list(own)
    return totals, selves


def to_tables(tree: RecordedTree) -> TreeTables:
    """The tree in columns."""
    nodes = list(enumerate(tree.nodes))
    links = [(number, below, link) for number, node in nodes for below, link in node.links.items()]
    codes = sorted(tree.totals.keys() | tree.selves.keys())
    nothing = [0] * len(tree.metrics)
    costs = (zip(tree.totals.get(code, nothing), tree.selves.get(code, nothing), strict=True) for code in codes)
    samples = [(code, sample) for code, some in tree.samples.items() for sample in some]
    worst = [(code, call) for code, calls in tree.worst.items() for call in calls]
    head = (tree.calls, tree.first is not None, tree.first or 0, tree.last, tree.folded, tree.unlinked)
    rows: dict[Export, Iterable[tuple[Any, ...]]] = {
        Export.HEAD: [(len(tree.metrics), *head, 0, tree.dropped, 0, 0, 0)],
        Export.NODES: (
            (node.parent, node.site, node.code, node.depth, node.n, node.open, node.counted) for node in tree.nodes
        ),
        Export.NODE_LANES: (_values(x) for node in tree.nodes for x in node.lanes),
        Export.PAIRS: ((number, i, j) for number, node in nodes for i, j in node.pairs),
        Export.PAIR_LANES: ((total,) for node in tree.nodes for totals in node.pairs.values() for total in totals),
        Export.LINKS: ((*ends, link.n, link.n_once, link.sum_k, link.sum_kk) for *ends, link in links),
        Export.LINK_LANES: (_values(y) for _, _, link in links for y in link.lanes),
        Export.HISTOGRAM: ((number, *row) for number, node in nodes for row in node.histogram.items()),
        Export.WAITS: ((number, *node.waits) for number, node in nodes if node.waits[0]),
        Export.CODES: ((code, code in tree.totals, code in tree.selves) for code in codes),
        Export.CODE_LANES: chain.from_iterable(costs),
        Export.SAMPLES: (
            (code, *_values(call)[:-4], len(call.callees), len(call.features), len(call.parts))
            for code, call in samples
        ),
        Export.COSTS: ((cost,) for _, call in samples for cost in call.costs),
        Export.CALLEES: chain.from_iterable(call.callees for _, call in samples),
        Export.FEATURES: chain.from_iterable(call.features for _, call in samples),
        Export.PARTS: chain.from_iterable(call.parts for _, call in samples),
        Export.WORST: ((code, *_values(call)[:-1], len(call.spans)) for code, call in worst),
        Export.SPANS: (_values(span) for _, call in worst for span in call.spans),
    }
    if tree.paths:  # trees without durations by path, and those that the C core builds, do without that module
        from perflaw.record.tree.path_builder import path_rows

        rows |= path_rows(tree.paths)
    return TreeTables(tree.metrics, {table: _table(table.row, list(rows.get(table, ()))) for table in Export})


def _values(record: LaneSums | LinkSums | SampledCall | CallSpan | LongestCall) -> tuple[Any, ...]:
    """The values of the fields in their order, which is that of the columns."""
    return tuple(vars(record).values())


def _table(kind: np.dtype[Any], rows: list[tuple[Any, ...]]) -> Array:
    table = np.empty(len(rows), kind)
    for name, values in zip(kind.names or (), zip(*rows, strict=True), strict=False):
        table[name] = wide(values) if kind[name] == WIDE else values
    return table
