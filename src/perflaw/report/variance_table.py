"""The patterns of variance as a table in 80 columns."""

from __future__ import annotations

import re

from perflaw.report.prose import paragraph
from perflaw.report.quantity import count, percent, quantity, significant
from perflaw.report.table import broken, printable, text_table
from perflaw.types.variance import Contribution, Pattern, PatternNode, Variance

NAME_WIDTH, SOURCE_WIDTH = 34, 23
MOST_SOURCES = 4
"""Sources that a node names, the weightiest first; --json has all."""
MOST_NODES = 40
"""Nodes that the table shows; --json and --dot tell all."""


def variance_table(found: Variance, colour: bool) -> str:
    """Patterns one below the other, nodes indented below their parents, with where their variance comes from."""
    if not found.patterns:
        return _nothing(found)
    unit = found.metric.unit
    rows, left = [], MOST_NODES
    for pattern in found.patterns:
        rows += _rows(pattern, unit)[:left]
        left = MOST_NODES - len(rows)
    headings = [f"variance of {found.metric.name}", "type", "calls", "mean", "CoV", "comes from"]
    return text_table(headings, rows, right=(2, 3, 4), colour=colour) + _rest(found, len(rows))


def _nothing(found: Variance) -> str:
    few = f" {found.too_few:,} have fewer than 30 calls." if found.too_few else ""
    notes = "".join(paragraph(f"note: {note}") for note in found.notes)
    contexts = f"{found.tree_nodes:,} calling contexts"
    return paragraph(f"no function's {found.metric.name} varies highly in any of {contexts}.{few}") + notes


def _rows(pattern: Pattern, unit: str) -> list[list[str]]:
    depth: dict[int | None, int] = {None: -1}
    names = {node.id: node.component.name for node in pattern.nodes}
    rows = []
    for node in pattern.nodes:
        depth[node.id] = depth[node.parent] + 1
        rows.append(_row(node, depth[node.id], _sources(node, pattern, names), unit))
    return rows


def _row(node: PatternNode, depth: int, sources: str, unit: str) -> list[str]:
    indent = " " * min(depth, 10)
    name = broken(f"({node.id}) {printable(node.component.name)}", [".", "_"], NAME_WIDTH - len(indent))
    if node.cause == "interference":
        sources = "\n".join(filter(None, (f"interference {percent(node.off_cpu or 0)}", sources)))
    return [
        "\n".join(indent + line for line in name.split("\n")),
        node.kind,
        count(node.n),
        quantity(node.mean, unit),
        significant(node.cov),
        sources,
    ]


def _sources(node: PatternNode, pattern: Pattern, names: dict[int, str]) -> str:
    mine = [one for one in pattern.contributions if one.to == node.id]
    more = [f"… {len(mine) - MOST_SOURCES} more"] * (len(mine) > MOST_SOURCES)
    return "\n".join([*(_source(one, names) for one in mine[:MOST_SOURCES]), *more])


def _source(one: Contribution, names: dict[int, str]) -> str:
    last = printable(re.split(r"\.|::", names[one.source])[-1])
    return broken(f"{percent(one.cf_net)} ({one.source}) {last}", [" ", "_"], SOURCE_WIDTH)


def _rest(found: Variance, shown: int) -> str:
    total = sum(len(one.nodes) for one in found.patterns)
    lines = [f"{total - shown} more nodes (--json and --dot tell all)"] if total > shown else []
    nodes, patterns = found.extracted
    merged_nodes, merged_patterns = found.merged
    lines.append(
        f"{found.tree_nodes:,} calling contexts: {nodes} nodes in {patterns} patterns, merged to {merged_nodes} in "
        f"{merged_patterns}, {total} in {len(found.patterns)} after trimming"
    )
    lines += [f"note: {note}" for note in found.notes]
    first = found.patterns[0].nodes[0].component.name
    lines.append(f"why: perflaw variance {printable(first)}")
    return "".join(map(paragraph, lines))
