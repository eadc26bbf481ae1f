"""The result of a study in the terminal: best, how sure, what matters, a map, laws, warnings, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.laws.printing import learnt_text
from perflaw.report import tables as prose
from perflaw.report.explore import words
from perflaw.report.explore.words import setting_text
from perflaw.report.tables import paragraph, printable, text_table
from perflaw.types.explored import Choice, Importance, StudyResult, Surface
from perflaw.types.studies import Knob, StudyMetric

# ---- Heat maps in text: a metric over two knobs, in percent of the best, darker is better.

SHADES = " ░▒▓█"
MOST_MAPS, WIDTH = 3, 80


def map_text(found: StudyResult) -> str:
    """The maps; empty where there are none or a single level."""
    surface, objective = found.surface, found.objective
    if surface is None or objective is None:
        return ""
    cells = [[_both(surface, k, j) for j in range(len(surface.y_values))] for k in range(len(surface.facet_values))]
    values = [value for one in cells for row in one for value, _ in row if value is not None]
    if len(values) < 2 or min(values) <= 0 or min(values) == max(values):
        return ""
    best = min(values) if objective.goal == "min" else max(values)
    knobs = {knob.name: knob for knob in found.study.knobs}
    text = paragraph(
        f"{surface.metric} in % of the best: {surface.x} across, {surface.y} upwards (~ not tried, expected)"
    )
    for place, facet in list(enumerate(surface.facet_values))[:MOST_MAPS]:
        if surface.facet:
            text += f" {surface.facet} = {setting_text(knobs.get(surface.facet), facet)}\n"
        shares = [[(_share(value, best), measured) for value, measured in row] for row in cells[place]]
        text += "".join(_rows(surface, shares, knobs))
    left = len(surface.facet_values) - MOST_MAPS
    return text + (f" {left} more on the page\n" if left > 0 else "")


def _both(surface: Surface, k: int, j: int) -> list[tuple[float | None, bool]]:
    """Value of each cell of a row, and whether it was measured."""
    row = zip(surface.measured[k][j], surface.expected[k][j], strict=True)
    return [(expected if seen is None else seen, seen is not None) for seen, expected in row]


def _share(value: float | None, best: float) -> float | None:
    """How good a value is beside the best, 0 to 1, whichever way is better."""
    return None if value is None or value <= 0 else min(value / best, best / value)


def _rows(
    surface: Surface, shares: Sequence[Sequence[tuple[float | None, bool]]], knobs: dict[str, Knob]
) -> Iterator[str]:
    """Lines from the highest level down, then the levels across."""
    names = [setting_text(knobs.get(surface.y), value) for value in surface.y_values]
    heads = [setting_text(knobs.get(surface.x), value).replace(" ", "") for value in surface.x_values]
    left = min(14, max(map(len, names))) + 2
    each = max(6, max(map(len, heads)) + 1)
    most = max(1, (WIDTH - left - 2) // each)
    for name, row in reversed(list(zip(names, shares, strict=True))):
        cells = "".join(_cell(share, measured).rjust(each) for share, measured in row[:most])
        yield f"  {name[: left - 2].rjust(left - 2)}{cells}".rstrip() + "\n"
    yield f"  {'':{left - 2}}{''.join(head[: each - 1].rjust(each) for head in heads[:most])}\n"


def _cell(share: float | None, measured: bool) -> str:
    if share is None:
        return "·"
    shade = SHADES[min(len(SHADES) - 1, int(share * len(SHADES)))]
    return f"{shade}{share * 100:.0f}" if measured else f"~{share * 100:.0f}"


MOST_SHARES, MOST_FRONT, MOST_NOTICES = 8, 8, 8
"""Rows of each part where not all are asked for."""
BAR = 20


def explore_text(found: StudyResult, colour: bool = False, every: bool = False, name: str = "STUDY") -> str:
    """Return the whole result in 80 columns; ``name`` is the study as it was named on the command line."""
    metrics = {one.name: one for one in found.study.metrics}
    text = paragraph_of_explore_table(words.heading(found))
    if found.best:
        text += "\n" + _choice("best", found.best, found, metrics)
        if found.robust and dict(found.robust.configuration) != dict(found.best.configuration):
            text += _choice("robust", found.robust, found, metrics)
    for one in found.importance if every else found.importance[:2]:
        text += _importance(one, metrics[one.metric], colour, every)
    maps = map_text(found) if any(one.shares for one in found.importance[:1]) else ""
    text += "\n" + maps if maps else ""
    text += _front(found, metrics, colour, every) + _laws(found)
    all_notices = [one for one in found.notices if one.kind not in ("null", "few")]  # told above, beside the shares
    notices = all_notices if every else all_notices[:MOST_NOTICES]
    text += "\n" * bool(notices) + "".join(paragraph_of_explore_table(f"! {printable(one.words)}") for one in notices)
    left = len(all_notices) - len(notices)
    text += f"  {left} more warnings (--all tells all)\n" if left else ""
    steps = list(words.next_steps(found, name))
    return text + (
        "\nnext\n" + "".join(paragraph_of_explore_table(f"  {command}  ({why})") for command, why in steps)
        if steps
        else ""
    )


def paragraph_of_explore_table(text: str) -> str:
    """The text in lines of 80 columns, percentages whole."""
    return prose.paragraph(text.replace(" %", "\u00a0%")).replace("\u00a0", " ")


def _choice(title: str, choice: Choice, found: StudyResult, metrics: dict[str, StudyMetric]) -> str:
    lines = [f"{title}: {words.configuration_text(found.study, choice.configuration)}"]
    expected = [f"{name} {words.estimate_text(metrics[name], one)}" for name, one in choice.metrics.items()]
    seen = choice.measured.get(found.objective.name) if found.objective else None
    told = ", ".join(expected)
    if seen is not None and found.objective:
        count = len(choice.trials)
        told += f"; measured {words.value_text(found.objective, seen)} in {count} trial{'s' * (count != 1)}"
    lines += ["  " + told, "  " + (words.sure_text(choice) if title == "best" else choice.why)]
    return "".join(map(paragraph_of_explore_table, lines))


def _importance(one: Importance, metric: StudyMetric, colour: bool, every: bool) -> str:
    noise = words.noise_text(one, metric)
    kind = "log-variance" if one.logarithm else "variance"
    how = ["every combination was tried"] * one.exact + [noise] * bool(noise)
    head = f"\nwhat matters for {one.metric}: share of its {kind} over the space" + (
        f" ({', '.join(how)})" if how else ""
    )
    if one.reason:
        return "\n" + paragraph_of_explore_table(f"{head.strip()}: {one.reason}")
    shares = [*one.shares] if every else words.told_shares(one)[:MOST_SHARES]
    rows = [[words.share_text(share), words.knobs_text(share), "█" * round(share.share * BAR)] for share in shares]
    table = text_table(["share", "knobs", ""], rows, right=(0,), colour=colour)
    return "\n" + paragraph_of_explore_table(head.strip()) + "".join(f" {line}\n" for line in table.splitlines())


def _front(found: StudyResult, metrics: dict[str, StudyMetric], colour: bool, every: bool) -> str:
    """The front, where metrics disagree."""
    if len(found.pareto) < 2:
        return ""
    names = [name for name in found.pareto[0].metrics if metrics[name].goal]
    shown = [*found.pareto] if every else [*found.pareto][:MOST_FRONT]
    rows = [
        [
            words.configuration_text(found.study, one.configuration),
            *(words.estimate_text(metrics[name], one.metrics[name]) for name in names),
            words.probability_text(one.probability),
        ]
        for one in shown
    ]
    table = text_table(["no other is better in every metric", *names, "sure"], rows, (), colour)
    left = len(found.pareto) - len(shown)
    return "\n" + table + (f"  {left} more (--all tells all)\n" if left else "")


def _laws(found: StudyResult) -> str:
    """Laws, or why there is none."""
    text = ""
    for one in found.laws:
        law = one.law
        told = learnt_text(law.expression) if law.verdict == "law" else f"{law.verdict}: {law.reason}"
        text += paragraph_of_explore_table(f"law of {one.metric.name}: {printable(told)}")
    return "\n" + text if text else ""
