"""The confidence level of every interval that perflaw tells, and the words for it."""

from __future__ import annotations

LEVEL = 0.95
"""Coverage of intervals."""
LOW = round((1.0 - LEVEL) / 2.0, 12)
"""Probability below an interval."""
HIGH = 1.0 - LOW
"""Probability below the upper end of an interval."""
WORDS = f"{100 * LEVEL:g} %"
"""The level in words."""


def normal_quantile(digits: int = 15) -> float:
    """How many standard deviations of the normal distribution an interval reaches to either side.

    >>> normal_quantile(2), WORDS, LOW, HIGH
    (1.96, '95 %', 0.025, 0.975)
    """
    from statistics import NormalDist

    return round(NormalDist().inv_cdf(HIGH), digits)
