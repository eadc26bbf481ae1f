"""What a person may choose about annotations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of Algorithms 1 and 2 (Freud §3.2) where the paper leaves them open."""

    good_r2: float = 0.9
    """R² from which a law is good, so that its part is left whole."""
    p: float = 0.01
    """Error of a split, over all that were looked at (Holm 1979: the best of m must reach p / m)."""
    fewest: int = 20
    """Records that a part has at least."""
    depth: int = 6
    """Tests of a condition at most."""
    resolution: float = 0.0
    """Differences of single calls below this, in the unit of the metric, are the measurement's (0: unknown)."""
    paper: bool = False
    """The paper's own choices, where ours differ."""
