"""Exact search for breakpoints: residuals of every segment between any two places, from sums over the rows before them.

Within a segment a law is one of a few that least squares solves by formula: c·g and c·x^b on the scale of logarithms
and a + b·g with weights 1/y², or c·g and a + b·g on the scale of y itself. Sums before every place give the residual
sum of squares of any segment at once, and dynamic programming over the places gives the best partition (Bai & Perron
2003, §3). Rows are sorted by x; place k is the boundary before row k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, FAMILIES, Shape
from perflaw.learn.series.independence import logs_if_positive, permuted_orders
from perflaw.learn.series.model import LOGNORMAL, NORMAL
from perflaw.learn.series.series import Array, evenly

SCREENED = tuple(one.shape for one in FAMILIES if one.piece and one.exponent > 0)
"""Shapes that segments are searched with."""
BLENDED = tuple(one.shape for one in FAMILIES if one.blend)
"""Shapes of the terms of smooth sums of two terms."""
FEWEST_SIZES = 3
"""Fewest distinct sizes of a segment: two parameters and one size to test them."""
SHORT_SEGMENT = 8.0
"""Extra deviance that a first or last segment of two sizes and one parameter must gain: next to nothing tests it."""
FIRST, SECOND, SECOND_FEW = 14.5, 4.0, 40.0
"""Cost of every breakpoint, and of every second parameter of a segment's law (the last number is over n).

Calibrated by simulation over the families, 5 and 20 % noise, n = 10 to 100 (benchmarks/learner.py): a smooth law under
noise is called piecewise in about 0.5 % of series.
"""
MANY_PLACES = 2.0
"""Extra cost of a breakpoint for every e-fold of points beyond 30: there are more places to choose from."""
LEAST_GAIN = 5.0
"""Least deviance, after its cost, that a partition into more segments gains over one into fewer."""
BLEND_COST = 6.0
"""Deviance that the two terms and the choice of them cost a smooth law of two terms."""
NEARLY = 6.0
"""More than two segments are searched if two segments lack less than this deviance to pay their cost."""
MOST_SEGMENTS = 4
"""Most segments of a partition."""
MOST_PLACES = 40
"""Most places at which three and more segments are searched."""
CELLS = 20_000
"""Most numbers of an array; what stays in the cache is fast."""
BLOCKS = 8
"""Parts in which permutations are searched: after each, a partition that too many have reached is given up."""
FLOOR = 1e-7
"""Residuals relative to the response below which sums over rows are rounding."""
Partitions = dict[tuple[int, int], tuple[Array, NDArray[np.intp]]]
"""(segments, parameters) → residual sums of squares (S,) and the inner places (S, segments − 1)."""


@dataclass(frozen=True, slots=True)
class SortedSeries:
    """S series of n points each, sorted by x."""

    x: Array
    """Feature, (S, n), increasing."""
    y: Array
    """Responses, (S, n)."""
    log_y: Array
    """Their logarithms, (S, n)."""
    w: Array
    """Weights, (S, n); their sum is n."""

    def take(self, members: Sequence[int] | NDArray[np.intp]) -> SortedSeries:
        """Some of the series."""
        return SortedSeries(self.x[members], self.y[members], self.log_y[members], self.w[members])

    def sizes(self) -> NDArray[np.intp]:
        """Number of distinct x before every place, (S, n + 1)."""
        out = np.zeros((len(self.x), self.x.shape[-1] + 1), dtype=np.intp)
        out[:, 1] = 1
        np.cumsum(self.x[:, 1:] > self.x[:, :-1], axis=-1, out=out[:, 2:])
        out[:, 2:] += 1
        return out

    def boundaries(self) -> NDArray[np.bool_]:
        """Places where x changes, with the two ends, (S, n + 1)."""
        out = np.ones((len(self.x), self.x.shape[-1] + 1), dtype=bool)
        out[:, 1:-1] = self.x[:, 1:] > self.x[:, :-1]
        return out


class SegmentSums:
    """Residual sums of squares of segments, from sums over the rows before every place."""

    def __init__(self, rows: SortedSeries, log: bool) -> None:
        """Sum up everything once; ``log``: on the scale of logarithms, for which all y must be positive."""
        root = np.sqrt(rows.w)
        self._of_one_term: list[list[Array]] = []
        self._of_two_terms: list[list[Array]] = []
        for columns, target in _regressions(rows, log):
            weighted = [column * root for column in columns]
            goal = target * root
            products = [a * b for i, a in enumerate(weighted) for b in weighted[i:]]
            sums = []
            for values in (goal * goal, *(column * goal for column in weighted), *products):
                before = np.zeros((len(values), values.shape[-1] + 1))
                np.cumsum(values, axis=-1, out=before[:, 1:])
                sums.append(before)
            (self._of_one_term if len(columns) == 1 else self._of_two_terms).append(sums)

    def rss(self, low: NDArray[np.intp], high: NDArray[np.intp]) -> dict[int, Array]:
        """Least residuals of segments from place ``low`` to ``high`` (they broadcast), by parameters: (S, ...)."""
        one, two = np.array(np.inf), np.array(np.inf)
        for sums in self._of_one_term:
            yy, ay, aa = (total[:, high] - total[:, low] for total in sums)
            one = np.minimum(one, yy - ay * ay / np.maximum(aa, 1e-300))
        for sums in self._of_two_terms:
            yy, ay, by, aa, ab, bb = (total[:, high] - total[:, low] for total in sums)
            p, q, regular = _solve_two(aa, ab, bb, ay, by)
            two = np.minimum(two, np.where(regular, yy - p * ay - q * by, yy))
        return {1: np.maximum(one, 0.0), 2: np.maximum(two, 0.0)}


def _solve_two(aa: Array, ab: Array, bb: Array, ay: Array, by: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Coefficients of two columns by Cramer's rule, and whether the system is regular."""
    determinant = aa * bb - ab * ab
    regular = determinant > 1e-12 * aa * bb
    safe = np.where(regular, determinant, 1.0)
    return (bb * ay - ab * by) / safe, (aa * by - ab * ay) / safe, regular


