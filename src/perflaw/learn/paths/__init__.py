"""Specifications of what durations a function shows on which call paths; arrays in, models out, no files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MiningOptions:
    """Options of the learner: the thresholds, under the paper's names where it has one."""

    epsilon: float = 0.05
    """ε: borders match if less than this share of the calls lies between them; a cluster has at least it (Definition 1)."""
    exact: bool = False
    """Whether the fewest edges (A*) separate every pair of call paths of different groups, not all but ``left``."""
    paper: bool = False
    """Whether to use the paper's own choices: borders at minima of the gradient, k-means with mutual information."""
    fewest: int = 1000
    """Number of calls in an observation from which on it is searched for borders (§3.1)."""
    found_again: float = 0.8
    """Fraction of the observations that must show a border (Algorithm 1, footnote 2)."""
    sure: float = 2.0
    """Standard deviations that a valley lies below the lower peak, within one observation."""
    significance: float = 0.01
    """Probability that call paths of equal behaviour are put into two groups."""
    difference: float = 0.05
    """Smallest total variation between the distributions of two groups."""
    fewest_of_path: float = 20.0
    """Number of independent calls from which on a call path decides what groups there are."""
    left: float = 0.02
    """Fraction of the calls that soft separation may leave in the wrong group."""
    most_atoms: int = 8
    """Largest number of edges in the expressions of one function (RQ3); if more are needed, rare paths are unknown."""
    perturbed: float = 0.05
    """Fraction of the median duration that probes of nested calls may take; with more, the durations are not used."""
