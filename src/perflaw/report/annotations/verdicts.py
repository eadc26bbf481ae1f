"""Forecasts of ``perflaw predict``: a table in 80 columns, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from perflaw.report.annotations.table import SMALL_SHARE
from perflaw.report.law_words import features_text
from perflaw.report.mine.verdicts import spec_line
from perflaw.report.quantity import estimate, interval, percent, quantity
from perflaw.report.tables import NAME_WIDTH, WIDTH, broken, printable, text_table
from perflaw.types import CheckVerdict, Component, DiffVerdict, Forecast, Outcome, SpecVerdict


def forecast_text(forecasts: Sequence[Forecast], colour: bool, every: bool = False) -> str:
    """One table a point; what weighs little beside the dearest is counted, unless everything is asked for."""
    parts = []
    for of in ("run", "call"):
        some = [one for one in forecasts if one.of == of]
        points: dict[str, list[Forecast]] = {}
        for one in some:
            points.setdefault(features_text(one.features), []).append(one)
        parts += [_table(of, point, here, colour, every) for point, here in points.items()]
    return "\n".join(parts)


def _table(of: str, point: str, forecasts: Sequence[Forecast], colour: bool, every: bool) -> str:
    dearest = max((one.mean or 0.0 for one in forecasts), default=0.0)
    shown = [one for one in forecasts if every or one.mean is None or one.mean >= SMALL_SHARE * dearest]
    headings = ["function", f"expected {forecasts[0].metric.name} a {of}", f"one new {of}"]
    left = len(forecasts) - len(shown)
    more = f"{left} more of small cost (--all lists them)\n" if left else ""
    table = text_table(headings, [_row(one) for one in shown], right=(), colour=colour)
    return f"{printable(point)}\n{table}{more}{_notes(shown)}"


def _notes(forecasts: Sequence[Forecast]) -> str:
    """What is to be said of the answers, each thing once with those it is said of where not of all."""
    said: dict[str, list[str]] = {}
    for one in forecasts:
        if one.message:
            said.setdefault(one.message, []).append(one.component.name)
    lines = []
    for message, names in said.items():
        whose = "" if len(names) == len(forecasts) else f"{', '.join(names[:3])}{' …' * (len(names) > 3)}: "
        lines += textwrap.wrap(printable(whose + message), WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "".join(line + "\n" for line in lines)


def _row(one: Forecast) -> list[str]:
    unit = one.metric.unit
    name = broken(printable(one.component.name), ".", NAME_WIDTH)
    if one.condition:
        name += f"\n [{printable(one.condition)}]"
    if one.mean is None:
        return [name, "—", "—"]
    if one.mean_low is None or one.mean_high is None:
        mean = quantity(one.mean, unit)
    else:
        mean = estimate(one.mean, one.mean_low, one.mean_high, unit)
    new = interval(one.new_low, one.new_high, unit) if one.new_low is not None and one.new_high is not None else "—"
    return [name, mean, new]


# ---- Verdicts of check and diff: lines a person reads in 80 columns, JSON, SARIF 2.1.0 and GitHub's annotations.

Judged = CheckVerdict | DiffVerdict

ORDER: tuple[Outcome, ...] = ("violated", "inconclusive", "out of scope", "holds")
MOST_LISTED = 12
"""Inconclusive and out-of-scope components listed; more are counted."""
_LEVEL = {"violated": "error", "inconclusive": "note", "out of scope": "warning", "holds": "none"}
_COLOUR = {"violated": "31", "inconclusive": "33", "out of scope": "33", "holds": "32"}


def check_text(verdicts: Sequence[CheckVerdict], colour: bool = False, every: bool = False) -> str:
    """One entry a component that does not simply hold, then how many of each verdict."""
    return _text(verdicts, [_check_line(one) for one in verdicts], colour, every)


def diff_text(verdicts: Sequence[DiffVerdict], colour: bool = False, every: bool = False) -> str:
    """One entry a component that changed, then how many of each verdict."""
    return _text(verdicts, [_diff_line(one) for one in verdicts], colour, every)


def _text(verdicts: Sequence[Judged], lines: Sequence[str], colour: bool, every: bool) -> str:
    out: list[str] = []
    listed = dict.fromkeys(ORDER, 0)
    for one, line in zip(verdicts, lines, strict=True):
        listed[one.verdict] += 1
        wanted = every or one.verdict == "violated" or _told(one)
        if wanted and (every or one.verdict == "violated" or listed[one.verdict] <= MOST_LISTED):
            out.append(_entry(one.verdict, line, colour))
    counts = [
        f"{name} {listed[name]}" for name in ("violated", "holds", "inconclusive", "out of scope") if listed[name]
    ]
    return "".join(line + "\n" for line in [*out, " · ".join(counts) or "no laws to check"])


def _told(one: Judged) -> bool:
    """Whether a component that is not violated is worth an entry."""
    if isinstance(one, DiffVerdict):
        return bool(one.changes) or one.better or one.verdict != "holds"
    return one.verdict != "holds" or one.outside > 0


def _entry(outcome: str, line: str, colour: bool) -> str:
    """The verdict, then its line wrapped beside it."""
    head = f"{outcome:<14}"
    body = textwrap.wrap(printable(line), WIDTH - len(head), break_on_hyphens=False) or [""]
    if colour:
        head = f"\033[{_COLOUR[outcome]}m{head}\033[0m"
    return "\n".join([head + body[0], *(" " * 14 + more for more in body[1:])])


def _check_line(one: CheckVerdict) -> str:
    words = [f"{name_of(one.component)}  {one.metric.name}"]
    if one.effect is not None:
        words.append(f"{ratio_text(one.effect, one.effect_low, one.effect_high)} what the law says")
    if one.path:
        words.append(f"where {one.path}")
    if one.since:
        words.append(f"from {one.since} on")
    told = [" ".join(words)]
    if one.verdict == "violated":
        told.append(f"{one.runs_beyond} runs of {one.runs}")
    text = ", ".join(told)
    if one.outside > 0 and one.verdict != "out of scope":
        text += f"; {percent(one.outside)} of the calls are outside its scope"
    return f"{text}: {one.message}" if one.message and one.verdict != "violated" else text


def _diff_line(one: DiffVerdict) -> str:
    effect = ""
    if one.effect is not None:
        effect = f" {ratio_text(one.effect, one.effect_low, one.effect_high)} the old cost"
    text = f"{name_of(one.component)}  {one.metric.name}{effect}"
    changes = [_change_text(change) for change in one.changes if change.what != "cost"]
    text += "".join(f"; {change}" for change in changes[:4])
    return f"{text}: {one.message}" if one.message else text


def _change_text(change: Any) -> str:
    told = f"{change.what} {change.name}".strip() + f" {change.old or 'none'} -> {change.new or 'none'}"
    if change.ratio is None:
        return told
    return f"{told} ({ratio_text(change.ratio, change.low, change.high)})"


def name_of(component: Component) -> str:
    """Name with its parameters where they are known: ``index.build(docs)``."""
    return f"{component.name}({', '.join(component.parameters)})" if component.parameters else component.name


def ratio_text(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio with its interval.

    >>> ratio_text(1.84, 1.6, 2.1), ratio_text(5.744, None, None), ratio_text(0.08, 0.07, 0.1)
    ('1.8x (1.6–2.1)', '5.7x', '0.080x (0.070–0.10)')
    """
    if low is None or high is None:
        return f"{_two(ratio)}x"
    return f"{_two(ratio)}x ({_two(low)}–{_two(high)})"


def _two(value: float) -> str:
    """Two digits, three between 0.9 and 1.1 where the second decides."""
    if 0.895 <= value < 1.105:
        return f"{value:.2f}"
    if value >= 9.95:
        return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def github(verdicts: Sequence[Judged | SpecVerdict]) -> str:
    """Workflow commands that GitHub shows beside the code: ``::error file=…,line=…::…``."""
    lines = []
    for one in verdicts:
        level = {"error": "error", "warning": "warning"}.get(_LEVEL[one.verdict])
        if level:
            place = f"file={_property(one.component.file)},line={max(one.component.line, 1)},"
            title = f"title={_property(f'perflaw: {one.verdict}')}"
            lines.append(f"::{level} {place if one.component.file else ''}{title}::{_data(describe(one))}")
    return "".join(line + "\n" for line in lines)


def describe(one: Judged | SpecVerdict) -> str:
    """A verdict in one line, without the word itself."""
    if isinstance(one, SpecVerdict):
        return spec_line(one)
    return _check_line(one) if isinstance(one, CheckVerdict) else _diff_line(one)


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
