"""Variance in the terminal: patterns as a table and as changes between two recordings, and a screen for one function.

The screen says why the cost of the function varies, in lines that the terminal holds. The page shares the words: shares,
intervals, calls, verdicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from perflaw.confidence import WORDS
from perflaw.report.advice import command
from perflaw.report.quantity import NOTHING, count, counted, interval, percent, quantity, significant
from perflaw.report.tables import WIDTH, broken, column, paragraph, printable, text_table, width
from perflaw.types import Run
from perflaw.types.documents import Document
from perflaw.types.variance import Await, BudgetRow, Explanation, Latency, Part, PatternChange, PatternNode, Step

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


def driver_text(driver: Document) -> str:
    """What follows a feature: its mean where the feature is small, usual and large; the document has the law.

    >>> driver_text({"of": "calls of f", "feature": "n", "r2": 0.98, "unit": "", "means": [[1, 0.5], [9, 20.2]]})
    'calls of f follow n: 0.5 at n = 1, 20 at 9 (R² 0.98)'
    """
    verb = "follow" if driver["of"].startswith("calls of ") else "follows"
    means = ", ".join(
        f"{quantity(mean, driver['unit'])} at {'' if place else driver['feature'] + ' = '}{value:.6g}"
        for place, (value, mean) in enumerate(driver["means"])
    )
    return f"{driver['of']} {verb} {driver['feature']}: {means} (R² {driver['r2']:.2f})"


def last_name(name: str) -> str:
    """The part of a name after its last dot."""
    return name.rpartition(".")[2] or name


def call_path(path: Sequence[Step]) -> str:
    """Calls by last names and lines.

    >>> call_path([Step("app.f", 3, 0, "app.g"), Step("app.g", 0, 0, "app.h")])
    'g:3 > h'
    """
    return " > ".join(_at_line(step.callee, step.line) for step in path)


def part_name(part: Part, parts: Sequence[Part] = ()) -> str:
    """A call site by callee and line, or ``own code``; of several ``parts`` on one line with the place among them."""
    if part.component is None:
        return "own code"
    return _at_line(part.component.name, part.line) + _place_on_line(part.component.name, part.line, part.site, parts)


def _place_on_line(callee: str, line: int, site: int, parts: Sequence[Part]) -> str:
    """Which of the calls of one function on one line it is; empty where there is one."""
    alike = {one.site for one in parts if one.component and (one.component.name, one.line) == (callee, line)}
    return f" #{sorted(alike).index(site) + 1}" if len(alike) > 1 and site in alike else ""


def _at_line(name: str, line: int) -> str:
    return f"{last_name(name)}:{line}" if line else last_name(name)


def row_name(row: BudgetRow, explanation: Explanation) -> str:
    """The call path of a row of the budget; ``*`` marks shares that are estimated."""
    if not row.path:
        return "own code" if row.component == explanation.component else row.component.name
    first = row.path[0]
    place = _place_on_line(first.callee, first.line, first.site, explanation.parts)
    path = " > ".join(filter(None, (call_path(row.path[:1]) + place, call_path(row.path[1:]))))
    return path + (" (remaining paths)" if row.rest else "") + (" *" if row.estimated else "")


def verdict_text(explanation: Explanation) -> str:
    """Whether a function's cost varies."""
    if explanation.high:
        return "varies highly"
    if explanation.n < 30:
        return "too few calls to say"
    if explanation.tracing_ns is not None:
        recording, mean = quantity(explanation.tracing_ns, "ns"), quantity(explanation.mean, explanation.metric.unit)
        return (
            f"of unknown variance: recording takes {recording} beside the {mean} of a call, and hides how that varies"
        )
    return "steady" if explanation.cause == "steady" else "varies no more than the machine and single calls explain"


REASONS = {
    "queued": "ready to run without a CPU",
    "sleep": "sleeping",
    "lock": "waiting for a lock",
    "io": "input or output",
    "network": "the network",
    "child": "waiting for a child process",
    "other": "other waiting",
}
"""What a thread is off the CPU for."""
MIN_REASON = 0.05
"""Share of the variance from which on a reason is named."""


def reasons_text(off_for: Mapping[str, float]) -> str:
    """What the time off the CPU is spent on, the largest share of the variance first.

    >>> reasons_text({"queued": 0.1, "lock": 0.68, "other": 0.01})
    'waiting for a lock 68 %, ready to run without a CPU 10 %'
    """
    shown = sorted((-share, REASONS.get(name, name)) for name, share in off_for.items() if share >= MIN_REASON)
    return ", ".join(f"{words} {percent(-share)}" for share, words in shown)


