"""The patterns of variance as a table in 80 columns."""

from __future__ import annotations

import re

from perflaw.report.prose import paragraph
from perflaw.report.quantity import count, percent, quantity, significant
from perflaw.report.table import WIDTH, broken, printable, text_table, width
from perflaw.types.variance import Contribution, Pattern, PatternNode, Variance

NAME_WIDTH, SOURCE_WIDTH = 24, 19
"""Columns of 80 that names and sources have; a wider terminal's go to them as well."""
MOST_INDENT = 8
ALIKE = 0.05
"""Shares that differ by less than this need not be told again below."""
MOST_SOURCES = 4
"""Sources that a node names, the weightiest first; --json has all."""
MOST_NODES = 40
"""Nodes that the table shows; --json and --dot tell all."""


def variance_table(found: Variance, colour: bool) -> str:
    """Patterns one below the other, nodes indented below their parents, with where their variance comes from."""
    if not found.patterns:
        return _nothing(found)
    unit = found.metric.unit
    rows, left, more = [], MOST_NODES, width(colour) - WIDTH
    widths = NAME_WIDTH + more // 2, SOURCE_WIDTH + more - more // 2
    for pattern in found.patterns:
        rows += _rows(pattern, unit, widths)[:left]
        left = MOST_NODES - len(rows)
    headings = [f"variance of {found.metric.name}", "type", "calls", "mean", "CoV", "comes from"]
    return text_table(headings, rows, right=(2, 3, 4), colour=colour) + _rest(found, len(rows))


def _nothing(found: Variance) -> str:
    few = f" {found.too_few:,} have fewer than 30 calls." if found.too_few else ""
    notes = "".join(paragraph(f"note: {note}") for note in found.notes)
    contexts = f"{found.tree_nodes:,} calling contexts"
    return paragraph(f"no function's {found.metric.name} varies highly in any of {contexts}.{few}") + notes


def _rows(pattern: Pattern, unit: str, widths: tuple[int, int]) -> list[list[str]]:
    depth: dict[int | None, int] = {None: -1}
    told = _told(pattern)
    rows = []
    for node in pattern.nodes:
        depth[node.id] = depth[node.parent] + 1
        same = told[node.id]
        sources = _sources(node, pattern, widths[1]) if same == node.id else f"as ({same})"
        rows.append(_row(node, depth[node.id], sources, unit, widths[0]))
    return rows


def _told(pattern: Pattern) -> dict[int, int]:
    """Node → the one above it whose sources it has as well, or itself: a chain of calls says it once."""
    shares: dict[int, dict[int, float]] = {node.id: {} for node in pattern.nodes}
    for edge in pattern.contributions:
        shares[edge.to][edge.source] = edge.cf_net
    told: dict[int, int] = {}
    for node in pattern.nodes:
        above = told.get(node.parent, node.id) if node.parent is not None else node.id
        mine, theirs = shares[node.id], shares[above]
        alike = mine and mine.keys() == theirs.keys() and all(abs(mine[one] - theirs[one]) < ALIKE for one in mine)
        told[node.id] = above if alike else node.id
    return told


def _row(node: PatternNode, depth: int, sources: str, unit: str, name_width: int) -> list[str]:
    indent = " " * min(depth, MOST_INDENT)
    name = broken(f"({node.id}) {printable(node.component.name)}", [".", "_", " "], name_width - len(indent))
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


def _sources(node: PatternNode, pattern: Pattern, source_width: int) -> str:
    names = {one.id: one.component.name for one in pattern.nodes}
    mine = [one for one in pattern.contributions if one.to == node.id]
    more = [f"… {len(mine) - MOST_SOURCES} more"] * (len(mine) > MOST_SOURCES)
    return "\n".join([*(_source(one, names, source_width) for one in mine[:MOST_SOURCES]), *more])


def _source(one: Contribution, names: dict[int, str], source_width: int) -> str:
    last = printable(re.split(r"\.|::", names[one.source])[-1])
    return broken(f"{percent(one.cf_net)} ({one.source}) {last}", [" ", "_"], source_width)


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
