"""Plots as SVG, drawn without scripts or libraries: lines, bars, histograms and maps. All text in them is escaped."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.report.quantity import number, quantity
from perflaw.report.tables import clipped

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM, _TOP = 640, 360, 80, 12, 44, 28
_LEGEND: Final = 15
"""Height of a row of a legend."""
_MAX_TICKS: Final = 6
"""Grid lines along an axis."""
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of Okabe and Ito, which people with colour blindness tell apart."""
INK, _GRID, _EMPTY = "#1b1f24", "#8886", "#eceef0"
_PALE, _FULL = (235, 242, 250), (8, 64, 129)
"""Red, green and blue of the least and of the largest value of a map."""
Ticks = Sequence[tuple[float, str]]
"""Places on an axis, in the axis's own numbers, with their words."""


@dataclass(frozen=True, slots=True)
class Series:
    """What a plot draws in one colour."""

    name: str
    """Name in the legend."""
    x: Sequence[float]
    """Places on the horizontal axis."""
    y: Sequence[float]
    """Places on the vertical axis."""
    line: bool = False
    """Whether they are joined."""
    low: Sequence[float] = ()
    """Lower ends of the intervals for y, drawn as a band of a line and as whiskers of points; empty without intervals."""
    high: Sequence[float] = ()
    """Their upper ends."""
    x_low: Sequence[float] = ()
    """Lower ends of the intervals for x, drawn as whiskers; empty without intervals."""
    x_high: Sequence[float] = ()
    """Their upper ends."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as SVG, which notebooks show and ``save`` writes."""

    svg: str
    """The text of the picture."""

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture; OSError where that fails."""
        Path(path).write_text(self.svg, encoding="utf-8")


def line_plot(
    title: str, x_name: str, unit: str, series: Sequence[Series], *, x_unit: str | None = None, x_ticks: Ticks = ()
) -> Plot:
    """Points and lines, on logarithmic axes where all values are above zero and spread.

    ``x_unit`` is the unit of the horizontal axis where that has one; ``x_ticks`` are places with words of their own, and
    the horizontal axis is then linear.
    """
    y_axis = _Axis.around([(one.y, (*one.low, *one.high)) for one in series], _HEIGHT - _BOTTOM, _TOP)
    x_axis = _Axis.around([(one.x, (*one.x_low, *one.x_high)) for one in series], _LEFT, _WIDTH - _RIGHT)
    if x_ticks:
        x_axis = _Axis(x_ticks[0][0] - 0.5, x_ticks[-1][0] + 0.5, _LEFT, _WIDTH - _RIGHT, False)
    parts = [
        *_frame(x_axis, x_ticks or _number_ticks(x_axis, x_unit)),
        *_lines(y_axis, lambda value: quantity(value, unit)),
    ]
    parts.append(label((_LEFT + _WIDTH) / 2, _HEIGHT - 8, clipped(x_name, 80), "middle"))
    for place, one in enumerate(series):
        parts += _marks(one, COLOURS[place % len(COLOURS)], x_axis, y_axis)
    return picture(title, _HEIGHT, [*parts, *_legend([one.name for one in series], COLOURS)])


MAX_BARS: Final = 20
"""Bars of a picture: more do not fit on a screen."""


def bar_plot(title: str, unit: str, bars: Sequence[tuple[str, float]], chosen: int | None = None) -> Plot:
    """A bar for each name, the value beside it; bars of negative values have another colour.

    Of many bars, those of the largest values are drawn, and the one at the place ``chosen``; the title says how many.
    """
    if len(bars) > MAX_BARS:
        by_value = sorted(range(len(bars)), key=lambda place: (place != chosen, -abs(bars[place][1]), place))
        title = f"{title}: {MAX_BARS} of {len(bars)}"
        bars = [bars[place] for place in sorted(by_value[:MAX_BARS])]
    largest = max((abs(value) for _, value in bars), default=0.0) or 1.0
    parts, name_width = [], 300
    for place, (name, value) in enumerate(bars):
        top = _TOP + 8 + 22 * place
        length = abs(value) / largest * (_WIDTH - name_width - 90)
        parts.append(label(name_width - 6, top + 13, clipped(name, 44), "end"))
        parts.append(box(name_width, top, length, 17, COLOURS[value < 0]))
        parts.append(label(name_width + length + 5, top + 13, quantity(value, unit)))
    return picture(title, _TOP + 22 * len(bars) + 16, parts)


def histogram(
    title: str,
    x_name: str,
    edges: Sequence[float],
    stacks: Sequence[tuple[str, Sequence[float]]],
    *,
    ticks: Ticks,
    borders: Ticks = (),
    height: Callable[[float], str] = number,
    colours: Sequence[str] = COLOURS,
) -> Plot:
    """Bars from edge to edge, in each the values of all ``stacks`` one upon the other.

    ``edges`` are one more than the bars and rise evenly, such as logarithms; ``ticks`` and ``borders``, which are drawn as
    upright lines, are in the same numbers. ``height`` gives the words of the vertical axis.
    """
    x_axis = _Axis(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT, False)
    sums = [sum(values) for values in zip(*(values for _, values in stacks), strict=True)]
    rows = len(stacks) if any(name for name, _ in stacks) else 0
    y_axis = _Axis(0.0, max(sums, default=0.0) or 1.0, _HEIGHT - _BOTTOM, _TOP + 16 + _LEGEND * rows, False)
    parts = [*_frame(x_axis, ticks)]
    parts += _lines(y_axis, height)
    for bar in range(len(edges) - 1):
        left, right = x_axis.place(edges[bar]), x_axis.place(edges[bar + 1])
        below = 0.0
        for place, (_, values) in enumerate(stacks):
            top = y_axis.place(below + values[bar])
            if values[bar] > 0:
                wide = max(right - left - min(1.0, (right - left) / 4), 0.5)
                parts.append(box(left, top, wide, y_axis.place(below) - top, colours[place % len(colours)]))
            below += values[bar]
    for at, words in borders:
        place_x = x_axis.place(at)
        parts.append(f'<path d="M{place_x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="{INK}" stroke-dasharray="4 3"/>')
        right = place_x < _WIDTH - 120
        parts.append(label(place_x + (4 if right else -4), _TOP + 12, words, "start" if right else "end", halo=True))
    parts.append(label((_LEFT + _WIDTH) / 2, _HEIGHT - 8, clipped(x_name, 80), "middle"))
    return picture(title, _HEIGHT, [*parts, *_legend([name for name, _ in stacks], colours)])


def heat_map(
    title: str,
    axes: tuple[str, str],
    levels: tuple[Sequence[str], Sequence[str]],
    cells: Sequence[Sequence[tuple[float | None, str]]],
    ends: tuple[float, float],
    note: str = "",
) -> Plot:
    """A cell for each pair of settings with its words, the darker the larger its value.

    ``axes`` and ``levels`` are of the horizontal and of the vertical axis; ``cells`` are rows, the lowest first, of values
    (None where nothing is known) with their words; ``ends`` are the least and the largest value of the colours.
    """
    left, tall = 110, 30
    wide, bottom = (_WIDTH - _RIGHT - left) / len(levels[0]), _TOP + 22 + tall * len(levels[1])
    parts = [label(8, _TOP + 12, f"{clipped(axes[1], 40)} ↑")]
    for row, (words, settings) in enumerate(zip(levels[1], cells, strict=True)):
        top = bottom - (row + 1) * tall
        parts.append(label(left - 6, top + 19, clipped(words, 15), "end"))
        for column, (value, text) in enumerate(settings):
            part = _part(value, ends) if value is not None else 0.0
            red, green, blue = (round(one + part * (two - one)) for one, two in zip(_PALE, _FULL, strict=True))
            colour = _EMPTY if value is None else f"#{red:02x}{green:02x}{blue:02x}"
            parts.append(box(left + column * wide, top, wide - 1, tall - 1, colour))
            ink = "#ffffff" if part > 0.5 else INK
            parts.append(label(left + (column + 0.5) * wide, top + 19, text, "middle", ink, min(12, wide / 5)))
    for column, words in enumerate(levels[0]):
        parts.append(label(left + (column + 0.5) * wide, bottom + 16, words, "middle", size=min(12, wide / 5)))
    parts.append(label(left + wide * len(levels[0]) / 2, bottom + 34, f"{clipped(axes[0], 60)} →", "middle"))
    parts.append(label(8, bottom + 54, note))
    return picture(title, bottom + (64 if note else 44), parts)


def _part(value: float, ends: tuple[float, float]) -> float:
    """Where a value is between two ends, 0 to 1: by its logarithm where they are positive and far apart."""
    low, high = ends
    if high <= low:
        return 0.0
    if low > 0 and high / low > 20:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _marks(one: Series, colour: str, x_axis: _Axis, y_axis: _Axis) -> list[str]:
    """A line with its band, or points with their whiskers."""
    places = [(x_axis.place(x), y_axis.place(y)) for x, y in zip(one.x, one.y, strict=True)]
    ends = [(y_axis.place(low), y_axis.place(high)) for low, high in zip(one.low, one.high, strict=True)]
    if one.line:
        parts = []
        if ends:
            xs = [x for x, _ in places]
            corners = [*zip(xs, (high for _, high in ends), strict=True)]
            corners += reversed([*zip(xs, (low for low, _ in ends), strict=True)])
            parts.append(f'<polygon points="{_corners(corners)}" fill="{colour}" opacity="0.18"/>')
        return [*parts, f'<polyline points="{_corners(places)}" fill="none" stroke="{colour}" stroke-width="2"/>']
    across = [(x_axis.place(low), x_axis.place(high)) for low, high in zip(one.x_low, one.x_high, strict=True)]
    whiskers = [
        *(f"M{x:.1f} {low:.1f}V{high:.1f}" for (x, _), (low, high) in zip(places, ends, strict=bool(ends))),
        *(f"M{low:.1f} {y:.1f}H{high:.1f}" for (_, y), (low, high) in zip(places, across, strict=bool(across))),
    ]
    return [
        *(f'<path d="{path}" stroke="{colour}" stroke-width="1.5" opacity="0.6"/>' for path in whiskers),
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" opacity="0.7"/>' for x, y in places),
    ]


def _corners(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _frame(axis: _Axis, ticks: Ticks) -> list[str]:
    """Upright lines at the ticks of the horizontal axis, with their words."""
    parts = []
    for value, words in ticks:
        place = axis.place(value)
        parts.append(f'<path d="M{place:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="{_GRID}"/>')
        anchor = "end" if place > _WIDTH - 30 else "middle"
        parts.append(label(min(place, _WIDTH - 6), _HEIGHT - _BOTTOM + 16, words, anchor))
    return parts


def _lines(axis: _Axis, words: Callable[[float], str]) -> list[str]:
    """Level lines at the ticks of the vertical axis, with their words."""
    parts = []
    for value in axis.ticks():
        text, place = words(value), axis.place(value)
        fitting = (_LEFT - 8) / (0.6 * max(len(text), 1))  # letters are some 0.6 times as wide as high
        parts += [_rule_across(place), label(_LEFT - 6, place + 4, text, "end", size=min(12, fitting))]
    return parts


def _rule_across(y: float) -> str:
    return f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_GRID}"/>'


def _number_ticks(axis: _Axis, unit: str | None) -> list[tuple[float, str]]:
    return [(value, number(value) if unit is None else quantity(value, unit)) for value in axis.ticks()]


def _legend(names: Sequence[str], colours: Sequence[str]) -> list[str]:
    """The names of series in their colours, in the upper left corner, readable over points."""
    return [
        label(
            _LEFT + 8, _TOP + 14 + _LEGEND * place, clipped(name, 72), colour=colours[place % len(colours)], halo=True
        )
        for place, name in enumerate(names)
        if name
    ]


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A filled rectangle, from its upper left corner."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def picture(title: str, height: float, parts: Sequence[str], width: float = _WIDTH) -> Plot:
    """A picture of these parts below its title."""
    head = label(8, 18, clipped(title, int(width / 7.6)))
    return Plot(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escaped(title)}" font-family="DejaVu Sans, Liberation Sans, Arial, sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{head}{"".join(parts)}</svg>'
    )


def label(
    x: float, y: float, text: str, anchor: str = "start", colour: str = INK, size: float = 12, halo: bool = False
) -> str:
    """Words in a picture; with a ``halo`` they are readable over lines and points."""
    small = f' font-size="{size:.1f}"' if size != 12 else ""
    around = ' stroke="#fff" stroke-width="3" paint-order="stroke"' if halo else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{small}{around}>{escaped(text)}</text>'


def escaped(text: str) -> str:
    """Text as XML can hold it."""
    return html.escape("".join(letter if letter.isprintable() else "?" for letter in text))


@dataclass(frozen=True, slots=True)
class _Axis:
    """Places of values between two ends in the picture."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    @classmethod
    def around(cls, values: Sequence[tuple[Sequence[float], Sequence[float]]], start: float, end: float) -> _Axis:
        """The axis of pairs of values and the ends of their intervals.

        It is logarithmic where all values are above zero and they are not within a factor of two. It then ends a power of
        ten below the least of them if an interval goes on. A linear axis holds zero.
        """
        known = [value for some, _ in values for value in some if math.isfinite(value)]
        ends = [value for _, some in values for value in some if math.isfinite(value)]
        if not known:
            known = ends or [0.0, 1.0]
        least, largest = min(known), max([*known, *ends])
        if least > 0 and largest >= 2 * least:
            return cls(min(least, max(min(ends, default=least), least / 10)), largest, start, end, True)
        low = min(least, *ends, 0.0)
        return cls(low, largest if largest > low else low + 1.0, start, end, False)

    def place(self, value: float) -> float:
        """Where a value stands; one outside or without a place stands at the nearer end."""
        value = min(max(value, self.low), self.high) if not math.isnan(value) else self.low
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values for grid lines, at most six; where there are fewer than two, both ends.

        >>> _Axis(60.0, 80_000.0, 0.0, 1.0, True).ticks(), _Axis(0.0, 59.0, 0.0, 1.0, False).ticks()
        ([100.0, 1000.0, 10000.0], [0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
        >>> _Axis(30.0, 38.0, 0.0, 1.0, True).ticks(), _Axis(1.0, 8.0, 0.0, 1.0, True).ticks()
        ([30.0, 32.0, 34.0, 36.0, 38.0], [1.0, 2.0, 5.0])
        """
        found = [self.low, self.high]
        if self.logarithmic and self.high / self.low >= 5:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for factors in ((1, 2, 5), (1,)):
                found = [
                    value
                    for power in powers
                    for factor in factors
                    if self.low <= (value := factor * 10.0**power) <= self.high
                ]
                if len(found) <= _MAX_TICKS:
                    break
            found = found[:: math.ceil(len(found) / _MAX_TICKS) or 1]
        else:
            power = 10.0 ** math.floor(math.log10((self.high - self.low) / _MAX_TICKS))
            step = next(
                each * power for each in (1, 2, 5, 10, 20) if (self.high - self.low) / (each * power) < _MAX_TICKS
            )
            first = math.ceil(self.low / step - 1e-9)
            found = [place * step for place in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return found if len(found) > 1 else [self.low, self.high]
