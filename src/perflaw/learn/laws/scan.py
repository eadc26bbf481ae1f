"""Exact search for breakpoints: residuals of every segment between any two places, from sums over the rows before them.

Within a segment a law is one of a few that least squares solve by formula: on the scale of logarithms c·g and c·x^b,
and a + b·g with weights 1/y²; on the scale of y itself c·g and a + b·g. Sums before every place give the residual
sum of squares of any segment at once, and dynamic programming over places the best partition (Bai & Perron 2003, §3).
Rows are sorted by x; a place k is the boundary before row k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.series import Array

FEWEST_SIZES = 3
"""Distinct sizes a segment has at least: two parameters and one to test them."""

PAIR = 8.0
"""Deviance more that a first or last segment of two sizes and one parameter has to gain: next to nothing tests it."""

Cost = dict[int, Array]
"""Parameters → residual sum of squares."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of S series of n points each, sorted by x."""

    x: Array
    """Feature, (S, n), increasing."""
    y: Array
    """Responses, (S, n)."""
    log_y: Array
    """Their logarithms, (S, n)."""
    w: Array
    """Weights, (S, n), summing to n."""

    def take(self, members: Sequence[int] | NDArray[np.intp]) -> Sorted:
        """Some of the series."""
        return Sorted(self.x[members], self.y[members], self.log_y[members], self.w[members])

    def sizes(self) -> NDArray[np.intp]:
        """Distinct x before every place, (S, n + 1)."""
        out = np.zeros((len(self.x), self.x.shape[-1] + 1), dtype=np.intp)
        out[:, 1] = 1
        np.cumsum(self.x[:, 1:] > self.x[:, :-1], axis=-1, out=out[:, 2:])
        out[:, 2:] += 1
        return out

    def boundaries(self) -> NDArray[np.bool_]:
        """Places where x changes, the two ends among them, (S, n + 1)."""
        out = np.ones((len(self.x), self.x.shape[-1] + 1), dtype=bool)
        out[:, 1:-1] = self.x[:, 1:] > self.x[:, :-1]
        return out


class Sums:
    """Residual sums of squares of segments on one scale."""

    def __init__(self, rows: Sorted, log: bool) -> None:
        """Sum up everything once; ``log``: on the scale of logarithms, where all y have to be positive."""
        root = np.sqrt(rows.w)
        self._one: list[list[Array]] = []
        self._two: list[list[Array]] = []
        for columns, target in _on_logs(rows) if log else _on_y(rows):
            weighted = [column * root for column in columns]
            products = [a * b for i, a in enumerate(weighted) for b in weighted[i:]]
            goal = target * root
            sums = [_before(v) for v in (goal * goal, *(column * goal for column in weighted), *products)]
            (self._one if len(columns) == 1 else self._two).append(sums)

    def rss(self, low: NDArray[np.intp], high: NDArray[np.intp]) -> Cost:
        """Least residuals of segments from place ``low`` to ``high`` (they broadcast), by parameters: (S, ...)."""
        return {1: _least(_one_rss, self._one, low, high), 2: _least(_two_rss, self._two, low, high)}


def splits(rows: Sorted, log: bool) -> Cost:
    """Least residuals of two segments split at every place, by parameters 2, 3 and 4: (S, n + 1), else infinite."""
    n = rows.x.shape[-1]
    places = np.arange(n + 1)
    sums = Sums(rows, log)
    left, right = sums.rss(0 * places, places), sums.rss(places, 0 * places + n)
    sizes = rows.sizes()
    fine = rows.boundaries() & (sizes >= FEWEST_SIZES) & (sizes[:, -1:] - sizes >= FEWEST_SIZES)
    mixed = np.minimum(left[1] + right[2], left[2] + right[1])
    pairs = {2: left[1] + right[1], 3: mixed, 4: left[2] + right[2]}
    out = {p: np.where(fine, rss, np.inf) for p, rss in pairs.items()}
    short = rows.boundaries() & ~fine & (sizes > 1) & (sizes[:, -1:] - sizes > 1)
    out[2] = np.where(short, pairs[2] * np.exp(PAIR / n), out[2])
    return out


