"""Bounds of growth as people write them: ``1``, ``log n``, ``n``, ``n log n``, ``n^2``, ``n**1.5``, ``n^2 log n``, ``2^n``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from perflaw.errors import UsageError

_POWER = r"n(?:\s*(?:\^|\*\*)\s*(?P<exponent>\d+(?:\.\d+)?))?"
_LOG = r"log\s*\(?\s*n\s*\)?"
_POLYNOMIAL = re.compile(rf"{_POWER}(?:\s*[*·]?\s*(?P<log>{_LOG}))?|(?P<only>{_LOG})|(?P<one>1)")
_EXPONENTIAL = re.compile(r"(?P<base>\d+(?:\.\d+)?)\s*(?:\^|\*\*)\s*n")


@dataclass(frozen=True, slots=True)
class Bound:
    """n^exponent · (log n)^logs · base^n."""

    text: str
    """As the person wrote it."""
    exponent: float = 0.0
    """Exponent of n."""
    logs: float = 0.0
    """Exponent of log n."""
    base: float = 1.0
    """What is raised to the power of n; 1 where nothing is."""

    def local_exponent(self, n: float) -> float:
        """Derivative d log bound / d log n at n > 1: what a law's slope there is held against.

        >>> round(Bound("n log n", 1, 1).local_exponent(1000), 3)
        1.145
        """
        return self.exponent + self.logs / math.log(max(n, math.e)) + n * math.log(self.base)


def parse_bound(text: str) -> Bound:
    """Read a bound; ``O(…)`` around it is allowed. UsageError names the forms there are.

    >>> parse_bound("n**1.5").exponent, parse_bound("O(n^2 log n)").logs, parse_bound("2^n").base
    (1.5, 1.0, 2.0)
    """
    stripped = text.strip().lower()
    inner = re.fullmatch(r"o\((.*)\)", stripped)
    core = inner[1].strip() if inner else stripped
    found = _POLYNOMIAL.fullmatch(core)
    if found:
        if found["one"]:
            return Bound(text)
        if found["only"]:
            return Bound(text, logs=1.0)
        return Bound(text, float(found["exponent"] or 1), 1.0 if found["log"] else 0.0)
    grown = _EXPONENTIAL.fullmatch(core)
    if grown and float(grown["base"]) > 1:
        return Bound(text, base=float(grown["base"]))
    raise UsageError(
        f"at_most={text!r} is no bound of growth",
        "bounds are 1, log n, n, n log n, n^2, n**1.5, n^2 log n, 2^n and the like",
        'at_most="n log n"',
    )
