"""Calls that the machine made dearer in CPU time: after a switch caches are cold, and in some phases all code is slow.

A phase is the machine's where nearly everything in it takes longer than it usually does, each function by about the same
factor, code of fixed cost included: another thread on the same core, a lower frequency.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.outliers import LEAST_NS, local
from perflaw.learn.variance.weighted import Floats, quantile
from perflaw.types.call_trees import Samples

AFTER_NS: Final = 50_000
"""How long after a switch caches may be cold."""
LONG_NS: Final = 1e6
"""A call with more CPU time than this has switches of its own, and its time is not theirs."""
ROUNDS: Final = 6
"""Sampled calls that are looked at together: so many as hold so many of the rarest context. A slow request is no phase."""
ROUNDS_THEN: Final = 2
"""The same in runs in which there are slow phases."""
LEAST_WINDOW: Final = 16
"""And so many calls at least; windows overlap."""
SHORT_NS: Final = 100.0
"""Own code of less says little of the machine's speed."""
OFTEN: Final = 30
"""Contexts with fewer sampled calls are not counted."""
CONTEXTS: Final = 6
"""So many contexts at least must be in a window."""
SLOWER: Final = 1.4
"""All but some take so many times as long as usual …"""
OUTER: Final = 0.15
"""Part of the calls of a window that may be otherwise, on either side."""
ALIKE: Final = 3.0
"""… the factors of those in the middle differ by no more than this …"""
MOST: Final = 8.0
"""… and no machine is slower by more."""


def disturbed(samples: Samples) -> NDArray[np.bool_]:
    """(S,) sampled invocations in slow phases, and those that were switched out or began soon after a short call that was."""
    off = samples.time - samples.cpu
    switched = np.flatnonzero((off > LEAST_NS) & (samples.cpu < LONG_NS))
    result = slow_phases(samples)
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


def slow_phases(samples: Samples) -> NDArray[np.bool_]:
    """(S,) sampled invocations while the machine was slow, by what is usual in their run."""
    result = np.zeros(len(samples.cpu), np.bool_)
    own = local(samples, samples.cpu, samples.y_cpu)
    runs, short = np.array(samples.run), samples.cpu < LONG_NS
    for run in np.unique(runs):
        here = np.flatnonzero(short & (runs == run))
        factor = own[here] / _usual(samples, own, here)
        told = np.isfinite(factor)
        mine, factor = here[told], factor[told]
        order = np.argsort(samples.started[mine], kind="stable")
        mine, factor = mine[order], factor[order]
        counts = np.unique(samples.node[mine], return_counts=True)[1]
        often = counts[counts >= OFTEN]
        if len(often) < CONTEXTS:
            continue
        a_round = len(mine) / int(often.min())
        if not any(True for _ in _slow_windows(samples, factor, mine, round(ROUNDS * a_round))):
            continue
        for window in _slow_windows(samples, factor, mine, round(ROUNDS_THEN * a_round)):  # now their edges as well
            begin, end = samples.started[window[[0, -1]]]
            result[here[(samples.started[here] >= begin) & (samples.started[here] <= end)]] = True
    return result


def _slow_windows(samples: Samples, factor: Floats, mine: NDArray[np.intp], size: int) -> Iterator[NDArray[np.intp]]:
    """Those of the windows of so many sampled calls, one after the other, in which the machine was slow."""
    size = max(size, LEAST_WINDOW)
    for first in range(0, len(mine) - size + 1, size // 4):
        window = mine[first : first + size]
        if _is_slow(factor[first : first + size], samples.weight[window], samples.node[window]):
            yield window


def _usual(samples: Samples, own: Floats, here: NDArray[np.intp]) -> Floats:
    """(len(here),) median of the own cost of each invocation's node in this run; NaN where that is too short."""
    usual = np.full(len(here), np.nan)
    known = np.flatnonzero(~np.isnan(own[here]))
    order = known[np.lexsort((own[here[known]], samples.node[here[known]]))]
    for rows in np.split(order, np.flatnonzero(np.diff(samples.node[here[order]])) + 1):
        if len(rows):
            middle = quantile(own[here[rows]], samples.weight[here[rows]], 0.5)
            usual[rows] = middle if middle >= SHORT_NS else np.nan
    return usual


def _is_slow(factor: Floats, weight: Floats, node: NDArray[np.int64]) -> bool:
    if len(np.unique(node)) < CONTEXTS:
        return False
    order = np.argsort(factor, kind="stable")
    low, high = (quantile(factor[order], weight[order], p) for p in (OUTER, 1 - OUTER))
    return low >= SLOWER and high <= min(ALIKE * low, MOST)
