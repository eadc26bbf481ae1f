"""The best partition of every series into regimes, and what it gains over a smooth law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.blends import blended
from perflaw.learn.laws.scan import Sorted, partitions, splits
from perflaw.learn.laws.series import Array

FIRST, SECOND, SECOND_FEW = 14.5, 4.0, 40.0
"""What a partition costs: every breakpoint, and every second parameter of a segment's law (the last one over n).

Calibrated by simulation over the families, 5 and 20 % noise, n = 10 to 100 (benchmarks/learner.py): a smooth law under
noise is called piecewise in about 0.5 % of series.
"""

MANY = 2.0
"""What a breakpoint costs more for every e-fold of points beyond 30: there are more places to choose from."""

FEWEST_GAINED = 5.0
"""Fewest deviance a partition into more segments gains over one into fewer, its cost paid."""

BLEND = 6.0
"""Deviance that the two terms and the choice of them cost a smooth law of two terms."""

NEARLY = 6.0
"""More segments are looked for where two lack less deviance to pay."""

MOST_SEGMENTS = 4
"""Segments that are looked for."""

PLACES = 40
"""Places that three and more segments are looked for at."""

CELLS = 20_000
"""Numbers an array holds at a time; what stays in the cache is fast."""

FLOOR = 1e-7
"""Residuals relative to the response below which sums over rows are rounding."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best partition of one series."""

    smooth: float
    """Deviance of the best smooth law."""
    excess: float
    """What the partition gains over that, in deviance of independent rows, beyond its cost."""
    cuts: tuple[int, ...]
    """Places where regimes change, increasing."""


def cost(segments: int, parameters: int, n: Array | float) -> Array | float:
    """Deviance that a partition has to gain, n the independent rows."""
    first = FIRST + MANY * np.log(np.maximum(n / 30.0, 1.0))
    return first * (segments - 1) + (parameters - segments) * (SECOND + SECOND_FEW / n)


def best_partitions(rows: Sorted, log: bool, smooth: Array, worth: Array) -> list[Best]:
    """Best partition of each series into 2 to 4 segments.

    smooth (S,) are the deviances to beat, worth (S,) independent rows per row. Three and more segments are looked for
    where two nearly pay their cost.
    """
    n = rows.x.shape[-1]
    size = max(1, CELLS // n)
    if len(rows.x) > size:
        parts = np.split(np.arange(len(rows.x)), range(size, len(rows.x), size))
        return [one for part in parts for one in best_partitions(rows.take(part), log, smooth[part], worth[part])]
    two = {(2, p): (rss.min(axis=-1), rss.argmin(axis=-1)[:, None]) for p, rss in splits(rows, log).items()}
    out = _compared(two, rows, log, smooth, worth)
    more = np.array([i for i, best in enumerate(out) if best.excess > -NEARLY], dtype=np.intp)
    size = max(1, CELLS // n**2) if n <= PLACES else 1
    for start in range(0, more.size, size):
        part = more[start : start + size]
        some = rows.take(part)
        finer = partitions(some, log, _places(some), MOST_SEGMENTS)
        for i, best in zip(part.tolist(), _compared(finer, some, log, smooth[part], worth[part]), strict=True):
            needed = FEWEST_GAINED if len(best.cuts) > len(out[i].cuts) and out[i].excess > 0 else 0.0
            if best.excess > out[i].excess + needed:
                out[i] = best
    return _against_blends(out, rows, smooth, worth) if log else out


def _against_blends(found: list[Best], rows: Sorted, smooth: Array, worth: Array) -> list[Best]:
    """Gains over the better of the smooth law and one of two terms, where that may decide."""
    some = [i for i, best in enumerate(found) if best.excess > 0]
    if some:
        part = rows.take(some)
        lead = np.maximum(smooth[some] - deviance(blended(part), part, True) - BLEND, 0.0)
        for i, less in zip(some, lead.tolist(), strict=True):
            found[i] = Best(found[i].smooth - less, found[i].excess - less * float(worth[i]), found[i].cuts)
    return found


def deviance(rss: Array, rows: Sorted, log: bool) -> Array:
    """−2 log likelihood of y, (S,), as :meth:`NoiseModel.deviance`."""
    n = rows.y.shape[-1]
    size = np.ones(len(rows.y)) if log else (rows.w * rows.y**2).sum(axis=-1) / n
    variance = np.maximum(rss / n, FLOOR**2 * size)
    jacobian = 2.0 * (rows.w * rows.log_y).sum(axis=-1) if log else 0.0
    return np.asarray(n * np.log(variance) + rss / variance + jacobian)


def _compared(
    found: dict[tuple[int, int], tuple[Array, NDArray[np.intp]]], rows: Sorted, log: bool, smooth: Array, worth: Array
) -> list[Best]:
    """The partition whose gain most exceeds its cost, series by series."""
    n, keys = rows.y.shape[-1], list(found)
    gains = np.stack([smooth - deviance(found[key][0], rows, log) for key in keys])
    gains = np.where(np.isfinite(gains), gains, -np.inf)
    excess = gains * worth - np.stack([np.asarray(cost(*key, n * worth)) for key in keys])
    which = excess.argmax(axis=0)
    return [
        Best(float(smooth[i]), float(excess[k, i]), tuple(found[keys[k]][1][i].tolist())) for i, k in enumerate(which)
    ]


def confirmed(rows: Sorted, log: bool, alpha: float) -> bool:
    """Permuting the responses of one series (S = 1) reaches its partition's excess with p ≤ alpha at most."""
    count = int(2 / alpha) - 1
    others = permuted(rows, count)
    # Any deviance that permuting leaves as it is serves for the smooth law's.
    smooth = deviance((rows.w * rows.y**2).sum(axis=-1), rows, log) + np.zeros(count)
    own = best_partitions(rows, log, smooth[:1], np.ones(1))[0].excess
    reached = sum(one.excess >= own for one in best_partitions(others, log, smooth, np.ones(count)))
    return (1 + reached) / (1 + count) <= alpha


def _places(rows: Sorted) -> NDArray[np.intp]:
    """Places to look at: all that are boundaries somewhere, or so many of them spread evenly."""
    places = np.flatnonzero(rows.boundaries().any(axis=0))
    if places.size <= PLACES + 1:
        return places
    return places[np.unique(np.linspace(0, places.size - 1, PLACES + 1).astype(np.intp))]


def permuted(rows: Sorted, count: int) -> Sorted:
    """One series with its responses permuted ``count`` times, seeded by its length alone."""
    n = rows.x.shape[-1]
    rng = np.random.default_rng([n, count])
    order = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    x = np.repeat(rows.x, count, axis=0)
    return Sorted(x, rows.y[0][order], rows.log_y[0][order], rows.w[0][order])
