"""Interruptions in CPU time: rare invocations whose own code takes far longer than ever else, doing nothing more.

A guest's CPU clock goes on while the hypervisor runs others, and interrupts count as the thread's time. Such an outlier
squared outweighs all that the program does; and it comes anywhere, so that it explains nothing. What varies by the
program's doing comes again at the same place, or shows in the number of calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.weighted import Floats, Nodewise, nodewise, quantile
from perflaw.types.call_trees import CallTree, Samples
from perflaw.types.recordings import CPU

RARE: Final = 0.005
"""At most this part of a node's invocations are interruptions: what comes more often is the program's own doing …"""
FEW: Final = 2
"""… but so many may be in any case …"""
PER_NS: Final = 1e-9
"""… and one in a second of its own code."""
FAR: Final = 3.0
"""An outlier takes so many times what the dearest of the other invocations of its node takes."""
LEAST_NS: Final = 2000.0
"""Interruptions are longer."""
LEAST_CALLS: Final = 30
"""Of fewer invocations nothing can be called an outlier."""
MORE_CALLS: Final = 1.5
"""An invocation with so many times the usual calls does more than usual."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """An outlier."""

    place: int
    """Place among the samples."""
    excess: int
    """ns beyond what its own code usually takes."""
    times: int
    """Invocations it stands for."""


def interruptions(tree: CallTree) -> list[Interruption]:
    """The interruptions among the sampled invocations, in the order of the samples."""
    samples, moments = tree.samples, tree.moments.get(CPU.name)
    if samples is None or moments is None or tree.clock_noise == 0:
        return []
    own, by_node = local(samples, samples.cpu, samples.y_cpu), nodewise(tree)
    leaves = ~np.isin(np.arange(len(tree.parent)), tree.parent)
    found: list[Interruption] = []
    known = np.flatnonzero(~np.isnan(own))
    order = known[np.argsort(samples.node[known], kind="stable")]
    for places in np.split(order, np.flatnonzero(np.diff(samples.node[order])) + 1):
        node = int(samples.node[places[0]]) if len(places) else 0
        if len(places) and (n := int(moments.n[node])) >= LEAST_CALLS:
            found += _of_node(_Costs.of(node, own, by_node, places, leaves[node]), samples, n)
    return sorted(found, key=lambda one: one.place)


def local(samples: Samples, whole: Floats, parts: Floats) -> Floats:
    """(S,) what each sampled invocation spends outside its callees: ``whole`` (S,) less ``parts`` (C,)."""
    below = np.zeros(len(whole))
    np.add.at(below, samples.of, parts)
    return np.asarray(whole - below)


@dataclass(frozen=True, slots=True, eq=False)
class _Costs:
    """What the own code of one node's invocations costs."""

    places: NDArray[np.intp]
    """(n,) sampled invocations."""
    own: Floats
    """(n,) their cost."""
    weight: Floats
    """(n,) invocations each stands for."""
    usual: Floats
    """(n + m,) sorted costs, those of invocations that no sample is like included: of a leaf they are known."""
    times: Floats
    """(n + m,) invocations of each."""

    @staticmethod
    def of(node: int, own: Floats, by_node: Nodewise, places: NDArray[np.intp], leaf: bool) -> _Costs:
        """Of the sampled invocations at these places."""
        more = np.flatnonzero(by_node.node == node) if leaf else np.empty(0, np.intp)
        weight = by_node.weight[places]
        every = np.concatenate([own[places], by_node.value[more]])
        times = np.concatenate([weight, by_node.count[more]])
        order = np.argsort(every, kind="stable")
        return _Costs(places, own[places], weight, every[order], times[order])


def _of_node(costs: _Costs, samples: Samples, n: int) -> list[Interruption]:
    usual = quantile(costs.usual, costs.times, 0.5)
    most = max(FEW, np.ceil(RARE * n), np.ceil(PER_NS * usual * n))
    edge = quantile(costs.usual, costs.times, max(0.5, 1 - (most + 0.5) / costs.times.sum()))
    far = costs.own > max(FAR * edge, LEAST_NS + usual)
    far &= samples.events[costs.places] <= MORE_CALLS * _usual_events(samples, costs.places)
    those = np.flatnonzero(far)[np.argsort(-costs.own[far], kind="stable")]
    told = zip(costs.places[those].tolist(), costs.own[those], _whole(costs.weight[those]), strict=True)
    return [Interruption(int(place), round(float(cost - usual)), times) for place, cost, times in told]


def _whole(weight: Floats) -> list[int]:
    """Weights of 1 and more as whole numbers of the same sum: five of 1.6 each stand for eight invocations, not for ten.

    What is left over goes to those behind: the first are the longest, of which one too many outweighs all that stays.
    """
    total = np.floor(np.cumsum(weight) + 1e-9)
    return [max(int(times), 1) for times in np.diff(total, prepend=0.0)]


def _usual_events(samples: Samples, places: NDArray[np.intp]) -> float:
    order = places[np.argsort(samples.events[places], kind="stable")]
    return quantile(samples.events[order], samples.weight[order], 0.5)


