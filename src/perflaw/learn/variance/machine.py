"""How the machine makes CPU time vary: slow phases, variation common to all code, and cold caches after a switch.

Another thread on the same core, a lower clock frequency or a hypervisor's other guests make all code slower, whatever it
does. Such variation must not be attributed to the functions that happen to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import LOW
from perflaw.learn.variance.moments import ContextWeights, Floats, quantiles_of_groups
from perflaw.special import betainc
from perflaw.types.call_trees import QUEUED, CallTree, NodeMoments, Samples
from perflaw.types.recordings import CPU, EVENTS

MIN_INTERRUPTION_NS: Final = 2000.0
"""Time off the CPU, or lost while on it, from which on an invocation was interrupted."""
MAX_SWITCH_COST_NS: Final = 200_000.0
"""CPU time that it costs an invocation, at most, to be pushed off the CPU: filling the caches again, and the kernel's work."""
MAX_SHORT_CALL_NS: Final = 1e6
"""CPU time up to which a call is shorter than a phase of the machine."""
MIN_OWN_NS: Final = 50.0
"""Own cost below which code tells little about the machine's speed."""
MIN_CALLS: Final = 30
"""Number of sampled calls below which a context is not counted."""
MIN_CONTEXTS: Final = 6
"""Number of contexts from which on they can tell the machine's speed."""


def own_costs(samples: Samples, whole: Floats, parts: Floats) -> Floats:
    """(S,) cost of each sampled invocation outside its callees: ``whole`` (S,) minus ``parts`` (C,)."""
    return np.asarray(whole - np.bincount(samples.of, parts, len(whole)))


def switched_out(samples: Samples) -> NDArray[np.bool_]:
    """(S,) whether others pushed the own code of a sampled invocation off its CPU.

    Recordings without marks tell only that it was off the CPU.
    """
    off = own_costs(samples, samples.time - samples.cpu, samples.y_time - samples.y_cpu)
    return np.asarray(np.minimum(off, samples.marks.get(QUEUED, np.inf)) > MIN_INTERRUPTION_NS)


# ---- Slow phases. A phase is the machine's if the code of most contexts takes longer (or less long) than it usually
# does, all by about the same factor, for several rounds of what the program does. A slow request is no such phase. The
# speed may change every millisecond, by a factor of four.

WINDOW_ROUNDS: Final = 6
"""Length of a window of sampled calls, in rounds: the time between two calls of the rarest context."""
MIN_WINDOW_CALLS: Final = 24
"""Shortest window, in sampled calls."""
WINDOW_STEPS: Final = 4
"""Number of windows that begin within the length of one: windows overlap."""
WINDOW_CALLS: Final = 1 << 16
"""Sampled calls of the windows that are examined at once."""
OUTER_FRACTION: Final = 0.15
"""Fraction of a window's contexts on either side that may differ from the others."""
MAX_FACTOR_RATIO: Final = 3.0
"""Largest ratio of the factors of the contexts in between."""
MAX_SLOWDOWN: Final = 8.0
"""Largest factor by which a machine gets slower or faster."""


def slowdowns(samples: Samples) -> Floats:
    """(S,) how much slower than usual in its run all code was around each sampled invocation; 1 if unknown."""
    result, count = np.ones(len(samples.cpu)), len(samples.cpu)
    runs, run_of = np.unique(np.array(samples.run), return_inverse=True)
    short, run_of_callee = samples.cpu < MAX_SHORT_CALL_NS, run_of[samples.of]
    for run in range(len(runs)):
        here, rows = np.flatnonzero(short & (run_of == run)), np.flatnonzero(run_of_callee == run)
        of, callee = samples.of[rows], samples.callee[rows]
        # Cost of each invocation's own code, relative to the median of its context in this run. Callees that are too
        # short to be timed count as own code: a loop around them costs as much for each call, however many calls there
        # are, so the cost is divided by their number. NaN where own code is too short.
        usual_cost = _medians_by_node(samples, samples.cpu, here)
        timed = (callee < 0) | ~(usual_cost[np.maximum(callee, 0)] < MIN_OWN_NS)
        calls = 1.0 + np.bincount(of[~timed], samples.k[rows][~timed], count)
        own = samples.cpu - np.bincount(of, np.where(timed, samples.y_cpu[rows], 0.0), count)
        usual_own, usual = _medians_by_node(samples, own, here), _medians_by_node(samples, own / calls, here)
        expected = np.where(usual_own >= MIN_OWN_NS, usual, np.nan)[samples.node[here]]
        factor = np.asarray(own[here] / calls[here] / expected)
        known = np.flatnonzero(np.isfinite(factor) & (factor > 0))
        known = known[np.argsort(samples.started[here[known]], kind="stable")]
        times, slowdown = _slowdown_by_window(samples, here[known], factor[known])
        if len(times):
            result[here] = np.exp(np.interp(samples.started[here], times, np.log(slowdown)))
    return result


