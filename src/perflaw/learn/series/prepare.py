"""From series to rows that may be fitted: runs are the replicates, invocations are not.

Where every feature is constant within each run, the rows of a run are averaged and runs are the points. Where one
varies within runs, rows stay points; their information is then discounted by Moulton's factor (Moulton 1986) and
their intervals come from the spread between runs (:mod:`perflaw.learn.series.band`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.ranks import normal_tail, ranks, student_tail
from perflaw.learn.series.series import Array, Series

# ---- Null control: nothing but a constant law unless permuting the responses says that they depend on a feature.
#
# A permutation test of the largest squared correlation over features, their transforms (log x, x, x², ranks) and
# those
# of y (y, log y, ranks). Under "no dependence" rows are exchangeable, so its error is the nominal one whatever the
# noise and whatever the design of x (Westfall & Young 1993, §2: max-T). Sample moments alone would not do: minimum
# BIC
# calls 31 % of pure noise a law at n = 10.

CLEAR = 1e-3
"""Spearman's test passes a series at this p without permuting; it is valid whatever the noise."""

CLEAR_FROM = 8
"""Fewest rows for that shortcut (the t approximation of Spearman's ρ)."""

EXACT_UP_TO = 5
"""Up to so many rows all permutations are tried."""

CELLS = 2_000_000
"""Numbers held at a time."""


def level(alpha: float, n: int) -> float:
    """Error at which n units reject: ``alpha``, or what the least p of five units needs (a perfect order, or its reverse)."""
    return max(alpha, 2.0 / 120.0 + 1e-9) if n == EXACT_UP_TO else alpha


@dataclass(frozen=True, slots=True)
class Units:
    """What is exchangeable under the null: runs, or rows of the only run."""

    x: Array
    """Features, (F, n)."""
    y: Array
    """Responses, (n,)."""
    log_y: Array | None
    """Their logarithms, (n,); None where a response is not positive."""


@lru_cache(maxsize=256)
def orders(n: int, count: int) -> NDArray[np.intp]:
    """Permutations of n rows, (P, n), the identity left out: all for few rows, else seeded by n alone."""
    if n <= EXACT_UP_TO:
        return np.array(list(permutations(range(n)))[1:], dtype=np.intp).reshape(-1, n)
    rng = np.random.default_rng([n, count])
    return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)


