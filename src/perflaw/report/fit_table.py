"""Laws of a person's own numbers as a table of 80 columns, with what the data leave open below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import fill

from perflaw.report.quantity import count, number
from perflaw.report.terminal import WIDTH, printable, text_table
from perflaw.report.text import grows_as, slope_interval
from perflaw.types import Law, Prediction

MOST = 200
"""Series a table lists; more are counted below it."""

_NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?")


def fit_table(laws: Sequence[tuple[str, Law]], colour: bool) -> str:
    """Series, law, growth, first prediction and verdict of each; reasons and alternatives follow."""
    shown = laws[:MOST]
    headings = ["series", "law", "grows as", "verdict", "predicted"]
    rows = [[name, short(law.mean), _growth(law), law.verdict, _first(law)] for name, law in shown]
    if len(laws) == 1:
        return text_table(headings[:4], [rows[0][:4]], right=(), colour=colour) + _details(laws[0][1], colour)
    text = text_table(headings, rows, right=(), colour=colour)
    text += _wrapped(f"{name}: {note}" for name, law in shown for note in _notes(law))
    return text + _rest(laws)


def short(expression: str) -> str:
    """Expression with three significant digits.

    >>> short("LogNorm(3.14159*n^1.98765, 0.05)")
    'LogNorm(3.14*n^1.99, 0.05)'
    """
    return _NUMBER.sub(lambda found: f"{float(found.group()):.3g}".replace("e+", "e"), expression)


def _growth(law: Law) -> str:
    return f"{grows_as(law)} {slope_interval(law)}".strip()


def _first(law: Law) -> str:
    if not law.predictions:
        return ""
    one = law.predictions[0]
    where = _where(law, one)
    return f"{_estimate(one)} at {where}" if where else _estimate(one)


def _where(law: Law, one: Prediction) -> str:
    """The law's features there; all of a constant's."""
    return ", ".join(f"{name}={_round(one.features[name])}" for name in law.features or one.features)


def _estimate(one: Prediction) -> str:
    return f"{_round(one.mean)} ({_round(one.mean_low)}–{_round(one.mean_high)})"


def _round(value: float) -> str:
    """Three digits, thousands grouped."""
    return number(float(f"{value:.3g}"))


def _details(law: Law, colour: bool) -> str:
    """Everything about the only law."""
    rows = [
        [_where(law, one), _estimate(one), f"{_round(one.new_low)}–{_round(one.new_high)}"] for one in law.predictions
    ]
    table = text_table(["at", "predicted (95 %)", "one new run (95 %)"], rows, right=(), colour=colour)
    evidence = f"distribution {short(law.expression)}, from {count(law.n)} rows, {count(law.runs)} runs"
    return "\n" + table + _wrapped([evidence, *_notes(law)])


def _wrapped(lines: Iterable[str]) -> str:
    """Lines of at most 80 columns."""
    return "".join(
        fill(printable(line), WIDTH, subsequent_indent="  ", break_on_hyphens=False) + "\n" for line in lines
    )


def _notes(law: Law) -> list[str]:
    """Why it is no law, and which others fit as well."""
    notes = [f"{law.verdict}: {law.reason}"] if law.reason else []
    notes += [f"{name} might as well be {', '.join(others)} in these data" for name, others in law.collinear.items()]
    if law.alternatives:
        others = ", ".join(short(one.expression) for one in law.alternatives)
        notes.append(f"the data cannot tell it from {others}")
    return notes


def _rest(laws: Sequence[tuple[str, Law]]) -> str:
    verdicts = Counter(law.verdict for _, law in laws)
    total = ", ".join(f"{verdicts[name]} {name}" for name in ("law", "none", "inconclusive") if verdicts[name])
    more = f" · {len(laws) - MOST} more than listed, --json gives all" if len(laws) > MOST else ""
    return f"{len(laws)} series: {total}{more}\n"
