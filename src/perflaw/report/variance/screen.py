"""Why one function is sometimes slow: one screen of 80 columns."""

from __future__ import annotations

from perflaw.confidence import WORDS
from perflaw.report.quantity import count, interval, percent, quantity, significant
from perflaw.report.tables import broken, paragraph, printable, text_table
from perflaw.types.variance import Budget, BudgetRow, Exemplar, Explanation, Step

NAME_WIDTH = 32
MOST_ROWS = 12
MOST_CONTEXTS = 3


def variance_screen(one: Explanation, colour: bool) -> str:
    """The answers, most wanted first."""
    sections = [
        _head(one),
        _budget(one, colour),
        _cause(one),
        _groups(one),
        _drivers(one),
        _contexts(one),
        _deadlines(one),
        _exemplars(one),
    ]
    return "\n".join(section for section in sections if section)


def _head(one: Explanation) -> str:
    unit = one.metric.unit
    verdict = "varies highly" if one.high else "steady" if one.n >= 30 else "too few calls to say"
    text = f"  {count(one.n)} calls, mean {quantity(one.mean, unit)}, CoV {significant(one.cov)}"
    if one.budget:
        p99, p50 = one.budget.p99, one.budget.p50
        times = f", {significant(p99 / p50)} times the median {quantity(p50, unit)}" if p50 > 0 else ""
        text += f"; p99 {quantity(p99, unit)}{times}"
    return paragraph(f"{printable(one.component.name)}: {one.metric.name} {verdict}") + paragraph(text)


def _budget(one: Explanation, colour: bool) -> str:
    if one.budget is None:
        return paragraph("no sampled calls are slower than the median: there is no budget to tell")
    budget, unit = one.budget, one.metric.unit
    more = quantity(budget.tail - budget.median, unit)
    text = paragraph(f"a call beyond p99 costs {more} more than one near the median:")
    rows = [_row(row, one) for row in budget.rows[:MOST_ROWS]]
    headings = ["share", f"({WORDS})", "where", "of variance", "because of", "off CPU"]
    text += text_table(headings, rows, right=(0, 3, 5), colour=colour)
    left = budget.rows[MOST_ROWS:]
    if left:
        text += f"{len(left)} more with {percent(sum(row.share for row in left))} together (--json tells all)\n"
    return text + _small_print(budget)


def _row(row: BudgetRow, one: Explanation) -> list[str]:
    between = "—"
    if row.share_low is not None and row.share_high is not None:
        between = f"{row.share_low * 100:.0f}–{row.share_high * 100:.0f}"
    off = "—" if row.off_cpu is None else percent(row.off_cpu)
    return [percent(row.share), between, _where(row, one), percent(row.cf_net), row.mechanism, off]


def _where(row: BudgetRow, one: Explanation) -> str:
    if not row.path:
        return "own code" if row.component == one.component else row.component.name
    names = [f"{_short(step)}:{step.line}" if step.line else _short(step) for step in row.path]
    text = " > ".join(names) + (" (the rest)" if row.rest else "") + (" *" if row.estimated else "")
    return broken(printable(text), " > ", NAME_WIDTH)


def _short(step: Step) -> str:
    return step.callee.rpartition(".")[2] or step.callee


def _small_print(budget: Budget) -> str:
    text = f"{budget.samples} sampled calls beyond p99"
    if any(row.estimated for row in budget.rows):
        text += "; * by covariance, samples hold direct callees alone"
    for name, share in budget.further.items():
        text += f"; {name} is {percent(share)} of it"
    return paragraph(text)