def _regressions(rows: SortedSeries, log: bool) -> list[tuple[list[Array], Array]]:
    """Columns and targets of the laws that segments are searched with, under multiplicative or additive noise.

    Growing columns are the screened shapes relative to their largest value; x² is also taken of negative x. The power
    of x alone replaces a shape whose logarithm would turn negative, and the line one whose power is not real.
    """
    x, one, growths = rows.x, np.ones_like(rows.x), []
    top = np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300)
    has_log = (x >= 1).all(axis=-1, keepdims=True) & (top > 1)
    not_negative = (x >= 0).all(axis=-1, keepdims=True)
    for shape in SCREENED:
        real = not_negative | (shape.exponent == int(shape.exponent))
        growth = Shape(shape.exponent).ratio(np.where(real, x, 1.0), np.where(real, top, 1.0))
        if shape.log_exponent:
            growth = np.where(has_log, shape.ratio(np.where(has_log, x, 2.0), np.where(has_log, top, 2.0)), growth)
        growths.append(np.where(real, growth, x / top))
    if not log:
        return [(columns, rows.y) for columns in ([one], *([g] for g in growths), *([one, g] for g in growths))]

    def centred(values: Array) -> Array:
        return np.asarray(values - values.mean(axis=-1, keepdims=True))

    log_x = logs_if_positive(x)
    loglog = np.log(np.where((x > 1).all(axis=-1, keepdims=True), np.maximum(log_x, 1e-12), 1.0))
    shapes = (CONSTANT.shape, *SCREENED)
    offsets = [shape.exponent * log_x + shape.log_exponent * loglog for shape in shapes]
    out = [([one], centred(rows.log_y - offset)) for offset in offsets]
    out.append(([one, centred(log_x)], centred(rows.log_y)))
    inverse = np.exp(rows.log_y.min(axis=-1, keepdims=True) - rows.log_y)
    return out + [([inverse, inverse * g], one) for g in growths]


def splits(rows: SortedSeries, log: bool) -> dict[int, Array]:
    """Least residuals of two segments split at every place, by parameters 2, 3 and 4: (S, n + 1), else infinite."""
    n = rows.x.shape[-1]
    places = np.arange(n + 1)
    sums = SegmentSums(rows, log)
    left, right = sums.rss(0 * places, places), sums.rss(places, 0 * places + n)
    sizes, boundaries = rows.sizes(), rows.boundaries()
    long = boundaries & (sizes >= FEWEST_SIZES) & (sizes[:, -1:] - sizes >= FEWEST_SIZES)
    three = np.minimum(left[1] + right[2], left[2] + right[1])
    pairs = {2: left[1] + right[1], 3: three, 4: left[2] + right[2]}
    out = {p: np.where(long, rss, np.inf) for p, rss in pairs.items()}
    short = boundaries & ~long & (sizes > 1) & (sizes[:, -1:] - sizes > 1)
    out[2] = np.where(short, pairs[2] * np.exp(SHORT_SEGMENT / n), out[2])
    return out


