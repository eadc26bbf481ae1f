"""The result of a study in the terminal: the best, how sure that is, what matters, a map, laws, warnings, next steps."""

from __future__ import annotations

from collections.abc import Mapping

from perflaw.laws.printing import learnt_text
from perflaw.report import tables
from perflaw.report.explore import words
from perflaw.report.quantity import counted
from perflaw.report.tables import WIDTH, printable, text_table
from perflaw.types.explored import Choice, StudyResult
from perflaw.types.studies import StudyMetric

MAX_SHARES, MAX_FRONT, MAX_NOTICES, MAX_MAPS = 8, 8, 8, 3
"""Rows of each part where not all are asked for."""
_BAR = 20
_SHADES = " ░▒▓█"
_MAX_LEVEL_NAME = 14


def explore_text(result: StudyResult, colour: bool = False, every: bool = False, name: str = "STUDY") -> str:
    """The whole result in 80 columns; ``name`` is the study on the command line."""
    metrics = {metric.name: metric for metric in result.study.metrics}
    text = _paragraph(words.heading(result))
    if result.best:
        text += "\n" + _choice("best", result.best, result, metrics)
        if result.robust and words.robust_differs(result):
            text += _choice("robust", result.robust, result, metrics)
    for importance in result.importance if every else result.importance[:2]:
        noise = words.noise_text(importance, metrics[importance.metric])
        notes = ["every combination was tried"] * importance.exact + [noise] * bool(noise)
        variance = "log-variance" if importance.logarithm else "variance"
        head = f"what matters for {importance.metric}: share of its {variance} over the space"
        head += f" ({', '.join(notes)})" if notes else ""
        if importance.reason:
            text += "\n" + _paragraph(f"{head}: {importance.reason}")
            continue
        shares = importance.shares if every else [share for share in importance.shares if share.sure][:MAX_SHARES]
        rows = [[words.share_text(share), words.knobs_text(share), "█" * round(share.share * _BAR)] for share in shares]
        table = text_table(["share", "knobs", ""], rows, right=(0,), colour=colour)
        text += "\n" + _paragraph(head) + "".join(f" {line}\n" for line in table.splitlines())
    maps = _maps(result) if any(one.shares for one in result.importance[:1]) else ""
    text += "\n" + maps if maps else ""
    if len(result.pareto) > 1:
        names = [name for name in result.pareto[0].metrics if metrics[name].goal]
        shown = result.pareto if every else result.pareto[:MAX_FRONT]
        rows = [
            [
                words.configuration_text(result.study, one.configuration),
                *(words.estimate_text(metrics[name], one.metrics[name]) for name in names),
                words.probability_text(one.probability),
            ]
            for one in shown
        ]
        table = text_table(["no other is better in every metric", *names, "sure"], rows, (), colour)
        left = len(result.pareto) - len(shown)
        text += "\n" + table + (f"  {left} more (--all lists all)\n" if left else "")
    text += "\n" * bool(result.laws)
    for one in result.laws:
        law = learnt_text(one.law.expression) if one.law.verdict == "law" else f"{one.law.verdict}: {one.law.reason}"
        text += _paragraph(f"law of {one.metric.name}: {printable(law)}")
    # Warnings, without those that stand beside the shares already.
    notices = [one for one in result.notices if one.kind not in ("null", "few")]
    listed = notices if every else notices[:MAX_NOTICES]
    text += "\n" * bool(listed) + "".join(_paragraph(f"! {printable(one.words)}") for one in listed)
    left = len(notices) - len(listed)
    text += f"  {counted(left, 'more warning')} (--all lists all)\n" if left else ""
    steps = [_paragraph(f"  {command}  ({purpose})") for command, purpose in words.next_steps(result, name)]
    return text + ("\nnext\n" + "".join(steps) if steps else "")


def _paragraph(text: str) -> str:
    """The text in lines of 80 columns; a number and its percent sign stay on one line."""
    return tables.paragraph(text.replace(" %", "\u00a0%")).replace("\u00a0", " ")


def _choice(title: str, choice: Choice, result: StudyResult, metrics: Mapping[str, StudyMetric]) -> str:
    values = ", ".join(f"{name} {words.estimate_text(metrics[name], one)}" for name, one in choice.metrics.items())
    objective = result.objective
    if objective and objective.name in choice.measured:
        measured = words.value_text(objective, choice.measured[objective.name])
        values += f"; measured {measured} in {counted(len(choice.trials), 'trial')}"
    reason = words.sure_text(choice) if title == "best" else choice.why
    lines = [f"{title}: {words.configuration_text(result.study, choice.configuration)}", f"  {values}", f"  {reason}"]
    return "".join(map(_paragraph, lines))


def _maps(result: StudyResult) -> str:
    """Heat maps of the objective over two knobs, in percent of the best, darker is better; empty without a map."""
    surface, objective = result.surface, result.objective
    if surface is None or objective is None:
        return ""
    # Value of each cell, by facet and row, and whether it was measured.
    cells = [
        [
            [
                (expected if measured is None else measured, measured is not None)
                for measured, expected in zip(*row, strict=True)
            ]
            for row in zip(*facet, strict=True)
        ]
        for facet in zip(surface.measured, surface.expected, strict=True)
    ]
    values = [value for facet in cells for row in facet for value, _ in row if value is not None]
    if len(values) < 2 or min(values) <= 0 or min(values) == max(values):
        return ""
    best = min(values) if objective.goal == "min" else max(values)
    knobs = {knob.name: knob for knob in result.study.knobs}
    text = _paragraph(
        f"{surface.metric} in % of the best: {surface.x} across, {surface.y} upwards (~ not tried, expected)"
    )
    for facet, rows in list(zip(surface.facet_values, cells, strict=True))[:MAX_MAPS]:
        if surface.facet:
            text += f" {surface.facet} = {words.setting_text(knobs.get(surface.facet), facet)}\n"
        # The rows from the highest level down, then the levels across.
        names = [words.setting_text(knobs.get(surface.y), value) for value in surface.y_values]
        heads = [words.setting_text(knobs.get(surface.x), value).replace(" ", "") for value in surface.x_values]
        margin = min(_MAX_LEVEL_NAME, max(map(len, names)))
        column = max(6, max(map(len, heads)) + 1)
        columns = max(1, (WIDTH - margin - 4) // column)
        for name, row in reversed(list(zip(names, rows, strict=True))):
            shown = "".join(_cell(value, measured, best).rjust(column) for value, measured in row[:columns])
            text += f"  {name[:margin].rjust(margin)}{shown}".rstrip() + "\n"
        text += f"  {'':{margin}}{''.join(head[: column - 1].rjust(column) for head in heads[:columns])}\n"
    left = len(surface.facet_values) - MAX_MAPS
    return text + (f" {left} more on the page\n" if left > 0 else "")


def _cell(value: float | None, measured: bool, best: float) -> str:
    """How good a value is beside the best, in percent, with a shade; ``~`` marks values that are expected."""
    if value is None or value <= 0:
        return "·"
    share = min(value / best, best / value)
    shade = _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))] if measured else "~"
    return f"{shade}{share * 100:.0f}"
