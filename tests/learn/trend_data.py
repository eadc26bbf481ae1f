"""Programs whose trends are known: the paper's bubble sort, a list append that walks, planted clusters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from perflaw.types import Cluster, Trends

SIZES = (20, 40, 60, 100, 150, 200, 300, 400)
"""Lengths of the arrays that are sorted."""

LINES = tuple(f"bubble.c:{line}" for line in range(1, 9))
"""The eight locations of §3."""


def bubble_sort(array: Sequence[int]) -> list[int]:
    """How often each line of the paper's bubble sort (§3) runs on an array, (8,)."""
    a, n, count = list(array), len(array), [0] * 9
    count[1] = 1
    for i in range(n):
        count[2] += 1
        count[3] += 1
        for j in range(i + 1, n):
            count[4] += 1
            count[5] += 1
            if a[j] < a[i]:
                count[6] += 1
                a[i], a[j] = a[j], a[i]
            count[7] += 1
        count[4] += 1  # the test that ends the inner loop
        count[8] += 1
    count[2] += 1
    return count[1:]


def workload(kind: str, n: int, rng: np.random.Generator) -> list[int]:
    """An array of one of the kinds of §6.1.2, or a permutation ("p").

    "a" draws from 10 to 10,000 values, so that numbers repeat. Of a permutation n²/4 pairs are out of order and line 6
    follows line 4 with R² over 0.99: by the paper's own definition it is no cluster of its own, and its exponent is 2.
    """
    if kind == "a":
        return rng.integers(0, int(10 ** rng.uniform(1, 4)), n).tolist()
    if kind == "p":
        return rng.permutation(n).tolist()
    ordered = np.arange(n)
    if kind == "c":
        return ordered[::-1].tolist()
    if kind == "d":
        for left in 2 * rng.choice(n // 2, n // 3, replace=False):
            ordered[[left, left + 1]] = ordered[[left + 1, left]]
    return ordered.tolist()


@cache
def bubble(kind: str, repeats: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Counts (8, R) and sizes (R,) of sorting arrays of one kind."""
    rng = np.random.default_rng(7)
    sizes = np.repeat(SIZES, repeats)
    return np.array([bubble_sort(workload(kind, n, rng)) for n in sizes]).T, sizes.astype(float)


def parser(lists_grow: bool) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """A parser that appends to lists by walking them (§1): counts (5, R), names, bytes (R,)."""
    rng = np.random.default_rng(3)
    size = np.rint(np.geomspace(2e4, 2e6, 40))
    columns = []
    for x in size:
        length = 2.0 + (0.05 * np.sqrt(x) if lists_grow else 1.0)
        lists = rng.poisson(length, max(int(x / 50 / length), 1))
        columns.append([x, 3 * x, x // 4, lists.sum(), (lists * (lists - 1) // 2).sum()])
    return np.array(columns).T, ("lex.c:10", "lex.c:11", "parse.c:5", "list.c:2", "list.c:3"), size


def planted(
    runs: int, exponents: Sequence[float], noise: float, members: int, seed: int
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Clusters that grow as size^b times noise of their own: counts (L, R), names by cluster ("c2:0"), size (R,)."""
    rng = np.random.default_rng(seed)
    size = np.geomspace(1e3, 1e6, runs)
    rows, names = [], []
    for c, b in enumerate(exponents):
        driver = 10 ** rng.uniform(3, 4) * (size / 1e3) ** b * np.exp(noise * rng.standard_normal(runs))
        for member in range(members):
            scale = 1.0 if member == 0 else rng.uniform(0.2, 0.8)
            rows.append(np.rint(driver * scale * (1.0 if member == 0 else 1.0 + 0.01 * rng.standard_normal(runs))))
            names.append(f"c{c}:{member}")
    return np.array(rows), tuple(names), size


def by_name(found: Trends) -> dict[str, tuple[str, ...]]:
    """Representative → names of its members, sorted."""
    return {one.representative: tuple(sorted(found.locations[m] for m in one.members)) for one in found.clusters}


def cluster(found: Trends, representative: str) -> Cluster:
    """The cluster of a representative."""
    return next(one for one in found.clusters if one.representative == representative)


def r2(x: np.ndarray, y: np.ndarray) -> float:
    """R² of a linear fit, by the paper's formula (§2.3.1)."""
    return float(np.corrcoef(x, y)[0, 1] ** 2)
