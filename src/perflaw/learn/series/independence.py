"""Tests whether responses depend on features: ranks, correlations, the null control, and what a law leaves unexplained.

A law other than a constant is admitted only if a permutation test of the largest squared correlation rejects
independence, over features and their transforms (log x, x, x², ranks) and over those of y (y, log y, ranks). Rows are
exchangeable under independence, so the error is the nominal one for any noise and any design of x (Westfall & Young
1993, §2: max-T). A criterion of the likelihood alone would not do: minimum BIC calls 31 % of pure noise a law at
n = 10.

For laws of several features there are four more tests. :func:`features_of_residuals` is lenient and cheap: which
features do a law's residuals follow? :func:`p_of_pair` is the null control of laws of two features if no single one is
established. :func:`p_of_added_feature`, the F test of what a feature adds, decides; :func:`confounded` may veto it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.series import Array, Units, drawn_rows, evenly
from perflaw.special import fdtrc, ndtr, stdtr

CLEAR = 1e-3
"""Spearman's test at this p passes a series without permutations; it is valid for any noise."""
CLEAR_FROM, CLEAR_FROM_WITHIN = 8, 50
"""Fewest rows for this shortcut (the t approximation of Spearman's ρ); the second number is for tests within runs."""
EXACT_UP_TO = 5
"""All permutations are tried up to this number of rows."""
CELLS = 2_000_000
"""Most numbers of an array of permuted responses."""
MOST_ROWS = 600
"""Most rows that permutations within runs look at, spread evenly; Spearman's test before them sees all rows."""
ORDERS_AT_ONCE = 50
"""Permutations within runs between two checks whether p can still become small enough."""
SHAPES = 12.0
"""Number of independent shapes in which a feature is tried: its own, and its products with others."""
LENIENT, LENIENT_MANY, MANY_ROWS = 0.3, 0.05, 100
"""Error of the cheap test of residuals over all features; the second number holds from ``MANY_ROWS`` rows on."""
FEW_ROWS = 20
"""Up to this number of rows the cheap test of residuals cannot exclude the clearest feature."""
SAMPLED_ROWS = 300
"""Most rows that the tests of residuals and of pairs look at."""
CORRELATED, CONFIRMED, FEWEST_BINNED = 0.3, 0.01, 20
"""Rank correlation from which one feature may stand for another's shape, p that excludes that, fewest rows to test it."""


