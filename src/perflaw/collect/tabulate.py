"""A finished call tree and its definitions to the tables of a recording."""

from __future__ import annotations

from collections.abc import Iterator

from perflaw.collect.definitions import Definitions
from perflaw.collect.tree_builder import ROOT, TreeBuilder
from perflaw.store.merge import merge
from perflaw.store.schema import LOCAL, Row, Tables, empty_tables
from perflaw.types import TIME, Component

WAITING = "(waiting)"
"""Pseudo-component: the time generators and coroutines were suspended. It lies outside their own time."""


def tabulate(run: str, builder: TreeBuilder, definitions: Definitions) -> Tables:
    """Tables of one run in canonical order. Functions without a definition (a torn file) are called ``(unknown)``."""
    tables = empty_tables()
    tables["components"] = list(_components(builder, definitions))
    for number, node in enumerate(builder.nodes):
        line = definitions.line_at(builder.nodes[node.parent].code, node.site) if number != ROOT else 0
        tables["calltree"].append((number, node.parent, node.code, node.site, line, node.depth))
        if number == ROOT:
            continue
        tables["moments"].append(
            (number, TIME.name, node.n, node.sum_x, node.sum_xx, node.min_x, node.max_x, node.open)
        )
        tables["pairs"] += [(number, i, j, total) for (i, j), total in node.pairs.items()]
        tables["links"] += [
            (number, other, k.n, k.n_once, k.sum_k, k.sum_kk, k.sum_ky, k.sum_y, k.sum_yy, k.sum_yx)
            for other, k in node.links.items()
        ]
        tables["histograms"] += [(number, bucket, count) for bucket, count in node.histogram.items()]
    _add_waits(tables, builder)
    _add_samples(tables, run, builder, definitions)
    return merge([tables])


def _components(builder: TreeBuilder, definitions: Definitions) -> Iterator[Row]:
    calls: dict[int, int] = {}
    opened: dict[int, int] = {}
    for node in builder.nodes[1:]:
        calls[node.code] = calls.get(node.code, 0) + node.n
        opened[node.code] = opened.get(node.code, 0) + node.open
    for code in sorted(calls):
        what = definitions.components.get(code, Component("(unknown)"))
        yield (
            code, what.name, what.file, what.line, what.language, what.origin, ",".join(what.parameters),
            calls[code], opened[code], builder.totals.get(code, 0), builder.selves.get(code, 0),
        )  # fmt: skip


def _add_waits(tables: Tables, builder: TreeBuilder) -> None:
    """Give every node whose invocations were suspended a pseudo-child with the moments of the waiting."""
    pseudo = max((row[0] for row in tables["components"]), default=0) + 1
    waiting = [(number, node) for number, node in enumerate(builder.nodes) if node.waits[0]]
    total = calls = 0
    for offset, (number, node) in enumerate(waiting):
        child = len(builder.nodes) + offset
        n, waited, squares, least, most = node.waits
        tables["calltree"].append((child, number, pseudo, -1, 0, node.depth + 1))
        tables["moments"].append((child, TIME.name, n, waited, squares, least, most, 0))
        tables["pairs"].append((child, LOCAL, LOCAL, squares))
        total, calls = total + waited, calls + n
    if waiting:
        tables["components"].append((pseudo, WAITING, "", 0, "", "library", "", calls, 0, total, total))


def _add_samples(tables: Tables, run: str, builder: TreeBuilder, definitions: Definitions) -> None:
    for code, reservoir in builder.samples.items():
        tables["strata"] += [(code, stratum, count) for stratum, count in reservoir.counts.items()]
        for sample, uniform in reservoir.samples():
            x, key = sample.x, sample.uniform_key if uniform else -1
            when = sample.started - (builder.first or 0)
            what = (run, sample.sequence, code, sample.node, when, x, x.bit_length(), key, sample.stratum_key, 1.0)
            tables["invocations"].append(what)
            tables["callees"] += [(run, sample.sequence, *callee) for callee in sample.callees]
            for number, value in sample.features:
                name = definitions.features.get(number, "(unknown)")
                text = definitions.types.get(int(value), "?") if name.endswith(".type") else None
                tables["features"].append((run, sample.sequence, name, None if text else value, text))
