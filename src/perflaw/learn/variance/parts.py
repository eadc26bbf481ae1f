"""The parts of a function's cost, X = ΣY_i (Equations 1 and 2): exact covariances, and costs in sampled invocations.

The contexts of a function are put together by call site: sums add up, and so do products of parts of one invocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, LOW
from perflaw.learn.variance.moments import Floats, Link, Stats, pooled, split
from perflaw.learn.variance.tree import Options, Tree
from perflaw.types.call_trees import LOCAL, OTHER, QUEUED, Samples
from perflaw.types.recordings import CPU, EVENTS, TIME
from perflaw.types.variance import Cause, Mechanism

Key = tuple[int, int]
"""Call site and callee."""
OWN: Final[Key] = (LOCAL, LOCAL)
"""Key of the function's own code."""
REST: Final[Key] = (OTHER, OTHER)
"""Key of callees that are not kept apart."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Exact sums of the parts of a function's invocations."""

    function: int
    """Number of the function."""
    total: Stats
    """Moments of X."""
    keys: tuple[Key, ...]
    """The parts: own code first, then call sites in a canonical order."""
    nodes: tuple[tuple[int, ...], ...]
    """Nodes of each part; none for own code."""
    sums: tuple[Link, ...]
    """Sums of each part; for own code only n, y and yx."""
    covariance: tuple[tuple[int | None, ...], ...]
    """N²·C_ij, None if products were not kept."""

    @property
    def net(self) -> tuple[int, ...]:
        """N²·Cov(Y_i, X) of each part: they add up to N²·Var(X)."""
        return tuple(sums.net(self.total) for sums in self.sums)

    def mechanism(self, place: int) -> Mechanism:
        """What makes a part vary."""
        return "own code" if self.keys[place] == OWN else split(self.sums[place], self.total.n).mechanism


def parts_of(tree: Tree, heads: Sequence[int]) -> Parts:
    """The parts of the invocations of these nodes, which are contexts of one function."""
    total = tree.total(heads)
    callees = {}
    found: dict[Key, list[tuple[int, int]]] = {}
    for head in heads:
        # A callee that a recursion was folded into may lie above its caller.
        direct = {node for pair in tree.pairs[head] for node in pair if node >= 0} | set(tree.children[head])
        callees[head] = sorted(node for node in direct if node in tree.links[head])
        for node in callees[head]:
            found.setdefault(tree.key(node), []).append((head, node))
    order = sorted(found, key=lambda key: min(tree.rank[node] for _, node in found[key]))
    sums = [pooled(tree.links[head][node] for head, node in found[key]) for key in order]
    own = Link(total.n, 0, 0, 0, 0, total.x - sum(s.y for s in sums), 0, total.xx - sum(s.yx for s in sums))
    every, keys = (own, *sums), (OWN, *order)
    nodes = ((), *(tuple(sorted({node for _, node in found[key]})) for key in order))
    covariance = _covariance(tree, callees, keys, every, total.n)
    return Parts(tree.component[heads[0]], total, keys, nodes, every, covariance)


def _covariance(
    tree: Tree, callees: dict[int, list[int]], keys: Sequence[Key], sums: Sequence[Link], n: int
) -> tuple[tuple[int | None, ...], ...]:
    """N·P_ij − ΣY_i·ΣY_j, symmetric; None if a product was not kept."""
    place = {key: index for index, key in enumerate(keys)}
    products: list[list[int | None]] = [[0] * len(keys) for _ in keys]
    for head, nodes in callees.items():
        parts = [(0, LOCAL), *((place[tree.key(node)], node) for node in nodes)]
        for a, (i, one) in enumerate(parts):
            for j, two in parts[a:]:
                # The link holds a callee's own square, whatever pairs were kept.
                squared = one == two != LOCAL
                product = tree.links[head][one].yy if squared else tree.product(head, one, two)
                # The square of a part with two callees contains their product in both orders.
                factor = 2 if i == j and one != two else 1
                for row, column in {(i, j), (j, i)}:
                    before = products[row][column]
                    products[row][column] = None if before is None or product is None else before + factor * product
    return tuple(
        tuple(None if p is None else n * p - sums[i].y * sums[j].y for j, p in enumerate(row))
        for i, row in enumerate(products)
    )


# ---- Sampled invocations.

