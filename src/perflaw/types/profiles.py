"""Nouns of a profile: where the cost of recorded runs went, by calling context and by function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perflaw.types.recordings import Component, Metric, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SiteCost:
    """What the calls at one line of a function cost, the calls below them included."""

    caller: Component
    """The function that calls."""
    line: int
    """Line of the call site, in the caller's file."""
    callee: Component
    """The function that is called."""
    calls: int
    """Number of calls."""
    total: Mapping[str, float]
    """Metric → cost of these calls. Within a recursion the outermost calls alone count."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Calls and costs of runs over V calling contexts and F functions, summed over the runs.

    Contexts are keyed by caller and function; a function that calls itself directly stays in one context. Callers come
    before their callees. Calls that had not ended count, with what had ended within them.
    """

    runs: tuple[Run, ...]
    """The runs."""
    metrics: Mapping[str, Metric]
    """Metrics that every one of these runs has, by name."""
    components: tuple[Component, ...]
    """(F,) the functions."""
    parent: Ints
    """(V,) context of the caller; -1 where a thread enters recorded code."""
    component: Ints
    """(V,) number of the function."""
    calls: Ints
    """(V,) number of calls."""
    own: Mapping[str, Floats]
    """Metric → (V,) cost without that of recorded callees."""
    total: Mapping[str, Floats]
    """Metric → (V,) cost with that of recorded callees."""
    function_calls: Ints
    """(F,) number of calls."""
    function_own: Mapping[str, Floats]
    """Metric → (F,) cost without that of recorded callees."""
    function_total: Mapping[str, Floats]
    """Metric → (F,) cost with that of recorded callees; within a recursion the outermost calls alone count."""
    sites: tuple[SiteCost, ...]
    """Call sites whose line is known."""
    queued: float = 0.0
    """Time in which others had the CPU, ns. It is in no wall time here."""

    def whole(self, metric: str) -> float:
        """Cost of all contexts together."""
        return float(self.own[metric].sum())
