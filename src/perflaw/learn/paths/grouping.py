"""Groups of call paths on which a function behaves alike (Brünink & Rosenblum, §3.4).

The paper clusters shares by k-means; that finds the right number of groups in fewer than half of the cases
(specs/mining.md, "Grouping call paths"). Here groups are joined, the least different first, until any two that are left
differ surely (likelihood-ratio test, Sokal & Rohlf 1981, §17) and by something that matters (total variation).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gammaln

from perflaw.errors import UsageError
from perflaw.learn.paths.options import MiningOptions

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

BLOCK = 300
"""Groups that are compared in pairs at once: with more paths, the heaviest first and the others by turns."""
ROUNDS = 5
"""How often paths may move to the group that fits them best."""
CLEARLY = 0.95
"""Probability of its best group from which on a path belongs there."""
PRIOR = 0.5
"""Calls that every cluster is thought to have had before any was seen (Jeffreys)."""


def group_paths(counts: NDArray[np.int64], effective: Array, options: MiningOptions | None = None) -> Labels:
    """Group of each path, (P,), from calls (P, C) worth ``effective`` (P,) independent ones; -1 where it is not clear.

    Groups are numbered by their calls, the most first. The order of paths does not matter.

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
    sums = _settled(table[heavy], options)
    labels = _clear(table, sums)
    return _numbered(labels, calls)


