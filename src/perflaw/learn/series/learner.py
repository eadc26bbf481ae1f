"""The law learner's entry point: thousands of series in, one law each out.

The steps are: reduce collinear features to one each; prepare the rows (runs are the replicates); test for each feature
whether the response depends on it (the null control); fit and score all laws of one feature, choose, describe; search
for breakpoints; search for laws of several features; treat zeros.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.blends import blends
from perflaw.learn.series.candidates import choose, fit_candidates
from perflaw.learn.series.collinear import ReducedSeries, reduce_collinear, restore_collinear, warn_missing_feature
from perflaw.learn.series.describe import describe
from perflaw.learn.series.independence import critical_p, logs_if_positive, p_values, p_within_runs, ranks, standardised
from perflaw.learn.series.law import ranges
from perflaw.learn.series.learnt import Learnt, PredictionPoints, default_points
from perflaw.learn.series.model import STEEPEST
from perflaw.learn.series.regimes import regimes
from perflaw.learn.series.series import Options, Rows, Series, Units, prepare, quiet
from perflaw.learn.series.several_features import MANY_ROWS, several_features, several_features_at_once
from perflaw.learn.series.zeros import two_parts
from perflaw.parts import are_here, in_parts, step_of, untold
from perflaw.special import stdtrit

CELLS = 40_000
"""Numbers in an array of a batch; what stays in the cache is fast."""
PART, PART_CELLS, PART_CELLS_IN_FULL = 500, 50_000, 10_000
"""Series that are learnt together, and responses if each is as long as the longest: fewer series that take longer.

The last number is where breakpoints are searched for, which takes five times as long.
"""
TESTED, AT_ONCE = 0.15, 0.6
"""Parts of the work: preparing and testing; and what comes before any law of one feature, if all series have many rows."""
FEWEST_RUNS = 5
"""Fewest runs of which permutations can reject."""
FOCUS, FOCUS_MANY = 2, 1
"""Number of features that laws of one feature are fitted to: those that responses follow most.

