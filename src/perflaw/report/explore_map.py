"""Heat maps in text: a metric over two knobs, in percent of the best, darker is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.report.explore_words import setting_text
from perflaw.report.prose import paragraph
from perflaw.types.explored import Explored, Surface
from perflaw.types.studies import Knob

SHADES = " ░▒▓█"
MOST_MAPS, WIDTH = 3, 80


def map_text(found: Explored) -> str:
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
