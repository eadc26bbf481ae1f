"""Variance in the terminal: patterns as a table and as changes between two recordings, and a screen for one function.

The screen says why the cost of the function varies, in 80 columns. The page shares the words: shares, intervals, calls,
verdicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from perflaw.confidence import WORDS
from perflaw.report.quantity import NOTHING, count, counted, interval, percent, quantity, significant
from perflaw.report.tables import WIDTH, broken, paragraph, printable, text_table, width
from perflaw.types import Run
from perflaw.types.variance import (
    Block,
    BudgetRow,
    Explanation,
    Part,
    Pattern,
    PatternChange,
    PatternNode,
    Step,
    Variance,
)

RELATIONS = {"cancel": "cancel each other", "in step": "vary in step", "mixed": "vary together"}
"""What parts that vary together do."""


def share_text(share: float | None) -> str:
    """A share; one that rounds to nothing has no sign.

    >>> share_text(0.61), share_text(-0.001), share_text(-0.2), share_text(None)
    ('61 %', '0 %', '-20 %', 'unknown')
    """
    if share is None or not math.isfinite(share):
        return "unknown"
    return percent(share).replace("-0 %", "0 %") if abs(share) < 0.005 else percent(share)


def ends_text(low: float | None, high: float | None) -> str:
    """Both ends of an interval of a share, in percent.

    >>> ends_text(0.33, 0.61), ends_text(-0.0001, 0.0), ends_text(None, 1.0)
    ('33–61', '0–0', 'unknown')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "unknown"
    return f"{round(low * 100):d}–{round(high * 100):d}"


def last_name(name: str) -> str:
    """The part of a name after its last dot."""
    return name.rpartition(".")[2] or name


def call_path(path: Sequence[Step]) -> str:
    """Calls by last names and lines.

    >>> call_path([Step("app.f", 3, 0, "app.g"), Step("app.g", 0, 0, "app.h")])
    'g:3 > h'
    """
    return " > ".join(_at_line(step.callee, step.line) for step in path)


def part_name(part: Part) -> str:
    """A call site by callee and line, or ``own code``."""
    return "own code" if part.component is None else _at_line(part.component.name, part.line)


def _at_line(name: str, line: int) -> str:
    return f"{last_name(name)}:{line}" if line else last_name(name)


def row_name(row: BudgetRow, explanation: Explanation) -> str:
    """The call path of a row of the budget; ``*`` marks shares that are estimated."""
    if not row.path:
        return "own code" if row.component == explanation.component else row.component.name
    return call_path(row.path) + (" (remaining paths)" if row.rest else "") + (" *" if row.estimated else "")


def verdict_text(explanation: Explanation) -> str:
    """Whether a function's cost varies."""
    return "varies highly" if explanation.high else "steady" if explanation.n >= 30 else "too few calls to say"


def cause_text(explanation: Explanation) -> str:
    """Work or interference with its interval, or why the cause is not known."""
    if explanation.cause == "steady":
        return "steady"
    if explanation.off_cpu is None:
        metric = explanation.metric.name
        reason = "CPU time was not measured" if metric == "time" else f"{metric} is work"
        return f"{explanation.cause}, {reason}"
    ends = ends_text(explanation.off_cpu_low, explanation.off_cpu_high)
    interval = "" if ends == "unknown" else f" ({ends})"
    return f"{explanation.cause}, {share_text(explanation.off_cpu)}{interval} of the variance is off the CPU"


def together(explanation: Explanation) -> list[tuple[Block, list[str]]]:
    """Blocks of several parts that do not vary independently, with the names of their parts."""
    return [
        (block, [part_name(explanation.parts[place]) for place in block.parts])
        for block in explanation.blocks
        if len(block.parts) > 1 and block.relation in RELATIONS
    ]


def root_text(root: PatternNode | None, unit: str) -> str:
    """The figures of a pattern's root in one of two recordings."""
    return f"CoV {significant(root.cov)} of {quantity(root.mean, unit)}" if root else "none"


MAX_ROWS, MAX_CONTEXTS, MAX_EXEMPLARS, MAX_FEATURES = 12, 3, 3, 4
_NAME_WIDTH = 32


