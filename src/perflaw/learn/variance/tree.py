"""A call tree as the learner of variance walks it, and whether the cost of its nodes is of high variance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perflaw.learn.variance.interruptions import within_enclosing
from perflaw.learn.variance.machine import (
    MAX_COLD_NS,
    SharedVariation,
    chance_losses,
    disturbed,
    slowdowns,
    without_switches,
)
from perflaw.learn.variance.moments import Floats, Link, Stats, context_weights
from perflaw.learn.variance.places import Places
from perflaw.types.call_trees import OTHER, CallTree, Samples
from perflaw.types.recordings import CPU
from perflaw.types.variance import Step


@dataclass(frozen=True, slots=True)
class Options:
    """The thresholds, under the paper's names."""

    high: float = 0.4
    """Coefficient of variation from which on a cost is of high variance (§2.1)."""
    theta: float = 0.10
    """Share of the variance from which on a part is significant."""
    pressure: float = 0.4
    """Summarization pressure τ_S: the merge cost up to which patterns merge (§4)."""
    trim: float = 0.1
    """β: vertices with less than this fraction of the largest VIM are left out (§4)."""
    least: int = 30
    """Number of invocations from which on a node gets a label."""
    paper: bool = False
    """Whether to use the paper's own choices where ours differ."""
    keep_outliers: bool = False
    """Whether interruptions stay in CPU time, and what happened once counts like everything else."""
    probabilities: tuple[float, ...] = (0.25, 0.04, 0.01)
    """Probabilities for which the deadline that is exceeded is computed."""