The second number is for many rows, where the strongest feature cannot be mistaken. Every other feature still takes part
in the null control before and in the search for laws of several features after.
"""


def learn(
    series: Sequence[Series],
    at: PredictionPoints = None,
    options: Options | None = None,
    tell: Callable[[float], None] = untold,
) -> list[Learnt]:
    """Learn a law for every series; the same input gives the same output. ``tell`` is told how many are done.

    Where this process learns them, it is told parts of them, too.

    ``at`` are the points of predictions; without it these are 2 and 10 times the 95th percentile (linear interpolation)
    of every feature. Raises DataError if a point lacks a feature that a law depends on.

    >>> x = np.array([10.0, 20, 50, 100, 200, 500, 1000])
    >>> law = learn([Series("f", 3.0 * x**2, {"n": x})])[0].law
    >>> from perflaw.laws.printing import show
    >>> law.family, law.verdict, show(law.mean)
    ('quadratic', 'law', '3*n^2')
    """
    options = options or Options()
    longest = max((one.y.size for one in series), default=1)
    cells = PART_CELLS_IN_FULL if options.regimes else PART_CELLS
    size = max(1, min(PART, cells // max(longest, 1)))
    done = 0

    def tell_done(number: int) -> None:
        nonlocal done
        done = number
        tell(done)

    def tell_within(part: float) -> None:
        tell(done + part * min(size, len(series) - done))

    within = tell_within if are_here() or len(series) <= size else untold
    return in_parts(partial(_learn_part, at=at, options=options, tell=within), series, size, tell_done)


def _learn_part(
    series: Sequence[Series], at: PredictionPoints, options: Options, tell: Callable[[float], None]
) -> list[Learnt]:
    """Laws of series that are learnt together; ``tell`` is told the part that is done."""
    reduced = [reduce_collinear(one) for one in series]
    rows = [prepare(one.series) for one in reduced]
    # Features for which the null control rejects independence, (F,) for each series. If features vary within runs,
    # permutations within runs and of whole runs share the error (Bonferroni).
    between = p_values([row.units for row in rows], options.permutations)
    established = []
    for row, p in zip(rows, between, strict=True):
        if row.clusters is None:
            established.append(np.full(len(row.x), p <= critical_p(options.alpha, row.units.y.size)))
            continue
        both = row.runs >= FEWEST_RUNS
        alpha = options.alpha / 2.0 if both else options.alpha
        log_y = row.log_y if row.positive else None
        within = p_within_runs(row.x[row.varying], row.y, log_y, row.clusters, options.permutations, alpha)
        established.append((row.varying & (within <= alpha)) | (both and p <= alpha))
    focus = [_focus(row, one) for row, one in zip(rows, established, strict=True)]
    sizes = np.array([row.y.size * max(len(row.x), 1) for row in rows], dtype=np.float64)
    done = np.cumsum(sizes) / max(sizes.sum(), 1.0)
    done_at_once = np.cumsum([size * (row.y.size >= MANY_ROWS) for size, row in zip(sizes, rows, strict=True)])
    done_at_once /= max(sizes.sum(), 1.0)
    tell(TESTED)
    laws: dict[int, tuple[Learnt, Learnt]] = {}
    at_once = TESTED
    for i, row in enumerate(rows):
        early = several_features_at_once(row, established[i], focus[i][0], at, options)
        if early is not None:
            laws[i] = early, early
        tell(at_once := TESTED + AT_ONCE * float(done_at_once[i]))
    left = [i for i in range(len(rows)) if i not in laws]
    middle = (at_once + 1.0) / 2
    for members in _batches({i: focused for i, (_, focused) in enumerate(focus) if i in left}):
        with quiet():
            candidates = fit_candidates([focus[i][1] for i in members])
            choices = [choose(candidates, b, established[i][focus[i][0]], options) for b, i in enumerate(members)]
            smooth = describe(candidates, choices, at, options)
            piecewise = regimes(candidates, choices, smooth, at, options) if options.regimes else smooth
            laws.update(zip(members, zip(smooth, piecewise, strict=True), strict=True))
        step_of(tell, at_once, middle)(sum(i in laws for i in left) / len(left))
    complete, single = list[Learnt](), list[Learnt | None]()
    for i, row in enumerate(rows):
        of_one, of_several = _of_all_features(row, laws[i], at, options)
        row.searched.clear()
        complete.append(of_several or of_one)
        single.append(None if of_several else of_one)
        step_of(tell, middle, 1.0)(float(done[i]))
    for i, sums in enumerate(blends(single, at, options)):
        complete[i] = _restored(sums or complete[i], series[i], reduced[i], at)
    return two_parts(complete, learn, at, options)


def _focus(rows: Rows, established: NDArray[np.bool_]) -> tuple[list[int], Rows]:
    """Places of the features that laws of one feature are fitted to, in order, and the rows with these features.

    Established features (F,) come first, then those that responses follow most.
    """
    count, few = len(rows.x), FOCUS_MANY if rows.y.size >= MANY_ROWS else FOCUS
    if count <= few:
        return list(range(count)), rows
    sides = [(ranks(rows.x), ranks(rows.y)), (rows.x, rows.y)]
    if rows.positive:
        sides.append((logs_if_positive(rows.x), rows.log_y))
    strength = np.max([np.abs(standardised(x) @ standardised(y)) for x, y in sides], axis=0)
    if rows.series.costs:
        # What a straight line explains, less the prior cost; the greatest correlation that explains as much.
        explained = -rows.effective * np.log(np.maximum(1.0 - strength**2, 1e-12))
        worth = np.maximum(explained - rows.series.costs_of(rows.names, rows.effective), 0.0)
        strength = np.sqrt(1.0 - np.exp(-worth / rows.effective))
    strength = strength + established
    places = sorted(int(f) for f in np.argsort(-strength, kind="stable")[:few])
    names = [rows.names[f] for f in places]
    series = replace(rows.series, features={name: rows.series.features[name] for name in names})
    units = Units(rows.units.x[places], rows.units.y, rows.units.log_y)
    return places, replace(rows, series=series, x=rows.x[places], units=units, varying=rows.varying[places])


def _batches(rows: Mapping[int, Rows]) -> Iterator[list[int]]:
    """Places of series that are fitted together: equally many features, similar length."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, row in rows.items():
        groups[len(row.x), padded_length(row.y.size)].append(i)
    for (features, length), members in groups.items():
        size = max(1, CELLS // (features * length))
        for start in range(0, len(members), size):
            yield members[start : start + size]


def padded_length(n: int) -> int:
    """Length that a series of n rows is padded to: at most an eighth longer.

    >>> [padded_length(n) for n in (5, 16, 17, 30, 1000)]
    [5, 16, 18, 30, 1024]
    """
    step = 1 << max(n.bit_length() - 4, 0)
    return -(-n // step) * step


def _of_all_features(
    rows: Rows, laws: tuple[Learnt, Learnt], at: PredictionPoints, options: Options
) -> tuple[Learnt, Learnt | None]:
    """The law of one feature, and the law of several features if the responses establish one.

    ``laws`` are the smooth and the piecewise law of one feature, the same if there are no breakpoints.
    """
    smooth, piecewise = (_widened(one, rows, options.confidence) for one in laws)
    if len(smooth.law.features) > 1:
        return piecewise, piecewise
    return piecewise, several_features((smooth,) if laws[0] is laws[1] else (smooth, piecewise), at, options)


def _restored(learnt: Learnt, series: Series, reduced: ReducedSeries, at: PredictionPoints) -> Learnt:
    """A law of the reduced series as one of the series as it was given."""
    law = restore_collinear(learnt.law, series, reduced)
    law = warn_missing_feature(law, reduced.series, learnt.residuals)
    if at is None and any(one.features.keys() != series.features.keys() for one in law.predictions):
        # Predictions name the values of every feature, also of those that no law was fitted to.
        points = zip(law.predictions, default_points(series), strict=True)
        law = replace(law, predictions=tuple(replace(one, features=point) for one, point in points))
    return learnt if law is learnt.law else replace(learnt, law=law)


def _widened(learnt: Learnt, rows: Rows, confidence: float) -> Learnt:
    """A law learnt from some of the features as one of all of them: ranges, and the growth that a constant leaves open.

    The growth is that of a straight line in logarithms; 0 is always among the local exponents that it allows.
    """
    if learnt.rows is rows:
        return learnt
    law = replace(learnt.law, range=ranges(rows.series))
    if not law.features:
        low, high = dict(law.slope_low), dict(law.slope_high)
        for name, x in zip(rows.names, rows.x, strict=True):
            if name in low:
                continue
            low[name] = high[name] = 0.0
            if rows.positive and (x > 0).all() and np.ptp(x) > 0 and x.size >= 3:
                u, v = np.log(x) - np.log(x).mean(), rows.log_y - rows.log_y.mean()
                slope = float(u @ v / (u @ u))
                freedom = max((rows.runs if rows.clusters is not None else x.size) - 2, 1)
                error = float(np.sqrt(((v - slope * u) ** 2).sum() / freedom / (u @ u)))
                half = float(stdtrit(freedom, 0.5 + confidence / 2.0)) * error
                low[name] = float(np.clip(slope - half, -STEEPEST, 0.0))
                high[name] = float(np.clip(slope + half, 0.0, STEEPEST))
        low, high = ({name: limits[name] for name in rows.names} for limits in (low, high))
        law = replace(law, slope=dict.fromkeys(rows.names, 0.0), slope_low=low, slope_high=high)
    return Learnt(law, learnt.plausible, rows)
