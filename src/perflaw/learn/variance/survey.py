"""Patterns with the explanations of many functions, for a page that shows them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from perflaw.learn.variance.analyse import explained, patterns_in
from perflaw.learn.variance.deadlines import observed
from perflaw.learn.variance.explain import contexts_of
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.tree import Tree
from perflaw.types.call_trees import CallTree
from perflaw.types.explanations import Explanation
from perflaw.types.measured import Component
from perflaw.types.variance import Variance

POINTS: Final = 40
"""Deadlines at which the curve of misses is known."""
BEYOND: Final = 1.5
"""The last of them, in parts of the slowest call: where Chebyshev's bound goes on and the record ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The patterns of one metric, and the tree that any function can be explained from."""

    tree: Tree
    """The call tree, interruptions taken out."""
    found: Variance
    """Its patterns, without an explanation."""
    options: Options
    """How they were found."""

    def explained(self, component: Component, driven: bool) -> Explanation | None:
        """Why it is sometimes slow, with a whole curve of deadlines; None where no call of it completed."""
        if component not in self.tree.given.components:
            return None
        return explained(self.tree, component, self.options, self._deadlines(component), driven)

    def _deadlines(self, component: Component) -> list[float]:
        """From the fastest call to beyond the slowest, evenly on a logarithmic axis."""
        seen = observed(self.tree, contexts_of(self.tree, self.tree.given.components.index(component)))
        values = seen.values[(seen.values > 0) & (seen.weight > 0)] if seen is not None else np.zeros(0)
        if not len(values):
            return []
        low, high = float(values.min()) / BEYOND, float(values.max()) * BEYOND
        return [float(one) for one in np.geomspace(low, high, POINTS)]


def survey(given: CallTree, options: Options | None = None) -> Survey:
    """The patterns of a call tree, ready to explain its functions."""
    options = options or Options()
    tree, found = patterns_in(given, options)
    return Survey(tree, found, options)
