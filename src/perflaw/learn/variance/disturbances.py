"""Calls that a switch made dearer in CPU time: after it caches are cold."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.outliers import LEAST_NS
from perflaw.learn.variance.speed import LONG_NS
from perflaw.types.call_trees import Samples

AFTER_NS: Final = 50_000
"""How long after a switch caches may be cold."""


def disturbed(samples: Samples) -> NDArray[np.bool_]:
    """(S,) sampled invocations that were switched out or began soon after a short call that was."""
    off = samples.time - samples.cpu
    switched = np.flatnonzero((off > LEAST_NS) & (samples.cpu < LONG_NS))
    result = np.zeros(len(off), np.bool_)
    result[switched] = True
    runs = np.array(samples.run)
    for run in np.unique(runs[switched]):
        those = switched[runs[switched] == run]
        begin = np.sort(samples.started[those])
        end = np.maximum.accumulate((samples.started + samples.time)[those[np.argsort(samples.started[those])]])
        mine = np.flatnonzero((runs == run) & (samples.cpu < LONG_NS))
        last = np.searchsorted(begin, samples.started[mine], side="right") - 1
        result[mine] |= (last >= 0) & (samples.started[mine] <= end[np.maximum(last, 0)] + AFTER_NS)
    return result
