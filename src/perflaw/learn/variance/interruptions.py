"""Interruptions in CPU time: which sampled invocations had one, and how every sum is freed of them.

A call that is pushed off the CPU comes back to cold caches, and what the kernel does meanwhile may count as its CPU time.
The kernel marks such calls: their thread was ready to run, and others had its CPU. Only marked calls are interrupted; that
a slow call is rare says nothing, for a program may flush, grow or collect once in a thousand calls. The squares of what no
mark explains stay in all sums, with one exception: the clock of a virtual machine may run on while the hypervisor takes
the CPU, which nothing marks. Such a loss hits a function once, and is a small part of what the program takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.variance.machine import MAX_SWITCH_COST_NS, MIN_INTERRUPTION_NS, own_costs, switched_out
from perflaw.learn.variance.moments import Floats, Stats, context_weights, quantile
from perflaw.learn.variance.places import EnclosingCalls, Places
from perflaw.types.call_trees import LOCAL, CallTree, LinkMoments, NodeMoments, PairMoments, Samples
from perflaw.types.recordings import CPU

MAX_SHARE: Final = 0.02
"""Share of a function's CPU time up to which interruptions are left out; what costs more is the program's."""
OUTLIER_RATIO: Final = 3.0
"""Own cost of what happened once, in multiples of the largest other own cost in the context."""
MIN_CALLS: Final = 30
"""Number of invocations of a context below which nothing is known to be an interruption."""
MAX_EVENTS_RATIO: Final = 1.5
"""An invocation with more events than this multiple of the usual number does more work; it is not interrupted."""
GUESS_TOLERANCE: Final = 0.02
"""Error of a guessed sum, in parts of the greatest possible covariance, above which the sum is derived instead."""
MIN_PERIODIC: Final = 4
"""Number of slow calls of a context from which on it is known whether they recur periodically."""
MIN_PERIOD: Final = 20
"""Shortest period, in calls of the program; between calls that are closer most distances are multiples of each other."""
MAX_PERIODS: Final = 4.5
"""Longest distance of two periodic slow calls, in periods: some may not be sampled, or not be marked."""
PERIOD_TOLERANCE: Final = 0.03
"""How far from a whole number of periods such a distance may be."""
MAX_LISTED: Final = 3
"""Number of functions that a note names."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """A sampled invocation whose own code was interrupted."""

    place: int
    """Place among the samples."""
    excess: int
    """CPU time beyond the usual own cost, ns."""
    times: int
    """Invocations that the sample stands for."""


@dataclass(frozen=True, slots=True)
class Outliers:
    """Sampled invocations whose own code took more CPU time than all others of their context."""

    marked: list[Interruption] = field(default_factory=list)
    """Those that were pushed off the CPU, and took no more than that costs."""
    once: list[Interruption] = field(default_factory=list)
    """Those of functions in which that happened once, with no feature that tells why."""


def find_outliers(tree: CallTree) -> Outliers:
    """The outliers among the sampled invocations, in the order of the samples; none if the clock has no noise."""
    samples, moments = tree.samples, tree.moments.get(CPU.name)
    if samples is None or moments is None or tree.clock_noise == 0:
        return Outliers()
    own, weights, pushed = own_costs(samples, samples.cpu, samples.y_cpu), context_weights(tree), switched_out(samples)
    leaves = ~np.isin(np.arange(len(tree.parent)), tree.parent)
    known = np.flatnonzero(~np.isnan(own))
    order = known[np.argsort(samples.node[known], kind="stable")]
    marked, once = list[Interruption](), list[Interruption]()
    for places in np.split(order, np.flatnonzero(np.diff(samples.node[order])) + 1):
        if not len(places) or int(moments.n[node := samples.node[places[0]]]) < MIN_CALLS:
            continue
        # A leaf's own cost is its whole cost, so the histogram tells it for invocations that no sample stands for.
        unsampled = np.flatnonzero(weights.node == node) if leaves[node] else np.empty(0, np.intp)
        costs = np.concatenate([own[places], weights.value[unsampled]])
        invocations = np.concatenate([weights.weight[places], weights.count[unsampled]])
        context_order = np.argsort(costs, kind="stable")
        usual = quantile(costs[context_order], invocations[context_order], 0.5)
        by_events = places[np.argsort(samples.events[places], kind="stable")]
        usual_events = quantile(samples.events[by_events], samples.weight[by_events], 0.5)
        excess = own[places] - usual
        far = (excess > MIN_INTERRUPTION_NS) & (samples.events[places] <= MAX_EVENTS_RATIO * usual_events)
        # What invocations reach that nothing interrupted, the program does itself.
        alone = np.flatnonzero(~pushed[places])
        reach = max(costs[len(places) :].max(initial=usual), own[places[alone]].max(initial=usual))
        hit = np.flatnonzero(far & pushed[places] & (own[places] > reach) & (excess <= MAX_SWITCH_COST_NS))
        if _is_periodic(samples, places[hit]):
            hit = hit[:0]
        times = whole_weights(weights.weight[places[hit]])
        marked += [
            Interruption(int(places[one]), round(float(excess[one])), n) for one, n in zip(hit, times, strict=True)
        ]
        # A mark makes a loss no less likely; what a switch costs at most is left out above, what takes longer is not.
        kept = np.setdiff1d(np.arange(len(places)), hit)
        if len(kept) > 1:
            largest = kept[np.argmax(own[places[kept]])]
            rivals = np.setdiff1d(kept if pushed[places[largest]] else alone, largest)
            others = max(own[places[rivals]].max(initial=usual), costs[len(places) :].max(initial=usual))
            lone = far[largest] and own[places[largest]] > OUTLIER_RATIO * others
            if lone and weights.weight[places[largest]] < 2 and not _is_unlike(tree, int(places[largest]), places):
                once.append(Interruption(int(places[largest]), round(float(excess[largest])), 1))
    component = tree.component[samples.node]
    hits = Counter(int(component[one.place]) for one in once)
    once = [one for one in once if hits[int(component[one.place])] == 1]
    return Outliers(sorted(marked, key=lambda one: one.place), sorted(once, key=lambda one: one.place))


def _is_periodic(samples: Samples, places: NDArray[np.intp]) -> bool:
    """Whether sampled invocations recur periodically in one run, counted by the calls in between, with few left out.

    Slow calls may be so long that others take the CPU from all of them; then a mark tells nothing. Four calls at random
    pass for periodic once in several hundred times.
    """
    for run in {samples.run[place] for place in places}:
        gaps = np.diff(np.sort([samples.sequence[place] for place in places if samples.run[place] == run]))
        if len(gaps) + 1 < MIN_PERIODIC or (period := gaps.min()) < MIN_PERIOD:
            continue
        periods = gaps / period
        off_beat = np.abs(periods - np.round(periods)).max()
        if periods.max() <= MAX_PERIODS and off_beat <= PERIOD_TOLERANCE:
            return True
    return False


def _is_unlike(tree: CallTree, place: int, others: NDArray[np.intp]) -> bool:
    """Whether a feature of an invocation lies outside those of all others of its context: its cost may follow that."""
    assert tree.samples is not None
    others = others[others != place]
    for values in tree.samples.features.values():
        if np.isnan(values[place]):
            continue
        read = values[others][~np.isnan(values[others])]
        if len(read) and (values[place] > read.max() or values[place] < read.min()):
            return True
    return False


def find_interruptions(tree: CallTree, outliers: Outliers | None = None) -> list[Interruption]:
    """The interruptions among the sampled invocations, in the order of the samples; none if the clock has no noise.

    They take at most ``MAX_SHARE`` of the CPU time: those that are marked, of their function's; a loss without a mark
    may be larger than its function's steady cost, so there the whole program's is what counts.
    """
    outliers = outliers or find_outliers(tree)
    if tree.samples is None or not (outliers.marked or outliers.once):
        return []
    sum_x, component = tree.moments[CPU.name].sum_x, tree.component[tree.samples.node]
    total = {
        one: sum(sum_x[tree.component == one].tolist()) for one in {int(component[o.place]) for o in outliers.marked}
    }
    lost: Counter[int] = Counter()
    for one in outliers.marked:
        lost[int(component[one.place])] += one.excess * one.times
    program = sum(sum_x[tree.parent == 0].tolist())
    marked = [one for one in outliers.marked if lost[of := int(component[one.place])] <= MAX_SHARE * total[of]]
    once = [one for one in outliers.once if one.excess <= MAX_SHARE * program]
    return sorted([*marked, *once], key=lambda one: one.place)


def whole_weights(weight: Floats) -> list[int]:
    """Round weights (n,) of at least 1 to whole numbers with the same sum: five of 1.6 stand for eight invocations.

    Remainders are carried to the following weights: the first outliers are the longest, and one of them too many would
    outweigh all that stays.
    """
    total = np.floor(np.cumsum(weight) + 1e-9)
    return [max(int(times), 1) for times in np.diff(total, prepend=0.0)]


def remove_interruptions(tree: CallTree, outliers: Outliers | None = None) -> CallTree:
    """The tree without interruptions in its CPU time, with a note that lists them; the same tree if there are none.

    An interruption of e ns is part of the cost of the invocation that it hits and of all invocations that enclose it.
    Sums of squares need the costs of those: as a rule they are sampled, because the interruption makes them long. The
    mean stands for the cost of an enclosing invocation that was not sampled.
    """
    interruptions = find_interruptions(tree, outliers)
    if not interruptions:
        return tree
    removal = _Removal(tree)
    for interruption in interruptions:
        removal.remove(interruption)
    return removal.result((*tree.notes, _note(tree, interruptions)))


def _note(tree: CallTree, interruptions: Sequence[Interruption]) -> str:
    """What was left out: how often, for how long, and of which functions."""
    assert tree.samples is not None
    times, spent = Counter[str](), Counter[str]()
    for one in interruptions:
        name = tree.components[tree.component[tree.samples.node[one.place]]].name
        times[name] += one.times
        spent[name] += one.excess * one.times
    listed = [f"{name} {times[name]} of {lost / 1e6:.3g} ms" for name, lost in spent.most_common(MAX_LISTED)]
    if len(spent) > MAX_LISTED:
        listed.append(f"{len(spent) - MAX_LISTED} more functions")
    whole = f"{sum(times.values())} interruptions of {sum(spent.values()) / 1e6:.3g} ms"
    return f"CPU time leaves out {whole} (--keep-outliers keeps them): {', '.join(listed)}"


@dataclass(slots=True)
class _OpenCall:
    """An invocation that was open when the interruption came."""

    node: int
    """Its calling context."""
    place: int | None
    """Its place among the samples; None if it was not sampled."""
    cost: float
    """Its CPU time, ns."""


def happened_once(tree: CallTree, outliers: Outliers) -> Floats:
    """(S,) CPU time within each sampled invocation by which a function exceeded all its other calls a single time, ns.

    What happened once is part of the cost, and no pattern. What is left out as an interruption is not in it.
    """
    if tree.samples is None:
        return np.zeros(0)
    cost = np.zeros(len(tree.samples.cpu))
    removed = {one.place for one in find_interruptions(tree, outliers)}
    for one in outliers.once:
        if one.place not in removed:
            cost[one.place] = one.excess
    return within_enclosing(tree, cost)


def within_enclosing(tree: CallTree, cost: Floats) -> Floats:
    """(S,) the parts ``cost`` (S,) of the own costs of sampled invocations, added up over all that each of them encloses."""
    result, enclosing = np.zeros(len(cost)), EnclosingCalls(tree)
    for one in np.flatnonzero(cost).tolist():
        for _, place in enclosing.of(one):
            if place is not None:
                result[place] += cost[one]
    return result


class _Removal:
    """Copies of a tree's sums and samples, changed while interruptions are removed."""

    def __init__(self, tree: CallTree) -> None:
        assert tree.samples is not None
        self.tree, self.samples = tree, tree.samples
        self.parent: list[int] = tree.parent.tolist()
        moments = tree.moments[CPU.name]
        self.n: list[int] = moments.n.tolist()
        self.x: list[int] = moments.sum_x.tolist()
        self.xx: list[int] = moments.sum_xx.tolist()
        self.cpu, self.y_cpu = tree.samples.cpu.copy(), tree.samples.y_cpu.copy()
        self.sums = _PairAndLinkSums(tree) if tree.metric.name == CPU.name else None
        """Sums of pairs and links if they are of CPU time."""
        self.rows = Places(tree.samples.of, len(tree.samples.x))
        """Rows of the callees of sampled invocations."""
        self.enclosing = EnclosingCalls(tree)

    def remove(self, interruption: Interruption) -> None:
        """Remove an interruption from the invocation that it hit and from all that enclose it."""
        # The invocations that were open, from the outermost to the one that was hit.
        path = []
        for node, place in self.enclosing.of(interruption.place):
            mean = self.x[node] / self.n[node] if self.n[node] else 0.0
            cost = mean + interruption.excess if place is None else float(self.cpu[place])
            path.append(_OpenCall(node, place, cost))
        if self.sums:
            for depth in range(len(path)):
                self._remove_from_sums(self.sums, path[depth:], interruption)
        e, times = interruption.excess, interruption.times
        for call, inner in zip(path, [*path[1:], None], strict=True):
            self.x[call.node] -= e * times
            self.xx[call.node] += (e * e - 2 * e * round(call.cost)) * times
            if call.place is not None:
                self.cpu[call.place] -= e
                row = self._callee_row(call, inner) if inner else None
                if row is not None:
                    self.y_cpu[row] -= e

    def _callee_row(self, call: _OpenCall, callee: _OpenCall) -> int | None:
        """Row of the samples with the cost of a callee in an invocation; None if there is none."""
        if call.place is None:
            return None
        rows = self.rows.of([call.place]).tolist()
        return next((row for row in rows if self.samples.callee[row] == callee.node), None)

    def _remove_from_sums(self, sums: _PairAndLinkSums, path: Sequence[_OpenCall], interruption: Interruption) -> None:
        """Remove an interruption from the products of parts, and from the descendants, of the first call of a path."""
        call, deeper = path[0], path[1:]
        parts: dict[int, float] = {}  # what each part of the invocation cost; empty if it was not sampled
        if call.place is not None:
            rows = self.rows.of([call.place]).tolist()
            parts = {int(self.samples.callee[row]): float(self.y_cpu[row]) for row in rows}
            parts[LOCAL] = call.cost - sum(parts.values())
        sums.remove_from_pairs(call.node, deeper[0].node if deeper else LOCAL, parts, interruption)
        if self.n[call.node] < MIN_CALLS:  # contexts of so few invocations are not explained
            return
        costs: dict[int, _DescendantCost] = {}
        repeated = False
        for above, inner in zip(path, deeper, strict=False):
            row = self._callee_row(above, inner)
            cost = inner.cost if row is None else float(self.y_cpu[row])
            calls = 1 if row is None else int(self.samples.k[row])
            # If a call in between was repeated, the descendant's cost in the other repetitions is unknown.
            costs[inner.node] = _DescendantCost(cost, calls, row is not None and not repeated)
            repeated |= row is None or calls > 1
        for node, row in sums.links_of[call.node]:
            if node in costs:
                sums.remove_from_descendant(row, call.cost, costs[node], interruption)
            else:
                direct = self.parent[node] == call.node and call.place is not None
                descendant_cost = parts.get(node, 0.0) if direct else None
                sums.remove_from_ancestor(row, self.n[call.node], descendant_cost, interruption)

    def result(self, notes: tuple[str, ...]) -> CallTree:
        """The tree with the sums and samples that are left."""
        n = self.tree.moments[CPU.name].n
        cpu_moments = NodeMoments(n, _objects(self.x), _objects(self.xx))
        moments = {**self.tree.moments, CPU.name: cpu_moments}
        samples = replace(self.samples, cpu=self.cpu, y_cpu=self.y_cpu)
        if self.sums is None:
            return replace(self.tree, moments=moments, samples=samples, notes=notes)
        samples = replace(samples, x=self.cpu, y=self.y_cpu)
        self.sums.derive_guessed(self.parent, [Stats(*row) for row in zip(self.n, self.x, self.xx, strict=True)])
        pairs, links = self.sums.result()
        return replace(self.tree, moments=moments, samples=samples, notes=notes, pairs=pairs, links=links)


