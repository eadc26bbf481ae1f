"""A finished call tree in columns (:class:`CoreTree`) to objects (:class:`CallTree`) and back, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from perflaw.collect.call_tree import CallTree, Link, LinkSums, Node, Sample, Span, Sums, Worst
from perflaw.collect.core_tables import DTYPES, CoreTree, Export
from perflaw.collect.path_pieces import path_objects, path_rows
from perflaw.store.columns import WIDE, Array, Column, wide


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
