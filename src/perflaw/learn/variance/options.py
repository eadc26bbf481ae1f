"""Options of the learner of variance."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The thresholds, under the paper's names."""

    high: float = 0.4
    """Coefficient of variation from which on a cost is of high variance (§2.1)."""
    theta: float = 0.10
    """Share of the variance from which on a part is significant."""
    pressure: float = 0.4
    """Summarization pressure τ_S: the merge cost up to which patterns merge (§4)."""
    trim: float = 0.1
    """β: vertices with less than this fraction of the largest VIM are left out (§4)."""
    least: int = 30
    """Number of invocations from which on a node gets a label."""
    paper: bool = False
    """Whether to use the paper's own choices where ours differ."""
    probabilities: tuple[float, ...] = (0.25, 0.04, 0.01)
    """Probabilities for which the deadline that is exceeded is computed."""
