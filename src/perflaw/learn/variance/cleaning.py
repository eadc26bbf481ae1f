"""A call tree with interruptions taken out of its CPU time, in every sum that they are part of.

An interruption of ``e`` ns lies in the cost of the invocation that it hits and of all that are open above it. Sums of
squares need the costs of those: they are sampled as a rule, because the interruption makes them long; where they are
not, the mean stands for what else they cost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from perflaw.learn.variance.outliers import LEAST_CALLS, Interruption, interruptions
from perflaw.types.call_trees import LOCAL, CallTree, LinkMoments, NodeMoments, PairMoments, Samples
from perflaw.types.recordings import CPU

GUESS: Final = 0.02
"""Part of the greatest covariance by which guesses may be off."""


def cleaned(tree: CallTree) -> CallTree:
    """The tree without interruptions, and a note of what they were; the same tree where there are none."""
    found = interruptions(tree)
    if not found:
        return tree
    work = _Work(tree)
    for one in found:
        work.take_out(one)
    spent = sum(one.excess * one.times for one in found) / 1e6
    times = sum(one.times for one in found)
    note = f"CPU time leaves out {times} interruptions of {spent:.3g} ms: rare, at random, in code that takes far less"
    return work.result((*tree.notes, note))


@dataclass(slots=True)
class _Open:
    """An invocation that was open when the interruption came."""

    node: int
    place: int | None
    """Place among the samples; None where it was not kept."""
    cost: float
    """Its CPU time."""


class _Work:
    """Copies of a tree's sums while interruptions are taken out."""

    def __init__(self, tree: CallTree) -> None:
        assert tree.samples is not None
        self.tree, self.samples = tree, tree.samples
        self.parent: list[int] = tree.parent.tolist()
        moments = tree.moments[CPU.name]
        self.n: list[int] = moments.n.tolist()
        self.x: list[int] = moments.sum_x.tolist()
        self.xx: list[int] = moments.sum_xx.tolist()
        self.cpu, self.y_cpu = tree.samples.cpu.copy(), tree.samples.y_cpu.copy()
        self.within = tree.metric.name == CPU.name
        self.sums = _Sums(tree) if self.within else None
        self.kept = _kept(tree.samples)
        self.rows: dict[int, list[int]] = {}
        for row, place in enumerate(tree.samples.of.tolist()):
            self.rows.setdefault(place, []).append(row)

    def take_out(self, one: Interruption) -> None:
        """Take one out of the invocation that it hit, and of all above."""
        path = self._path(one)
        for depth in range(len(path) if self.sums else 0):
            self._from_sums(path, depth, one)
        for here, below in zip(path, [*path[1:], None], strict=True):
            self._from_node(here, below, one)

    def _path(self, one: Interruption) -> list[_Open]:
        """What was open, the outermost first; the invocation that was hit is the last."""
        node = int(self.samples.node[one.place])
        path = [_Open(node, one.place, float(self.cpu[one.place]))]
        while (node := self.parent[node]) > 0:
            place = self._enclosing(node, one.place)
            usual = (self.x[node] / self.n[node] if self.n[node] else 0.0) + one.excess
            path.append(_Open(node, place, float(self.cpu[place]) if place is not None else usual))
        return path[::-1]

    def _enclosing(self, node: int, inner: int) -> int | None:
        """The sampled invocation of a node that contains another."""
        starts, places = self.kept.get((self.samples.run[inner], node), ([], []))
        start = int(self.samples.started[inner])
        at = bisect_right(starts, start) - 1
        if at >= 0 and starts[at] + self.samples.time[places[at]] >= start + self.samples.time[inner]:
            return places[at]
        return None

    def _from_node(self, here: _Open, below: _Open | None, one: Interruption) -> None:
        e, cost = one.excess, round(here.cost)
        self.x[here.node] -= e * one.times
        self.xx[here.node] += (e * e - 2 * e * cost) * one.times
        if here.place is not None:
            self.cpu[here.place] -= e
            row = self._row(here.place, below.node) if below else None
            if row is not None:
                self.y_cpu[row] -= e

    def _row(self, place: int | None, callee: int) -> int | None:
        """Where the samples say what a callee was in an invocation; None where they do not."""
        if place is None:
            return None
        return next((row for row in self.rows.get(place, ()) if self.samples.callee[row] == callee), None)

    def _from_sums(self, path: list[_Open], depth: int, one: Interruption) -> None:
        """Products of parts of an invocation, and what descendants are in it."""
        assert self.sums
        here, deeper = path[depth], path[depth + 1 :]
        parts = self._parts(here)
        self.sums.less_in_pairs(here.node, deeper[0].node if deeper else LOCAL, parts, one)
        if self.n[here.node] < LEAST_CALLS:  # nothing is said of it
            return
        repeated, inside = False, dict[int, tuple[float, int, bool]]()
        for above, inner in zip(path[depth:], deeper, strict=False):
            row = self._row(above.place, inner.node)
            cost = inner.cost if row is None else float(self.y_cpu[row])
            calls = 1 if row is None else int(self.samples.k[row])
            # Where what lies between was called again, the rest of the descendant's cost in it is not known.
            inside[inner.node] = (cost, calls, row is not None and not repeated)
            repeated |= row is None or calls > 1
        for node, row in self.sums.links_of[here.node]:
            if node in inside:
                self.sums.less_in_both(row, here.cost, inside[node], one)
            else:
                direct = self.parent[node] == here.node and here.place is not None
                self.sums.less_above(row, self.n[here.node], parts.get(node, 0.0) if direct else None, one)

    def _parts(self, here: _Open) -> dict[int, float]:
        """What each part of the invocation cost; means where it was not kept."""
        assert self.sums
        if here.place is None:
            return {}
        rows = self.rows.get(here.place, [])
        parts = {int(self.samples.callee[row]): float(self.y_cpu[row]) for row in rows}
        parts[LOCAL] = here.cost - sum(parts.values())
        return parts

    def result(self, notes: tuple[str, ...]) -> CallTree:
        """The tree of what is left."""
        n = self.tree.moments[CPU.name].n
        moments: Mapping[str, NodeMoments] = {
            **self.tree.moments,
            CPU.name: NodeMoments(n, _objects(self.x), _objects(self.xx)),
        }
        samples = replace(self.samples, cpu=self.cpu, y_cpu=self.y_cpu)
        if self.sums is None:
            return replace(self.tree, moments=moments, samples=samples, notes=notes)
        samples = replace(samples, x=self.cpu, y=self.y_cpu)
        self.sums.derive(self.parent, self.n, self.x, self.xx)
        pairs, links = self.sums.result()
        return replace(self.tree, moments=moments, samples=samples, notes=notes, pairs=pairs, links=links)


