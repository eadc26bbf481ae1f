"""Sums of two or three plain terms of one feature, such as 90·n + 0.02·n²: laws that a free exponent would imitate.

Where a program does two things, its cost is a sum. Between a power of a free exponent, or an exponential, and such a sum
the data often hardly tell, and far beyond the data they differ by powers of ten. Both are therefore compared by the same
information criterion wherever one feature has a law with a free parameter. An exponential, which programs seldom have
and which leaves nothing of a prediction if it is wrong, needs more evidence than that against every sum, the fourth power
among its terms.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from perflaw.laws.catalogue import CONSTANT, FAMILIES, POWER, family_named
from perflaw.learn.series.candidates import EXTRA_COST
from perflaw.learn.series.learnt import Learnt, PredictionPoints
from perflaw.learn.series.model import LOGNORMAL, NORMAL
from perflaw.learn.series.partition import BLEND_COST
from perflaw.learn.series.series import Array, Options, Rows, quiet
from perflaw.learn.series.several_features import Selection, law_of_selection
from perflaw.learn.series.term_search import SELECTION, Candidate, FittedSum, fit_sum
from perflaw.learn.series.terms import ONE, Factor, Sample, factor_of, solve, steepness_cost, term_values

EVIDENCE: Final = SELECTION
"""Score by which an exponential must beat every sum: as much as a sum's further term costs for being one of many."""
CHOICE: Final = BLEND_COST - SELECTION
"""Score that the choice of the terms costs a sum, beyond what each term costs."""
MOST_TERMS: Final = 3
"""Most terms of a sum; it has at least two sizes more than terms."""
FITTED: Final = 2
"""Number of sums that are fitted exactly, of each number of terms and under each noise."""
QUARTIC: Final = Factor(4.0)
"""The steepest power; it stands against exponentials alone."""
TERMS: Final = tuple(ONE if one is CONSTANT else factor_of(one.shape, one.surprise) for one in FAMILIES if one.blend)
"""Terms of sums."""


def blend(learnt: Learnt, at: PredictionPoints, options: Options) -> Learnt | None:
    """The law of a series whose smooth law ``learnt`` has a free parameter, if a sum of plain terms stands beside it.

    The sum is the law if it explains the series better; if it does nearly as well, it widens the intervals. None if no
    sum is plausible.
    """
    rows, law = learnt.rows, learnt.law
    family = family_named(law.family)
    if family is None or not family.free or len(law.features) != 1 or not rows.positive:
        return None
    feature = rows.names.index(law.features[0])
    if (rows.x[feature] <= 0).any():
        return None
    exponential = family is not POWER
    with quiet():
        sums = _best_sums(rows, feature, exponential)
        if not sums:
            return None
        smooth, sample = Selection.of(learnt), Sample.of(rows, [feature])
        parameters, bic = 1 + (law.intercept is not None), float(np.log(max(sample.effective, 1.0)))
        base = sample.deviance_weight * smooth.deviance + family.surprise
        base += EVIDENCE if exponential else steepness_cost(law.exponent or 0.0)
        lead = base + parameters * (bic + EXTRA_COST) - sums[0].score - CHOICE
        near = base + parameters * bic - min(one.plausible_score for one in sums)
        if max(lead, near) <= -options.delta:
            return None
        if lead <= 0:
            sums.sort(key=lambda one: one.plausible_score)
        best = sums[0]
        selection = Selection((feature,), best.deviance, best.sum.parameters, best.residual, tuple(sums))
        found = law_of_selection(rows, selection, at, options)
    if lead > 0:
        beside = learnt.plausible if min(lead, near) < options.delta and not exponential else ()
        return replace(found, plausible=(*found.plausible, *beside)).with_predictions(at)
    return replace(learnt, plausible=(*learnt.plausible, *found.plausible)).with_predictions(at)


def _best_sums(rows: Rows, feature: int, exponential: bool) -> list[FittedSum]:
    """The sums that explain the series best, with positive coefficients, best first."""
    sample, name = Sample.of(rows, [feature]), (rows.names[feature],)
    ends = np.array([sample.bottom[0], sample.top[0]])
    shapes = [one for one in (*TERMS, *([QUARTIC] if exponential else [])) if one is ONE or one.defined(ends)]
    values = term_values([(one,) for one in shapes], sample.x, sample.top)
    most = min(MOST_TERMS, np.unique(sample.x[0]).size - 2)
    found: list[FittedSum] = []
    for size in range(2, most + 1):
        subsets = np.array(list(combinations(range(len(shapes)), size)))
        for noise, weight in ((LOGNORMAL, sample.w / sample.y**2), (NORMAL, sample.w)):
            for place in _screened(values[subsets], sample.y, weight):
                terms = tuple((shapes[i],) for i in subsets[place])
                fitted = fit_sum(sample, name, Candidate(terms, noise, 0.0))
                if fitted is not None and (fitted.sum.coefficients > 0).all():
                    found.append(fitted)
    return sorted(found, key=lambda one: one.score)


def _screened(columns: Array, y: Array, weight: Array) -> list[int]:
    """Places of the sums of columns (B, k, n) with positive coefficients and the least weighted residuals from y (n,)."""
    weighted = columns * weight
    coefficients = solve(weighted @ columns.transpose(0, 2, 1), weighted @ y)
    residual = y - (coefficients[:, None] @ columns)[:, 0]
    rss = np.where((coefficients > 0).all(axis=1), (residual**2 * weight).sum(axis=1), np.inf)
    order = np.argsort(rss, kind="stable")[:FITTED]
    return [int(place) for place in order if np.isfinite(rss[place])]