def node_cause_text(node: Document) -> str:
    """Waiting with the largest reason, or interference, with its share of the variance; empty for other causes."""
    off_cpu, off_for = node["off_cpu"] or 0, node["off_for"]
    if node["cause"] == "interference":
        return f"interference {percent(off_for.get('queued', off_cpu))}"
    if node["cause"] == "waiting":
        reason = max(sorted(off_for.keys() - {"queued"}), key=lambda name: off_for[name])
        text = f"waiting {percent(off_cpu - off_for.get('queued', 0))}"
        return text + (f" ({reason})" if reason != "other" else "")
    return ""


def cause_text(explanation: Explanation) -> str:
    """Work, waiting or interference with the interval of what is off the CPU, or why the cause is not known."""
    if explanation.cause == "steady":
        return "steady"
    if explanation.off_cpu is None:
        metric = explanation.metric.name
        reason = "CPU time was not measured" if metric == "time" else f"{metric} is work"
        return f"{explanation.cause}, {reason}"
    ends = ends_text(explanation.off_cpu_low, explanation.off_cpu_high)
    interval = "" if ends == "unknown" else f" ({ends})"
    text = f"{explanation.cause}, {share_text(explanation.off_cpu)}{interval} of the variance is off the CPU"
    if explanation.cause == "unknown":
        return f"{text}, and the recording does not tell what for"
    reasons = reasons_text(explanation.off_for)
    return f"{text}: {reasons}" if reasons else text


def root_text(root: PatternNode | None, unit: str) -> str:
    """The figures of a pattern's root in one of two recordings."""
    return f"CoV {significant(root.cov)} of {quantity(root.mean, unit)}" if root else "none"


def latency_word(latency: Latency, n: int) -> str:
    """Whether the latency of a coroutine varies."""
    return "varies highly" if latency.high else "steady" if n >= 30 else "too few calls to say"


def await_name(one: Await) -> str:
    """What a coroutine awaits, by its last name and line."""
    return "other awaits" if one.component is None else _at_line(one.component.name, one.line)


def await_texts(latency: Latency) -> list[str]:
    """The awaits that the variance of a latency comes from, the largest share first, and the coroutine's own time."""
    shares = [(one.share, await_name(one)) for one in latency.awaits] + [(1 - latency.awaiting, "own time")]
    return [f"{share_text(share)} {name}" for share, name in sorted(shares, reverse=True) if share >= MIN_REASON]


def shown_explanation(explanation: Explanation) -> Document:
    """What the screen and the page both say of a function, in words.

    ``budget`` has the names of the budget's rows. ``together`` has the blocks of several parts that do not vary
    independently, with the names of their parts.
    """
    parts, latency = explanation.parts, explanation.latency
    return {
        "verdict": verdict_text(explanation),
        "cause": cause_text(explanation),
        "budget": [row_name(row, explanation) for row in explanation.budget.rows] if explanation.budget else [],
        "together": [
            {
                "parts": [part_name(parts[place], parts) for place in block.parts],
                "relation": RELATIONS[block.relation],
                "cf_net": block.cf_net,
            }
            for block in explanation.blocks
            if len(block.parts) > 1 and block.relation in RELATIONS
        ],
        "latency": latency_word(latency, explanation.n) if latency else "",
        "awaits": list(map(await_name, latency.awaits)) if latency else [],
    }


def shown_change(change: PatternChange, unit: str) -> Document:
    """What the table and the page both say of a pattern in two recordings, in words."""
    return {"old": root_text(change.old, unit), "new": root_text(change.new, unit)}


MAX_ROWS, MAX_CONTEXTS, MAX_EXEMPLARS, MAX_FEATURES = 12, 3, 3, 4