def partitions(rows: SortedSeries, log: bool, places: NDArray[np.intp], most: int) -> Partitions:
    """Best partitions into 2 to ``most`` segments at some places, 0 and n among them, by dynamic programming."""
    count, sizes, inner = len(rows.x), rows.sizes()[:, places], rows.boundaries()[:, places]
    long = (sizes[:, :, None] - sizes[:, None, :] >= FEWEST_SIZES) & inner[:, :, None] & inner[:, None, :]
    # Of a segment that ends at the second axis' place and begins at the third's, which is the one that is searched.
    residuals = SegmentSums(rows, log).rss(places[None, :], places[:, None])
    residuals = {p: np.where(long, rss, np.inf) for p, rss in residuals.items()}
    best = {(1, p): (rss[:, :, 0], np.zeros((count, places.size, 0), dtype=np.intp)) for p, rss in residuals.items()}
    for segments in range(2, most + 1):
        if segments == most:  # nothing follows, so that only the end of the series is an end
            residuals = {p: rss[:, -1:] for p, rss in residuals.items()}
        for p in range(segments, 2 * segments + 1):
            before = [(p - q, q) for q in (1, 2) if (segments - 1, p - q) in best]
            options = [best[segments - 1, r][0][:, None, :] + residuals[q] for r, q in before]
            whole = reduce(np.minimum, options)
            cut = whole.argmin(axis=-1)
            found = [np.take_along_axis(rss, cut[..., None], axis=-1)[..., 0] for rss in options]
            source = np.argmin(found, axis=0)
            paths = np.stack([best[segments - 1, r][1] for r, _ in before])
            earlier = paths[source, np.arange(count)[:, None], cut]
            best[segments, p] = (np.min(found, axis=0), np.concatenate([earlier, places[cut][..., None]], axis=-1))
    return {key: (rss[:, -1], path[:, -1]) for key, (rss, path) in best.items() if key[0] > 1}


def blended_rss(rows: SortedSeries) -> Array:
    """Least residuals of smooth sums of two growing terms with positive coefficients, such as 3·x + 0.002·x², (S,).

    Weights are 1/y², so all responses must be positive. Terms with logarithms need x ≥ 1, all need x > 0; infinite if
    there is no such sum. A breakpoint has to beat these besides the families of one term.
    """
    ratio = np.maximum(rows.x / np.maximum(rows.x.max(axis=-1, keepdims=True), 1e-300), 1e-300)
    log_x = np.log(np.maximum(rows.x, 1.0))
    logs = log_x / np.maximum(log_x.max(axis=-1, keepdims=True), 1e-300)
    terms = [ratio**shape.exponent * logs**shape.log_exponent for shape in BLENDED]
    inverse = np.exp(rows.log_y.min(axis=-1, keepdims=True) - rows.log_y)
    target, w = inverse.max(axis=-1, keepdims=True), rows.w
    goal = np.ones_like(inverse) * target
    out = np.full(len(rows.x), np.inf)
    for first, second in combinations(terms, 2):
        a, b = first * inverse, second * inverse
        products = ((a, a), (a, b), (b, b), (a, goal), (b, goal))
        p, q, regular = _solve_two(*((w * left * right).sum(axis=-1) for left, right in products))
        rss = (w * (goal - p[:, None] * a - q[:, None] * b) ** 2).sum(axis=-1) / target[:, 0] ** 2
        out = np.where(regular & (p > 0) & (q > 0), np.minimum(out, rss), out)
    return np.where((rows.x > 0).all(axis=-1), out, np.inf)


@dataclass(frozen=True, slots=True)
class BestPartition:
    """The best partition of one series into regimes, and what it gains over a smooth law."""

    smooth: float
    """Deviance of the best smooth law."""
    excess: float
    """Gain over that law beyond the partition's cost, in deviance of independent rows."""
    cuts: tuple[int, ...]
    """Places where regimes change, increasing."""


def cost(segments: int, parameters: int, n: Array | float) -> Array | float:
    """Deviance that a partition must gain; n is the number of independent rows."""
    breakpoint_cost = FIRST + MANY_PLACES * np.log(np.maximum(n / 30.0, 1.0))
    return breakpoint_cost * (segments - 1) + (parameters - segments) * (SECOND + SECOND_FEW / n)