class _Sums:
    """Pairs and links while interruptions are taken out."""

    def __init__(self, tree: CallTree) -> None:
        pairs, links = tree.pairs, tree.links
        self.pairs, self.links = pairs, links
        self.pair: list[dict[int, dict[int, int]]] = [{} for _ in tree.parent]
        self.yy: list[int] = pairs.sum_yy.tolist()
        for row, (node, i, j) in enumerate(zip(pairs.node.tolist(), pairs.i.tolist(), pairs.j.tolist(), strict=True)):
            self.pair[node].setdefault(i, {})[j] = self.pair[node].setdefault(j, {})[i] = row
        ends = zip(links.ancestor.tolist(), links.descendant.tolist(), strict=True)
        self.link = {pair: row for row, pair in enumerate(ends)}
        self.ky: list[int] = links.sum_ky.tolist()
        self.y: list[int] = links.sum_y.tolist()
        self.link_yy: list[int] = links.sum_yy.tolist()
        self.yx: list[int] = links.sum_yx.tolist()
        self.links_of: list[list[tuple[int, int]]] = [[] for _ in tree.parent]
        for (ancestor, descendant), row in self.link.items():
            self.links_of[ancestor].append((descendant, row))
        self.guessed: dict[int, float] = {}
        """Row of a link → Σe² of interruptions at which its Y was not known."""

    def less_in_pairs(self, node: int, hit: int, parts: dict[int, float], one: Interruption) -> None:
        """Y of one part is less by the interruption."""
        e = one.excess
        for other, row in self.pair[node].get(hit, {}).items():
            cost = round(parts.get(other, 0.0 if other != hit else float(e)))
            less = e * e - 2 * e * cost if other == hit else -e * cost
            self.yy[row] += less * one.times

    def less_in_both(self, row: int, whole: float, inside: tuple[float, int, bool], one: Interruption) -> None:
        """Y and X of a link are both less; ``inside`` is the descendant's cost, its calls, and whether that is exact."""
        cost, calls, known = inside
        e, y, x = one.excess, round(cost), round(whole)
        self.ky[row] -= e * calls * one.times
        self.y[row] -= e * one.times
        self.link_yy[row] += (e * e - 2 * e * y) * one.times
        self.yx[row] += (e * e - e * (x + y)) * one.times
        if not known:
            self.guessed[row] = self.guessed.get(row, 0.0) + float(e * e) * one.times

    def less_above(self, row: int, n: int, cost: float | None, one: Interruption) -> None:
        """X of a link is less, and Y is not; where Y is not known it is taken for its mean."""
        y = self.y[row] / n if cost is None else cost
        self.yx[row] -= round(one.excess * y) * one.times
        if cost is None:
            self.guessed[row] = self.guessed.get(row, 0.0) + float(one.excess**2) * one.times

    def derive(self, parent: list[int], n: list[int], x: list[int], xx: list[int]) -> None:
        """Links in which guesses matter, as if a descendant had the share of its parent that it has within it alone.

        That is the paper's cascade (§2.2): a parent's variance goes up as a whole. A guessed Y is off by its own σ, so
        Cov(Y, X)/(σ_Y·σ_X) by e/(N·σ_X). Nodes above are numbered first.
        """
        for row in sorted(self.guessed):
            head, inner = int(self.links.ancestor[row]), int(self.links.descendant[row])
            top = parent[inner]
            sigma = sqrt(max(n[head] * xx[head] - x[head] ** 2, 0))  # N·σ
            within, above = self.link.get((top, inner)), self.link.get((head, top))
            spread = n[top] * xx[top] - x[top] ** 2
            if sqrt(self.guessed[row]) <= GUESS * sigma or within is None or above is None:
                continue
            net, own = 0.0, 0.0
            if spread > 0:
                net = (n[top] * self.yx[within] - self.y[within] * x[top]) / spread
                own = (n[top] * self.link_yy[within] - self.y[within] ** 2) / spread
            net_above = n[head] * self.yx[above] - self.y[above] * x[head]
            own_above = n[head] * self.link_yy[above] - self.y[above] ** 2
            self.yx[row] = (round(net_above * net) + self.y[row] * x[head]) // n[head]
            self.link_yy[row] = (round(own_above * own) + self.y[row] ** 2) // n[head]

    def result(self) -> tuple[PairMoments, LinkMoments]:
        """What is left."""
        ky, y, yy, yx = (_objects(sums) for sums in (self.ky, self.y, self.link_yy, self.yx))
        links = replace(self.links, sum_ky=ky, sum_y=y, sum_yy=yy, sum_yx=yx)
        return replace(self.pairs, sum_yy=_objects(self.yy)), links


def _objects(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _kept(samples: Samples) -> dict[tuple[str, int], tuple[list[int], list[int]]]:
    """Run and node → starts of the sampled invocations, in order, and their places."""
    found: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
    for place in np.argsort(samples.started, kind="stable").tolist():
        starts, places = found.setdefault((samples.run[place], int(samples.node[place])), ([], []))
        starts.append(int(samples.started[place]))
        places.append(place)
    return found
