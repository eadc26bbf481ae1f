"""Tests whether a law leaves structure that another feature explains, and whether a feature is more than a lucky find.

Three tests. ``leftovers`` is lenient and cheap: which features a law's residuals follow. ``pair`` is the null control
of laws of two features where no single one is established: permutations of the responses, the largest R² of all pairs
(Westfall & Young 1993, §2). ``added`` is the one that decides: the F test of what a feature adds, its error shared by
all features and shapes that were tried (Bonferroni).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from perflaw.learn.laws.gate import Units, orders, unit
from perflaw.learn.laws.ranks import ranks
from perflaw.learn.laws.series import Array

SHAPES = 12.0
"""Independent shapes a feature is tried in: its own and its products with others."""

LENIENT, LENIENT_MANY, MANY = 0.3, 0.05, 100
"""Error of the cheap test over all features; the second one from so many rows on."""

CORRELATED, CONFIRMED, FEWEST = 0.3, 0.01, 20
"""Rank correlation from which one feature may stand for another's shape, p that rules that out, fewest rows."""

FEW = 20
"""Up to so many rows the cheap test cannot rule the clearest feature out."""

MOST = 300
"""Rows the cheap test and the one of pairs look at."""


def leftovers(residual: Array, x: Array, known: Array) -> list[int]:
    """Places of features x (F, n) that residuals (n,) follow, the clearest first.

    What the law's own features known (K, n) say of them is taken out before, for they may be correlated.
    """
    if residual.size < 4 or not len(x):
        return []
    keep = some(residual.size)
    residual, x, known = residual[keep], x[:, keep], known[:, keep]
    n = residual.size
    basis = np.linalg.qr(np.stack([np.ones(n), *unit(_logs(known)), *unit(ranks(known))]).T)[0]
    sides = [_beside(ranks(residual), basis), _beside(residual, basis)]
    of_ranks, *others = np.split(_beside(np.concatenate([ranks(x), _scaled(x), _logs(x)]), basis), 3)
    r = np.abs(of_ranks @ sides[0])
    for columns in others:
        r = np.maximum(r, np.abs(columns @ sides[1]))
    freedom = max(n - basis.shape[1] - 1, 1)
    t = r * np.sqrt(freedom / np.maximum(1.0 - r**2, 1e-12))
    p = 3.0 * 2.0 * stdtr(freedom, -t)
    order = [int(f) for f in np.argsort(p, kind="stable")]
    error = LENIENT_MANY if n >= MANY else LENIENT
    return [f for i, f in enumerate(order) if p[f] * len(x) <= error or (i == 0 and n <= FEW)]


def _beside(rows: Array, basis: Array) -> Array:
    """Rows without their part along a basis, of unit length."""
    centred = unit(rows)
    rest = centred - (centred @ basis) @ basis.T
    # What is left by rounding alone is no variation.
    left = np.sqrt((rest**2).sum(axis=-1, keepdims=True))
    return np.where(left > 1e-6, rest / np.where(left > 1e-6, left, 1.0), 0.0)


def _scaled(x: Array) -> Array:
    top = np.abs(x).max(axis=-1, keepdims=True)
    return x / np.where(top > 0, top, 1.0)


def _logs(x: Array) -> Array:
    """Logarithms; where a feature is not positive, itself."""
    positive = (x > 0).all(axis=-1, keepdims=True)
    return np.where(positive, np.log(np.where(positive, x, 1.0)), _scaled(x))


def some(n: int) -> NDArray[np.intp]:
    """Places of at most MOST of n rows, drawn by a generator seeded by n alone."""
    return np.arange(n) if n <= MOST else np.sort(np.random.default_rng([n, MOST]).permutation(n)[:MOST])