def variance_screen(explanation: Explanation, colour: bool) -> str:
    """The answers, the most wanted first."""
    unit, budget = explanation.metric.unit, explanation.budget
    text = f"  {count(explanation.n)} calls, mean {quantity(explanation.mean, unit)}"
    text += f", CoV {significant(explanation.cov)}"
    if budget:
        text += f"; p99 {quantity(budget.p99, unit)}"
        if budget.p50 > 0:
            text += f", {significant(budget.p99 / budget.p50)} times the median {quantity(budget.p50, unit)}"
    name = printable(explanation.component.name)
    head = paragraph(f"{name}: {explanation.metric.name} {verdict_text(explanation)}") + paragraph(text)
    metric = explanation.metric.name
    others = ", ".join(f"{name} {significant(cov)}" for name, cov in explanation.covs.items() if name != metric)

    contexts, contexts_text = explanation.contexts, ""
    if len(contexts) > 1:
        high = sum(context.high for context in contexts)
        contexts_text = paragraph(f"{counted(len(contexts), 'calling context')}, {high} of high variance")
        shown = list(contexts[:MAX_CONTEXTS])
        # A steady context is what the others are compared with.
        steady = next((context for context in contexts if not context.high), None)
        for context in [*shown, *([steady] if steady and steady not in shown else [])]:
            call = context.path[-1]
            place = f"{call.caller or 'the start'}:{call.line}" if call.line else call.caller or "the start"
            word, mean = "high" if context.high else "steady", quantity(context.mean, explanation.metric.unit)
            figures = f"CoV {significant(context.cov)}, mean {mean}, {counted(context.n, 'call')}"
            contexts_text += paragraph(f"  {word:6} {figures} from {printable(place)}")

    worst = [exemplar for exemplar in explanation.exemplars if exemplar.reason == "worst"][:MAX_EXEMPLARS]
    exemplars = "worst calls (--perfetto FILE.json exports them):\n" if worst else ""
    for exemplar in worst:
        features = ", ".join(f"{name}={value:g}" for name, value in list(exemplar.features.items())[:MAX_FEATURES])
        costliest = next((callee.component.name for callee in exemplar.callees if callee.component), "")
        text = f"  {quantity(exemplar.x, unit)} in run {exemplar.run.partition('-')[0]}"
        text += f", most in {last_name(costliest)}" if costliest else ""
        exemplars += paragraph(printable(text + (f" · {features}" if features else "")))

    sections = [
        head,
        _budget(explanation, colour),
        paragraph(f"work or interference: {cause_text(explanation)}" + (f" (CoV by {others})" if others else "")),
        "".join(
            paragraph(
                f"{printable(', '.join(names))}: {RELATIONS[block.relation]}, {percent(block.cf_net)} of the variance together"
            )
            for block, names in together(explanation)
        ),
        "".join(
            paragraph(printable(f"{one.of} follow {one.feature}: {one.expression} (R² {one.r2:.2f})"))
            for one in explanation.drivers
        ),
        contexts_text,
        _deadlines(explanation),
        exemplars,
    ]
    return "\n".join(section for section in sections if section)


def _budget(explanation: Explanation, colour: bool) -> str:
    budget = explanation.budget
    if budget is None:
        return paragraph("no budget: no sampled call is slower than the median")
    more = quantity(budget.tail - budget.median, explanation.metric.unit)
    rows = []
    for row in budget.rows[:MAX_ROWS]:
        ends = ends_text(row.share_low, row.share_high)
        rows.append(
            [
                percent(row.share),
                NOTHING if ends == "unknown" else ends,
                broken(printable(row_name(row, explanation)), " > ", _NAME_WIDTH),
                percent(row.cf_net),
                row.mechanism,
                NOTHING if row.off_cpu is None else percent(row.off_cpu),
            ]
        )
    headings = ["share", f"({WORDS})", "where", "of variance", "because of", "off CPU"]
    text = paragraph(f"a call beyond p99 costs {more} more than one near the median:")
    text += text_table(headings, rows, right=(0, 3, 5), colour=colour)
    left = budget.rows[MAX_ROWS:]
    if left:
        text += f"{len(left)} more with {percent(sum(row.share for row in left))} together (--json holds all)\n"
    notes = f"{counted(budget.samples, 'sampled call')} beyond p99"
    if any(row.estimated for row in budget.rows):
        notes += "; * estimated from covariances: samples hold the costs of direct callees alone"
    for name, share in budget.further.items():
        notes += f"; {name} is {percent(share)} of it"
    return text + paragraph(notes)


def _deadlines(explanation: Explanation) -> str:
    unit, lines = explanation.metric.unit, []
    for one in explanation.deadlines:
        observed = f"{percent(one.observed)} ({percent(one.low)}–{percent(one.high)})"
        most = percent(one.chebyshev)
        lines.append(f"longer than {quantity(one.deadline, unit)}: {observed}; at most {most} by Chebyshev")
    for bound in explanation.bounds:
        most = quantity(bound.chebyshev, unit)
        if bound.observed is None:
            lines.append(f"{percent(bound.probability)} take longer than: too few calls; {most} by Chebyshev")
            continue
        seen = quantity(bound.observed, unit)
        if bound.low is not None and bound.high is not None:
            seen += f" ({interval(bound.low, bound.high, unit)})"
        lines.append(f"{percent(bound.probability)} take longer than {seen}; {most} by Chebyshev")
    return "".join(map(paragraph, lines))


NAME_WIDTH, SOURCE_WIDTH, MAX_INDENT = 24, 19, 8
"""Widths of names and sources in 80 columns (a wider terminal widens both), and the deepest indentation."""
SAME_SHARE = 0.05
"""Shares that differ by less need not be repeated below."""
MAX_SOURCES, MAX_NODES = 4, 40
"""Sources that a node names, the largest first, and nodes that the table shows; --json holds all."""