@dataclass(frozen=True, slots=True)
class _DescendantCost:
    """What a descendant did in an invocation of an ancestor, the interruption included."""

    cost: float
    """CPU time, ns."""
    calls: int
    """Number of calls."""
    exact: bool
    """Whether both are known, and not guessed."""


class _PairAndLinkSums:
    """Sums of pairs and links, changed while interruptions are removed."""

    def __init__(self, tree: CallTree) -> None:
        pairs, links = tree.pairs, tree.links
        self.pairs, self.links = pairs, links
        self.pair_rows: list[dict[int, dict[int, int]]] = [{} for _ in tree.parent]
        """Node → part → other part → row of the pair."""
        self.pair_yy: list[int] = pairs.sum_yy.tolist()
        for row, (node, i, j) in enumerate(zip(pairs.node.tolist(), pairs.i.tolist(), pairs.j.tolist(), strict=True)):
            self.pair_rows[node].setdefault(i, {})[j] = self.pair_rows[node].setdefault(j, {})[i] = row
        ends = zip(links.ancestor.tolist(), links.descendant.tolist(), strict=True)
        self.link_rows = {pair: row for row, pair in enumerate(ends)}
        self.ky: list[int] = links.sum_ky.tolist()
        self.y: list[int] = links.sum_y.tolist()
        self.yy: list[int] = links.sum_yy.tolist()
        self.yx: list[int] = links.sum_yx.tolist()
        self.links_of: list[list[tuple[int, int]]] = [[] for _ in tree.parent]
        """Ancestor → descendant and row of each of its links."""
        for (ancestor, descendant), row in self.link_rows.items():
            self.links_of[ancestor].append((descendant, row))
        self.guessed: dict[int, float] = {}
        """Row of a link → Σe² of the interruptions for which its Y was guessed."""

    def remove_from_pairs(self, node: int, hit: int, parts: dict[int, float], interruption: Interruption) -> None:
        """Subtract an interruption of the part ``hit`` from its products; ``parts`` are the costs of all parts."""
        e = interruption.excess
        for other, row in self.pair_rows[node].get(hit, {}).items():
            cost = round(parts.get(other, 0.0 if other != hit else float(e)))
            change = e * e - 2 * e * cost if other == hit else -e * cost
            self.pair_yy[row] += change * interruption.times

    def remove_from_descendant(
        self, row: int, ancestor_cost: float, descendant: _DescendantCost, interruption: Interruption
    ) -> None:
        """Subtract an interruption of the descendant, which is part of both Y and X of the link."""
        e, times, y, x = interruption.excess, interruption.times, round(descendant.cost), round(ancestor_cost)
        self.ky[row] -= e * descendant.calls * times
        self.y[row] -= e * times
        self.yy[row] += (e * e - 2 * e * y) * times
        self.yx[row] += (e * e - e * (x + y)) * times
        if not descendant.exact:
            self.guessed[row] = self.guessed.get(row, 0.0) + float(e * e) * times

    def remove_from_ancestor(self, row: int, n: int, descendant_cost: float | None, interruption: Interruption) -> None:
        """Subtract an interruption of the ancestor from ΣYX; an unknown descendant cost is guessed to be its mean."""
        y = self.y[row] / n if descendant_cost is None else descendant_cost
        self.yx[row] -= round(interruption.excess * y) * interruption.times
        if descendant_cost is None:
            self.guessed[row] = self.guessed.get(row, 0.0) + float(interruption.excess**2) * interruption.times

    def derive_guessed(self, parent: Sequence[int], stats: Sequence[Stats]) -> None:
        """Replace links in which guesses matter: the descendant is given the share that it has within its own parent.

        This is the paper's cascade (§2.2): the variance of a parent is passed up as a whole. A guessed Y is off by its
        own σ, so Cov(Y, X)/(σ_Y·σ_X) is off by e/(N·σ_X). Rows are in an order in which ancestors come first.
        """
        for row in sorted(self.guessed):
            head, inner = int(self.links.ancestor[row]), int(self.links.descendant[row])
            top = parent[inner]
            n_sigma = sqrt(max(stats[head].spread, 0))
            within, above = self.link_rows.get((top, inner)), self.link_rows.get((head, top))
            if sqrt(self.guessed[row]) <= GUESS_TOLERANCE * n_sigma or within is None or above is None:
                continue
            net = own = 0.0
            if stats[top].spread > 0:
                net = self._net(within, stats[top]) / stats[top].spread
                own = self._spread(within, stats[top].n) / stats[top].spread
            head_net, head_own = self._net(above, stats[head]), self._spread(above, stats[head].n)
            self.yx[row] = (round(head_net * net) + self.y[row] * stats[head].x) // stats[head].n
            self.yy[row] = (round(head_own * own) + self.y[row] ** 2) // stats[head].n

    def _net(self, row: int, total: Stats) -> int:
        """N²·Cov(Y, X) of a link."""
        return total.n * self.yx[row] - self.y[row] * total.x

    def _spread(self, row: int, n: int) -> int:
        """N²·Var(Y) of a link."""
        return n * self.yy[row] - self.y[row] ** 2

    def result(self) -> tuple[PairMoments, LinkMoments]:
        """The sums that are left."""
        ky, y, yy, yx = (_objects(sums) for sums in (self.ky, self.y, self.yy, self.yx))
        links = replace(self.links, sum_ky=ky, sum_y=y, sum_yy=yy, sum_yx=yx)
        return replace(self.pairs, sum_yy=_objects(self.pair_yy)), links


def _objects(values: list[int]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
