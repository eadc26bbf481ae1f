"""The law learner's front door: thousands of series in, one law each out.

Order of the work: prepare (runs are the replicates) → gate (may it be anything but constant?) → candidates (fit and
score all laws of a batch) → choose → describe (intervals over all laws not told apart, verdict, expression) → regimes
(breakpoints, where a smooth law does not do) → several (features, where one does not do) → zeros (two parts).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from perflaw.learn.series.candidates import candidates
from perflaw.learn.series.choose import choose, focus, of_features, widened
from perflaw.learn.series.collinear import Classes, classes, suspected, told
from perflaw.learn.series.describe import describe
from perflaw.learn.series.learnt import FACTORS, Learnt, percentile95
from perflaw.learn.series.prepare import Rows, level, p_values, prepare, within_p
from perflaw.learn.series.regimes import regimes
from perflaw.learn.series.series import Options, Series, quiet
from perflaw.learn.series.several_features import several, several_at_once
from perflaw.learn.series.zeros import two_parts
from perflaw.types import Law

CELLS = 40_000
"""Numbers a batch holds an array; what stays in the cache is fast."""

FEWEST_RUNS = 5
"""From so many runs on, permuting runs can reject at all."""


def learn(
    series: Sequence[Series], at: Sequence[Mapping[str, float]] | None = None, options: Options | None = None
) -> list[Learnt]:
    """Learn a law for every series; same input, same output.

    ``at`` are the points predictions are made for; without it 2 and 10 times the 95th percentile (linear
    interpolation) of every feature. Raises DataError where a point lacks a feature that a law depends on.

    >>> x = np.array([10.0, 20, 50, 100, 200, 500, 1000])
    >>> law = learn([Series("f", 3.0 * x**2, {"n": x})])[0].law
    >>> from perflaw.laws.printing import show
    >>> law.family, law.verdict, show(law.mean)
    ('quadratic', 'law', '3*n^2')
    """
    options = options or Options()
    reduced = [classes(one) for one in series]
    rows = [prepare(one.series) for one in reduced]
    established = _established(rows, options)
    looked = [focus(row, one) for row, one in zip(rows, established, strict=True)]
    few = [of_features(row, places) for row, places in zip(rows, looked, strict=True)]
    early = (several_at_once(*one, at, options) for one in zip(rows, established, looked, strict=True))
    out = {i: (found, found) for i, found in enumerate(early) if found is not None}
    for members in _batches(few, [i for i in range(len(few)) if i not in out]):
        with quiet():
            found = candidates([few[i] for i in members])
            choices = [choose(found, b, established[i][looked[i]], options) for b, i in enumerate(members)]
            smooth = describe(found, choices, at, options)
            pieces = regimes(found, choices, smooth, at, options) if options.regimes else smooth
            out.update(zip(members, zip(smooth, pieces, strict=True), strict=True))
    whole = [_whole(series[i], reduced[i], rows[i], out[i], at, options) for i in range(len(rows))]
    return two_parts(whole, learn, at, options)


def _whole(
    series: Series,
    reduced: Classes,
    rows: Rows,
    learnt: tuple[Learnt, Learnt],
    at: Sequence[Mapping[str, float]] | None,
    options: Options,
) -> Learnt:
    """A law of several features where the responses establish it, else of one; and what else is to say of it.

    ``learnt`` are the smooth law of one feature and the piecewise one, the same where there are no breakpoints.
    """
    smooth, piecewise = (widened(one, rows, options.confidence) for one in learnt)
    found = piecewise
    if len(smooth.law.features) < 2:
        laws = (smooth,) if learnt[0] is learnt[1] else (smooth, piecewise)
        found = several(laws, at, options) or piecewise
    law = suspected(told(found.law, series, reduced), reduced.series, found.residuals)
    law = law if at is not None else _everywhere(law, series)
    return found if law is found.law else replace(found, law=law)


def _everywhere(law: Law, series: Series) -> Law:
    """The law with predictions that say the value of every feature, also of those that were not looked at."""
    if all(one.features.keys() == series.features.keys() for one in law.predictions):
        return law
    tops = {name: float(percentile95(x)) for name, x in series.features.items()}
    points = [{name: float(factor) * top for name, top in tops.items()} for factor in FACTORS]
    asked = (replace(one, features=point) for one, point in zip(law.predictions, points, strict=True))
    return replace(law, predictions=tuple(asked))


def _established(rows: Sequence[Rows], options: Options) -> list[np.ndarray]:
    """Features a dependence is established for, (F,) of bool a series.

    Where features vary within runs, permutations within runs and of whole runs share the error (Bonferroni).
    """
    between = p_values([row.between for row in rows], options.permutations)
    out = []
    for row, p in zip(rows, between, strict=True):
        if row.clusters is None:
            out.append(np.full(len(row.x), p <= level(options.alpha, row.between.y.size)))
            continue
        inside = np.flatnonzero(row.varying)
        log_y = row.log_y if row.positive else None
        both = row.runs >= FEWEST_RUNS
        alpha = options.alpha / 2.0 if both else options.alpha
        p_inside = within_p(row.x[inside], row.y, log_y, row.clusters, options.permutations, alpha)
        out.append((row.varying & (p_inside <= alpha)) | (both and p <= alpha))
    return out


def _batches(rows: Sequence[Rows], places: Sequence[int]) -> Iterator[list[int]]:
    """Places of series that are fitted together: equally many features, similar length."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i in places:
        groups[len(rows[i].x), padded(rows[i].y.size)].append(i)
    for (features, length), members in groups.items():
        size = max(1, CELLS // (features * length))
        for start in range(0, len(members), size):
            yield members[start : start + size]


def padded(n: int) -> int:
    """Length that series of n rows are padded to: at most an eighth longer.

    >>> [padded(n) for n in (5, 16, 17, 30, 1000)]
    [5, 16, 18, 30, 1024]
    """
    step = 1 << max(n.bit_length() - 4, 0)
    return -(-n // step) * step