def added(before: float, after: float, rows: float, worth: float, parameters: int, more: int, tried: int) -> float:
    """P of the drop in deviance from one law to one with another feature.

    ``rows`` are those of the deviances, ``worth`` independent ones among them, ``parameters`` of the larger law,
    ``more`` of them new, ``tried`` features among which this one was the best.

    >>> added(100.0, 98.0, 20, 20, 2, 1, 9), round(added(100.0, 80.0, 20, 20, 2, 1, 1), 3)
    (1.0, 0.0)
    """
    freedom = worth - parameters
    if freedom < 1 or after >= before:
        return 1.0
    ratio = np.exp(min((before - after) / rows, 600.0)) - 1.0
    p = float(fdtrc(max(more, 1), freedom, ratio * freedom / max(more, 1)))
    return min(p * SHAPES * max(tried, 1), 1.0)


def confounded(residual: Array, x: Array, z: Array) -> bool:
    """Residuals (n,) follow a feature z (n,) only as far as they follow x (n,), in whatever shape.

    A law of x with the wrong shape leaves residuals that a feature correlated with x seems to explain. Within bins of
    x that is gone: what z really adds is still there. Few rows are only asked where x and z are correlated.
    """
    keep = some(residual.size)
    residual, x, z = residual[keep], x[keep], z[keep]
    n = residual.size
    if n < FEWEST or (n < MANY and np.abs(unit(ranks(x)) @ unit(ranks(z))) < CORRELATED):
        return False
    bins = min(n // 5, 20)
    group = ((ranks(x) - 1.0) * bins / n).astype(np.intp)
    size = np.bincount(group, minlength=bins).clip(1)
    top = max(float(np.abs(z).max()), 1e-300)
    sides = [unit(row - (np.bincount(group, row, bins) / size)[group]) for row in (residual, ranks(residual))]
    columns = [unit(row - (np.bincount(group, row, bins) / size)[group]) for row in (ranks(z), z / top)]
    r = max(abs(float(left @ right)) for left in sides for right in columns)
    freedom = n - int(np.unique(group).size) - 1
    p = 4.0 * 2.0 * float(stdtr(freedom, -r * np.sqrt(freedom / max(1.0 - r**2, 1e-12))))
    return p > CONFIRMED


def pair(units: Units, count: int) -> tuple[float, tuple[int, int]]:
    """P of the pair of features (x (F, n)) that explains most, and that pair; logarithms and values are tried."""
    n = units.y.size
    if n < 6 or len(units.x) < 2:
        return 1.0, (0, 0)
    keep = some(n)
    x, sides = units.x[:, keep], [(units.x[:, keep], units.y[keep])]
    if units.log_y is not None and (x > 0).all():
        sides.append((np.log(x), units.log_y[keep]))
    order = orders(keep.size, count)
    best, where, reached = np.full(1, -1.0), (0, 0), np.full(len(order), -1.0)
    for columns, response in sides:
        left, right = unit(columns), unit(response)
        observed, places = _explained(left, right[None])
        permuted, _ = _explained(left, right[order])
        reached = np.maximum(reached, permuted)
        if observed[0] > best[0]:
            best, where = observed, (int(places[0][0]), int(places[1][0]))
    p = (1.0 + float((reached >= best[0] * (1.0 - 1e-9)).sum())) / (1.0 + reached.size)
    return (p, where) if best[0] > 0 else (1.0, where)


def _explained(left: Array, right: Array) -> tuple[Array, tuple[Array, Array]]:
    """Largest R² of two columns (F, n) for each response (P, n), and which they are."""
    r, between = right @ left.T, left @ left.T
    i, j = np.triu_indices(len(left), 1)
    rho = between[i, j]
    fine = np.abs(rho) < 0.99
    square = (r[:, i] ** 2 + r[:, j] ** 2 - 2.0 * rho * r[:, i] * r[:, j]) / np.where(fine, 1.0 - rho**2, 1.0)
    square = np.where(fine, square, 0.0)
    best = square.argmax(axis=1)
    return square[np.arange(len(right)), best], (i[best], j[best])