def best_partitions(rows: SortedSeries, log: bool, smooth: Array, worth: Array) -> list[BestPartition]:
    """Best partition of each series into 2 to 4 segments.

    smooth (S,) are the deviances to beat, worth (S,) independent rows per row. Three and more segments are searched if
    two segments nearly pay their cost.
    """
    n = rows.x.shape[-1]
    size = max(1, CELLS // n)
    if len(rows.x) > size:
        parts = np.split(np.arange(len(rows.x)), range(size, len(rows.x), size))
        return [one for part in parts for one in best_partitions(rows.take(part), log, smooth[part], worth[part])]
    two: Partitions = {(2, p): (rss.min(axis=-1), rss.argmin(axis=-1)[:, None]) for p, rss in splits(rows, log).items()}
    out = _best_of(two, rows, log, smooth, worth)
    more = np.array([i for i, best in enumerate(out) if best.excess > -NEARLY], dtype=np.intp)
    size = max(1, CELLS // n**2) if n <= MOST_PLACES else 1
    for start in range(0, more.size, size):
        part = more[start : start + size]
        some = rows.take(part)
        places = evenly(np.flatnonzero(some.boundaries().any(axis=0)), MOST_PLACES + 1)
        finer = partitions(some, log, places, MOST_SEGMENTS)
        for i, best in zip(part.tolist(), _best_of(finer, some, log, smooth[part], worth[part]), strict=True):
            needed = LEAST_GAIN if len(best.cuts) > len(out[i].cuts) and out[i].excess > 0 else 0.0
            if best.excess > out[i].excess + needed:
                out[i] = best
    paying = [i for i, best in enumerate(out) if best.excess > 0]
    if log and paying:
        # Smooth laws of two terms are compared only where they may decide.
        some = rows.take(paying)
        lead = np.maximum(smooth[paying] - deviance(blended_rss(some), some, True) - BLEND_COST, 0.0)
        for i, less in zip(paying, lead.tolist(), strict=True):
            out[i] = replace(out[i], smooth=out[i].smooth - less, excess=out[i].excess - less * float(worth[i]))
    return out


def _best_of(
    found: Mapping[tuple[int, int], tuple[Array, NDArray[np.intp]]],
    rows: SortedSeries,
    log: bool,
    smooth: Array,
    worth: Array,
) -> list[BestPartition]:
    """The partition whose gain most exceeds its cost, for each series."""
    n, keys = rows.y.shape[-1], list(found)
    gains = np.stack([smooth - deviance(found[key][0], rows, log) for key in keys])
    gains = np.where(np.isfinite(gains), gains, -np.inf)
    excess = gains * worth - np.stack([np.asarray(cost(*key, n * worth)) for key in keys])
    return [
        BestPartition(float(smooth[i]), float(excess[k, i]), tuple(found[keys[k]][1][i].tolist()))
        for i, k in enumerate(excess.argmax(axis=0))
    ]


def deviance(rss: Array, rows: SortedSeries, log: bool) -> Array:
    """−2 log likelihood of y, (S,)."""
    n = rows.y.shape[-1]
    if log:
        return LOGNORMAL.deviance(rss, np.array(FLOOR), n, (rows.w * rows.log_y).sum(axis=-1))
    return NORMAL.deviance(rss, FLOOR * np.sqrt((rows.w * rows.y**2).sum(axis=-1) / n), n, np.zeros(1))


def confirmed(rows: SortedSeries, log: bool, alpha: float) -> bool:
    """Whether permuted responses of one series (S = 1) reach the excess of its partition with p ≤ alpha at most.

    The permutations are seeded by the length of the series alone.
    """
    count, n = int(2 / alpha) - 1, rows.x.shape[-1]
    # Any deviance that permutations do not change serves for that of the smooth law.
    smooth = deviance((rows.w * rows.y**2).sum(axis=-1), rows, log)
    own = best_partitions(rows, log, smooth, np.ones(1))[0].excess
    reached = 0
    for order in np.array_split(permuted_orders(n, count), BLOCKS):
        x = np.repeat(rows.x, len(order), axis=0)
        permuted = SortedSeries(x, rows.y[0][order], rows.log_y[0][order], rows.w[0][order])
        found = best_partitions(permuted, log, np.repeat(smooth, len(order)), np.ones(len(order)))
        reached += sum(one.excess >= own for one in found)
        if (1 + reached) / (1 + count) > alpha:
            return False
    return True
