"""The finished call tree of a recording: what every builder gives, and what the tables are made of.

Sums are exact integers. A lane is a metric: time, cpu, events, then what the recording measured besides; costs are
inclusive (descendants and own), in the lane's unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np

from perflaw.record.tree.core_tables import DTYPES, CoreTree, Export
from perflaw.record.tree.path_twin import FunctionPaths, path_objects, path_rows
from perflaw.store.columns import WIDE, Array, Column, wide


@dataclass(frozen=True)
class Limits:
    """What bounds a builder's memory whatever the program does. The C core has the same in native/layout.h."""

    nodes: int = 1 << 15
    """Beyond it, a call in a new context goes to the node (root, site -2, function)."""
    links: int = 1 << 17
    """Beyond it no new link is made; those that exist go on."""
    pairs: int = 1 << 18
    """Beyond it, what a new pair would get goes to its node's pair (OTHER, OTHER), twice where i != j."""
    components: int = 256
    """Beyond it, every function keeps a quarter of the samples, and half of that each time they are twice as many."""
    spans: int = 1 << 19
    """Beyond it, functions of least total time keep no spans of their worst invocations, so that half of it is left."""


@dataclass
class Sums:
    """One lane of a node: the inclusive costs X of its completed invocations."""

    sum_x: int = 0
    """ΣX."""
    sum_xx: int = 0
    """ΣX²."""
    min_x: int = 0
    """The least X; 0 where none is complete."""
    max_x: int = 0
    """The greatest X; 0 where none is complete or none is positive."""


@dataclass
class LinkSums:
    """One lane of a link: a descendant's cost Y within invocations of its ancestor, whose cost is X."""

    sum_ky: int = 0
    """ΣKY, K being the descendant's calls within the invocation."""
    sum_y: int = 0
    """ΣY."""
    sum_yy: int = 0
    """ΣY²."""
    sum_yx: int = 0
    """ΣYX."""


@dataclass
class Link:
    """Sums over the invocations of an ancestor in which a descendant took part."""

    n: int = 0
    """How many they are."""
    n_once: int = 0
    """How many of them called the descendant exactly once."""
    sum_k: int = 0
    """ΣK."""
    sum_kk: int = 0
    """ΣK²."""
    lanes: list[LinkSums] = field(default_factory=list)
    """One a lane."""