def p_values(units: Sequence[Units], count: int) -> Array:
    """Chance of such data under "nothing depends on a feature" for every member, (len(units),); 1 if unknown."""
    out = np.ones(len(units))
    groups: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        if unit.x.shape[0] and unit.y.size > 2:
            groups[(*unit.x.shape, unit.log_y is not None)].append(i)
    for (_, n, positive), members in groups.items():
        size = max(1, CELLS // (n * count * 3))
        for start in range(0, len(members), size):
            part = members[start : start + size]
            x = np.stack([units[i].x for i in part])
            y = np.stack([units[i].y for i in part])
            log_y = np.stack([units[i].log_y for i in part]) if positive else None  # type: ignore[misc]  # all have one
            out[part] = _group(x, y, log_y, count)
    return out


def _group(x: Array, y: Array, log_y: Array | None, count: int) -> Array:
    """Values p of members of equal shape: x (B, F, n), y (B, n) -> (B,)."""
    ranks_x, ranks_y = unit(ranks(x)), unit(ranks(y))
    p = _spearman_p(np.abs(ranks_x @ ranks_y[..., None])[..., 0], x.shape[-1]) * x.shape[1]
    out: Array = p.min(axis=-1)
    unclear = (out >= CLEAR) | (x.shape[-1] < CLEAR_FROM)
    if unclear.any():
        columns = transforms(x[unclear])
        responses = [unit(y[unclear])] + ([unit(log_y[unclear])] if log_y is not None else [])
        order = orders(x.shape[-1], count)
        out[unclear] = _permutation_p(columns, responses, ranks_x[unclear], ranks_y[unclear], order)
    return out


def transforms(x: Array) -> Array:
    """Standardised x, x² and log x (x itself where not positive): (B, F, n) -> (B, 3F, n)."""
    top = np.abs(x).max(axis=-1, keepdims=True)
    scaled = x / np.where(top > 0, top, 1.0)
    positive = (x > 0).all(axis=-1, keepdims=True)
    logs = np.where(positive, np.log(np.maximum(np.where(positive, scaled, 1.0), 1e-300)), scaled)
    return np.concatenate([unit(scaled), unit(scaled**2), unit(logs)], axis=1)


def unit(values: Array) -> Array:
    """Values centred and of unit length along the last axis; 0 where they do not vary."""
    centred = values - np.add.reduce(values, axis=-1, keepdims=True) / values.shape[-1]
    length = np.sqrt(np.add.reduce(centred**2, axis=-1, keepdims=True))
    # Rounding of equal numbers is not variation.
    size = np.abs(values).max(axis=-1, keepdims=True) * np.sqrt(values.shape[-1])
    varies = length > 1e-12 * size
    if varies.all():
        return np.asarray(np.divide(centred, length, out=centred))
    return np.where(varies, centred / np.where(varies, length, 1.0), 0.0)


def _spearman_p(rho: Array, n: int) -> Array:
    """Two-sided p of Spearman's ρ by its t approximation (Kendall & Stuart, §31.19)."""
    statistic = rho * np.sqrt((n - 2) / np.maximum(1.0 - rho**2, 1e-12))
    return np.asarray(2.0 * student_tail(statistic, n - 2))


def _permutation_p(
    columns: Array, responses: list[Array], rank_x: Array, rank_y: Array, order: NDArray[np.intp]
) -> Array:
    """Share of permutations whose largest |r| reaches the data's, the data counted as one of them."""
    observed = np.zeros(len(columns))
    permuted = np.zeros((len(columns), len(order)))
    for left, right in [*((columns, response) for response in responses), (rank_x, rank_y)]:
        here = np.abs(left @ right[..., None])[..., 0].max(axis=-1)
        observed = np.maximum(observed, here)
        there = np.abs(right[:, order] @ left.transpose(0, 2, 1)).max(axis=-1)
        permuted = np.maximum(permuted, there)
    reached = (permuted >= observed[:, None] * (1.0 - 1e-9)).sum(axis=-1)
    p = (1.0 + reached) / (1.0 + len(order))
    return np.where(observed > 0, p, 1.0)


@dataclass(frozen=True, slots=True)
class Rows:
    """A series ready to fit: n points, F features."""

    series: Series
    """Where it comes from."""
    x: Array
    """Features, (F, n); a row of zeros where there is none."""
    y: Array
    """Responses, (n,); means over the rows of a run where those were averaged."""
    log_y: Array
    """Logarithms of the responses or their means in a run, (n,); 0 where a response is not positive."""
    w: Array
    """Weights, (n,), summing to n."""
    positive: bool
    """All responses are positive."""
    information: float
    """Independent rows the weights are worth, at most n."""
    runs: int
    """Distinct runs."""
    within: tuple[float, float]
    """Variance of rows about their run's mean that averaging hid: of y and of log y."""
    clusters: NDArray[np.intp] | None
    """Run of every point, (n,), where several points share a run and there are several runs; else None."""
    between: Units
    """What the null control permutes: runs, or the rows of the only run."""
    varying: NDArray[np.bool_]
    """Features that vary within runs, (F,); none where ``clusters`` is None."""

    @property
    def names(self) -> tuple[str, ...]:
        """Features in order."""
        return tuple(self.series.features)


def prepare(series: Series) -> Rows:
    """Rows of a series, its runs averaged where they have to be."""
    n = series.y.size
    # Without features one that never varies stands in: only the constant can be fitted to it.
    x = np.array(list(series.features.values()) or [np.zeros(n)])
    w = np.ones(n) if series.weights is None else series.weights * (n / series.weights.sum())
    positive = bool((series.y > 0).all())
    log_y = np.log(series.y) if positive else np.zeros(n)
    if series.runs is None:
        return _plain(series, x, series.y, log_y, w, positive, n)
    labels, inverse = np.unique(series.runs, return_inverse=True)
    if labels.size in (1, n):
        return _plain(series, x, series.y, log_y, w, positive, labels.size)
    return _of_runs(series, x, log_y, w, positive, inverse.reshape(-1), labels.size)


def _plain(series: Series, x: Array, y: Array, log_y: Array, w: Array, positive: bool, runs: int) -> Rows:
    """Every row is a unit of its own."""
    units = Units(x, y, log_y if positive else None)
    information = float(w.sum() ** 2 / (w * w).sum())
    none = np.zeros(len(x), dtype=bool)
    return Rows(series, x, y, log_y, w, positive, information, runs, (0.0, 0.0), None, units, none)


def _of_runs(
    series: Series, x: Array, log_y: Array, w: Array, positive: bool, run: NDArray[np.intp], runs: int
) -> Rows:
    """Several rows a run."""
    size = np.bincount(run, w)
    averaged = np.stack([np.bincount(run, row * w) / size for row in (*x, series.y, log_y)])
    mean_x, mean_y, mean_log = averaged[:-2], averaged[-2], averaged[-1]
    reach = np.abs(x).max(axis=-1, initial=0.0, keepdims=True)
    varying = (np.abs(x - mean_x[:, run]) > 1e-9 * reach).any(axis=-1)
    units = Units(mean_x, mean_y, mean_log if positive else None)
    if not varying.any():
        within = (_within(series.y - mean_y[run], w, run, runs), _within(log_y - mean_log[run], w, run, runs))
        equal = np.ones(runs)
        return Rows(series, mean_x, mean_y, mean_log, equal, positive, runs, runs, within, None, units, varying)
    information = float(w.sum() ** 2 / (w * w).sum())
    return Rows(
        series, x, series.y, log_y, w, positive, information, runs, (0.0, 0.0), run.astype(np.intp), units, varying
    )


def _within(deviation: Array, w: Array, run: NDArray[np.intp], runs: int) -> float:
    """Pooled variance within runs, less the part 1/m that a run's mean still shows."""
    freedom = run.size - runs
    pooled = float((w * deviation**2).sum() / freedom)
    rows = float(np.mean(np.bincount(run)))
    return pooled * (1.0 - 1.0 / rows)


# ---- Null control inside runs, for features that vary within runs.
#
# Responses are permuted within their runs only and both sides are taken relative to their run, so run effects cannot
# pass for a dependence (restricted permutation: Good 2005, §7.2).

ROWS = 600
"""Rows the permutations look at, spread evenly; Spearman's test before them sees all."""


AT_ONCE = 50
"""Permutations between two looks at whether p is small enough still."""


def within_p(x: Array, y: Array, log_y: Array | None, run: NDArray[np.intp], count: int, enough: float = 1.0) -> float:
    """Chance p of so much under "no response depends on a feature inside its run": x (F, n), y, run (n,).

    Where it is above ``enough`` some value above that may be returned, as soon as it is known.
    """
    rho = unit(_relative(ranks(x), run)) @ unit(_relative(ranks(y), run))
    clear = float(2.0 * normal_tail(float(np.abs(rho).max() * np.sqrt(run.size))) * len(x))
    if run.size >= 50 and clear < CLEAR:
        return clear
    if run.size > ROWS:
        some = np.linspace(0, run.size - 1, ROWS).astype(np.intp)
        x, y, run = x[:, some], y[some], run[some]
        log_y = None if log_y is None else log_y[some]
    columns = unit(_relative(transforms(x[None])[0], run))
    responses = [y] if log_y is None else [y, log_y]
    sides = [unit(_relative(response, run)) for response in responses]
    observed = max(float(np.abs(columns @ side).max()) for side in sides)
    if observed == 0.0:
        return 1.0
    reached = 0
    for order in _orders(run, count):
        permuted = np.max([np.abs(side[order] @ columns.T).max(axis=-1) for side in sides], axis=0)
        reached += int((permuted >= observed * (1.0 - 1e-9)).sum())
        if (1.0 + reached) / (1.0 + count) > enough:
            break
    return (1.0 + reached) / (1.0 + count)


def _relative(values: Array, run: NDArray[np.intp]) -> Array:
    """Values less their run's mean along the last axis."""
    size = np.bincount(run)
    rows = np.atleast_2d(values)
    means = np.stack([np.bincount(run, row) / size.clip(1) for row in rows])
    return np.asarray((rows - means[:, run]).reshape(values.shape))


def _orders(run: NDArray[np.intp], count: int) -> Iterator[NDArray[np.intp]]:
    """Permutations within runs, ``count`` of them by and by, (k, n) each, seeded by the shape of the data alone."""
    rng = np.random.default_rng([run.size, count, int(run.max())])
    place = np.argsort(run, kind="stable")
    sorted_ = bool((place[1:] > place[:-1]).all())
    ends = np.cumsum(np.bincount(run)).tolist()
    for start in range(0, count, AT_ONCE):
        keys = rng.random((min(AT_ONCE, count - start), run.size))
        moved = np.empty(keys.shape, dtype=np.intp)
        for first, last in pairwise([0, *ends]):
            moved[:, first:last] = place[first:last][np.argsort(keys[:, first:last], axis=-1)]
        out = moved if sorted_ else np.empty_like(moved)
        if not sorted_:
            out[:, place] = moved
        yield out