def variance_screen(document: Document, colour: bool) -> str:
    """The answers about the function explained, the most wanted first. ``document``: ``perflaw.variance/1``."""
    unit, metric, function = document["unit"], document["metric"], document["function"]
    said, tail = function["shown"], function["tail"]
    text = f"  {count(function['n'])} calls, mean {quantity(function['mean'], unit)}"
    text += f", CoV {significant(function['cov'])}"
    if tail:
        text += f"; p99 {quantity(tail['p99'], unit)}"
        if tail["p50"] > 0:
            text += f", {significant(tail['p99'] / tail['p50'])} times the median {quantity(tail['p50'], unit)}"
    name = printable(function["component"])
    head = paragraph(f"{name}: {metric} {said['verdict']}") + paragraph(text)
    if function["latency"]:
        head = _latency(function, name) + "\n" + head
    others = ", ".join(f"{name} {significant(cov)}" for name, cov in function["covs"].items() if name != metric)

    contexts, contexts_text = function["contexts"], ""
    if len(contexts) > 1:
        high = sum(context["high"] for context in contexts)
        contexts_text = paragraph(f"{counted(len(contexts), 'calling context')}, {high} of high variance")
        shown = contexts[:MAX_CONTEXTS]
        # A steady context is what the others are compared with.
        steady = next((context for context in contexts if not context["high"]), None)
        for context in [*shown, *([steady] if steady and steady not in shown else [])]:
            call = context["path"][-1]
            caller = call["caller"] or "the start"
            place = f"{caller}:{call['line']}" if call["line"] else caller
            word, mean = "high" if context["high"] else "steady", quantity(context["mean"], unit)
            figures = f"CoV {significant(context['cov'])}, mean {mean}, {counted(context['n'], 'call')}"
            contexts_text += paragraph(f"  {word:6} {figures} from {printable(place)}")

    worst = [exemplar for exemplar in function["exemplars"] if exemplar["reason"] == "worst"][:MAX_EXEMPLARS]
    exemplars = "worst calls (--perfetto FILE.json exports them):\n" if worst else ""
    for exemplar in worst:
        known = [(name, NOTHING if x is None else f"{x:g}") for name, x in exemplar["features"].items()]
        features = ", ".join(f"{name}={text}" for name, text in known[:MAX_FEATURES])
        costliest = next((callee["component"] for callee in exemplar["callees"] if callee["component"]), "")
        text = f"  {quantity(exemplar['x'], unit)} in run {exemplar['run'].partition('-')[0]}"
        text += f", most in {last_name(costliest)}" if costliest else ""
        exemplars += paragraph(printable(text + (f" · {features}" if features else "")))

    sections = [
        head,
        _budget(document, colour),
        paragraph(f"work, waiting or interference: {said['cause']}" + (f" (CoV by {others})" if others else "")),
        "".join(
            paragraph(
                f"{printable(', '.join(one['parts']))}: {one['relation']}, {percent(one['cf_net'])} of the variance together"
            )
            for one in said["together"]
        ),
        "".join(paragraph(printable(driver_text(one))) for one in function["drivers"]),
        contexts_text,
        _deadlines(function, unit),
        exemplars,
    ]
    return "\n".join(section for section in sections if section)


def _latency(function: Document, name: str) -> str:
    """The latency of a coroutine, and what it awaits."""
    latency, said = function["latency"], function["shown"]
    mean, p99, p50 = (quantity(latency[figure], "ns") for figure in ("mean", "p99", "p50"))
    text = f"  {count(function['n'])} calls, from the call to the result: mean {mean}"
    text += f", CoV {significant(latency['cov'])}; p99 {p99}, median {p50}"
    lines = paragraph(f"{name}: latency {said['latency']}") + paragraph(text)
    shares = [
        f"{printable(awaited)} {share_text(one['share'])} (mean {quantity(one['mean'], 'ns')})"
        for awaited, one in zip(said["awaits"], latency["awaits"], strict=True)
        if one["mean"] > 0
    ]
    lines += paragraph(f"  {share_text(latency['awaiting'])} of its variance is awaiting: {', '.join(shares)}")
    return lines + paragraph(
        "  the rest of this screen, but for deadlines, is about the time in its own code and callees"
    )


def _budget(document: Document, colour: bool) -> str:
    tail, budget, names = document["function"]["tail"], document["budget"], document["function"]["shown"]["budget"]
    if tail is None:
        return paragraph("no budget: no sampled call is slower than the median")
    more = quantity(tail["tail"] - tail["median"], document["unit"])
    rows = []
    for name, row in list(zip(names, budget, strict=True))[:MAX_ROWS]:
        ends = ends_text(row["share_low"], row["share_high"])
        rows.append(
            [
                percent(row["share"]),
                NOTHING if ends == "unknown" else ends,
                name,
                percent(row["cf_net"]),
                row["mechanism"] if width() >= WIDTH else broken(row["mechanism"], " ", 0),
                percent(row["off_cpu"]),
            ]
        )
    headings = ["share", f"({WORDS})", "where", "of variance", "because of", "off CPU"]
    if width() < WIDTH:
        headings = [heading.replace(" ", "\n") if heading in headings[3:] else heading for heading in headings]
    text = paragraph(f"a call beyond p99 costs {more} more than one near the median:")
    text += text_table(headings, rows, right=(0, 3, 5), colour=colour, names={2: (">", ".", "_")})
    left = budget[MAX_ROWS:]
    if left:
        text += f"{len(left)} more with {percent(sum(row['share'] for row in left))} together (--json holds all)\n"
    notes = f"{counted(tail['samples'], 'sampled call')} beyond p99"
    if any(row["estimated"] for row in budget):
        notes += "; * estimated from covariances: samples hold the costs of direct callees alone"
    for name, share in tail["further"].items():
        notes += f"; {name} is {percent(share)} of it"
    return text + paragraph(notes)