@dataclass
class Node:
    """A calling context and the sums over its completed invocations."""

    parent: int
    """Number of the node that called it; -1 for the root."""
    site: int
    """Call site within the parent's code; -2 where contexts were put together because a bound was reached."""
    code: int
    """Number of the function; -1 for the root."""
    depth: int
    """Edges to the root."""
    n: int = 0
    """Completed invocations."""
    open: int = 0
    """Invocations that never completed."""
    lanes: list[Sums] = field(default_factory=list)
    """One a lane."""
    pairs: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Parts i <= j of the cost (LOCAL, OTHER or a callee's node) → ΣY_i·Y_j, one a lane."""
    links: dict[int, Link] = field(default_factory=dict)
    """Node of a descendant → its sums."""
    histogram: dict[int, int] = field(default_factory=dict)
    """Log bucket of the time → invocations in it."""
    waits: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    """n, ΣW, ΣW², least and most of the time that generators and coroutines were suspended: outside X."""


@dataclass
class Sample:
    """One kept invocation."""

    sequence: int
    """Its place in the order of completion, from 1."""
    node: int
    """Its node."""
    started: int
    """Stamp of its start."""
    uniform_key: int
    """Its priority in the function's uniform sample; -1: it is only in its stratum's."""
    stratum_key: int
    """Its priority in its stratum's sample."""
    costs: tuple[int, ...] = ()
    """One a lane."""
    callees: tuple[tuple[int, int, int, int], ...] = ()
    """node, calls, time, cpu of each direct callee."""
    features: tuple[tuple[int, float], ...] = ()
    """Number and value of each feature read at its entry."""


@dataclass(frozen=True)
class Span:
    """A call within a kept invocation; a segment, where it is of a generator or coroutine."""

    node: int
    """Its node."""
    parent: int
    """Place of the span that it lies in; -1: the invocation itself."""
    started: int
    """ns since the invocation's start."""
    time: int
    """How long it took."""


@dataclass
class Worst:
    """One of the longest invocations of a function."""

    sequence: int
    """Its place in the order of completion, from 1."""
    node: int
    """Its node."""
    started: int
    """Stamp of its start."""
    time: int
    """How long it took."""
    cpu: int
    """Its part on the CPU."""
    events: int
    """Calls in it, itself included."""
    spans: tuple[Span, ...] = ()
    """The longest of them, callers first."""


@dataclass
class CallTree:
    """Everything that was learnt from a recording's events."""

    metrics: tuple[str, ...]
    """Name of each lane."""
    nodes: list[Node]
    """By number; 0 is the root, which stands for what is outside any recorded call."""
    totals: dict[int, list[int]]
    """Function → inclusive cost, one a lane; recursion counted once."""
    selves: dict[int, list[int]]
    """Function → cost outside its callees, one a lane."""
    strata: dict[int, dict[int, int]]
    """Function → stratum (bits of the time) → completed invocations in it."""
    samples: dict[int, list[Sample]]
    """Function → its samples, in order of completion."""
    calls: int = 0
    """Completed invocations."""
    first: int | None = None
    """Stamp of the first entry or exit."""
    last: int = 0
    """Stamp of the last entry or exit."""
    folded: int = 0
    """Calls that were put into coarser nodes because a bound was reached: 0 as a rule."""
    unlinked: int = 0
    """How often a descendant's part in an invocation was not kept, because there were too many links."""
    dropped: int = 0
    """Records that the recorder had no memory for."""
    worst: dict[int, list[Worst]] = field(default_factory=dict)
    """Function → its longest invocations, in order of completion."""
    paths: dict[int, FunctionPaths] = field(default_factory=dict)
    """Function → its durations by call path; empty where they were not asked for."""


# ---- A finished call tree in columns (:class:`CoreTree`) to objects (:class:`CallTree`) and back, exactly.


def objects(tree: CoreTree) -> CallTree:
    """The tree as objects: for reading, and for comparing with the twin's."""
    tables, lanes = tree.tables, len(tree.metrics)
    nodes = _nodes(tables, lanes)
    return CallTree(
        tree.metrics,
        nodes,
        *costs_of_codes(tree),
        strata_of(nodes),
        _samples(tables, lanes),
        tree.calls,
        tree.first,
        tree.told("last"),
        tree.told("folded"),
        tree.told("links_left_out"),
        tree.told("lost"),
        _worst(tables),
        path_objects(tables),
    )


def _columns(rows: Array) -> Iterator[tuple[Any, ...]]:
    """The rows as tuples of plain numbers."""
    names = rows.dtype.names or ()
    return zip(*(Column(rows[name]).plain() for name in names), strict=True)


def _nodes(tables: dict[Export, Array], lanes: int) -> list[Node]:
    sums = (Sums(*row) for row in _columns(tables[Export.NODE_LANES]))
    nodes = [Node(*row) for row in _columns(tables[Export.NODES])]
    for each in nodes:
        each.lanes = list(islice(sums, lanes))
    products = (total for (total,) in _columns(tables[Export.PAIR_LANES]))
    for node, i, j in _columns(tables[Export.PAIRS]):
        nodes[node].pairs[i, j] = list(islice(products, lanes))
    parts = (LinkSums(*row) for row in _columns(tables[Export.LINK_LANES]))
    for ancestor, descendant, *counts in _columns(tables[Export.LINKS]):
        link = nodes[ancestor].links[descendant] = Link(*counts)
        link.lanes = list(islice(parts, lanes))
    for node, bucket, count in _columns(tables[Export.HISTOGRAM]):
        nodes[node].histogram[bucket] = count
    for node, *waits in _columns(tables[Export.WAITS]):
        nodes[node].waits = waits
    return nodes


def costs_of_codes(tree: CoreTree) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Totals and selves by function, one a lane."""
    tables, lanes = tree.tables, len(tree.metrics)
    totals, selves = {}, {}
    sums = _columns(tables[Export.CODE_LANES])
    for code, closed, recorded in _columns(tables[Export.CODES]):
        total, own = zip(*islice(sums, lanes), strict=True)
        if closed:
            totals[code] = list(total)
        if recorded:
            selves[code] = list(own)
    return totals, selves


def strata_of(nodes: list[Node]) -> dict[int, dict[int, int]]:
    """Function → stratum → invocations: a stratum is a power of two, which has four buckets in the nodes' histograms."""
    strata: dict[int, dict[int, int]] = {}
    for node in nodes:
        for bucket, count in node.histogram.items():
            counts = strata.setdefault(node.code, {})
            counts[bucket // 4] = counts.get(bucket // 4, 0) + count
    return strata


def _samples(tables: dict[Export, Array], lanes: int) -> dict[int, list[Sample]]:
    samples: dict[int, list[Sample]] = {}
    costs = iter(tables[Export.COSTS]["cost"].tolist())
    callees, features = _columns(tables[Export.CALLEES]), _columns(tables[Export.FEATURES])
    for code, *sample, callee_count, feature_count in _columns(tables[Export.SAMPLES]):
        counts = ((costs, lanes), (callees, callee_count), (features, feature_count))
        samples.setdefault(code, []).append(Sample(*sample, *(tuple(islice(rows, count)) for rows, count in counts)))
    return samples


def _worst(tables: dict[Export, Array]) -> dict[int, list[Worst]]:
    worst: dict[int, list[Worst]] = {}
    spans = (Span(*row) for row in _columns(tables[Export.SPANS]))
    for code, *row, count in _columns(tables[Export.WORST]):
        one = Worst(*row)
        one.spans = tuple(islice(spans, count))
        worst.setdefault(code, []).append(one)
    return worst


def columns(tree: CallTree) -> CoreTree:
    """The tree in columns."""
    nodes = list(enumerate(tree.nodes))
    links = [(number, below, link) for number, node in nodes for below, link in node.links.items()]
    samples = [(code, sample) for code, some in tree.samples.items() for sample in some]
    worst = [(code, one) for code, some in tree.worst.items() for one in some]
    head = (tree.calls, tree.first is not None, tree.first or 0, tree.last, tree.folded, tree.unlinked)
    rows: dict[Export, Iterable[tuple[Any, ...]]] = {
        Export.HEAD: [(len(tree.metrics), *head, 0, tree.dropped, 0, 0)],
        Export.NODES: ((one.parent, one.site, one.code, one.depth, one.n, one.open) for one in tree.nodes),
        Export.NODE_LANES: (_row(x) for node in tree.nodes for x in node.lanes),
        Export.PAIRS: ((number, i, j) for number, node in nodes for i, j in node.pairs),
        Export.PAIR_LANES: ((total,) for node in tree.nodes for totals in node.pairs.values() for total in totals),
        Export.LINKS: ((*ends, link.n, link.n_once, link.sum_k, link.sum_kk) for *ends, link in links),
        Export.LINK_LANES: (_row(y) for _, _, link in links for y in link.lanes),
        Export.HISTOGRAM: ((number, *row) for number, node in nodes for row in node.histogram.items()),
        Export.WAITS: ((number, *node.waits) for number, node in nodes if node.waits[0]),
        **_codes(tree),
        Export.SAMPLES: ((code, *_numbers(one), len(one.callees), len(one.features)) for code, one in samples),
        Export.COSTS: ((cost,) for _, one in samples for cost in one.costs),
        Export.CALLEES: chain.from_iterable(one.callees for _, one in samples),
        Export.FEATURES: chain.from_iterable(one.features for _, one in samples),
        Export.WORST: ((code, *list(vars(one).values())[:-1], len(one.spans)) for code, one in worst),
        Export.SPANS: (tuple(vars(span).values()) for _, one in worst for span in one.spans),
        **path_rows(tree.paths),
    }
    return CoreTree(tree.metrics, {table: _filled(DTYPES[table], list(rows[table])) for table in Export})


def _codes(tree: CallTree) -> dict[Export, Iterable[tuple[Any, ...]]]:
    codes = sorted(tree.totals.keys() | tree.selves.keys())
    nothing = [0] * len(tree.metrics)
    costs = [zip(tree.totals.get(code, nothing), tree.selves.get(code, nothing), strict=True) for code in codes]
    return {
        Export.CODES: ((code, code in tree.totals, code in tree.selves) for code in codes),
        Export.CODE_LANES: chain.from_iterable(costs),
    }


def _row(sums: Sums | LinkSums) -> tuple[int, ...]:
    return tuple(vars(sums).values())


def _numbers(sample: Sample) -> tuple[int, ...]:
    return sample.sequence, sample.node, sample.started, sample.uniform_key, sample.stratum_key


def _filled(kind: np.dtype[Any], rows: list[tuple[Any, ...]]) -> Array:
    table = np.empty(len(rows), kind)
    for name, values in zip(kind.names or (), zip(*rows, strict=True), strict=False):
        table[name] = wide(values) if kind[name] == WIDE else values
    return table
