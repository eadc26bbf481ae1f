"""Shares and calls in words, for the variance page: what is not known is said to be unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perflaw.report import text
from perflaw.types.explanations import Step


def share_text(share: float | None) -> str:
    """A share; what rounds to nothing has no sign.

    >>> share_text(0.61), share_text(-0.001), share_text(-0.2), share_text(None)
    ('61 %', '0 %', '-20 %', 'unknown')
    """
    if share is None or not math.isfinite(share):
        return "unknown"
    return text.percent(share).replace("-0 %", "0 %") if abs(share) < 0.005 else text.percent(share)


def between(low: float | None, high: float | None) -> str:
    """Both ends of an interval of a share, in percent.

    >>> between(0.33, 0.61), between(-0.0001, 0.0), between(None, 1.0)
    ('33–61', '0–0', 'unknown')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "unknown"
    return f"{round(low * 100):d}–{round(high * 100):d}"


def call_path(path: Sequence[Step]) -> str:
    """Calls in few words: last names and lines.

    >>> call_path([Step("app.f", 3, 0, "app.g"), Step("app.g", 0, 0, "app.h")])
    'g:3 > h'
    """
    return " > ".join(f"{last_name(one.callee)}:{one.line}" if one.line else last_name(one.callee) for one in path)


def last_name(name: str) -> str:
    """What follows the last dot."""
    return name.rpartition(".")[2] or name