REPLICATES: Final = 200
"""Number of bootstrap samples behind an interval."""
MAX_DRAWN: Final = 1 << 19
"""Invocations that are drawn at once."""
_SEED: Final = 20090726


@dataclass(frozen=True, eq=False)
class SampledInvocations:
    """Sampled invocations of some contexts, in the order of their cost."""

    tree: Tree
    """The tree of these contexts."""
    samples: Samples
    """All samples of the recordings."""
    places: NDArray[np.intp]
    """(n,) places among the samples."""
    x: Floats
    """(n,) cost."""
    weight: Floats
    """(n,) invocations that each stands for."""

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def callee_rows(self) -> NDArray[np.intp]:
        """(c,) rows of the samples' callees that belong to these invocations, ascending."""
        return self.tree.callees.of_many(self.places)

    @property
    def has_callee_costs(self) -> bool:
        """Whether the samples have the costs of callees in the tree's metric."""
        return not np.isnan(self.samples.y[self.callee_rows]).any()


def sampled_invocations(tree: Tree, heads: Sequence[int]) -> SampledInvocations | None:
    """The sampled invocations of these nodes; None if there is none."""
    samples = tree.call_tree.samples
    if samples is None:
        return None
    places = tree.sampled.of(heads)
    places = places[~np.isnan(samples.x[places])]
    if not len(places):
        return None
    places = places[np.argsort(samples.x[places], kind="stable")]
    return SampledInvocations(tree, samples, places, samples.x[places], samples.weight[places])


def parts_matrix(tree: Tree, sampled: SampledInvocations, keys: Sequence[Key], values: Floats, whole: Floats) -> Floats:
    """(n, len(keys)) what each invocation spends in each part.

    ``values`` (c,) are the costs of the invocations' callees, ``whole`` (n,) their own. Own code is what is left.
    """
    column = {key: place for place, key in enumerate(keys)}
    row = np.zeros(len(sampled.samples.x), np.intp)
    row[sampled.places] = np.arange(len(sampled))
    of = row[sampled.samples.of[sampled.callee_rows]]
    nodes, inverse = np.unique(sampled.samples.callee[sampled.callee_rows], return_inverse=True)
    columns = np.array([column.get(tree.key(node) if node >= 0 else REST, -1) for node in nodes.tolist()], np.int64)
    at = columns[inverse]
    known = at >= 0
    matrix = np.zeros((len(sampled), len(keys)))
    np.add.at(matrix, (of[known], at[known]), values[known])
    matrix[:, column[OWN]] = whole - matrix.sum(axis=1)
    return matrix


