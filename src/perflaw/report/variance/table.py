"""The patterns of variance as a table in 80 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perflaw.report.quantity import count, percent, quantity, significant
from perflaw.report.tables import WIDTH, broken, paragraph, printable, text_table, width
from perflaw.types import Run
from perflaw.types.variance import Contribution, Pattern, PatternChange, PatternNode, ShareChange, Variance

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


# ---- What changed in the variance between two recordings.


def changes_text(changes: Sequence[PatternChange], unit: str) -> str:
    """Each pattern with what became of it; those that stay are counted."""
    shown = [one for one in changes if one.what != "stays"]
    text = "".join(_change(one, unit) for one in shown)
    stay = len(changes) - len(shown)
    return text + paragraph(f"{len(shown)} patterns appeared, went or changed, {stay} stay as they were")


def _change(one: PatternChange, unit: str) -> str:
    text = paragraph(f"{one.what:9} {printable(one.component.name)}: {_root(one.old, unit)} > {_root(one.new, unit)}")
    return text + "".join(paragraph("  " + _share(share)) for share in one.shares)


def _root(node: PatternNode | None, unit: str) -> str:
    return f"CoV {significant(node.cov)} of {quantity(node.mean, unit)}" if node else "none"


def _share(share: ShareChange) -> str:
    old, new = ("none" if value is None else percent(value) for value in (share.old, share.new))
    head, *below = share.path
    return printable(f"variance of {head} from {' > '.join(below)}: {old} before, {new} now")


# ---- What recordings are from: machines, processes and threads, in one line.


def provenance(runs: Sequence[Run]) -> str:
    """Such as ``from 6 runs: 2 machines, 8 processes, 12 threads``; empty where they are of one thread.

    Threads that a tracer does not count (traces of other tools, killed programs) are left out, and so is their number
    where all are.
    """
    machines = len({run.host for run in runs if run.host}) or 1
    told = [int(words) for run in runs if (words := run.words.get("threads", "")).isdigit()]
    executions = sum(not run.parent for run in runs)
    if machines == 1 and len(runs) == executions and max(told, default=1) <= 1:
        return ""
    parts = [_of(machines, "machine"), _of(len(runs), "process")]
    if told:
        least = "at least " * (len(told) < len(runs))
        parts.append(least + _of(sum(told) + len(runs) - len(told), "thread"))
    return f"from {_of(executions, 'run')}: {', '.join(parts)}"


def _of(number: int, what: str) -> str:
    """A number of things, such as ``2 processes``."""
    ending = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"{count(number)} {what}{ending}"
