"""Trends: clusters of locations that vary together over workloads, with the laws of their cost (trend-prof §2–§4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from perflaw.types.documents import OMITTED
from perflaw.types.laws import Curve, Law, Prediction


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """The paper's model, cost = coefficient · x^exponent, by least squares on logarithms; with confidence intervals."""

    coefficient: float
    """Cost at x = 1."""
    coefficient_low: float | None
    """Lower end of its interval; null where resamples leave it open."""
    coefficient_high: float | None
    """Upper end of the same."""
    exponent: float
    """Slope on log-log axes."""
    exponent_low: float | None
    """Lower end of its interval; null where resamples leave it open."""
    exponent_high: float | None
    """Upper end of the same."""
    r2: float | None
    """Share of the variance of the logarithms explained; null where they do not vary."""
    n: int
    """Runs it was fitted to."""
    zeros: int
    """Runs left out: their cost (or the feature) is zero and has no logarithm. The law says how often, if at all."""
    predictions: tuple[Prediction, ...] = ()
    """Answers at the points asked for, in the order of the laws' predictions; never for runs that cost nothing."""
    residuals: tuple[float | None, ...] = field(default=(), metadata=OMITTED)
    """log cost − log law, one a run (natural logarithms); null where the run was left out."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The paper's exponent is another than the growth of the law in the same feature."""

    believe: Literal["law", "power law"]
    """The one to believe: an established law that is at least as close to the larger half of the runs, else the power law."""
    growth: float
    """The law's exponent at sizes hundreds of times the largest; at most 50, which an exponential exceeds."""
    law_error: float
    """How far counts of the larger half of the runs typically (median) are from the law, relative to them."""
    power_error: float
    """The same distance from the power law."""


@dataclass(frozen=True, slots=True)
class Overtake:
    """Where one cluster's cost passes that of one ranked above it, and stays there as far as was looked."""

    rank: int
    """Rank of the cluster that is overtaken."""
    representative: str
    """Its representative."""
    feature: str
    """The feature that grows."""
    at: float
    """Value of the feature from which on the laws' means have changed places."""
    low: float
    """Earliest value the laws' confidence bands allow; the feature's smallest value where they allow it in all the data."""
    high: float | None
    """Latest value they allow; null where they still overlap at the end of what was looked at."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Locations that fit one representative linearly, and how their summed cost grows."""

    rank: int
    """Place by largest count, 1 for the largest."""
    predicted_rank: int
    """Place by the count predicted at :attr:`Trends.at`, 1 for the largest."""
    representative: str
    """Name of the feature or location that all members fit."""
    is_feature: bool
    """The representative is a feature of the workload (or a location declared one)."""
    row: int | None = field(metadata=OMITTED)
    """Row of the representative in the matrix; null for a feature that is no location."""
    features: tuple[str, ...]
    """Features that fit the representative or have the same members, itself first where it is one."""
    members: tuple[int, ...] = field(metadata=OMITTED)
    """Rows of the matrix that are members, those that vary most first."""
    fits: tuple[float, ...] = field(metadata=OMITTED)
    """R² of each member's linear fit to the representative, more than 1 − alpha; 1 for itself."""
    costs: tuple[float, ...] = field(metadata=OMITTED)
    """Summed count of the members in each run."""
    max_cost: float
    """Largest of the costs: what clusters are ranked by."""
    share: float
    """Part of all counts in all runs, 0 to 1; a location in two clusters counts in both."""
    max_share: float
    """Largest part of a single run's counts."""
    costly: bool
    """It is more than 2 % of some run (Figure 4 of the paper)."""
    law: Law | None
    """The headline: the law that predicts runs left out best, sizes first; null where no law in any feature is learnt."""
    laws: Mapping[str, Law]
    """Feature → best law of that feature alone; missing where too few runs have a count above 0."""
    powers: Mapping[str, PowerLaw]
    """Feature → the paper's power law; missing where it runs in fewer than three workloads, or in one size."""
    predicted: Prediction | None
    """Cost at :attr:`Trends.at`, which orders the predicted ranks; null where there is no law.

    What the law says; where that is inconclusive the power law's answer, with the widest limits of both.
    """
    overtakes: tuple[Overtake, ...] = ()
    """Costly clusters ranked above that it passes, nearest first for each feature; none beyond 100 times the data.

    Both by the established laws that rank them; other features stay at :attr:`Trends.at`.

    Clusters that are not among the first, by cost now or predicted, are not looked at.
    """
    disagreements: Mapping[str, Disagreement] = field(default_factory=dict)
    """Feature → which of its law and power law to believe, where their growth differs; of clusters learnt in full."""
    curves: Mapping[str, Curve] = field(default_factory=dict, metadata=OMITTED)
    """Feature → its law drawn from the smallest value to beyond all predictions, for charts."""
    residuals: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict, metadata=OMITTED)
    """Feature → log cost − log law, one a run (natural logarithms); null where either has none."""


@dataclass(frozen=True, slots=True)
class Trends:
    """A whole program over its workloads: clusters ranked, and what was left out of them."""

    clusters: tuple[Cluster, ...]
    """Ranked by largest cost: ``clusters[k].rank == k + 1``."""
    by_prediction: tuple[int, ...] = field(metadata=OMITTED)
    """Ranks of the clusters in the order of the cost predicted at ``at``."""
    features: tuple[str, ...]
    """Features that laws were learnt for, declared ones first, then locations declared features."""
    values: Mapping[str, tuple[float | None, ...]] = field(metadata=OMITTED)
    """Feature → its value in each run, null where the run does not say it."""
    locations: tuple[str, ...] = field(metadata=OMITTED)
    """Names of all rows of the matrix."""
    runs: int = field(metadata=OMITTED)
    """Columns of the matrix."""
    workloads: int = field(metadata=OMITTED)
    """Runs that differ in a feature: the replicates."""
    totals: tuple[float, ...] = field(metadata=OMITTED)
    """Sum of all counts of each run, those in no cluster included."""
    constant: int
    """Locations in no cluster because their count hardly varies (standard deviation less than sigma)."""
    constant_share: float
    """Part of all counts that is theirs."""
    zero: int
    """Locations that never ran; not among ``constant``."""
    alpha: float
    """Members fit their representative with R² more than 1 − alpha."""
    sigma: float
    """Standard deviation a location's count needs to be looked at."""
    at: Mapping[str, float]
    """Where predicted costs are ranked: the last point asked for, else ten times the features' 95th percentiles."""
    notes: tuple[str, ...] = ()
    """What limits the result, a sentence each: features left out and why, too few workloads."""