def _deadlines(function: Document, unit: str) -> str:
    lines = []
    for one in function["deadlines"]:
        observed = f"{percent(one['observed'])} ({percent(one['low'])}–{percent(one['high'])})"
        most = percent(one["chebyshev"])
        lines.append(f"longer than {quantity(one['deadline'], unit)}: {observed}; at most {most} by Chebyshev")
    for bound in function["bounds"]:
        most, part = quantity(bound["chebyshev"], unit), percent(bound["probability"])
        if bound["observed"] is None:
            lines.append(f"{part} take longer than: too few calls; {most} by Chebyshev")
            continue
        seen = quantity(bound["observed"], unit)
        if bound["low"] is not None and bound["high"] is not None:
            seen += f" ({interval(bound['low'], bound['high'], unit)})"
        lines.append(f"{part} take longer than {seen}; {most} by Chebyshev")
    return "".join(map(paragraph, lines))


NAME_WIDTH, SOURCE_WIDTH, MAX_INDENT = 24, 19, 8
"""Widths of names and sources in 80 columns (a wider terminal widens both), and the deepest indentation."""
FIGURES_WIDTH = 37
"""Width of all other columns; fewer than 80 columns have the sources below the names."""
MAX_NAME_LINES = 3
"""Lines of a function's name."""
SAME_SHARE = 0.05
"""Shares that differ by less need not be repeated below."""
MAX_SOURCES, MAX_NODES = 4, 40
"""Sources that a node names, the largest first, and nodes that the table shows; --json holds all."""


def variance_table(document: Document, colour: bool, experiment: str = "default") -> str:
    """Patterns one below the other, nodes indented below their parents, with the sources of their variance.

    What the latency of coroutines varies by stands first: patterns are of the time in their own code and callees.
    ``document``: ``perflaw.variance/1``, of an ``experiment``.
    """
    latencies = _latencies(document["latencies"], colour, experiment) + "\n" if document["latencies"] else ""
    return latencies + _patterns(document, colour, experiment)


def _latencies(latencies: Sequence[Document], colour: bool, experiment: str) -> str:
    rows = []
    for one in latencies[:MAX_NODES]:
        name, latency = broken(printable(one["component"]), [".", "_", " "], column(NAME_WIDTH)), one["latency"]
        figures = [quantity(latency["mean"], "ns"), significant(latency["cov"]), quantity(latency["p99"], "ns")]
        shown = [
            broken(printable(text), [" ", "_"], column(SOURCE_WIDTH)) for text in one["shown"]["sources"][:MAX_SOURCES]
        ]
        rows.append([name, count(one["n"]), *figures, "\n".join(shown)])
    headings = ["variance of latency", "calls", "mean", "CoV", "p99", "comes from awaiting"]
    text = text_table(headings, rows, right=(1, 2, 3, 4), colour=colour)
    why = command("variance", experiment, printable(latencies[0]["component"]))
    return text + paragraph(f"why: {why}")