def resampled_weights(sampled: SampledInvocations) -> Iterator[Floats]:
    """Weights (b, n) of bootstrap samples: invocations are drawn again within their strata, as the sample was.

    They come in blocks of so many samples as are drawn at once in bounded memory.
    """
    rng = np.random.default_rng(_SEED)
    stratum = sampled.samples.stratum[sampled.places]
    groups = [np.flatnonzero(stratum == value) for value in np.unique(stratum)]
    at_once = max(1, MAX_DRAWN // len(sampled))
    for first in range(0, REPLICATES, at_once):
        samples = min(at_once, REPLICATES - first)
        counts = np.empty((samples, len(sampled)))
        for group in groups:
            drawn = rng.integers(len(group), size=(samples, len(group)))
            drawn += np.arange(samples)[:, None] * len(group)
            counts[:, group] = np.bincount(drawn.reshape(-1), minlength=drawn.size).reshape(drawn.shape)
        yield sampled.weight * counts


def bootstrap_interval(values: Floats) -> tuple[float | None, float | None]:
    """The confidence interval from bootstrap values (b,); None if less than half of them are finite."""
    finite = values[np.isfinite(values)]
    if len(finite) < REPLICATES // 2:
        return None, None
    low, high = np.quantile(finite, [LOW, HIGH])
    return float(low), float(high)


# ---- Work, waiting or interference: whether a function's time varies by what it does on a CPU, by what it waits for, or
# because others had the CPU that it was ready to run on.

OTHER_WAITING: Final = "other"
"""The reason of waiting that is of no known kind."""


def stats_by_metric(tree: Tree, heads: Sequence[int]) -> dict[str, Stats]:
    """Moments of the invocations of these nodes in every metric that has any."""
    nodes, found = list(heads), {}
    for name, moments in tree.call_tree.moments.items():
        n, x, xx = (sum(column[nodes].tolist()) for column in (moments.n, moments.sum_x, moments.sum_xx))
        if n:
            found[name] = Stats(n, x, xx)
    return found


def find_cause(
    stats: Mapping[str, Stats],
    metric: str,
    off_cpu: float | None,
    off_for: Mapping[str, float],
    options: Options,
    noise: float = 0.0,
) -> Cause:
    """The cause of the variance of a metric, which has the largest share of it; a metric other than time varies by work.

    ``stats`` are moments by metric, ``off_cpu`` is the share of the variance off the CPU, ``off_for`` divides it by
    reason, ``noise`` is that of the clock.
    """
    if metric not in stats or not stats[metric].is_high(options.high, noise):
        return "steady"
    if metric != TIME.name:
        return "work"
    if off_cpu is not None and off_for:
        queued = off_for[QUEUED]
        shares: dict[Cause, float] = {"work": 1 - off_cpu, "waiting": off_cpu - queued, "interference": queued}
        return max(shares, key=lambda cause: shares[cause])
    if off_cpu is not None:
        return "unknown" if off_cpu > 1 / 2 else "work"
    return "work" if EVENTS.name in stats and stats[EVENTS.name].is_high(options.high) else "unknown"


def off_cpu_share(tree: Tree, heads: Sequence[int], stats: Mapping[str, Stats], options: Options) -> float | None:
    """Share of the variance of time that arises off the CPU; None if CPU time is unknown.

    If there are too few samples, it is computed from the two variances, as if waiting did not depend on the work.
    """
    if tree.call_tree.metric.name != TIME.name or TIME.name not in stats:
        return None
    sampled = sampled_invocations(tree, heads)
    if sampled is not None and len(sampled) >= options.least:
        share = float(_share(sampled.weight, sampled.x, sampled.samples.cpu[sampled.places]))
        if np.isfinite(share):
            return share
    cpu, time = stats.get(CPU.name), stats[TIME.name]
    return None if cpu is None or time.variance <= 0 else max(0.0, 1 - cpu.variance / time.variance)


def off_cpu_reasons(tree: Tree, heads: Sequence[int]) -> dict[str, float]:
    """Reason → share of the variance of time that arises off the CPU for it; empty if the recordings do not tell.

    The reason ``queued`` is always there; what is of no known kind is ``other``. Shares add up to that off the CPU.
    """
    sampled = sampled_invocations(tree, heads)
    if sampled is None or tree.call_tree.metric.name != TIME.name or not sampled.samples.marks:
        return {}
    samples, places = sampled.samples, sampled.places
    off, found = sampled.x - samples.cpu[places], {}
    known = np.zeros(len(sampled))
    for mark, values in samples.marks.items():
        spent = np.minimum(values[places], off - known)
        known += spent
        if mark == QUEUED or spent.any():
            found[mark] = float(_share(sampled.weight, sampled.x, sampled.x - spent))
    found[OTHER_WAITING] = float(_share(sampled.weight, sampled.x, sampled.x - (off - known)))
    return found if all(np.isfinite(share) for share in found.values()) else {}


def off_cpu_interval(tree: Tree, heads: Sequence[int]) -> tuple[float | None, float | None]:
    """Bootstrap interval of the share of the variance of time that arises off the CPU; None without samples."""
    sampled = sampled_invocations(tree, heads)
    if sampled is None:
        return None, None
    cpu = sampled.samples.cpu[sampled.places]
    shares = [_share(weight, sampled.x, cpu) for weight in resampled_weights(sampled)]
    return bootstrap_interval(np.concatenate(shares))


def _share(weight: Floats, time: Floats, cpu: Floats) -> Floats:
    """Cov(time − cpu, time)/Var(time) of samples (n,) by weights (..., n); NaN if the time does not vary."""
    deviation = time - np.asarray(weight @ time / weight.sum(axis=-1))[..., None]
    weighted = weight * deviation
    variance = np.asarray((weighted * deviation).sum(axis=-1))
    shares = np.full(variance.shape, np.nan)
    np.divide(weighted @ (time - cpu), variance, out=shares, where=variance > 0)
    return shares