class Tree:
    """Read-only views of a call tree, made once for an analysis."""

    def __init__(self, tree: CallTree, once: Floats | None = None, keep_losses: bool = False) -> None:
        """``once`` (S,): CPU time in each sampled invocation that is no pattern, because it happened once; 0 by default.

        With ``keep_losses`` nothing is taken for time that the machine lost.
        """
        moments, links, pairs = tree.moments[tree.metric.name], tree.links, tree.pairs
        self.call_tree = tree
        self.parent: list[int] = tree.parent.tolist()
        self.component: list[int] = tree.component.tolist()
        self.site: list[int] = tree.site.tolist()
        self.line: list[int] = tree.site_line.tolist()
        self.size = len(self.parent)
        sums = zip(moments.n.tolist(), moments.sum_x.tolist(), moments.sum_xx.tolist(), strict=True)
        self.stats = [Stats(*row) for row in sums]
        self.children: list[list[int]] = [[] for _ in self.parent]
        for node, above in enumerate(self.parent):
            if above >= 0:
                self.children[above].append(node)
        self.links: list[dict[int, Link]] = [{} for _ in self.parent]
        """Ancestor → descendant → sums."""
        columns = (getattr(links, name).tolist() for name in links.__slots__)
        for ancestor, descendant, *row in zip(*columns, strict=True):
            self.links[ancestor][descendant] = Link(*row)
        self.pairs: list[dict[tuple[int, int], int]] = [{} for _ in self.parent]
        """Node → two parts of its invocations → ΣY_i·Y_j."""
        columns = (getattr(pairs, name).tolist() for name in pairs.__slots__)
        for node, i, j, total in zip(*columns, strict=True):
            self.pairs[node][i, j] = total
        self.folded = {node for node, found in enumerate(self.pairs) if (OTHER, OTHER) in found}
        """Nodes some of whose pairs were put together: a missing pair is unknown there, and not 0."""
        self.noise = tree.clock_noise if tree.metric.unit == "ns" else 0.0
        """Noise of the clock that σ must exceed."""
        samples = tree.samples if self.noise else None
        self.once = np.zeros(len(samples.cpu) if samples else 0) if once is None or not samples else once
        """(S,) CPU time in each sampled invocation that happened once; empty for metrics without noise."""
        self.disturbed = disturbed(samples) if samples else np.zeros(0, np.bool_)
        """(S,) sampled invocations that a switch made slower; empty for metrics without noise."""
        self.slowdown = slowdowns(samples) if samples else np.zeros(0)
        """(S,) how much slower than usual the machine was around them; empty for metrics without noise."""
        self.weights = context_weights(tree) if samples else None
        """Weights of the samples by context; None for metrics without noise."""
        self.shared_variation = SharedVariation(tree, self.weights, ~self.disturbed) if self.weights else None
        """Variation common to all functions, attributed to the machine; None for metrics without noise."""
        self.losses = np.zeros(len(self.once))
        if self.weights and tree.metric.name == CPU.name and not keep_losses:
            losses = chance_losses(tree, self.weights, self.disturbed)
            self.losses = within_enclosing(tree, np.where(self.once > 0, 0.0, losses))
        """(S,) CPU time in each sampled invocation that the machine may have lost; empty for metrics without noise."""
        self.rank = [0] * self.size
        """Place of each node in the order of call paths by names, files and sites, which no numbering changes."""
        names = [(one.name, one.file, one.line) for one in tree.components]
        order = [0]
        for node in order:
            order.extend(
                sorted(self.children[node], key=lambda child: (*names[self.component[child]], self.site[child]))
            )
        for place, node in enumerate(order):
            self.rank[node] = place

    @cached_property
    def features(self) -> Mapping[int, Mapping[str, Floats]]:
        """Function by its number → feature → (S,) values, for all that was read in any of its sampled invocations."""
        found: dict[int, dict[str, Floats]] = {}
        samples = self.call_tree.samples
        if samples is not None:
            component = self.call_tree.component[samples.node]
            for name, values in sorted(samples.features.items()):
                for one in np.unique(component[~np.isnan(values)]).tolist():
                    found.setdefault(one, {})[name] = values
        return found

    @cached_property
    def sampled(self) -> Places:
        """Places of the sampled invocations of nodes."""
        samples = self.call_tree.samples
        return Places(samples.node if samples else np.zeros(0, np.int64), self.size)

    @cached_property
    def callees(self) -> Places:
        """Places of the callees of sampled invocations, by the place of the invocation."""
        samples = self.call_tree.samples
        return Places(samples.of, len(samples.x)) if samples else Places(np.zeros(0, np.int64), 0)

    @cached_property
    def unsampled(self) -> Places:
        """Places of nodes among the weights of what is known without a sample."""
        return Places(self.weights.node if self.weights else np.zeros(0, np.int64), self.size)

    def key(self, node: int) -> tuple[int, int]:
        """Call site and function, which distinguish a node from others below the same parent."""
        return self.site[node], self.component[node]

    def product(self, node: int, i: int, j: int) -> int | None:
        """ΣY_i·Y_j over the invocations of a node; None if it was not kept."""
        found = self.pairs[node].get((i, j) if i <= j else (j, i))
        return found if found is not None or node in self.folded else 0

    def total(self, nodes: Iterable[int]) -> Stats:
        """Moments of the invocations of several nodes."""
        return sum((self.stats[node] for node in nodes), Stats(0, 0, 0))

    def contexts(self, component: int) -> list[int]:
        """Nodes of a function, given by its number, that have completed invocations."""
        return [node for node in range(1, self.size) if self.component[node] == component and self.stats[node].n]

    def path(self, node: int, above: int = 0) -> tuple[int, ...]:
        """Nodes on the way from an ancestor (the root), itself left out, down to a node."""
        found = []
        while node > 0 and node != above:
            found.append(node)
            node = self.parent[node]
        return tuple(reversed(found))

    def steps(self, nodes: Iterable[int]) -> tuple[Step, ...]:
        """The calls that lead to each of these nodes."""
        found = []
        for node in nodes:
            caller, callee = self.component[self.parent[node]], self.component[node]
            found.append(Step(self.name(caller), self.line[node], self.site[node], self.name(callee)))
        return tuple(found)

    def name(self, component: int) -> str:
        """Name of a function by its number; empty for what is outside any."""
        return self.call_tree.components[component].name if component >= 0 else ""