def partitions(
    rows: Sorted, log: bool, places: NDArray[np.intp], most: int
) -> dict[tuple[int, int], tuple[Array, NDArray[np.intp]]]:
    """Best partitions into 2 to ``most`` segments at some places, 0 and n among them.

    (segments, parameters) → residuals (S,) and the inner places (S, segments − 1).
    """
    count, sizes, inner = len(rows.x), rows.sizes()[:, places], rows.boundaries()[:, places]
    fine = (sizes[:, None, :] - sizes[:, :, None] >= FEWEST_SIZES) & inner[:, None, :] & inner[:, :, None]
    cost = Sums(rows, log).rss(places[:, None], places[None, :])
    cost = {p: np.where(fine, rss, np.inf) for p, rss in cost.items()}
    best = {(1, p): (rss[:, 0, :], np.zeros((count, places.size, 0), dtype=np.intp)) for p, rss in cost.items()}
    for segments in range(2, most + 1):
        for p in range(segments, 2 * segments + 1):
            before = [(p - q, q) for q in (1, 2) if (segments - 1, p - q) in best]
            options = [best[segments - 1, r][0][:, :, None] + cost[q] for r, q in before]
            which = np.argmin(options, axis=0)
            whole = np.min(options, axis=0)
            cut = whole.argmin(axis=1)
            rss = np.take_along_axis(whole, cut[:, None, :], axis=1)[:, 0, :]
            source = np.take_along_axis(which, cut[:, None, :], axis=1)[:, 0, :]
            paths = np.stack([best[segments - 1, r][1] for r, _ in before])
            earlier = paths[source, np.arange(count)[:, None], cut]
            best[segments, p] = (rss, np.concatenate([earlier, places[cut][..., None]], axis=-1))
    return {key: (rss[:, -1], path[:, -1]) for key, (rss, path) in best.items() if key[0] > 1}


def _on_logs(rows: Sorted) -> list[tuple[list[Array], Array]]:
    """Columns and targets of the laws under multiplicative noise."""
    positive = (rows.x > 0).all(axis=-1, keepdims=True)
    log_x = np.log(np.where(positive, rows.x, 1.0))
    loglog = np.log(np.where((rows.x > 1).all(axis=-1, keepdims=True), np.maximum(log_x, 1e-12), 1.0))
    one, inverse = np.ones_like(rows.x), np.exp(rows.log_y.min(axis=-1, keepdims=True) - rows.log_y)
    offsets = (0.0 * log_x, log_x, log_x + loglog, 2.0 * log_x)
    out = [([one], _centred(rows.log_y - offset)) for offset in offsets]
    out.append(([one, _centred(log_x)], _centred(rows.log_y)))
    return out + [([inverse, inverse * g], one) for g in _growths(rows.x)]


def _on_y(rows: Sorted) -> list[tuple[list[Array], Array]]:
    """Columns and targets of the laws under additive noise."""
    one = np.ones_like(rows.x)
    growths = _growths(rows.x)
    columns = [[one], *([g] for g in growths), *([one, g] for g in growths)]
    return [(column, rows.y) for column in columns]


def _growths(x: Array) -> list[Array]:
    """x, x log x and x² relative to their largest; the line stands in where a logarithm would turn negative."""
    top = np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300)
    ratio = x / top
    fine = (x >= 1).all(axis=-1, keepdims=True) & (top > 1)
    logs = np.log(np.where(fine, x, 2.0)) / np.log(np.where(fine, top, 2.0))
    return [ratio, np.where(fine, ratio * logs, ratio), ratio**2]


def _centred(values: Array) -> Array:
    return np.asarray(values - values.mean(axis=-1, keepdims=True))


def _before(values: Array) -> Array:
    """Sums before every place, (S, n) -> (S, n + 1)."""
    out = np.zeros((len(values), values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=out[:, 1:])
    return out


Solve = Callable[..., Array]


def _least(solve: Solve, laws: list[list[Array]], low: NDArray[np.intp], high: NDArray[np.intp]) -> Array:
    out: Array | None = None
    for sums in laws:
        rss: Array = solve(*(total[:, high] - total[:, low] for total in sums))
        out = rss if out is None else np.minimum(out, rss)
    assert out is not None
    return np.maximum(out, 0.0)


def _one_rss(square: Array, along: Array, length: Array) -> Array:
    rss: Array = square - along * along / np.maximum(length, 1e-300)
    return rss


def _two_rss(square: Array, first: Array, second: Array, aa: Array, ab: Array, bb: Array) -> Array:
    determinant = aa * bb - ab * ab
    fine = determinant > 1e-12 * aa * bb
    safe = np.where(fine, determinant, 1.0)
    a, b = (bb * first - ab * second) / safe, (aa * second - ab * first) / safe
    return np.asarray(np.where(fine, square - a * first - b * second, square))