def _medians_by_node(samples: Samples, cost: Floats, here: NDArray[np.intp]) -> Floats:
    """Median of the known costs (S,) of the invocations ``here`` of each node, at its number; NaN where there are none."""
    known = here[~np.isnan(cost[here])]
    order = known[np.lexsort((cost[known], samples.node[known]))]
    nodes, first = np.unique(samples.node[order], return_index=True)
    last = max(int(samples.node.max(initial=0)), int(samples.callee.max(initial=0)))
    medians = np.full(last + 1, np.nan)
    medians[nodes] = quantiles_of_groups(cost[order], samples.weight[order], first, 0.5)
    return medians


def _slowdown_by_window(samples: Samples, places: NDArray[np.intp], factor: Floats) -> tuple[Floats, Floats]:
    """Median start (ns) of each window of sampled calls, in order, and the machine's slowdown in it; none if too few."""
    nodes, inverse, counts = np.unique(samples.node[places], return_inverse=True, return_counts=True)
    frequent = counts >= MIN_CALLS
    if np.count_nonzero(frequent) < MIN_CONTEXTS:
        return np.zeros(0), np.zeros(0)
    invocations = np.bincount(inverse, samples.weight[places], len(nodes))
    size = max(MIN_WINDOW_CALLS, round(WINDOW_ROUNDS * len(places) / float(invocations[frequent].min())))
    size = min(size, len(places))
    firsts = np.arange(0, len(places) - size + 1, max(size // WINDOW_STEPS, 1))
    times, found = np.empty(len(firsts)), np.empty(len(firsts))
    at_once = max(WINDOW_CALLS // size, 1)
    for begin in range(0, len(firsts), at_once):
        some = slice(begin, begin + at_once)
        windows = firsts[some, None] + np.arange(size)
        times[some] = np.median(samples.started[places[windows]], axis=1)
        found[some] = _agreed_factors(factor[windows], samples.weight[places[windows]], samples.node[places[windows]])
    distinct, kept = np.unique(times, return_index=True)
    return distinct, found[kept]


def _agreed_factors(ratio: Floats, weight: Floats, node: NDArray[np.int64]) -> Floats:
    """The factor (w,) on which the contexts of each window (w, k) agree; 1 as long as they do not agree."""
    window = np.repeat(np.arange(len(ratio)), ratio.shape[1])
    order = np.lexsort((ratio.ravel(), node.ravel(), window))
    window, node = window[order], node.ravel()[order]
    first = np.flatnonzero(np.append(True, (np.diff(window) != 0) | (np.diff(node) != 0)))
    medians, of = quantiles_of_groups(ratio.ravel()[order], weight.ravel()[order], first, 0.5), window[first]
    medians = medians[np.lexsort((medians, of))]
    agreed, contexts = np.ones(len(ratio)), np.bincount(of, minlength=len(ratio))
    begin = np.cumsum(contexts) - contexts
    for count in np.unique(contexts[contexts >= MIN_CONTEXTS]).tolist():
        rows = np.flatnonzero(contexts == count)
        low, median, high = np.quantile(
            medians[begin[rows, None] + np.arange(count)], [OUTER_FRACTION, 0.5, 1 - OUTER_FRACTION], axis=1
        )
        alike = high <= MAX_FACTOR_RATIO * low
        agreed[rows[alike]] = np.clip(median[alike], 1 / MAX_SLOWDOWN, MAX_SLOWDOWN)
    return agreed


# ---- Variation common to all code of about the same length. Where caches, the core's other thread or a hypervisor make
# every third call four times slower, no phase lasts long enough to be seen. But then the code of all functions varies
# about equally, also code that always does the same; and its cost rises and falls together over several rounds of what
# the program does. Neither a slow request nor chance does that.

MAX_LENGTH_RATIO: Final = 4.0
"""Ratio of two mean costs up to which code is of about the same length."""
STEADY_QUANTILE: Final = 0.25
"""The quantile of the contexts' variation that is attributed to the machine; other contexts may vary by themselves."""
MIN_FUNCTIONS: Final = 4
"""Number of functions from which on variation is common to all."""
MAX_EVENTS_SQUARES: Final = 1.0001
"""E[k²]/E[k]² of the events of code that does the same each time, a few calls excepted."""
MIN_LASTING_FRACTION: Final = 0.05
"""Fraction of the variation that must last for rounds in order to be common to different functions."""
LAG_ROUNDS: Final = (2.0, 6.0)
"""Distance, in rounds, of the costs whose covariance is computed."""
MAX_BASES, MAX_LAGS = 20_000, 64
"""Number of samples, and of lags, that suffice for this covariance."""


@dataclass(frozen=True, eq=False)
class SharedVariation:
    """Variation common to all functions, attributed to the machine.

    It is computed from constant contexts: those whose invocations always have the same number of events.
    """

    tree: CallTree
    """The call tree; it must have samples."""
    weights: ContextWeights
    """Weights of its samples."""
    quiet: NDArray[np.bool_]
    """(S,) sampled invocations that nothing disturbed."""

    def squares(self, mean: float, quiet: bool = False) -> float:
        """E[x²]/E[x]² of code of mean cost ``mean`` (ns) that always does the same; 1 if unknown.

        If no contexts of that length are known, only what lasts for rounds counts. ``quiet``: of invocations that
        nothing disturbed.
        """
        cost = self._costs
        near = int(np.searchsorted(cost, mean / MAX_LENGTH_RATIO))
        shorter = int(np.searchsorted(cost, mean * MAX_LENGTH_RATIO, side="right"))
        any_length = self._steady(0, shorter, quiet)
        if any_length == 1 or self._lasting < MIN_LASTING_FRACTION * (any_length - 1):
            return 1.0
        return max(self._steady(near, shorter, quiet), 1 + self._lasting)

    def _steady(self, first: int, end: int, quiet: bool) -> float:
        """E[x²]/E[x]² of the steadier ones of the constant contexts from a place of their order to another.

        It is 1 if there are too few contexts or functions.
        """
        known = self._known.get((first, end, quiet))
        if known is not None:
            return known
        steady, those = 1.0, slice(first, end)
        if end - first >= MIN_CONTEXTS and len(np.unique(self._function[those])) >= MIN_FUNCTIONS:
            steady = float(np.quantile(self._squares[quiet][those], STEADY_QUANTILE))
        self._known[first, end, quiet] = steady
        return steady

    @cached_property
    def _known(self) -> dict[tuple[int, int, bool], float]:
        """What :meth:`_steady` said: functions are many, and their lengths fall between the same contexts."""
        return {}

    @cached_property
    def _function(self) -> NDArray[np.int64]:
        """Functions of the constant contexts, in their order."""
        return self.tree.component[self._constant][self._order]

    @cached_property
    def _squares(self) -> tuple[Floats, Floats]:
        """E[x²]/E[x]² of the constant contexts, in their order: of all invocations, and of those that nothing disturbed."""
        return self._all_squares[self._constant][self._order], self._quiet_squares[self._order]

    @cached_property
    def _all_squares(self) -> Floats:
        """(V,) E[x²]/E[x]² of each context."""
        return _mean_and_squares(self.tree.moments[CPU.name])[1]

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Places of the constant contexts among themselves, cheapest first."""
        cost = _mean_and_squares(self.tree.moments[CPU.name])[0]
        return np.argsort(cost[self._constant], kind="stable")

    @cached_property
    def _costs(self) -> Floats:
        """Mean costs of the constant contexts, ascending."""
        return _mean_and_squares(self.tree.moments[CPU.name])[0][self._constant][self._order]

    @cached_property
    def _constant(self) -> NDArray[np.bool_]:
        """(V,) the constant contexts that are called often enough and long enough."""
        events, (mean, squares) = self.tree.moments.get(EVENTS.name), _mean_and_squares(self.tree.moments[CPU.name])
        if events is None:
            return np.zeros(len(mean), np.bool_)
        sound = squares >= 1  # after interruptions are removed, sums are guesses in part
        same_events = _mean_and_squares(events)[1] <= MAX_EVENTS_SQUARES
        return np.asarray((events.n >= MIN_CALLS) & same_events & (mean >= MIN_OWN_NS) & sound)

    @cached_property
    def _quiet_squares(self) -> Floats:
        """E[x²]/E[x]² of each constant context over its undisturbed invocations, estimated from samples."""
        samples, nodes = self.tree.samples, len(self.tree.parent)
        assert samples is not None
        node = np.concatenate([samples.node[self.quiet], self.weights.node])
        x = np.concatenate([samples.cpu[self.quiet], self.weights.value])
        weight = np.concatenate([self.weights.weight[self.quiet], self.weights.count])
        n, total, squares = (np.bincount(node, weight * x**power, nodes) for power in (0, 1, 2))
        ratio: Floats = np.divide(n * squares, total**2, out=np.ones(nodes), where=total > 0)
        return ratio[self._constant]

    @cached_property
    def _lasting(self) -> float:
        """Covariance of the relative costs of different functions some rounds apart.

        It equals Var(s)/E[s]² of a factor s of the machine that lasts that long.
        """
        samples = self.tree.samples
        assert samples is not None
        runs = np.array(samples.run)
        places = np.flatnonzero(self.quiet & (samples.cpu < MAX_SHORT_CALL_NS) & self._constant[samples.node])
        places = places[np.lexsort((samples.started[places], runs[places]))]
        node, started, weight = samples.node[places], samples.started[places], self.weights.weight[places]
        run, function = np.unique(runs[places], return_inverse=True)[1], self.tree.component[node]
        # Deviations relative to the mean of the context, and weights that give each context the same influence.
        context, x = np.unique(node, return_inverse=True)[1], samples.cpu[places]
        calls = np.bincount(context, weight)
        share = weight / calls[context]
        deviation = x / np.maximum(np.bincount(context, share * x), 1)[context] - 1
        # A round is the time (ns) in which the rarest context is called once.
        span = sum(float(np.ptp(started[run == each])) for each in np.unique(run))
        round_ns = max(span / float(calls.min()), 1.0) if len(calls) else 1.0
        base = np.arange(0, len(places), max(1, len(places) // MAX_BASES))
        lags: set[int] = set()  # distances, in samples, that cover LAG_ROUNDS
        if len(places) > 1:
            gap = max(float(np.median(np.diff(started))), 1.0)
            longest = int(min(LAG_ROUNDS[1] * round_ns / gap * 2, len(places) - 1))
            lags = {int(lag) for lag in np.linspace(1, max(longest, 1), MAX_LAGS)}

        covariance = total_share = 0.0
        for lag in sorted(lags):
            here = base[base + lag < len(places)]
            there = here + lag
            apart = (started[there] - started[here]) / round_ns
            pairs = (apart >= LAG_ROUNDS[0]) & (apart <= LAG_ROUNDS[1]) & (run[here] == run[there])
            pairs &= function[here] != function[there]
            product = share[here[pairs]] * share[there[pairs]]
            covariance += float(product @ (deviation[here[pairs]] * deviation[there[pairs]]))
            total_share += float(product.sum())
        return covariance / total_share if total_share else 0.0


def _mean_and_squares(sums: NodeMoments) -> tuple[Floats, Floats]:
    """(V,) means, and (V,) E[x²]/E[x]² (0 where the cost is 0)."""
    n = np.maximum(sums.n.astype(float), 1)
    mean = sums.sum_x.astype(float) / n
    return mean, np.divide(sums.sum_xx.astype(float) / n, mean**2, out=np.zeros_like(mean), where=mean > 0)


MIN_TIME_RATIO: Final = 1 / 3
"""CPU time of other functions, in parts of a function's own, from which on they tell how often the machine loses time."""
MAX_LOST_SHARE: Final = 0.1
"""Share of its CPU time that a function may lose; where it seems to lose more, that is its own work."""
MIN_CHANCE: Final = LOW
"""Chance from which on so many losses of that size, or larger ones, may be the machine's."""


def chance_losses(tree: CallTree, weights: ContextWeights, disturbed: NDArray[np.bool_]) -> Floats:
    """(S,) ns of the own cost of each sampled invocation that the machine may have lost.

    Interrupts, switches, and hypervisors that take the CPU unseen hit all code alike: as often in each ns, and for as long.
    So what may hit a function is told by the others: by how many invocations of them lose that much in a ns of their own
    code. That a switch marks a call does not say that it cost all of the excess: long calls are switched out more often,
    for they meet more interrupts, and where their clock is read. A loss lasts at most ``MAX_SWITCH_COST_NS``; what takes
    longer is work. Where no other function runs long enough to tell, what switches may cost is lost, and as much beside as
    the recorder saw the machine take from a loop of its own.
    """
    samples, moments = tree.samples, tree.moments[CPU.name]
    assert samples is not None
    own = own_costs(samples, samples.cpu, samples.y_cpu)
    usual = _medians_by_node(samples, own, np.arange(len(own)))
    excess = own - usual[samples.node]
    lost = (excess > MIN_INTERRUPTION_NS) & (excess <= MAX_SWITCH_COST_NS)
    own_time = moments.sum_x.astype(np.float64)
    inside = tree.parent > 0
    np.subtract.at(own_time, tree.parent[inside], moments.sum_x[inside].astype(np.float64))
    frequent, count = (moments.n >= MIN_CALLS) & (tree.component >= 0), len(tree.components)
    time = np.bincount(tree.component[frequent], np.maximum(own_time[frequent], 0), count)
    component = tree.component[samples.node]
    # What exceeds the share is a function's own work. Where it was switched out too, it also loses time: the least losses.
    pushed = np.bincount(component[disturbed], minlength=count) > 0
    rank = np.lexsort((excess, component))
    so_far = np.cumsum(np.where(lost[rank], weights.weight[rank] * excess[rank], 0.0))
    first = np.searchsorted(component[rank], np.arange(count))
    before = np.append(0.0, so_far)[first]
    telling = lost.copy()
    telling[rank] &= ~pushed[component[rank]] | (
        so_far - before[component[rank]] < MAX_LOST_SHARE * time[component[rank]]
    )
    squares, spent = (
        np.bincount(component[telling], weights.weight[telling] * excess[telling] ** power, count) for power in (2, 1)
    )
    rate = np.divide(squares, time, out=np.zeros(count), where=time > 0)
    result, tells = np.zeros(len(own)), (time > 0) & (spent < MAX_LOST_SHARE * time)
    functions: list[_Losses] = []
    of_functions: list[NDArray[np.intp]] = []
    for one in np.flatnonzero(time > 0).tolist():
        others = np.flatnonzero(tells & (np.arange(count) != one) & (time >= MIN_TIME_RATIO * time[one]))
        mine = np.flatnonzero(lost & (component == one))
        if len(others):
            # Of other functions some are slow by themselves at times: those that lose least tell, down to the lower median.
            others = others[np.argsort(rate[others], kind="stable")[: (len(others) + 1) // 2]]
            theirs = np.flatnonzero(telling & np.isin(component, others))
            losses, number, watched = excess[theirs], weights.weight[theirs], float(time[others].sum())
        else:
            here = np.flatnonzero((component == one) & ~np.isnan(own))
            usual_own = without_switches(own[here], weights.weight[here], disturbed[here], MAX_SWITCH_COST_NS)
            result[here] = own[here] - usual_own
            if tree.losses is None:
                continue
            mine = mine[~disturbed[mine]]
            losses = np.array([each for each in tree.losses.losses_ns if each <= MAX_SWITCH_COST_NS], np.float64)
            number, watched = np.ones(len(losses)), tree.losses.watched_ns
        if len(mine):
            mine = mine[np.argsort(-excess[mine], kind="stable")]
            largest = np.argsort(-losses, kind="stable")
            functions.append(
                _Losses(
                    np.cumsum(weights.weight[mine]),
                    np.cumsum(number[largest]),
                    losses[largest],
                    time[one] / (time[one] + watched),
                )
            )
            of_functions.append(mine)
    for mine, allowed in zip(of_functions, _allowed_losses(functions), strict=True):
        result[mine] = np.minimum(excess[mine], allowed)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Losses:
    """The losses of a function and of others, the largest first."""

    mine: Floats
    """(M,) number of the function's losses that are as large as each of them, or larger."""
    theirs: Floats
    """(T,) the same of the other functions."""
    sizes: Floats
    """(T,) the losses of the other functions, ns."""
    share: float
    """The function's share of the time of all."""


def _allowed_losses(functions: Sequence[_Losses]) -> list[Floats]:
    """(M,) of each function: how large its losses may be by chance.

    If losses come at random, each of them hits a function with the chance that is its share of the time; so where the others
    have N (and half a one more, which is Jeffreys' prior of a rate), it has M and more with the chance I_share(M, N + 1/2).

    >>> _allowed_losses([_Losses(np.arange(1.0, 7.0), np.array([1.0, 2.0]), np.array([9e3, 5e3]), 0.5)])
    [array([200000., 200000., 200000.,   9000.,   9000.,   9000.])]
    """
    if not functions:
        return []
    others = np.concatenate([np.append(0.0, one.theirs) + 0.5 for one in functions])
    sizes = np.concatenate([np.append(MAX_SWITCH_COST_NS, one.sizes) for one in functions])
    mine, length = np.concatenate([one.mine for one in functions]), [len(one.mine) for one in functions]
    number = np.array([len(one.theirs) + 1 for one in functions])
    beyond, share = np.repeat(np.cumsum(number), length), np.repeat([one.share for one in functions], length)
    # The more losses the others have, the likelier it is: the first number at which it is possible is found by halving.
    first, end = np.repeat(np.cumsum(number) - number, length), beyond.copy()
    while (left := np.flatnonzero(first < end)).size:
        middle = (first[left] + end[left]) // 2
        possible = betainc(mine[left], others[middle], share[left]) >= MIN_CHANCE
        end[left], first[left] = np.where(possible, middle, end[left]), np.where(possible, first[left], middle + 1)
    allowed = np.where(first < beyond, sizes[np.minimum(first, beyond - 1)], 0.0)
    return np.split(allowed, np.cumsum(length)[:-1])


MAX_COLD_NS: Final = 10_000.0
"""CPU time that cold caches cost a short call, at most."""
COLD_CACHE_NS: Final = 50_000
"""How long caches may be cold after a switch."""


def disturbed(samples: Samples) -> NDArray[np.bool_]:
    """(S,) whether a switch made a sampled invocation slower: it was switched out, or began soon after a short call that was.

    After a switch caches are cold: the calls that follow take more CPU time, whatever they do.
    """
    off_cpu, short = samples.time - samples.cpu, samples.cpu < MAX_SHORT_CALL_NS
    switched = np.flatnonzero((off_cpu > MIN_INTERRUPTION_NS) & short)
    result = np.zeros(len(off_cpu), np.bool_)
    result[switched] = True
    runs = np.array(samples.run)
    for run in np.unique(runs[switched]):
        causes = switched[runs[switched] == run]
        begin = np.sort(samples.started[causes])
        end = np.maximum.accumulate((samples.started + samples.time)[causes[np.argsort(samples.started[causes])]])
        here = np.flatnonzero((runs == run) & short)
        last = np.searchsorted(begin, samples.started[here], side="right") - 1
        result[here] |= (last >= 0) & (samples.started[here] <= end[np.maximum(last, 0)] + COLD_CACHE_NS)
    return result


def without_switches(x: Floats, weight: Floats, disturbed: NDArray[np.bool_], most_ns: float) -> Floats:
    """Costs (n,) as they would be without switches: those of disturbed invocations are as the others' of the same rank.

    A tenth of them may be slow if a tenth of the others is. A switch costs them ``most_ns`` at most.
    """
    after, quiet = np.flatnonzero(disturbed), np.flatnonzero(~disturbed)
    if not len(after) or not len(quiet):
        return x
    after, quiet = after[np.argsort(x[after], kind="stable")], quiet[np.argsort(x[quiet], kind="stable")]
    rank = (np.cumsum(weight[after]) - weight[after] / 2) / weight[after].sum()
    total = np.cumsum(weight[quiet])
    usual = x[quiet[np.minimum(np.searchsorted(total, rank * total[-1]), len(quiet) - 1)]]
    result = x.copy()
    result[after] -= np.clip(x[after] - usual, 0, most_ns)
    return result
