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

from perflaw.learn.variance.nodewise import Nodewise, nodewise
from perflaw.learn.variance.weighted import Floats, quantile
from perflaw.types.call_trees import CallTree, Samples
from perflaw.types.measured import CPU

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
