"""Calls of every call path in every cluster of durations, and groups of paths of equal behaviour (Brünink & Rosenblum, §3.4).

The paper clusters shares by k-means, which finds the right number of groups in fewer than half of the cases
(specs/mining.md, "Grouping call paths"). Here the two groups that differ least are joined, again and again, until any two
that are left differ significantly (likelihood-ratio test, Sokal & Rohlf 1981, §17) and by enough to matter (total variation).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import UsageError
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.durations import autocorrelation_time, clusters
from perflaw.learn.paths.stable import StableBorders
from perflaw.special import chdtri, gammaln
from perflaw.types import Batches, Observed
from perflaw.types.specifications import CallPath

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class PathCounts:
    """Calls of P call paths in C clusters of durations."""

    paths: tuple[CallPath, ...]
    """The call paths, in the order of their names."""
    counts: Ints
    """(P, C) calls."""
    effective: Array
    """(P,) independent calls that these are worth."""
    platforms: dict[int, Ints]
    """Platform → (P, C) calls there."""

    def by_platform(self) -> dict[int, tuple[tuple[int, ...], ...]] | None:
        """Calls on every platform as a specification keeps them; None on one platform."""
        if len(self.platforms) < 2:
            return None
        return {platform: table_rows(table) for platform, table in self.platforms.items()}


def table_rows(table: Ints) -> tuple[tuple[int, ...], ...]:
    """Calls (P, C) as a specification keeps them."""
    return tuple(tuple(row) for row in table.tolist())


def count_calls(observed: Observed, stable: StableBorders) -> PathCounts:
    """Calls by call path and cluster, on each platform by its own borders; calls are whole where a border divides a bucket.

    Paths' shares may vary more from one observation to the next than independent calls would, which batches within an
    observation cannot show: calls are worth less by Pearson's statistic over its degrees of freedom, all paths together.
    Its mean is 1 however few the calls are (McCullagh & Nelder 1989, §4.5, overdispersion).
    """
    names = sorted({observed.paths[place] for one in observed.observations for place in one.paths})
    number = {name: place for place, name in enumerate(names)}
    shape = (len(names), len(stable.borders) + 1)
    sums = {platform: np.zeros(shape) for platform in sorted({one.platform for one in observed.observations})}
    tables, paths = [], []
    batches: list[list[Batches]] = [[] for _ in names]
    for one in observed.observations:
        borders = stable.borders if stable.platform_borders is None else stable.platform_borders[one.platform]
        for place, histogram in one.paths.items():
            tables.append(clusters(histogram, borders))
            paths.append(number[observed.paths[place]])
            sums[one.platform][paths[-1]] += tables[-1]
        for place, some in one.path_batches.items():
            if place in one.paths:
                batches[number[observed.paths[place]]].append(some)
    below = {platform: np.rint(np.cumsum(table, axis=1)).astype(np.int64) for platform, table in sums.items()}
    platforms: dict[int, Ints] = {platform: np.diff(table, axis=1, prepend=0) for platform, table in below.items()}
    counts = sum(platforms.values(), np.zeros(shape, np.int64))
    calls = counts.sum(axis=1)
    worth = np.array([n / autocorrelation_time(some) for n, some in zip(calls, batches, strict=True)], dtype=np.float64)
    observed_tables, rows = np.array(tables).reshape(len(tables), shape[1]), np.array(paths, dtype=np.int64)
    # Calls that depend on each other are worth less: Pearson's statistic over its degrees of freedom, at least 1.
    share = counts / np.maximum(calls, 1)[:, None]
    here = observed_tables.sum(axis=1)
    expected = here[:, None] * share[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.where(expected > 0, (observed_tables - expected) ** 2 / expected, 0.0).sum(axis=1)
    statistic = float((cells * (worth / np.maximum(calls, 1))[rows]).sum())
    seen = np.bincount(rows[here > 0], minlength=calls.size)
    freedom = float(((np.count_nonzero(counts, axis=1) - 1) * np.maximum(seen - 1, 0)).sum())
    overdispersion = max(statistic / freedom, 1.0) if freedom > 0 else 1.0
    return PathCounts(tuple(names), counts, worth / overdispersion, platforms)


# ---- Groups by likelihood-ratio tests.

BLOCK = 300
"""Number of groups that are compared in pairs at once; if there are more paths, the heaviest come first."""
MAX_ROUNDS = 5
"""Number of times that paths may move to the group that fits them best."""
MIN_PROBABILITY = 0.95
"""Probability of its best group from which on a path belongs there."""
PRIOR_CALLS = 0.5
"""Calls that every cluster is assumed to have had before any was seen (Jeffreys)."""


def group_paths(counts: Ints, effective: Array, options: MiningOptions | None = None) -> Labels:
    """Group of each path, (P,), from calls (P, C) worth ``effective`` (P,) independent ones; -1 where it is not clear.

    Groups are numbered by their calls, the largest first. The order of paths does not matter.

    >>> shares = np.repeat([[0.41, 0.59], [0.35, 0.65], [0.99, 0.01]], 6, axis=0)
    >>> counts = np.random.default_rng(0).multinomial(2000, shares)
    >>> group_paths(counts, counts.sum(axis=1).astype(float)).tolist()
    [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2]
    """
    options = options or MiningOptions()
    calls = counts.sum(axis=1)
    table = counts * np.minimum(effective / np.maximum(calls, 1), 1.0)[:, None]
    order = np.lexsort((*table.T, table.sum(axis=1)))[::-1]
    heavy = order[table[order].sum(axis=1) >= options.fewest_of_path]
    if heavy.size == 0:
        return np.where(calls > 0, 0, -1).astype(np.intp)
    fit = _log_likelihoods(table, _group_sums(table[heavy], options))
    relative = np.exp(fit - fit.max(axis=1, keepdims=True))
    is_clear = 1.0 / relative.sum(axis=1) >= MIN_PROBABILITY
    return _numbered_by_calls(np.where(is_clear, fit.argmax(axis=1), -1).astype(np.intp), calls)


def _numbered_by_calls(labels: Labels, calls: Ints) -> Labels:
    """The same groups, numbered by their calls; -1 stays."""
    known = labels >= 0
    weight = np.bincount(labels[known], calls[known], labels.max(initial=0) + 1)
    rank = np.empty(weight.size, dtype=np.intp)
    rank[np.argsort(-weight, kind="stable")] = np.arange(weight.size)
    return np.where(known, rank[labels], -1)


def _group_sums(table: Array, options: MiningOptions) -> Array:
    """Calls of each group (G, C), from those of the paths that decide (P, C), the heaviest first."""
    test = _Test.of(table.shape[1], len(table), options)
    sums: Array = table[:0]
    sizes: Array = np.zeros(0)
    for first in range(0, len(table), BLOCK):
        block = table[first : first + BLOCK]
        sums, sizes = _join_alike(np.vstack([sums, block]), np.r_[sizes, np.ones(len(block))], test)
    for _ in range(MAX_ROUNDS):
        labels = _log_likelihoods(table, sums).argmax(axis=1)
        present, members = np.unique(labels, return_counts=True)
        moved = np.array([table[labels == label].sum(axis=0) for label in present])
        after, sizes = _join_alike(moved, members.astype(np.float64), test)
        if after.shape == sums.shape and np.allclose(after, sums):
            break
        sums = after
    return sums


def _log_likelihoods(table: Array, sums: Array) -> Array:
    """Log-likelihood of the calls of each path (P, C) by the shares of each group (G, C), (P, G)."""
    shares = sums + PRIOR_CALLS
    return np.asarray(table @ np.log(shares / shares.sum(axis=1, keepdims=True)).T)


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """The test whether two groups differ significantly and by enough to matter."""

    critical: Array
    """(C,) critical values of the likelihood ratio by degrees of freedom, from 1."""
    difference: float
    """Smallest total variation that matters."""

    @classmethod
    def of(cls, clusters: int, tests: int, options: MiningOptions) -> _Test:
        """The test for so many clusters, made so many times (Bonferroni)."""
        freedom = np.arange(1, max(clusters, 2))
        return cls(chdtri(freedom, options.significance / max(tests, 1)), options.difference)

    def ratio(self, one: Array, size: float, others: Array, sizes: Array) -> Array:
        """How much a group (C,) of ``size`` paths differs from others (G, C), (G,): below 1 if they may be one group.

        The paths of two groups were put there because they fit, so the likelihood ratio must exceed its critical
        value by twice the logarithm of the ways to divide them (Bonferroni over these; the tail falls as e^(−x/2)).
        """
        both = others + one
        n, m = one.sum(), others.sum(axis=1)
        g = _xlogx(one).sum() + _xlogx(others).sum(axis=1) - _xlogx(both).sum(axis=1)
        g -= _xlogx(n) + _xlogx(m) - _xlogx(n + m)
        freedom = np.maximum(np.count_nonzero(both > 0, axis=1) - 1, 1)
        ways = gammaln(size + sizes + 1) - gammaln(size + 1) - gammaln(sizes + 1)
        ratio = 2.0 * np.maximum(g, 0.0) / (self.critical[freedom - 1] + 2.0 * ways)
        variation = np.abs(others / np.maximum(m, 1e-9)[:, None] - one / max(n, 1e-9)).sum(axis=1) / 2
        return np.asarray(np.where(variation < self.difference, np.minimum(ratio, variation / self.difference), ratio))


def _xlogx(x: Array) -> Array:
    """x·ln x, 0 at 0."""
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))


def differ(one: Array, other: Array, tests: int, options: MiningOptions) -> bool:
    """Whether the independent calls (C,) of one path in two models differ; ``tests`` is the number of paths tested."""
    if one.sum() == 0 or other.sum() == 0:
        return False
    return bool(_Test.of(one.size, tests, options).ratio(one, 0.0, other[None], np.zeros(1))[0] >= 1.0)


def _join_alike(sums: Array, sizes: Array, test: _Test) -> tuple[Array, Array]:
    """Groups (G, C) no two of which are alike, and their numbers of paths (G,): the pair that differs least is joined."""
    sums, sizes = sums.copy(), sizes.copy()
    alive = np.ones(len(sums), dtype=bool)
    ratio = np.array([test.ratio(row, size, sums, sizes) for row, size in zip(sums, sizes, strict=True)])
    np.fill_diagonal(ratio, np.inf)
    while alive.sum() > 1:
        i, j = divmod(int(ratio.argmin()), len(sums))
        if not ratio[i, j] < 1.0:
            break
        sums[i] += sums[j]
        sizes[i] += sizes[j]
        alive[j] = False
        ratio[j], ratio[:, j] = np.inf, np.inf
        again = test.ratio(sums[i], sizes[i], sums, sizes)
        again[~alive] = np.inf
        again[i] = np.inf
        ratio[i], ratio[:, i] = again, again
    return sums[alive], sizes[alive]


# ---- The paper's own grouping.

MAX_GROUPS, STARTS, SEED = 12, 10, 0
"""Largest number of groups, and number and seed of the random starts of k-means."""
MAX_COMPARED_CALLS = 20_000
"""Number of calls whose labels are compared; if there are more, all counts are reduced by the same factor."""


def paper_groups(counts: Ints) -> Labels:
    """The paper's own grouping (§3.4): group of each path, (P,), from calls (P, C); -1 for paths without calls.

    k-means of the shares, with as many groups as the adjusted mutual information keeps growing for (Vinh, Epps & Bailey
    2010). The paper does not say which two labelings it compares; here these are the group of a call's path and the cluster
    of its duration. UsageError without scikit-learn.

    The paper's table of semop, with three groups, has two here:

    >>> shares = np.repeat([[0.41, 0.59], [0.35, 0.65], [0.99, 0.01]], 6, axis=0)
    >>> paper_groups(np.rint(2000 * shares).astype(int)).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    """
    calls = counts.sum(axis=1)
    used = np.flatnonzero(calls)
    labels = np.full(len(counts), -1, dtype=np.intp)
    if used.size == 0:
        return labels
    try:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.metrics import adjusted_mutual_info_score
    except ImportError as error:
        raise UsageError("--paper needs scikit-learn", str(error), "pip install 'perflaw[paper]'") from error
    shares = counts[used] / calls[used][:, None]
    labels[used], best = 0, 0.0
    for k in range(2, min(MAX_GROUPS, len(np.unique(np.round(shares, 12), axis=0))) + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            means = KMeans(k, n_init=STARTS, random_state=SEED).fit(shares)
        candidate = np.asarray(means.labels_, dtype=np.intp)
        table = np.zeros((int(candidate.max()) + 1, counts.shape[1]))
        np.add.at(table, candidate, counts[used])
        times = np.rint(table * min(1.0, MAX_COMPARED_CALLS / max(table.sum(), 1.0))).astype(np.int64).ravel()
        group, cluster = np.indices(table.shape)
        information = float(
            adjusted_mutual_info_score(np.repeat(group.ravel(), times), np.repeat(cluster.ravel(), times))
        )
        if information <= best + 1e-9:
            break
        labels[used], best = candidate, information
    return _numbered_by_calls(labels, calls)
