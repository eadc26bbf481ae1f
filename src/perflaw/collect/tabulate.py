"""A finished call tree and its definitions to the tables of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perflaw.collect.call_tree import CallTree, Node, Sample
from perflaw.collect.definitions import Definitions
from perflaw.collect.layout import CPU_LANE, EVENTS_LANE, ROOT
from perflaw.store.merge import merge
from perflaw.store.schema import LOCAL, Row, Tables, empty_tables
from perflaw.types import TIME, Component

WAITING = "(waiting)"
"""Pseudo-component: the time generators and coroutines were suspended. It lies outside their own time."""

Lanes = list[tuple[int, str]]
"""Number and name of the lanes that were measured."""


def tabulate(run: str, tree: CallTree, definitions: Definitions) -> Tables:
    """Tables of one run in canonical order: the metrics that the definitions say were measured.

    Functions without a definition (a torn file) are called ``(unknown)``.
    """
    tables = empty_tables()
    lanes = [(lane, tree.metrics[lane]) for lane in sorted(definitions.metrics) if lane < len(tree.metrics)]
    _add_components(tables, lanes, tree, definitions)
    for number, node in enumerate(tree.nodes):
        line = definitions.line_at(tree.nodes[node.parent].code, node.site) if number != ROOT else 0
        tables["calltree"].append((number, node.parent, node.code, node.site, line, node.depth))
        if number != ROOT:
            _add_moments(tables, lanes, number, node)
    _add_waits(tables, tree)
    for code, strata in tree.strata.items():
        tables["strata"] += [(code, stratum, count) for stratum, count in strata.items()]
    for code, samples in tree.samples.items():
        for sample in samples:
            _add_sample(tables, lanes, run, code, sample, tree.first or 0)
            tables["features"] += [(run, sample.sequence, *feature) for feature in _features(sample, definitions)]
    return merge([tables])


def _add_components(tables: Tables, lanes: Lanes, tree: CallTree, definitions: Definitions) -> None:
    calls: dict[int, int] = {}
    opened: dict[int, int] = {}
    for node in tree.nodes[1:]:
        calls[node.code] = calls.get(node.code, 0) + node.n
        opened[node.code] = opened.get(node.code, 0) + node.open
    nothing = [0] * len(tree.metrics)
    for code in sorted(calls):
        what = definitions.components.get(code, Component("(unknown)"))
        names = ",".join(what.parameters)
        row = (code, what.name, what.file, what.line, what.language, what.origin, names, calls[code], opened[code])
        tables["components"].append(row)
        totals, selves = tree.totals.get(code, nothing), tree.selves.get(code, nothing)
        tables["component_costs"] += [(code, metric, totals[lane], selves[lane]) for lane, metric in lanes]


def _add_moments(tables: Tables, lanes: Lanes, number: int, node: Node) -> None:
    for lane, metric in lanes:
        x = node.lanes[lane]
        tables["moments"].append((number, metric, node.n, x.sum_x, x.sum_xx, x.min_x, x.max_x, node.open))
        tables["pairs"] += [(number, metric, i, j, sums[lane]) for (i, j), sums in node.pairs.items()]
        for other, link in node.links.items():
            y = link.lanes[lane]
            counts = (link.n, link.n_once, link.sum_k, link.sum_kk)
            tables["links"].append((number, other, metric, *counts, y.sum_ky, y.sum_y, y.sum_yy, y.sum_yx))
    tables["histograms"] += [(number, bucket, count) for bucket, count in node.histogram.items()]


def _add_waits(tables: Tables, tree: CallTree) -> None:
    """Give every node whose invocations were suspended a pseudo-child with the moments of the waiting."""
    pseudo = max((row[0] for row in tables["components"]), default=0) + 1
    waiting = [(number, node) for number, node in enumerate(tree.nodes) if node.waits[0]]
    total = calls = 0
    for offset, (number, node) in enumerate(waiting):
        child = len(tree.nodes) + offset
        n, waited, squares, least, most = node.waits
        tables["calltree"].append((child, number, pseudo, -1, 0, node.depth + 1))
        tables["moments"].append((child, TIME.name, n, waited, squares, least, most, 0))
        tables["pairs"].append((child, TIME.name, LOCAL, LOCAL, squares))
        total, calls = total + waited, calls + n
    if waiting:
        tables["components"].append((pseudo, WAITING, "", 0, "", "library", "", calls, 0))
        tables["component_costs"].append((pseudo, TIME.name, total, total))


def _add_sample(tables: Tables, lanes: Lanes, run: str, code: int, sample: Sample, first: int) -> None:
    x, cpu, events, *_ = sample.costs
    with_cpu = CPU_LANE in dict(lanes)
    costs = (x, cpu if with_cpu else None, events)
    keys = (x.bit_length(), sample.uniform_key, sample.stratum_key)
    tables["invocations"].append((run, sample.sequence, code, sample.node, sample.started - first, *costs, *keys, 1.0))
    others = [(metric, sample.costs[lane]) for lane, metric in lanes if lane > EVENTS_LANE]
    tables["invocation_costs"] += [(run, sample.sequence, metric, cost) for metric, cost in others if cost]
    tables["callees"] += _callees(run, sample, with_cpu)


def _callees(run: str, sample: Sample, with_cpu: bool) -> Iterable[Row]:
    for node, calls, time, cpu in sample.callees:
        yield run, sample.sequence, node, calls, time, cpu if with_cpu else None


def _features(sample: Sample, definitions: Definitions) -> Iterator[tuple[str, float | None, str | None]]:
    for number, value in sample.features:
        name = definitions.features.get(number, "(unknown)")
        text = definitions.types.get(int(value), "?") if name.endswith(".type") else None
        yield name, None if text else value, text
