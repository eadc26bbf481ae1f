"""A call tree as the learner walks it: callees and sums by node, and an order of nodes that no numbering changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.outliers import CONTEXTS, LEAST_NS, LONG_NS, OFTEN, SHORT_NS, speeds
from perflaw.learn.variance.sums import Link, Stats
from perflaw.learn.variance.weighted import Floats, Nodewise, nodewise
from perflaw.types.call_trees import OTHER, CallTree, NodeMoments, Samples
from perflaw.types.recordings import CPU, EVENTS
from perflaw.types.variance import Step

# ---- What all code of about the same length varies alike: that much the machine does, however short its phases are.
#
# Where caches, the core's other thread or a hypervisor make every third call four times dearer, no phase lasts long
# enough to
# be seen (speed.py). But then code of all functions varies about as much, what always does the same included; and it
# rises and
# falls together, over several rounds of what the program does, which neither a slow request nor chance makes it do.

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


# ---- Calls that a switch made dearer in CPU time: after it caches are cold.

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


class Tree:
    """Read-only views of a call tree, made once an analysis."""

    def __init__(self, tree: CallTree) -> None:
        moments, links, pairs = tree.moments[tree.metric.name], tree.links, tree.pairs
        self.given = tree
        self.parent: list[int] = tree.parent.tolist()
        self.component: list[int] = tree.component.tolist()
        self.site: list[int] = tree.site.tolist()
        self.line: list[int] = tree.site_line.tolist()
        self.size = len(self.parent)
        sums = zip(moments.n.tolist(), moments.sum_x.tolist(), moments.sum_xx.tolist(), strict=True)
        self.stats = [Stats(*row) for row in sums]
        self.children = _children(self.parent)
        self.links: list[dict[int, Link]] = [{} for _ in self.parent]
        columns = (getattr(links, name).tolist() for name in links.__slots__)
        for ancestor, descendant, *row in zip(*columns, strict=True):
            self.links[ancestor][descendant] = Link(*row)
        self.pairs: list[dict[tuple[int, int], int]] = [{} for _ in self.parent]
        columns = (getattr(pairs, name).tolist() for name in pairs.__slots__)
        for node, i, j, total in zip(*columns, strict=True):
            self.pairs[node][i, j] = total
        self.folded = {node for node, found in enumerate(self.pairs) if (OTHER, OTHER) in found}
        """Nodes some of whose pairs were put together: a missing pair is then unknown, and not 0."""
        self.noise = tree.clock_noise if tree.metric.unit == "ns" else 0.0
        """What σ must exceed to be more than the clock's."""
        self.disturbed = disturbed(tree.samples) if self.noise and tree.samples else np.zeros(0, np.bool_)
        """(S,) sampled invocations that a switch made dearer, where the clock has noise."""
        self.speed = speeds(tree.samples) if self.noise and tree.samples else np.zeros(0)
        """(S,) how many times dearer the machine was then."""
        self.nodewise = nodewise(tree) if self.noise and tree.samples else None
        """The samples weighted context by context, where the clock has noise."""
        self.alike = Alike(tree, self.nodewise, ~self.disturbed) if self.nodewise else None
        """What all code varies alike, where the clock has noise."""
        self.rank = _ranks(self)

    def key(self, node: int) -> tuple[int, int]:
        """What tells a node apart from others below the same parent: call site and function."""
        return self.site[node], self.component[node]

    def product(self, node: int, i: int, j: int) -> int | None:
        """ΣY_i·Y_j over invocations of a node; None where it was not kept."""
        found = self.pairs[node].get((i, j) if i <= j else (j, i))
        return found if found is not None or node in self.folded else 0

    def total(self, nodes: Iterable[int]) -> Stats:
        """Moments of the invocations of several nodes."""
        result = Stats(0, 0, 0)
        for node in nodes:
            result += self.stats[node]
        return result

    def path(self, node: int, above: int = 0) -> tuple[int, ...]:
        """Nodes from below an ancestor (the root) down to a node."""
        found = []
        while node > 0 and node != above:
            found.append(node)
            node = self.parent[node]
        return tuple(reversed(found))

    def steps(self, nodes: Iterable[int]) -> tuple[Step, ...]:
        """The calls that lead along such nodes."""
        return tuple(self.step(self.component[self.parent[node]], node) for node in nodes)

    def step(self, caller: int, node: int) -> Step:
        """The call that leads from a function to a node."""
        return Step(self.name(caller), self.line[node], self.site[node], self.name(self.component[node]))

    def name(self, component: int) -> str:
        """Name of a function by its number; empty for what is outside any."""
        return self.given.components[component].name if component >= 0 else ""


def _children(parent: list[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above >= 0:
            children[above].append(node)
    return children


def _ranks(tree: Tree) -> list[int]:
    """Place of each node in the order of call paths by names, files and sites: the same however nodes are numbered."""
    what = [(one.name, one.file, one.line) for one in tree.given.components]

    def key(node: int) -> tuple[object, ...]:
        return (*what[tree.component[node]], tree.site[node])

    ranks, order = [0] * tree.size, [0]
    for node in order:
        order.extend(sorted(tree.children[node], key=key))
    for place, node in enumerate(order):
        ranks[node] = place
    return ranks
