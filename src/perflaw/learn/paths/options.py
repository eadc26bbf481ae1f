"""Parameters of the learner of performance specifications."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MiningOptions:
    """The thresholds, with the paper's names where it has one."""

    epsilon: float = 0.05
    """ε: borders match where so little of the mass lies between them; a cluster holds at least that share (Definition 1)."""
    exact: bool = False
    """Every pair of call paths of different groups is told apart, by the fewest edges (A*), not all but ``left``."""
    paper: bool = False
    """The paper's own choices where ours differ: borders at minima of the gradient, k-means with mutual information."""
    fewest: int = 1000
    """Calls in an observation from which on borders are looked for (§3.1)."""
    found_again: float = 0.8
    """Share of the observations that must show a border (Algorithm 1, footnote 2)."""
    sure: float = 2.0
    """Standard deviations of a valley below the lower peak, within one observation."""
    significance: float = 0.01
    """Chance that call paths which behave alike are put into two groups."""
    difference: float = 0.05
    """Least total variation between the distributions of two groups."""
    fewest_of_path: float = 20.0
    """Independent calls from which on a call path has a say in what groups there are."""
    left: float = 0.02
    """Share of the calls that soft separation may leave with the wrong group."""
    most_atoms: int = 8
    """Edges in the expressions of one function, at most (RQ3); beyond, rare paths are told as unknown."""
    perturbed: float = 0.05
    """Part of the median duration that probes of nested calls may take; beyond, the durations make no claims."""