def _settled(table: Array, options: MiningOptions) -> Array:
    """Calls of each group (G, C), from those of the paths that have a say (P, C), the heaviest first."""
    test = _Test.of(table, options)
    sums: Array = table[:0]
    sizes: Array = np.zeros(0)
    for first in range(0, len(table), BLOCK):
        block = table[first : first + BLOCK]
        sums, sizes = joined(np.vstack([sums, block]), np.r_[sizes, np.ones(len(block))], test)
    for _ in range(ROUNDS):
        labels = likelihoods(table, sums).argmax(axis=1)
        present, members = np.unique(labels, return_counts=True)
        moved = np.array([table[labels == label].sum(axis=0) for label in present])
        after, sizes = joined(moved, members.astype(np.float64), test)
        if after.shape == sums.shape and np.allclose(after, sums):
            break
        sums = after
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """When two groups differ surely and by something that matters."""

    critical: Array
    """(C,) of the likelihood ratio by degrees of freedom, from 1."""
    matters: float
    """Least total variation."""

    @classmethod
    def of(cls, table: Array, options: MiningOptions) -> _Test:
        """For so many paths and clusters (P, C)."""
        freedom = np.arange(1, max(table.shape[1], 2))
        return cls(chdtri(freedom, options.significance / max(len(table), 1)), options.difference)

    def ratio(self, one: Array, size: float, others: Array, sizes: Array) -> Array:
        """How different a group (C,) of ``size`` paths is from others (G, C), (G,): under 1 where they may be one.

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
        return np.asarray(np.where(variation < self.matters, np.minimum(ratio, variation / self.matters), ratio))


def differ(one: Array, other: Array, tests: int, options: MiningOptions) -> bool:
    """Whether the calls of one path here and there (C,), worth so many independent ones, differ, of so many paths."""
    if one.sum() == 0 or other.sum() == 0:
        return False
    freedom = np.arange(1, max(one.size, 2))
    test = _Test(chdtri(freedom, options.significance / max(tests, 1)), options.difference)
    return bool(test.ratio(one, 0.0, other[None], np.zeros(1))[0] >= 1.0)


def joined(sums: Array, sizes: Array, test: _Test) -> tuple[Array, Array]:
    """Groups (G, C) of which no two are alike and how many paths they have (G,), from more.

    The pair that differs least is put together, again and again.
    """
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


def _xlogx(x: Array) -> Array:
    """x·ln x, 0 at 0."""
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))


def likelihoods(table: Array, sums: Array) -> Array:
    """Log-likelihood of the calls of each path (P, C) by the shares of each group (G, C), (P, G)."""
    shares = sums + PRIOR
    return np.asarray(table @ np.log(shares / shares.sum(axis=1, keepdims=True)).T)


def _clear(table: Array, sums: Array) -> Labels:
    """The group of each path, (P,); -1 where its calls do not say which."""
    fit = likelihoods(table, sums)
    chance = np.exp(fit - fit.max(axis=1, keepdims=True))
    clear = 1.0 / chance.sum(axis=1) >= CLEARLY
    return np.where(clear, fit.argmax(axis=1), -1).astype(np.intp)


def _numbered(labels: Labels, calls: NDArray[np.int64]) -> Labels:
    """The same groups, numbered by their calls."""
    known = labels >= 0
    weight = np.bincount(labels[known], calls[known], labels.max(initial=0) + 1)
    rank = np.empty(weight.size, dtype=np.intp)
    rank[np.argsort(-weight, kind="stable")] = np.arange(weight.size)
    return np.where(known, rank[labels], -1)


MOST_GROUPS, STARTS, SEED = 12, 10, 0
MOST_CALLS = 20_000
"""Calls whose labels are compared: with more, all counts are reduced alike."""


def paper_groups(counts: NDArray[np.int64]) -> Labels:
    """The paper's own grouping (§3.4): group of each path, (P,), from calls (P, C); -1 for paths without calls.

    k-means of the shares, with as many groups as the adjusted mutual information keeps growing for. The paper does not
    say which two labelings it compares; here these are the group of a call's path and the cluster of its duration. It
    finds the right number of groups in fewer than half of the cases (specs/mining.md). UsageError without scikit-learn.

    The paper's table of semop, of three groups, has two here:

    >>> shares = np.repeat([[0.41, 0.59], [0.35, 0.65], [0.99, 0.01]], 6, axis=0)
    >>> paper_groups(np.rint(2000 * shares).astype(int)).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    """
    calls = counts.sum(axis=1)
    used = np.flatnonzero(calls)
    if used.size == 0:
        return np.full(len(counts), -1, dtype=np.intp)
    shares = counts[used] / calls[used][:, None]
    most = min(MOST_GROUPS, len(np.unique(np.round(shares, 12), axis=0)))
    best, score = np.zeros(used.size, dtype=np.intp), 0.0
    for k in range(2, most + 1):
        labels = _means(shares, k)
        now = _information(counts[used], labels)
        if now <= score + 1e-9:
            break
        best, score = labels, now
    out = np.full(len(counts), -1, dtype=np.intp)
    out[used] = _ranked(best, calls[used])
    return out


def _means(shares: NDArray[np.float64], k: int) -> Labels:
    """k-means of the shares (P, C), every path with the same weight."""
    try:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
    except ImportError as error:
        raise UsageError("--paper needs scikit-learn", str(error), "pip install 'perflaw[paper]'") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = KMeans(k, n_init=STARTS, random_state=SEED).fit(shares).labels_
    return np.asarray(labels, dtype=np.intp)


def _information(counts: NDArray[np.int64], labels: Labels) -> float:
    """Adjusted mutual information of group and cluster, over calls (Vinh, Epps & Bailey 2010)."""
    from sklearn.metrics import adjusted_mutual_info_score

    table = np.zeros((int(labels.max()) + 1, counts.shape[1]))
    np.add.at(table, labels, counts)
    whole = np.rint(table * min(1.0, MOST_CALLS / max(table.sum(), 1.0))).astype(np.int64)
    group, cluster = np.indices(whole.shape)
    return float(
        adjusted_mutual_info_score(np.repeat(group.ravel(), whole.ravel()), np.repeat(cluster.ravel(), whole.ravel()))
    )


def _ranked(labels: Labels, calls: NDArray[np.int64]) -> Labels:
    """The same groups, numbered by their calls."""
    order = np.argsort(-np.bincount(labels, calls), kind="stable")
    return np.argsort(order)[labels].astype(np.intp)