def ranks(values: Array) -> Array:
    """Ranks along the last axis from 1; ties share their mean rank. The shape is kept.

    >>> ranks(np.array([[30.0, 10.0, 20.0], [5.0, 5.0, 1.0]])).tolist()
    [[3.0, 1.0, 2.0], [2.5, 2.5, 1.0]]
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1, np.shape(values)[-1])
    order = np.argsort(flat, axis=-1)
    row = np.arange(len(flat))[:, None]
    ordered = flat[row, order]
    last = np.ones(ordered.shape, dtype=bool)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    out, places = np.empty_like(flat), np.arange(flat.shape[-1])
    if last.all():
        out[row, order] = places + 1.0
        return out.reshape(np.shape(values))
    first = np.maximum.accumulate(np.where(np.roll(last, 1, axis=-1), places, 0), axis=-1)
    final = np.minimum.accumulate(np.where(last, places, places.size)[:, ::-1], axis=-1)[:, ::-1]
    out[row, order] = (first + final) / 2.0 + 1.0
    return out.reshape(np.shape(values))


def student_tail(statistic: Array, degrees: int) -> Array:
    """P(T > statistic) of Student's t.

    >>> round(float(student_tail(np.array(2.228), 10)), 3)
    0.025
    """
    return np.asarray(stdtr(degrees, -statistic))


def normal_tail(statistic: float) -> float:
    """P(Z > statistic) of the standard normal.

    >>> round(normal_tail(1.96), 3)
    0.025
    """
    return float(ndtr(-statistic))


def t_of_correlation(r: Array, degrees: int) -> Array:
    """Student's t of a correlation or of Spearman's ρ (Kendall & Stuart, §31.19); shape kept."""
    return np.asarray(r * np.sqrt(degrees / np.maximum(1.0 - r**2, 1e-12)))


def standardised(values: Array) -> Array:
    """Values centred and scaled to unit length along the last axis; 0 if they do not vary."""
    centred = values - np.add.reduce(values, axis=-1, keepdims=True) / values.shape[-1]
    length = np.sqrt(np.add.reduce(centred**2, axis=-1, keepdims=True))
    # Rounding of equal numbers is no variation.
    size = np.abs(values).max(axis=-1, keepdims=True) * np.sqrt(values.shape[-1])
    varies = length > 1e-12 * size
    if varies.all():
        return np.asarray(np.divide(centred, length, out=centred))
    return np.where(varies, centred / np.where(varies, length, 1.0), 0.0)


def relative_to_top(x: Array) -> Array:
    """Values over the largest magnitude along the last axis; zeros stay zeros."""
    top = np.abs(x).max(axis=-1, keepdims=True)
    return np.asarray(x / np.where(top > 0, top, 1.0))


def logs_if_positive(x: Array) -> Array:
    """Logarithms along the last axis, 0 where a value there is not positive."""
    return np.log(np.where((x > 0).all(axis=-1, keepdims=True), x, 1.0))


def transforms(x: Array) -> Array:
    """Standardised x, x² and log x (x itself if not positive): (B, F, n) -> (B, 3F, n)."""
    scaled = relative_to_top(x)
    positive = (x > 0).all(axis=-1, keepdims=True)
    logs = np.where(positive, np.log(np.maximum(np.where(positive, scaled, 1.0), 1e-300)), scaled)
    return np.concatenate([standardised(scaled), standardised(scaled**2), standardised(logs)], axis=1)


def critical_p(alpha: float, n: int) -> float:
    """P at which n units reject: ``alpha``, or the smallest p of five units (a perfect order, or its reverse)."""
    return max(alpha, 2.0 / 120.0 + 1e-9) if n == EXACT_UP_TO else alpha


@lru_cache(maxsize=256)
def permuted_orders(n: int, count: int) -> NDArray[np.intp]:
    """Permutations of n rows without the identity, (P, n): all of few rows, else ``count`` seeded by n alone."""
    if n <= EXACT_UP_TO:
        return np.array(list(permutations(range(n)))[1:], dtype=np.intp).reshape(-1, n)
    rng = np.random.default_rng([n, count])
    return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)


def p_values(units: Sequence[Units], count: int) -> Array:
    """P of the null control for every series, (len(units),), by ``count`` permutations; 1 if it cannot be known."""
    out = np.ones(len(units))
    groups: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        if unit.x.shape[0] and unit.y.size > 2:
            groups[(*unit.x.shape, unit.log_y is not None)].append(i)
    for (features, n, _), members in groups.items():
        size = max(1, CELLS // (n * count * 3))
        for start in range(0, len(members), size):
            part = members[start : start + size]
            x, y = (np.stack([getattr(units[i], name) for i in part]) for name in ("x", "y"))
            rank_x, rank_y = standardised(ranks(x)), standardised(ranks(y))
            rho = np.abs(rank_x @ rank_y[..., None])[..., 0]
            out[part] = (2.0 * student_tail(t_of_correlation(rho, n - 2), n - 2) * features).min(axis=-1)
            unclear = np.flatnonzero((out[part] >= CLEAR) | (n < CLEAR_FROM))
            if not unclear.size:
                continue
            columns = transforms(x[unclear])
            sides = [(columns, standardised(y[unclear]))]
            log_y = [values for i in part if (values := units[i].log_y) is not None]  # all have one, or none has
            if log_y:
                sides.append((columns, standardised(np.stack(log_y)[unclear])))
            order = permuted_orders(n, count)
            observed, permuted = np.zeros(len(columns)), np.zeros((len(columns), len(order)))
            for left, right in [*sides, (rank_x[unclear], rank_y[unclear])]:
                observed = np.maximum(observed, np.abs(left @ right[..., None])[..., 0].max(axis=-1))
                permuted = np.maximum(permuted, np.abs(right[:, order] @ left.transpose(0, 2, 1)).max(axis=-1))
            # The data count as one of the permutations.
            reached = (permuted >= observed[:, None] * (1.0 - 1e-9)).sum(axis=-1)
            out[np.array(part)[unclear]] = np.where(observed > 0, (1.0 + reached) / (1.0 + len(order)), 1.0)
    return out


def p_within_runs(
    x: Array, y: Array, log_y: Array | None, run: NDArray[np.intp], count: int, enough: float = 1.0
) -> float:
    """P of the null control for features that vary within runs: x (F, n), y, log_y and run (n,).

    Responses are permuted within their runs and all columns are relative to the mean of their run, so effects of runs
    cannot pass for a dependence (restricted permutation: Good 2005, §7.2). If p exceeds ``enough``, the result may be
    any value above it, as soon as that is certain.
    """
    rho = standardised(relative_to_run(ranks(x), run)) @ standardised(relative_to_run(ranks(y), run))
    clear = float(2.0 * normal_tail(float(np.abs(rho).max() * np.sqrt(run.size))) * len(x))
    if run.size >= CLEAR_FROM_WITHIN and clear < CLEAR:
        return clear
    if run.size > MOST_ROWS:
        kept = evenly(np.arange(run.size), MOST_ROWS)
        x, y, run = x[:, kept], y[kept], run[kept]
        log_y = None if log_y is None else log_y[kept]
    columns = standardised(relative_to_run(transforms(x[None])[0], run))
    responses = [y] if log_y is None else [y, log_y]
    sides = [standardised(relative_to_run(response, run)) for response in responses]
    observed = max(float(np.abs(columns @ side).max()) for side in sides)
    if observed == 0.0:
        return 1.0
    # The permutations are seeded by the shape of the data alone.
    rng, reached = np.random.default_rng([run.size, count, int(run.max())]), 0
    place = np.argsort(run, kind="stable")
    ends = np.cumsum(np.bincount(run)).tolist()
    for start in range(0, count, ORDERS_AT_ONCE):
        keys = rng.random((min(ORDERS_AT_ONCE, count - start), run.size))
        order = np.empty(keys.shape, dtype=np.intp)
        for first, last in pairwise([0, *ends]):
            order[:, place[first:last]] = place[first:last][np.argsort(keys[:, first:last], axis=-1)]
        permuted = np.max([np.abs(side[order] @ columns.T).max(axis=-1) for side in sides], axis=0)
        reached += int((permuted >= observed * (1.0 - 1e-9)).sum())
        if (1.0 + reached) / (1.0 + count) > enough:
            break
    return (1.0 + reached) / (1.0 + count)


def relative_to_run(values: Array, run: NDArray[np.intp]) -> Array:
    """Values less the mean of their run along the last axis."""
    size = np.bincount(run)
    rows = np.atleast_2d(values)
    means = np.stack([np.bincount(run, row) / size.clip(1) for row in rows])
    return np.asarray((rows - means[:, run]).reshape(values.shape))


def features_of_residuals(residual: Array, x: Array, known: Array) -> list[int]:
    """Places of features x (F, n) that residuals (n,) follow, the clearest first.

    What the features known (K, n) of the law itself say about them is taken out before, for they may be correlated.
    """
    if residual.size < 4 or not len(x):
        return []
    keep = drawn_rows(residual.size, SAMPLED_ROWS)
    residual, x, known = residual[keep], x[:, keep], known[:, keep]
    n = residual.size

    def logs(features: Array) -> Array:
        positive = (features > 0).all(axis=-1, keepdims=True)
        return np.where(positive, logs_if_positive(features), relative_to_top(features))

    def beside_known(rows: Array) -> Array:
        centred = standardised(rows)
        rest = centred - (centred @ basis) @ basis.T
        # What is left by rounding alone is no variation.
        left = np.sqrt((rest**2).sum(axis=-1, keepdims=True))
        return np.where(left > 1e-6, rest / np.where(left > 1e-6, left, 1.0), 0.0)

    basis = np.linalg.qr(np.stack([np.ones(n), *standardised(logs(known)), *standardised(ranks(known))]).T)[0]
    of_ranks, *others = np.split(beside_known(np.concatenate([ranks(x), relative_to_top(x), logs(x)])), 3)
    r = np.abs(of_ranks @ beside_known(ranks(residual)))
    for columns in others:
        r = np.maximum(r, np.abs(columns @ beside_known(residual)))
    freedom = max(n - basis.shape[1] - 1, 1)
    p = 3.0 * 2.0 * student_tail(t_of_correlation(r, freedom), freedom)
    order = [int(f) for f in np.argsort(p, kind="stable")]
    error = LENIENT_MANY if n >= MANY_ROWS else LENIENT
    return [f for i, f in enumerate(order) if p[f] * len(x) <= error or (i == 0 and n <= FEW_ROWS)]


def p_of_added_feature(
    before: float, after: float, rows: float, effective: float, parameters: int, more: int, tried: int
) -> float:
    """P of the drop in deviance from one law to one with another feature, shared by all features and shapes tried.

    ``rows`` are those of the deviances, ``effective`` the independent ones among them, ``parameters`` those of the
    larger law, ``more`` of them new, ``tried`` the features among which this one was the best (Bonferroni).

    >>> p_of_added_feature(100.0, 98.0, 20, 20, 2, 1, 9), round(p_of_added_feature(100.0, 80.0, 20, 20, 2, 1, 1), 3)
    (1.0, 0.0)
    """
    freedom = effective - parameters
    if freedom < 1 or after >= before:
        return 1.0
    ratio = np.exp(min((before - after) / rows, 600.0)) - 1.0
    p = float(fdtrc(max(more, 1), freedom, ratio * freedom / max(more, 1)))
    return min(p * SHAPES * max(tried, 1), 1.0)


def confounded(residual: Array, x: Array, z: Array) -> bool:
    """Whether residuals (n,) follow a feature z (n,) only as far as they follow x (n,), in whatever shape.

    A law of x with the wrong shape leaves residuals that a feature correlated with x seems to explain. Within bins of x
    that is gone, and what z really adds is still there. Few rows are tested only if x and z are correlated.
    """
    keep = drawn_rows(residual.size, SAMPLED_ROWS)
    residual, x, z = residual[keep], x[keep], z[keep]
    n = residual.size
    if n < FEWEST_BINNED or (n < MANY_ROWS and np.abs(standardised(ranks(x)) @ standardised(ranks(z))) < CORRELATED):
        return False
    bins = min(n // 5, 20)
    group = ((ranks(x) - 1.0) * bins / n).astype(np.intp)
    size = np.bincount(group, minlength=bins).clip(1)

    def within_bins(row: Array) -> Array:
        return standardised(row - (np.bincount(group, row, bins) / size)[group])

    sides = [within_bins(residual), within_bins(ranks(residual))]
    columns = [within_bins(ranks(z)), within_bins(z / max(float(np.abs(z).max()), 1e-300))]
    r = np.max(np.abs(np.stack(sides) @ np.stack(columns).T))
    freedom = n - int(np.unique(group).size) - 1
    return bool(4.0 * 2.0 * student_tail(t_of_correlation(r, freedom), freedom) > CONFIRMED)


def p_of_pair(units: Units, count: int) -> tuple[float, tuple[int, int]]:
    """P of the pair of features that explains most, by ``count`` permutations of the largest R², and that pair.

    Values and logarithms are tried (Westfall & Young 1993, §2).
    """
    n = units.y.size
    if n < 6 or len(units.x) < 2:
        return 1.0, (0, 0)
    keep = drawn_rows(n, SAMPLED_ROWS)
    x, sides = units.x[:, keep], [(units.x[:, keep], units.y[keep])]
    if units.log_y is not None and (x > 0).all():
        sides.append((np.log(x), units.log_y[keep]))
    order = permuted_orders(keep.size, count)
    best, pair, permuted = -1.0, (0, 0), np.full(len(order), -1.0)
    for columns, response in sides:
        left, right = standardised(columns), standardised(response)
        observed, pairs = _r2_of_best_pair(left, right[None])
        permuted = np.maximum(permuted, _r2_of_best_pair(left, right[order])[0])
        if observed[0] > best:
            best, pair = float(observed[0]), (int(pairs[0][0]), int(pairs[1][0]))
    p = (1.0 + float((permuted >= best * (1.0 - 1e-9)).sum())) / (1.0 + permuted.size)
    return (p, pair) if best > 0 else (1.0, pair)


def _r2_of_best_pair(left: Array, right: Array) -> tuple[Array, tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Largest R² of two standardised columns (F, n) for each response (P, n), and which they are."""
    r, between = right @ left.T, left @ left.T
    i, j = np.triu_indices(len(left), 1)
    rho = between[i, j]
    fine = np.abs(rho) < 0.99
    square = (r[:, i] ** 2 + r[:, j] ** 2 - 2.0 * rho * r[:, i] * r[:, j]) / np.where(fine, 1.0 - rho**2, 1.0)
    square = np.where(fine, square, 0.0)
    best = square.argmax(axis=1)
    return square[np.arange(len(right)), best], (i[best], j[best])
