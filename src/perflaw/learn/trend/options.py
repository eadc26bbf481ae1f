"""What a person may choose about trends."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.errors import DataError


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """Choices of trend-prof §4, with the paper's values, and what ours adds."""

    alpha: float = 0.02
    """Members fit their representative with R² more than 1 − alpha (§4.1); between 0 and 0.5."""
    sigma: float = 10.0
    """Standard deviation (bias-corrected) a location's count needs to be looked at (§4.1)."""
    paper: bool = False
    """The paper's own reading wherever ours differs.

    Locations that fall where the representative rises are members too, all features are representatives even where they
    say the same, intervals of power laws are bootstrap percentiles over runs, the 95th percentile is an order
    statistic, and predicted costs and overtaking points come from the power laws.
    """
    representatives: tuple[int, ...] = ()
    """Rows of the matrix that are features as well: their counts explain others (§6.2.3)."""
    full: int = 100
    """So many clusters, costliest now and costliest predicted, get a joint law, breakpoints, curves and residuals.

    Costly ones always do. The others keep a law for every feature, with its intervals.
    """
    bootstraps: int = 1000
    """Resamples of the paper's intervals (§4.2)."""
    seed: int = 1
    """Seed of the resamples."""

    def __post_init__(self) -> None:
        """Refuse what the theorem of §4.1.1 does not hold for."""
        if not 0.0 < self.alpha < 0.5:
            raise DataError(f"alpha must lie between 0 and 0.5, not {self.alpha:g}", "R² of 1 − alpha makes a cluster")
        if not self.sigma >= 0.0:
            raise DataError(f"sigma must be a number of at least 0, not {self.sigma:g}")


CONFIDENCE = 0.95
"""Coverage of all intervals."""

COSTLY = 0.02
"""A cluster is costly that is more than this part of some run (Figure 4 of the paper)."""