def variance_table(variance: Variance, colour: bool) -> str:
    """Patterns one below the other, nodes indented below their parents, with the sources of their variance."""
    notes = [f"note: {note}" for note in variance.notes]
    contexts = f"{variance.tree_nodes:,} calling contexts"
    if not variance.patterns:
        few = f" {variance.too_few:,} have fewer than 30 calls." if variance.too_few else ""
        nothing = f"no function's {variance.metric.name} varies highly in any of {contexts}.{few}"
        return "".join(map(paragraph, [nothing, *notes]))
    wider = width(colour) - WIDTH
    widths = NAME_WIDTH + wider // 2, SOURCE_WIDTH + wider - wider // 2
    rows = [row for pattern in variance.patterns for row in _rows(pattern, variance.metric.unit, widths)][:MAX_NODES]
    headings = [f"variance of {variance.metric.name}", "type", "calls", "mean", "CoV", "comes from"]
    total = sum(len(one.nodes) for one in variance.patterns)
    lines = [f"{total - len(rows)} more nodes (--json and --dot hold all)"] if total > len(rows) else []
    (nodes, patterns), (merged_nodes, merged_patterns) = variance.extracted, variance.merged
    lines.append(
        f"{contexts}: {counted(nodes, 'node')} in {counted(patterns, 'pattern')}, merged to {merged_nodes} in "
        f"{merged_patterns}, {total} in {len(variance.patterns)} after trimming"
    )
    lines += [*notes, f"why: perflaw variance {printable(variance.patterns[0].root)}"]
    return text_table(headings, rows, right=(2, 3, 4), colour=colour) + "".join(map(paragraph, lines))


def _rows(pattern: Pattern, unit: str, widths: tuple[int, int]) -> list[list[str]]:
    depth: dict[int | None, int] = {None: -1}
    # Node → the ancestor whose sources it shares, or itself: a chain of calls states its sources once.
    shares: dict[int, dict[int, float]] = {node.id: {} for node in pattern.nodes}
    for edge in pattern.contributions:
        shares[edge.to][edge.source] = edge.cf_net
    representative: dict[int, int] = {}
    for node in pattern.nodes:
        above = node.id if node.parent is None else representative[node.parent]
        own, theirs = shares[node.id], shares[above]
        same = own.keys() == theirs.keys() and all(abs(own[one] - theirs[one]) < SAME_SHARE for one in own)
        representative[node.id] = above if own and same else node.id
    names = {one.id: re.split(r"\.|::", one.component.name)[-1] for one in pattern.nodes}
    rows = []
    for node in pattern.nodes:
        depth[node.id] = depth[node.parent] + 1
        sources = f"as ({representative[node.id]})"
        if representative[node.id] == node.id:
            edges = [edge for edge in pattern.contributions if edge.to == node.id]
            texts = [f"{percent(edge.cf_net)} ({edge.source}) {printable(names[edge.source])}" for edge in edges]
            shown = [broken(text, [" ", "_"], widths[1]) for text in texts[:MAX_SOURCES]]
            sources = "\n".join([*shown, *[f"… {len(edges) - MAX_SOURCES} more"] * (len(edges) > MAX_SOURCES)])
        if node.cause == "interference":
            sources = "\n".join(filter(None, (f"interference {percent(node.off_cpu or 0)}", sources)))
        indent = " " * min(depth[node.id], MAX_INDENT)
        name = broken(f"({node.id}) {printable(node.component.name)}", [".", "_", " "], widths[0] - len(indent))
        name = "\n".join(indent + line for line in name.split("\n"))
        rows.append([name, node.kind, count(node.n), quantity(node.mean, unit), significant(node.cov), sources])
    return rows


def changes_text(changes: Sequence[PatternChange], unit: str) -> str:
    """Patterns that appeared, went or changed between two recordings; patterns that stay are counted."""
    shown = [change for change in changes if change.what != "stays"]
    text = ""
    for change in shown:
        name = printable(change.component.name)
        text += paragraph(f"{change.what:9} {name}: {root_text(change.old, unit)} > {root_text(change.new, unit)}")
        for share in change.shares:
            old, new = ("none" if value is None else percent(value) for value in (share.old, share.new))
            head, *below = share.path
            text += paragraph(printable(f"  variance of {head} from {' > '.join(below)}: {old} before, {new} now"))
    stay = len(changes) - len(shown)
    return text + paragraph(f"{counted(len(shown), 'pattern')} appeared, went or changed, {stay} stay as they were")


def provenance(runs: Sequence[Run]) -> str:
    """Machines, processes and threads of the runs in one line; empty where there is one thread.

    ``from 6 runs: 2 machines, 8 processes, 12 threads``. Runs whose tracer does not count threads (traces of other
    tools, killed programs) count for one each, and no threads are stated where no tracer counts them.
    """
    machines = len({run.host for run in runs if run.host}) or 1
    threads = [int(number) for run in runs if (number := run.words.get("threads", "")).isdigit()]
    executions = sum(not run.parent for run in runs)
    if machines == 1 and len(runs) == executions and max(threads, default=1) <= 1:
        return ""
    parts = [counted(machines, "machine"), counted(len(runs), "process")]
    if threads:
        least = "at least " * (len(threads) < len(runs))
        parts.append(least + counted(sum(threads) + len(runs) - len(threads), "thread"))
    return f"from {counted(executions, 'run')}: {', '.join(parts)}"