def _patterns(document: Document, colour: bool, experiment: str) -> str:
    notes = [f"note: {note}" for note in document["notes"]]
    metric, unit, patterns, counts = (document[name] for name in ("metric", "unit", "patterns", "counts"))
    contexts, too_few = f"{counts['tree']:,} calling contexts", counts["too_few"]
    if not patterns:
        few = f" {too_few:,} have fewer than 30 calls." if too_few else ""
        nothing = f"no function's {metric} varies highly in any of {contexts}.{few}"
        return "".join(map(paragraph, [nothing, *notes]))
    wider = width() - WIDTH
    widths = (
        (NAME_WIDTH + wider // 2, SOURCE_WIDTH + wider - wider // 2) if wider >= 0 else (width() - FIGURES_WIDTH, 0)
    )
    rows = [row for pattern in patterns for row in _rows(pattern, unit, widths)][:MAX_NODES]
    headings = [f"variance of {metric}", "type", "calls", "mean", "CoV", *["comes from"] * bool(widths[1])]
    extracted, merged, shown = counts["extracted"], counts["merged"], counts["shown"]
    more = shown["nodes"] - len(rows)
    lines = [f"{more} more nodes (--json and --dot hold all)"] if more else []
    lines.append(
        f"{contexts}: {counted(extracted['nodes'], 'node')} in {counted(extracted['patterns'], 'pattern')}, merged to "
        f"{merged['nodes']} in {merged['patterns']}, {shown['nodes']} in {shown['patterns']} after trimming"
    )
    if metric == "time" and patterns[0]["nodes"][0]["cause"] == "interference":
        of_cpu = command("variance", experiment, "--metric cpu")
        lines.append(f"interference is time in which others had the CPU; without it: {of_cpu}")
    why = command("variance", experiment, printable(patterns[0]["root"]))
    lines += [*notes, f"why: {why}"]
    return text_table(headings, rows, right=(2, 3, 4), colour=colour) + "".join(map(paragraph, lines))


def _rows(pattern: Document, unit: str, widths: tuple[int, int]) -> list[list[str]]:
    nodes: list[Document] = pattern["nodes"]
    depth: dict[int | None, int] = {None: -1}
    # Node → the ancestor whose sources it shares, or itself: a chain of calls states its sources once.
    shares: dict[int, dict[int, Any]] = {node["id"]: {} for node in nodes}
    for edge in pattern["contributions"]:
        shares[edge["to"]][edge["from"]] = edge["cf_net"]
    representative: dict[int, int] = {}
    for node in nodes:
        above = node["id"] if node["parent"] is None else representative[node["parent"]]
        own, theirs = shares[node["id"]], shares[above]
        same = own.keys() == theirs.keys() and all(abs(own[one] - theirs[one]) < SAME_SHARE for one in own)
        representative[node["id"]] = above if own and same else node["id"]
    names = {one["id"]: re.split(r"\.|::", one["component"])[-1] for one in nodes}
    rows = []
    for node in nodes:
        number = node["id"]
        depth[number] = depth[node["parent"]] + 1
        sources = f"as ({representative[number]})"
        if representative[number] == number:
            edges = [edge for edge in pattern["contributions"] if edge["to"] == number]
            texts = [f"{percent(edge['cf_net'])} ({edge['from']}) {printable(names[edge['from']])}" for edge in edges]
            shown = [broken(text, [" ", "_"], widths[1] or widths[0] - MAX_INDENT) for text in texts[:MAX_SOURCES]]
            sources = "\n".join([*shown, *[f"… {len(texts) - MAX_SOURCES} more"] * (len(texts) > MAX_SOURCES)])
        sources = "\n".join(filter(None, (node_cause_text(node), sources)))
        indent = " " * min(depth[number], MAX_INDENT if widths[1] else MAX_INDENT // 2)
        name = _fitting_name(number, printable(node["component"]), widths[0] - len(indent))
        figures = [count(node["n"]), quantity(node["mean"], unit), significant(node["cov"])]
        if widths[1]:
            figures.append(sources)
        elif sources:
            name += "\n" + "\n".join("  " + line for line in sources.split("\n"))
        rows.append(["\n".join(indent + line for line in name.split("\n")), node["type"], *figures])
    return rows


def _fitting_name(number: int, name: str, room: int) -> str:
    """A node with its function's name in a few lines of ``room`` columns; of a longer one the end, which also names it."""
    parts = re.split(r"(?<=\.)(?=[^.<])|(?<=::)", name)
    for start in range(len(parts)):
        text = broken(f"({number}) {'…' * bool(start)}{''.join(parts[start:])}", [".", "_", " "], room)
        if text.count("\n") < MAX_NAME_LINES:
            break
    return text


def changes_text(document: Document) -> str:
    """Patterns that appeared, went or changed between two recordings; patterns that stay are counted."""
    changes: list[Document] = document["changes"]
    shown = [change for change in changes if change["what"] != "stays"]
    text = ""
    for change in shown:
        said = change["shown"]
        text += paragraph(f"{change['what']:9} {printable(change['component'])}: {said['old']} > {said['new']}")
        for share in change["shares"]:
            old, new = ("none" if share[side] is None else percent(share[side]) for side in ("old", "new"))
            head, *below = share["segment"]
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
