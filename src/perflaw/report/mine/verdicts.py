"""Verdicts on specifications of call paths: lines that a person reads in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from perflaw.report.quantity import percent, quantity
from perflaw.report.tables import WIDTH, printable
from perflaw.types import SpecVerdict

ORDER = ("violated", "inconclusive", "out of scope", "holds")
MOST_LISTED = 12
"""Functions listed for one reason; more are counted."""
_COLOUR = {"violated": "31", "inconclusive": "33", "out of scope": "33", "holds": "32"}


def spec_verdicts_text(verdicts: Sequence[SpecVerdict], colour: bool = False, every: bool = False) -> str:
    """Violations and doubts one by one, what is out of scope by its reason, then how many of each verdict."""
    lines = [_entry(one.verdict, spec_line(one), colour) for one in verdicts if _told(one, every)]
    if not every:
        lines += _reasons([one for one in verdicts if one.verdict == "out of scope"], colour)
    counts = {name: sum(one.verdict == name for one in verdicts) for name in ("violated", "holds", *ORDER[1:3])}
    tally = " · ".join(f"{name} {n}" for name, n in counts.items() if n) or "no specifications to check"
    return "".join(line + "\n" for line in [*lines, tally])


def _told(one: SpecVerdict, every: bool) -> bool:
    return every or one.verdict in ("violated", "inconclusive") or (one.verdict == "holds" and one.outside >= 0.01)


def _reasons(verdicts: Sequence[SpecVerdict], colour: bool) -> list[str]:
    """One entry for all functions that are out of scope for the same reason."""
    found: dict[str, list[str]] = {}
    for one in verdicts:
        found.setdefault(one.message, []).append(_what(one))
    entries = []
    for why, names in found.items():
        more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
        entries.append(_entry("out of scope", f"{', '.join(names[:MOST_LISTED])}{more}: {why}", colour))
    return entries


def _what(one: SpecVerdict) -> str:
    return f"{one.component.name} where {one.path}" if one.path else one.component.name


def spec_line(one: SpecVerdict) -> str:
    """A verdict in one line, without the word itself."""
    text = f"{_what(one)}, {one.metric.name}"
    if one.effect is not None and one.expected is not None and one.border is not None:
        now = f"{percent(min(max(one.expected + one.effect, 0.0), 1.0))}{_interval(one)}"
        text += f": {now} of the calls above {quantity(one.border, one.metric.unit)}, {percent(one.expected)} specified"
    if one.verdict == "violated":
        text += f", {one.runs} run{'s' * (one.runs != 1)}"
    if one.outside >= 0.01:
        text += f"; {percent(one.outside)} of its calls come by unknown call paths"
    return f"{text}: {one.message}" if one.message else text


def _interval(one: SpecVerdict) -> str:
    if one.effect_low is None or one.effect_high is None or one.expected is None:
        return ""
    low, high = (min(max(one.expected + end, 0.0), 1.0) * 100 for end in (one.effect_low, one.effect_high))
    return f" ({low:.0f}–{high:.0f})"


def _entry(outcome: str, line: str, colour: bool) -> str:
    """The verdict, then its line wrapped beside it."""
    head = f"{outcome:<14}"
    body = textwrap.wrap(printable(line), WIDTH - len(head), break_on_hyphens=False) or [""]
    if colour:
        head = f"\033[{_COLOUR[outcome]}m{head}\033[0m"
    return "\n".join([head + body[0], *(" " * 14 + more for more in body[1:])])