# ---- How fast the machine was around each sampled invocation: in some phases all code is dearer in CPU time,
# whatever it does.
#
# Another thread on the same core, a lower frequency, a hypervisor's other guests: two speeds, four times apart, may
# change every
# millisecond. A phase is the machine's where code of most contexts takes longer (or less) than it usually does, each
# by about
# the same factor, code of fixed cost included, and over several rounds of what the program does: a slow request is no
# phase.

LONG_NS: Final = 1e6
"""A call with more CPU time than this lasts longer than a phase."""
ROUNDS: Final = 6
"""Sampled calls that are looked at together: so many as pass while the rarest context is called so often."""
LEAST_WINDOW: Final = 24
"""And so many at least; windows overlap."""
STEPS: Final = 4
"""Windows begin so often in the length of one."""
SHORT_NS: Final = 50.0
"""Own code of less says little of the machine's speed."""
OFTEN: Final = 30
"""Contexts with fewer sampled calls are not counted."""
CONTEXTS: Final = 6
"""So many contexts at least must be in a window."""
OUTER: Final = 0.15
"""Part of the contexts of a window that may be otherwise, on either side …"""
ALIKE: Final = 3.0
"""… the factors of those in the middle differ by no more than this …"""
MOST: Final = 8.0
"""… and no machine is slower or faster by more."""


def speeds(samples: Samples) -> Floats:
    """(S,) how many times dearer than usual in its run all code was around each sampled invocation; 1 where unknown."""
    result = np.ones(len(samples.cpu))
    runs, short = np.array(samples.run), samples.cpu < LONG_NS
    for run in np.unique(runs):
        here = np.flatnonzero(short & (runs == run))
        own, parts = _timed(samples, here)
        factor = own[here] / parts[here] / _usual(samples, own, parts, here)
        told = np.flatnonzero(np.isfinite(factor) & (factor > 0))
        told = told[np.argsort(samples.started[here[told]], kind="stable")]
        at, speed = _by_windows(samples, here[told], factor[told])
        if len(at):
            result[here] = np.exp(np.interp(samples.started[here], at, np.log(speed)))
    return result


def _timed(samples: Samples, here: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """(S,) what each invocation spends outside callees that are long enough to be timed, and (S,) of how many calls that is.

    Calls too short are their caller's code: a loop around them costs as much a call, however many there are.
    """
    usual = dict(_middles(samples, samples.cpu, here))
    apart = np.array([usual.get(node, np.inf) >= SHORT_NS for node in samples.callee.tolist()], np.bool_)
    parts = np.ones(len(samples.cpu))
    np.add.at(parts, samples.of[~apart], samples.k[~apart])
    return local(samples, samples.cpu, np.where(apart, samples.y_cpu, 0.0)), parts


def _usual(samples: Samples, own: Floats, parts: Floats, here: NDArray[np.intp]) -> Floats:
    """(len(here),) median of a part of each invocation's node in this run; NaN where the whole is too short."""
    long = {node for node, middle in _middles(samples, own, here) if middle >= SHORT_NS}
    middles = {node: middle for node, middle in _middles(samples, own / parts, here) if node in long}
    return np.array([middles.get(node, np.nan) for node in samples.node[here].tolist()])


def _middles(samples: Samples, cost: Floats, here: NDArray[np.intp]) -> list[tuple[int, float]]:
    """Nodes and the median of their invocations' costs (S,), where these are known."""
    known = here[~np.isnan(cost[here])]
    order = known[np.lexsort((cost[known], samples.node[known]))]
    groups = np.split(order, np.flatnonzero(np.diff(samples.node[order])) + 1)
    return [(int(samples.node[one[0]]), quantile(cost[one], samples.weight[one], 0.5)) for one in groups if len(one)]


def _by_windows(samples: Samples, mine: NDArray[np.intp], factor: Floats) -> tuple[Floats, Floats]:
    """Middles of windows of sampled calls, which stand in order, and the machine's factor in each; none where too few."""
    nodes, inverse, counts = np.unique(samples.node[mine], return_inverse=True, return_counts=True)
    often = counts >= OFTEN
    if np.count_nonzero(often) < CONTEXTS:
        return np.zeros(0), np.zeros(0)
    times = np.bincount(inverse, samples.weight[mine], len(nodes))
    size = max(LEAST_WINDOW, round(ROUNDS * len(mine) / float(times[often].min())))
    firsts = range(0, max(len(mine) - size, 0) + 1, max(size // STEPS, 1))
    windows = [slice(first, first + size) for first in firsts]
    middles = [float(np.median(samples.started[mine[one]])) for one in windows]
    found = [_factor(factor[one], samples.weight[mine[one]], samples.node[mine[one]]) for one in windows]
    at, kept = np.unique(np.array(middles), return_index=True)
    return at, np.array(found)[kept]


def _factor(factor: Floats, weight: Floats, node: NDArray[np.int64]) -> float:
    """What the contexts of a window agree on; 1 where they do not."""
    order = np.lexsort((factor, node))
    rows = np.split(order, np.flatnonzero(np.diff(node[order])) + 1)
    if len(rows) < CONTEXTS:
        return 1.0
    middles = np.sort([quantile(factor[one], weight[one], 0.5) for one in rows])
    low, middle, high = np.quantile(middles, [OUTER, 0.5, 1 - OUTER])
    return float(np.clip(middle, 1 / MOST, MOST)) if high <= ALIKE * low else 1.0
