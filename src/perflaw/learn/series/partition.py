"""Exact search for breakpoints: residuals of every segment between any two places, from sums over the rows before them.

Within a segment a law is one of a few that least squares solve by formula: on the scale of logarithms c·g and c·x^b,
and a + b·g with weights 1/y²; on the scale of y itself c·g and a + b·g. Sums before every place give the residual
sum of squares of any segment at once, and dynamic programming over places the best partition (Bai & Perron 2003, §3).
Rows are sorted by x; a place k is the boundary before row k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, FAMILIES, Shape
from perflaw.learn.series.series import Array

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


SCREENED = tuple(one.shape for one in FAMILIES if one.piece and one.exponent > 0)
"""Shapes that segments are searched with."""
BLENDED = tuple(one.shape for one in FAMILIES if one.blend)
"""Shapes of the terms of smooth sums."""


def _on_logs(rows: Sorted) -> list[tuple[list[Array], Array]]:
    """Columns and targets of the laws under multiplicative noise."""
    positive = (rows.x > 0).all(axis=-1, keepdims=True)
    log_x = np.log(np.where(positive, rows.x, 1.0))
    loglog = np.log(np.where((rows.x > 1).all(axis=-1, keepdims=True), np.maximum(log_x, 1e-12), 1.0))
    one, inverse = np.ones_like(rows.x), np.exp(rows.log_y.min(axis=-1, keepdims=True) - rows.log_y)
    offsets = [shape.exponent * log_x + shape.log_exponent * loglog for shape in (CONSTANT.shape, *SCREENED)]
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
    """The screened shapes relative to their largest, (S, n) each; x² is also taken of negative x.

    The power of x alone stands in where a logarithm would turn negative, and the line where a power is not real.
    """
    top = np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300)
    fine = (x >= 1).all(axis=-1, keepdims=True) & (top > 1)
    positive = (x >= 0).all(axis=-1, keepdims=True)
    out = []
    for shape in SCREENED:
        real = positive | (shape.exponent == int(shape.exponent))
        safe = np.where(real, x, 1.0)
        plain = Shape(shape.exponent).ratio(safe, np.where(real, top, 1.0))
        if shape.log_exponent:
            value = shape.ratio(np.where(fine, x, 2.0), np.where(fine, top, 2.0))
            plain = np.where(fine, value, plain)
        out.append(np.where(real, plain, x / top))
    return out


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


# ---- Smooth laws of two terms, such as 3·x + 0.002·x²: what a breakpoint has to beat besides the families of one
# term.


def blended(rows: Sorted) -> Array:
    """Least residuals of sums of two growing terms with positive coefficients, weights 1/y², (S,); infinite if none.

    All responses have to be positive; terms with logarithms need x ≥ 1, all need x > 0.
    """
    out = np.full(len(rows.x), np.inf)
    inverse = np.exp(rows.log_y.min(axis=-1, keepdims=True) - rows.log_y)
    target = inverse.max(axis=-1, keepdims=True)
    goal, weight = np.ones_like(inverse) * target, rows.w
    for first, second in combinations(_blends(rows.x), 2):
        a, b = first * inverse, second * inverse
        aa, ab, bb = ((weight * left * right).sum(axis=-1) for left, right in ((a, a), (a, b), (b, b)))
        ay, by = (weight * a * goal).sum(axis=-1), (weight * b * goal).sum(axis=-1)
        determinant = aa * bb - ab * ab
        fine = determinant > 1e-12 * aa * bb
        safe = np.where(fine, determinant, 1.0)
        p, q = (bb * ay - ab * by) / safe, (aa * by - ab * ay) / safe
        rss = (weight * (goal - p[:, None] * a - q[:, None] * b) ** 2).sum(axis=-1) / target[:, 0] ** 2
        out = np.where(fine & (p > 0) & (q > 0), np.minimum(out, rss), out)
    return np.where((rows.x > 0).all(axis=-1), out, np.inf)


def _blends(x: Array) -> list[Array]:
    """The terms relative to their largest, (S, n) each; meaningless where x is not positive."""
    ratio = np.maximum(x / np.maximum(x.max(axis=-1, keepdims=True), 1e-300), 1e-300)
    log_x = np.log(np.maximum(x, 1.0))
    logs = log_x / np.maximum(log_x.max(axis=-1, keepdims=True), 1e-300)
    return [ratio**shape.exponent * logs**shape.log_exponent for shape in BLENDED]


# ---- The best partition of every series into regimes, and what it gains over a smooth law.

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
