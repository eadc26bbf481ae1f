"""The paper's own grouping: k-means of the shares, with as many groups as mutual information goes on growing (§3.4).

Which two labels its "adjusted mutual information" compares is not said; here it is the group of a call's path with the
cluster of its duration. It finds the right number in fewer than half of the cases (specs/mining.md).
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_mutual_info_score

Labels = NDArray[np.intp]

MOST_GROUPS, STARTS, SEED = 12, 10, 0
MOST_CALLS = 20_000
"""Calls whose labels are compared: with more, all counts are reduced alike."""


def paper_groups(counts: NDArray[np.int64]) -> Labels:
    """Group of each path, (P,), from calls (P, C); -1 for paths without calls.

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
    """k-means of the shares (P, C), every path alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = KMeans(k, n_init=STARTS, random_state=SEED).fit(shares).labels_
    return np.asarray(labels, dtype=np.intp)


def _information(counts: NDArray[np.int64], labels: Labels) -> float:
    """Adjusted mutual information of group and cluster, over calls (Vinh, Epps & Bailey 2010)."""
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
