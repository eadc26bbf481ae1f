"""Parameters of the learner of variance."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The thresholds, with the paper's names."""

    high: float = 0.4
    """CoV from which on a node is high-variant (§2.1)."""
    theta: float = 0.10
    """Share of the variance from which on a part is significant."""
    pressure: float = 0.4
    """Summarization pressure τ_S: the merge cost up to which patterns merge (§4)."""
    trim: float = 0.1
    """β: what has less than this part of the most important one's VIM is left out (§4)."""
    least: int = 30
    """Invocations before a label."""
    paper: bool = False
    """The paper's own choices where ours differ."""
    probabilities: tuple[float, ...] = (0.25, 0.04, 0.01)
    """Probabilities for which deadlines are told."""
