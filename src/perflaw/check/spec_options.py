"""How strict a check of specifications is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpecOptions:
    """Tolerances of shares and times."""

    alpha: float = 0.01
    """Expected share of false alarms among the violated verdicts of a check, 0 to 1."""
    tolerance: float = 0.05
    """Shares that differ by no more do not differ."""
    min_effect: float = 1.1
    """Times that differ by less than this factor do not differ: borders may stand that much lower or higher."""
    absolute: bool = False
    """Hold times to the borders as they were mined on this platform; otherwise only how groups differ counts."""
