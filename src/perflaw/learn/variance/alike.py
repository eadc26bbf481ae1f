"""What all code of about the same length varies alike: that much the machine does, however short its phases are.

Where caches, the core's other thread or a hypervisor make every third call four times dearer, no phase lasts long enough to
be seen (speed.py). But then code of all functions varies about as much, what always does the same included; and it rises and
falls together, over several rounds of what the program does, which neither a slow request nor chance makes it do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.nodewise import Nodewise
from perflaw.learn.variance.speed import CONTEXTS, LONG_NS, OFTEN, SHORT_NS
from perflaw.learn.variance.weighted import Floats
from perflaw.types.call_trees import CallTree, NodeMoments
from perflaw.types.measured import CPU, EVENTS

NEAR: Final = 4.0
"""Code of about the same length takes up to so many times as long, or as short."""
STEADY: Final = 0.25
"""The steadiest part of it tells what the machine does: the rest may vary by itself."""
FUNCTIONS: Final = 4
"""From so many functions at least."""
SAME: Final = 1.0001
"""E[k²]/E[k]² of the events of code that does the same each time: a few calls may differ."""
TOGETHER: Final = 0.05
"""Costs of different functions rise and fall together where so much of what they vary lasts for rounds."""
ROUNDS: Final = (2.0, 6.0)
"""Rounds that lie between those costs. A round: each context is called about once."""
BASES, LAGS = 20_000, 64
"""So many samples are compared with so many after them: enough for a correlation."""


@dataclass(frozen=True, eq=False)
class Alike:
    """Contexts whose invocations do the same as far as their events tell, and how their costs vary."""

    tree: CallTree
    nodewise: Nodewise
    quiet: NDArray[np.bool_]
    """(S,) sampled invocations that nothing disturbed."""

    def squares(self, mean: float, quiet: bool = False) -> float:
        """What the machine makes of E[x²]/E[x]² where x is about ``mean`` long and would be constant; 1 where unknown.

        Of code of other lengths only what lasts for rounds is known. ``quiet``: of invocations that nothing disturbed.
        """
        cost, squares, function = self._contexts
        squares = self._quiet_squares if quiet else squares
        near, shorter = (cost >= mean / NEAR) & (cost <= mean * NEAR), cost <= mean * NEAR
        alike, any_length = (_steadiest(squares[those], function[those]) for those in (near, shorter))
        if any_length == 1 or self._lasting < TOGETHER * (any_length - 1):
            return 1.0
        return max(alike, 1 + self._lasting)

    @cached_property
    def _contexts(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Mean cost, E[x²]/E[x]² and function of each context that is long enough and always has the same events."""
        mean, squares = _moments(self.tree.moments[CPU.name])
        return mean[self._told], squares[self._told], self.tree.component[self._told]

    @cached_property
    def _quiet_squares(self) -> Floats:
        """E[x²]/E[x]² of those contexts over undisturbed invocations, as samples tell."""
        by_node, samples, nodes = self.nodewise, self.tree.samples, len(self.tree.parent)
        assert samples is not None
        node = np.concatenate([samples.node[self.quiet], by_node.node])
        x = np.concatenate([samples.cpu[self.quiet], by_node.value])
        weight = np.concatenate([by_node.weight[self.quiet], by_node.count])
        n, total, squares = (np.bincount(node, weight * x**power, nodes) for power in (0, 1, 2))
        every: Floats = np.divide(n * squares, total**2, out=np.ones(nodes), where=total > 0)
        return every[self._told]

    @cached_property
    def _told(self) -> NDArray[np.bool_]:
        """(nodes,) those contexts."""
        events, (mean, squares) = self.tree.moments.get(EVENTS.name), _moments(self.tree.moments[CPU.name])
        if events is None:
            return np.zeros(len(mean), np.bool_)
        sound = squares >= 1  # what interruptions were taken out of is a guess in parts
        return np.asarray((events.n >= OFTEN) & (_moments(events)[1] <= SAME) & (mean >= SHORT_NS) & sound)

    @cached_property
    def _lasting(self) -> float:
        """Covariance of what different functions cost some rounds apart, in parts of their means.

        That is Var(s)/E[s]² of a factor s which is the machine's and lasts for so long.
        """
        samples = self.tree.samples
        assert samples is not None
        places = np.flatnonzero(self.quiet & (samples.cpu < LONG_NS) & self._told[samples.node])
        places = places[np.lexsort((samples.started[places], np.array(samples.run)[places]))]
        node, started, weight = samples.node[places], samples.started[places], self.nodewise.weight[places]
        deviation, share = _relative(samples.cpu[places], weight, node)
        run, function = np.unique(np.array(samples.run)[places], return_inverse=True)[1], self.tree.component[node]
        size = _round(started, run, weight, node)
        base = np.arange(0, len(places), max(1, len(places) // BASES))
        both = parts = 0.0
        for lag in _lags(started, size):
            here = base[base + lag < len(places)]
            there = here + lag
            apart = (started[there] - started[here]) / size
            pairs = (apart >= ROUNDS[0]) & (apart <= ROUNDS[1]) & (run[here] == run[there])
            pairs &= function[here] != function[there]
            product = share[here[pairs]] * share[there[pairs]]
            both += float(product @ (deviation[here[pairs]] * deviation[there[pairs]]))
            parts += float(product.sum())
        return both / parts if parts else 0.0


def _moments(sums: NodeMoments) -> tuple[Floats, Floats]:
    """Means, and E[x²]/E[x]² (0 where there is no cost)."""
    n = np.maximum(sums.n.astype(float), 1)
    mean = sums.sum_x.astype(float) / n
    return mean, np.divide(sums.sum_xx.astype(float) / n, mean**2, out=np.zeros_like(mean), where=mean > 0)


def _steadiest(squares: Floats, function: NDArray[np.int64]) -> float:
    if len(squares) < CONTEXTS or len(np.unique(function)) < FUNCTIONS:
        return 1.0
    return float(np.quantile(squares, STEADY))


def _relative(x: Floats, weight: Floats, node: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Deviations from the mean of each context in parts of it, and weights that give each context the same."""
    _, inverse = np.unique(node, return_inverse=True)
    share = weight / np.bincount(inverse, weight)[inverse]
    return x / np.maximum(np.bincount(inverse, share * x), 1)[inverse] - 1, share


def _round(started: NDArray[np.int64], run: NDArray[np.intp], weight: Floats, node: NDArray[np.int64]) -> float:
    """Time (ns) in which the rarest context is called once."""
    span = sum(float(np.ptp(started[run == one])) for one in np.unique(run))
    calls = np.bincount(np.unique(node, return_inverse=True)[1], weight)
    return max(span / float(calls.min()), 1.0) if len(calls) else 1.0


def _lags(started: NDArray[np.int64], size: float) -> list[int]:
    """Distances in samples within which so many rounds lie."""
    if len(started) < 2:
        return []
    gap = max(float(np.median(np.diff(started))), 1.0)
    most = int(min(ROUNDS[1] * size / gap * 2, len(started) - 1))
    return sorted({int(lag) for lag in np.linspace(1, max(most, 1), LAGS)})