def is_high(tree: Tree, heads: Sequence[int], stats: Stats, options: Options, with_tracing: bool = True) -> bool:
    """Whether the invocations of some nodes, whose moments are ``stats``, are of high variance (§2.1).

    On a busy machine lost time, cold caches after switches and slow phases make CPU time vary highly by themselves. So a
    high variance of CPU time must remain without what the machine may have lost, without what cold caches cost, without
    what happened once, and after division by the machine's speed, and must exceed the noise of the clock and the variation of
    all other code of that length. ``with_tracing``: it must also exceed what the tracer's own time may vary.
    """
    if stats.n < options.least or not stats.is_high(options.high, tree.noise):
        return False
    samples, weights, shared = tree.call_tree.samples, tree.weights, tree.shared_variation
    if tree.call_tree.metric.name != CPU.name or samples is None or weights is None or shared is None:
        return True
    bound = 1 + options.high**2
    mean = max(stats.x / stats.n, 1.0)
    if stats.xx / stats.n / mean**2 / shared.squares(mean) < bound:
        return False
    here, unsampled = tree.sampled.of(heads), tree.unsampled.of(heads)
    x = np.concatenate([samples.x[here] - tree.once[here] - tree.losses[here], weights.value[unsampled]])
    weight = np.concatenate([weights.weight[here], weights.count[unsampled]])
    if not len(x) or (len(x) < options.least and not weights.complete):
        return True
    after_switch = np.append(tree.disturbed[here], np.zeros(len(x) - len(here), np.bool_))
    x = without_switches(x, weight, after_switch, MAX_COLD_NS)
    deviation = x - weight @ x / weight.sum()
    if weight @ (deviation * deviation) / weight.sum() < tree.noise**2:
        return False
    slowdown = np.concatenate([tree.slowdown[here], np.ones(len(unsampled))])
    by_machine = max(_squares(slowdown, weight), shared.squares(mean, quiet=True))
    events = _events(samples)[here]
    events = np.append(events, np.full(len(x) - len(here), events.mean() if len(here) else 1.0))
    hidden = _hidden_by_tracing(x, events, weight, tree.call_tree.event_ns) if with_tracing else 0.0
    return min(_squares(x, weight, hidden) / by_machine, _squares(x / slowdown, weight, hidden)) >= bound


def tracing_hides(tree: Tree, heads: Sequence[int], stats: Stats, options: Options) -> float | None:
    """Mean time that recording takes within an invocation, ns, where that hides whether the cost varies; else None."""
    if not is_high(tree, heads, stats, options, with_tracing=False) or is_high(tree, heads, stats, options):
        return None
    samples = tree.call_tree.samples
    assert samples is not None and tree.weights is not None
    here = tree.sampled.of(heads)
    weight, events = tree.weights.weight[here], _events(samples)[here]
    # Leaves whose cost is known without a sample have one event an invocation.
    return tree.call_tree.event_ns * (float(np.average(events, weights=weight)) if weight.any() else 1.0)


def _events(samples: Samples) -> Floats:
    """(S,) calls within each sampled invocation, and how often generators and coroutines went on: all cost the tracer."""
    return samples.events if samples.resumes is None else samples.events + samples.resumes


def _hidden_by_tracing(x: Floats, events: Floats, weight: Floats, event_ns: float) -> float:
    """The part of the variance of costs (n,) that may be the tracer's own, whose ``events`` (n,) cost ``event_ns`` each.

    What tracing takes is left out of costs as a mean. In a single invocation the tracer may find its code and data in the
    caches or not, at every event alike, and may take twice the mean or nothing. What follows the number of events is the
    program's: then it does more or less.
    """
    share = weight / weight.sum()
    deviation, more = x - share @ x, events - share @ events
    spread = float(share @ (more * more))
    slope = float(share @ (more * deviation)) / spread if spread > 0 else 0.0
    left = deviation - slope * more
    return min(float(share @ (left * left)), event_ns**2 * float(share @ (events * events)))


def _squares(x: Floats, weight: Floats, hidden: float = 0.0) -> float:
    """E[x²]/E[x]² without the ``hidden`` part of the variance, which is 1 + CoV²."""
    mean = float(weight @ x / weight.sum())
    return (float(weight @ (x * x) / weight.sum()) - hidden) / mean**2 if mean > 0 else 1.0