def _cause(one: Explanation) -> str:
    others = ", ".join(f"{name} {significant(cov)}" for name, cov in one.covs.items() if name != one.metric.name)
    beside = f" (CoV by {others})" if others else ""
    if one.cause == "steady":
        return paragraph(f"work or interference: steady{beside}")
    if one.off_cpu is None:
        why = "CPU time was not measured" if one.metric.name == "time" else f"{one.metric.name} is work"
        return paragraph(f"work or interference: {one.cause}, {why}{beside}")
    text = f"work or interference: {one.cause}, {percent(one.off_cpu)}"
    if one.off_cpu_low is not None and one.off_cpu_high is not None:
        text += f" ({one.off_cpu_low * 100:.0f}–{one.off_cpu_high * 100:.0f})"
    return paragraph(f"{text} of the variance is off the CPU{beside}")


def _groups(one: Explanation) -> str:
    lines = []
    for block in one.blocks:
        if len(block.parts) > 1 and block.relation != "alone":
            names = ", ".join(_part(one, place) for place in block.parts)
            verb = {"cancel": "cancel each other", "in step": "vary in step", "mixed": "vary together"}[block.relation]
            lines.append(paragraph(f"{names}: {verb}, {percent(block.cf_net)} of the variance together"))
    return "".join(lines)


def _part(one: Explanation, place: int) -> str:
    part = one.parts[place]
    if part.component is None:
        return "own code"
    return printable(f"{part.component.name.rpartition('.')[2]}:{part.line}")


def _drivers(one: Explanation) -> str:
    return "".join(
        paragraph(f"{printable(d.of)} follow {printable(d.feature)}: {printable(d.expression)} (R² {d.r2:.2f})")
        for d in one.drivers
    )


def _contexts(one: Explanation) -> str:
    if len(one.contexts) < 2:
        return ""
    high = sum(context.high for context in one.contexts)
    text = paragraph(f"{len(one.contexts)} calling contexts, {high} of high variance")
    chosen = list(one.contexts[:MOST_CONTEXTS])
    steady = next((context for context in one.contexts if not context.high), None)  # what to hold the others against
    for context in [*chosen, *([steady] if steady and steady not in chosen else [])]:
        call = context.path[-1]
        place = f"{call.caller or 'the start'}:{call.line}" if call.line else call.caller or "the start"
        word, mean = "high" if context.high else "steady", quantity(context.mean, one.metric.unit)
        figures = f"CoV {significant(context.cov)}, mean {mean}, {count(context.n)} calls"
        text += paragraph(f"  {word:6} {figures} from {printable(place)}")
    return text


def _deadlines(one: Explanation) -> str:
    unit, lines = one.metric.unit, []
    for d in one.deadlines:
        seen = f"{percent(d.observed)} ({percent(d.low)}–{percent(d.high)})"
        most = percent(d.chebyshev)
        lines.append(paragraph(f"longer than {quantity(d.deadline, unit)}: {seen}; at most {most} by Chebyshev"))
    for b in one.bounds:
        seen = "(too few calls say)" if b.observed is None else quantity(b.observed, unit)
        if b.observed is not None and b.low is not None and b.high is not None:
            seen += f" ({interval(b.low, b.high, unit)})"
        most = quantity(b.chebyshev, unit)
        lines.append(paragraph(f"{percent(b.probability)} take longer than {seen}; {most} by Chebyshev"))
    return "".join(lines)


def _exemplars(one: Explanation) -> str:
    worst = [exemplar for exemplar in one.exemplars if exemplar.reason == "worst"][:3]
    if not worst:
        return ""
    return "worst calls (--perfetto FILE.json exports them):\n" + "".join(_exemplar(x, one.metric.unit) for x in worst)


def _exemplar(exemplar: Exemplar, unit: str) -> str:
    features = ", ".join(f"{name}={value:g}" for name, value in list(exemplar.features.items())[:4])
    dearest = next((callee for callee in exemplar.callees if callee.component), None)
    most = f", most in {dearest.component.name.rpartition('.')[2]}" if dearest and dearest.component else ""
    text = f"  {quantity(exemplar.x, unit)} in run {exemplar.run.partition('-')[0]}{most}"
    return paragraph(printable(text + (f" · {features}" if features else "")))
