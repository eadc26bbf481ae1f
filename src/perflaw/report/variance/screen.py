"""Why the cost of one function varies: one screen of 80 columns."""

from __future__ import annotations

from perflaw.confidence import WORDS
from perflaw.report.quantity import NOTHING, count, counted, interval, percent, quantity, significant
from perflaw.report.tables import broken, paragraph, printable, text_table
from perflaw.report.variance.words import RELATIONS, cause_text, ends_text, last_name, row_name, together, verdict_text
from perflaw.types.variance import Explanation

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
    sections = [
        head,
        _budget(explanation, colour),
        paragraph(f"work or interference: {cause_text(explanation)}" + (f" (CoV by {others})" if others else "")),
        _groups(explanation),
        _drivers(explanation),
        _contexts(explanation),
        _deadlines(explanation),
        _exemplars(explanation),
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


def _groups(explanation: Explanation) -> str:
    return "".join(
        paragraph(
            f"{printable(', '.join(names))}: {RELATIONS[block.relation]}, {percent(block.cf_net)} of the variance together"
        )
        for block, names in together(explanation)
    )


def _drivers(explanation: Explanation) -> str:
    return "".join(
        paragraph(printable(f"{one.of} follow {one.feature}: {one.expression} (R² {one.r2:.2f})"))
        for one in explanation.drivers
    )


def _contexts(explanation: Explanation) -> str:
    contexts = explanation.contexts
    if len(contexts) < 2:
        return ""
    high = sum(context.high for context in contexts)
    text = paragraph(f"{counted(len(contexts), 'calling context')}, {high} of high variance")
    shown = list(contexts[:MAX_CONTEXTS])
    # A steady context is what the others are compared with.
    steady = next((context for context in contexts if not context.high), None)
    for context in [*shown, *([steady] if steady and steady not in shown else [])]:
        call = context.path[-1]
        place = f"{call.caller or 'the start'}:{call.line}" if call.line else call.caller or "the start"
        word, mean = "high" if context.high else "steady", quantity(context.mean, explanation.metric.unit)
        figures = f"CoV {significant(context.cov)}, mean {mean}, {counted(context.n, 'call')}"
        text += paragraph(f"  {word:6} {figures} from {printable(place)}")
    return text


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


def _exemplars(explanation: Explanation) -> str:
    worst = [exemplar for exemplar in explanation.exemplars if exemplar.reason == "worst"][:MAX_EXEMPLARS]
    if not worst:
        return ""
    lines = []
    for exemplar in worst:
        features = ", ".join(f"{name}={value:g}" for name, value in list(exemplar.features.items())[:MAX_FEATURES])
        costliest = next((callee.component.name for callee in exemplar.callees if callee.component), "")
        most = f", most in {last_name(costliest)}" if costliest else ""
        text = f"  {quantity(exemplar.x, explanation.metric.unit)} in run {exemplar.run.partition('-')[0]}{most}"
        lines.append(paragraph(printable(text + (f" · {features}" if features else ""))))
    return "worst calls (--perfetto FILE.json exports them):\n" + "".join(lines)
