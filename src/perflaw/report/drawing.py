"""Tables as HTML and plots as SVG, for notebooks: plain text in, escaped, without scripts or libraries."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perflaw.report.quantity import number, quantity
from perflaw.report.tables import clipped

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 360, 80, 44, 28
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of Okabe and Ito, which people with colour blindness tell apart."""
MAX_ROWS = 30
"""Rows that a table in a notebook shows."""


def html_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as HTML; what is no text is written by ``str``. Further rows are counted.

    >>> html_table(["n"], [["<b>"]])
    '<table><thead><tr><th>n</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{html.escape(one)}</th>" for one in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows[:MAX_ROWS]
    )
    more = f"<p>{len(rows) - MAX_ROWS} more</p>" if len(rows) > MAX_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


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
    """Lower ends of a band; empty without one."""
    high: Sequence[float] = ()
    """Its upper ends."""


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


def line_plot(title: str, x_name: str, unit: str, series: Sequence[Series]) -> Plot:
    """Points and lines over a feature, on logarithmic axes where all values are above zero."""
    xs = [value for one in series for value in one.x]
    ys = [value for one in series for value in (*one.y, *one.low, *one.high)]
    x_axis, y_axis = _Axis.of(xs, _LEFT, _WIDTH - 12), _Axis.of(ys, _HEIGHT - _BOTTOM, _TOP)
    parts = []
    for place, one in enumerate(series):
        colour = _COLOURS[place % len(_COLOURS)]
        if one.low:
            ends = [*zip(one.x, one.high, strict=True), *reversed(list(zip(one.x, one.low, strict=True)))]
            corners = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in ends)
            parts.append(f'<polygon points="{corners}" fill="{colour}" opacity="0.18"/>')
        if one.line:
            points = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in zip(one.x, one.y, strict=True))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        else:
            parts += [
                f'<circle cx="{x_axis.place(x):.1f}" cy="{y_axis.place(y):.1f}" r="3" fill="{colour}" opacity="0.7"/>'
                for x, y in zip(one.x, one.y, strict=True)
            ]
        parts.append(_text(_LEFT + 8, _TOP + 14 + 15 * place, one.name, colour=colour))
    for value in x_axis.ticks():
        place_x = x_axis.place(value)
        parts.append(f'<path d="M{place_x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#8886"/>')
        parts.append(_text(place_x, _HEIGHT - _BOTTOM + 16, number(value), "middle"))
    for value in y_axis.ticks():
        place_y = y_axis.place(value)
        parts.append(f'<path d="M{_LEFT} {place_y:.1f}H{_WIDTH - 12}" stroke="#8886"/>')
        parts.append(_text(_LEFT - 6, place_y + 4, quantity(value, unit), "end"))
    parts.append(_text((_LEFT + _WIDTH) / 2, _HEIGHT - 8, x_name, "middle"))
    return _picture(title, _HEIGHT, parts)


def bar_plot(title: str, unit: str, bars: Sequence[tuple[str, float]]) -> Plot:
    """A bar for each name, the value beside it."""
    largest = max((abs(value) for _, value in bars), default=0.0) or 1.0
    parts, name_width = [], 300
    for place, (name, value) in enumerate(bars):
        top = _TOP + 8 + 22 * place
        length = abs(value) / largest * (_WIDTH - name_width - 90)
        parts.append(_text(name_width - 6, top + 13, clipped(name, 44), "end"))
        parts.append(f'<rect x="{name_width}" y="{top}" width="{length:.1f}" height="17" fill="{_COLOURS[0]}"/>')
        parts.append(_text(name_width + length + 5, top + 13, quantity(value, unit)))
    return _picture(title, _TOP + 22 * len(bars) + 16, parts)


def _picture(title: str, height: int, parts: Sequence[str]) -> Plot:
    head = _text(8, 18, title)
    return Plot(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
        f'aria-label="{html.escape(title)}" font-family="DejaVu Sans, Liberation Sans, Arial, sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{head}{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#1b1f24") -> str:
    escaped = html.escape("".join(letter if letter.isprintable() else "?" for letter in text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escaped}</text>'


@dataclass(frozen=True, slots=True)
class _Axis:
    """Places of values between two ends in the picture."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        logarithmic = low > 0 and high > low
        if not logarithmic:
            low, high = min(low, 0.0), high if high > min(low, 0.0) else min(low, 0.0) + 1.0
        return cls(low, high, start, end, logarithmic)

    def place(self, value: float) -> float:
        """Where a value stands; one outside or without a place stands at the nearer end."""
        value = min(max(value, self.low), self.high) if not math.isnan(value) else self.low
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Four values for grid lines, the ends among them."""
        if self.logarithmic:
            return [self.low * (self.high / self.low) ** (step / 3) for step in range(4)]
        return [self.low + (self.high - self.low) * step / 3 for step in range(4)]
