"""Laws of a person's own numbers as a table of 80 columns, with what the data leave open below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from perflaw.report.terminal import text_table
from perflaw.report.text import grows_as, slope_interval
from perflaw.types import Law, Prediction

MOST = 200
"""Series a table lists; more are counted below it."""

_NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?")


def fit_table(laws: Sequence[tuple[str, Law]], colour: bool) -> str:
    """Series, law, growth, first prediction and verdict of each; reasons and alternatives follow."""
    shown = laws[:MOST]
    headings = ["series", "law", "grows as", "predicted", "verdict"]
    rows = [[name, short(law.mean), _growth(law), _first(law), law.verdict] for name, law in shown]
    text = text_table(headings, rows, right=(), colour=colour)
    if len(laws) == 1:
        return text + _details(laws[0][1])
    text += "".join(f"{name}: {note}\n" for name, law in shown for note in _notes(law))
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
    return _prediction(law.predictions[0]) if law.predictions else ""


def _prediction(one: Prediction) -> str:
    where = ", ".join(f"{name}={value:.4g}" for name, value in one.features.items())
    text = f"{one.mean:.3g} ({one.mean_low:.3g}–{one.mean_high:.3g})"
    return f"{text} at {where}" if where else text


def _details(law: Law) -> str:
    """Everything about the only law."""
    lines = [f"predicted {_prediction(one)}, a new run {one.new_low:.3g}–{one.new_high:.3g}" for one in law.predictions]
    lines += [f"distribution {short(law.expression)}, {law.n} points, {law.runs} runs"]
    return "".join(f"{line}\n" for line in [*lines, *_notes(law)])


def _notes(law: Law) -> list[str]:
    """Why it is no law, and which others fit as well."""
    notes = [f"{law.verdict}: {law.reason}"] if law.reason else []
    if law.alternatives:
        others = ", ".join(f"{short(one.expression)}" for one in law.alternatives)
        notes.append(f"the data cannot tell it from {others}")
    return notes


def _rest(laws: Sequence[tuple[str, Law]]) -> str:
    verdicts = Counter(law.verdict for _, law in laws)
    total = ", ".join(f"{verdicts[name]} {name}" for name in ("law", "none", "inconclusive") if verdicts[name])
    more = f" · {len(laws) - MOST} more than listed, --json gives all" if len(laws) > MOST else ""
    return f"{len(laws)} series: {total}{more}\n"
