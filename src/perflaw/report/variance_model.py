"""What a page of variance is made from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from perflaw.types import Component
from perflaw.types.explanations import Explanation
from perflaw.types.variance import PatternChange, Variance


@dataclass(frozen=True, slots=True)
class Since:
    """What became of the patterns of other recordings."""

    name: str
    """Experiment that those are of."""
    changes: Sequence[PatternChange]
    """Every pattern of either, by the same metric."""


@dataclass(frozen=True, slots=True)
class VarianceView:
    """Patterns by one metric, with the explanations of functions by it."""

    found: Variance
    """The patterns."""
    explanations: Mapping[Component, Explanation] = field(default_factory=dict)
    """Function → why it is sometimes slow; the page shows these in full, and opens with the first."""
    driven: Collection[Component] = frozenset()
    """Those of them of which it was learnt what drives them."""
    since: Since | None = None
    """Where other recordings are compared with; None also where they do not have the metric."""
