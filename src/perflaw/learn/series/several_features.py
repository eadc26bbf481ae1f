"""Laws of several features: sums (5·x + 3·z), products (c·x^a·z^b) and interactions (3·x·z + 5·x), on any workloads.

Forward selection finds the features, each of which has to be established by itself;
:mod:`perflaw.learn.series.term_search` finds the terms of given features and fits them to all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import POWER
from perflaw.learn.series.independence import confounded, features_of_residuals, p_of_added_feature, p_of_pair
from perflaw.learn.series.law import FEWEST_SIZES, Evidence, judge, new_law
from perflaw.learn.series.learnt import Learnt, PredictionPoints
from perflaw.learn.series.model import LOGNORMAL, NORMAL, moulton
from perflaw.learn.series.series import Array, Options, Rows, quiet
from perflaw.learn.series.term_search import FittedSum, fit_candidates, products, search_sums, with_uncertainty
from perflaw.learn.series.terms import ONE, Sample, SeveralFeaturesLaw, is_constant, simple_shapes
from perflaw.types import Alternative

THINNED = 160
"""Most rows that a search looks at; the laws it finds are fitted to all rows."""
TRIED = 3
"""Number of features that are tried at each step, the clearest ones."""
MOST_FEATURES = 4
"""Most features of a law."""
KEEP, PRODUCTS = 10, 8
"""Number of sums and of products that a search passes on to be fitted to all rows."""
MANY_ROWS = 300
"""From this number of rows on the strongest feature cannot be mistaken, and few laws are near the best."""
SLACK, SLACK_FEW, MOST_SLACK = 0.9, 100.0, 2.0
"""Benefit of the doubt of a law beside the chosen one, ``SLACK + SLACK_FEW / n²`` and at most ``MOST_SLACK``.

It is more than a law of one feature gets because many more shapes are tried (benchmarks/learner_several.py).
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The best law of some features, with what it is compared by."""

    features: tuple[int, ...]
    """Places of its features."""
    deviance: float
    """−2 log likelihood on all rows."""
    parameters: int
    """Number of learnt parameters."""
    residual: Array
    """Residuals on the noise's scale, (n,)."""
    finalists: tuple[FittedSum, ...] = ()
    """The law and its rivals with the same features, best first; empty for a law that was learnt of one feature."""

    @classmethod
    def of(cls, learnt: Learnt) -> Selection:
        """A law that was learnt of at most one feature."""
        rows, law = learnt.rows, learnt.law
        noise = LOGNORMAL if law.noise.distribution == "lognormal" else NORMAL
        mean = learnt.mean(dict(zip(rows.names, rows.x, strict=False)) or {"": rows.y})
        if noise.log:
            residual = rows.log_y - np.log(np.maximum(mean, 1e-300)) + law.noise.scale**2 / 2.0
            residual = residual - float(rows.w @ residual) / rows.y.size
        else:
            residual = rows.y - mean
        sample = Sample.of(rows, range(len(rows.x)))
        deviance = float(sample.deviance(noise, np.array(float(rows.w @ residual**2))))
        parameters = 1 + (law.intercept is not None) + (law.family == POWER.name) + 3 * len(law.breakpoints)
        return cls(tuple(rows.names.index(name) for name in law.features), deviance, parameters, residual)


def several_features(learnt: Sequence[Learnt], at: PredictionPoints, options: Options) -> Learnt | None:
    """The law of several features of a series if its responses establish one, else None.

    ``learnt`` are the series' laws of at most one feature, smooth and piecewise: what is added has to stand against all
    of them.
    """
    rows = learnt[0].rows
    if not _has_several(rows, options):
        return None
    with quiet():
        known = [Selection.of(law) for law in learnt]
        start = min(known, key=lambda law: law.deviance + law.parameters * np.log(rows.y.size))
        selection = _forward_select(rows, start, options, [law for law in known if law is not start])
        return None if selection is None else law_of_selection(rows, selection, options).with_predictions(at)


def several_features_at_once(
    rows: Rows,
    established: NDArray[np.bool_],
    strongest: Sequence[int],
    at: PredictionPoints,
    options: Options,
) -> Learnt | None:
    """:func:`several_features` before any law of one feature is learnt, if there are so many rows that it is no help.

    ``strongest`` are the features that responses follow most. A parabola of the strongest one, in logarithms if
    possible, stands in for its law, to decide at a tenth of the cost whether more features are searched before it is
    learnt. If it errs, they still are searched afterwards.
    """
    if rows.y.size < MANY_ROWS or not _has_several(rows, options) or not established.any() or not strongest:
        return None
    with quiet():
        first = strongest[0]
        x, others = rows.x[first], [f for f in range(len(rows.x)) if f != first]
        u = np.log(x) if (x > 0).all() else x / max(float(np.abs(x).max()), 1e-300)
        response = rows.log_y if rows.positive else rows.y
        basis = np.linalg.qr(np.stack([np.ones_like(u), u, u * u]).T)[0]
        if not features_of_residuals(response - basis @ (basis.T @ response), rows.x[others], x[None]):
            return None
        start = _best_law(rows, (first,))
        selection = None if start is None else _forward_select(rows, replace(start, finalists=()), options)
        return None if selection is None else law_of_selection(rows, selection, options).with_predictions(at)


def _has_several(rows: Rows, options: Options) -> bool:
    return bool(options.several and len(rows.names) > 1 and np.ptp(rows.y) > 0)


def _forward_select(
    rows: Rows, start: Selection, options: Options, rivals: Sequence[Selection] = ()
) -> Selection | None:
    """Forward selection from a law of at most one feature; None if no second feature is established.

    It adds the feature that improves the law most while that is established, then drops features no longer needed.
    ``rivals`` are other laws of the first feature, which the second feature has to improve as well.
    """
    if start.features:
        selection = _add_feature(rows, start, options)
        if selection is None:
            return None
        (feature,) = set(selection.features) - set(start.features)
        sums = _best_law(rows, start.features)
        for less in (*rivals, *([sums] if sums else [])):
            same = less.features == start.features
            if same and not _established(rows, less, selection, feature, len(rows.x) - 1, options):
                return None
    else:
        selection = _add_pair(rows, start, options)
        if selection is None:
            return None
    while len(selection.features) < MOST_FEATURES:
        longer = _add_feature(rows, selection, options)
        if longer is None:
            break
        selection = longer
    for f in selection.features:
        if len(selection.features) < 3:
            break
        rest = tuple(g for g in selection.features if g != f)
        shorter = _best_law(rows, rest)
        tried = len(rows.x) - len(rest)
        if shorter is not None and not _established(rows, shorter, selection, f, tried, options):
            selection = shorter
    return selection


def _add_feature(rows: Rows, law: Selection, options: Options) -> Selection | None:
    """The law with the feature added that improves it most; None if no feature is established."""
    others = [f for f in range(len(rows.x)) if f not in law.features]
    clear = features_of_residuals(law.residual, rows.x[others], rows.x[list(law.features)])[:TRIED]
    promising = [others[i] for i in clear if _may_be_established(rows, law, others[i], len(others), options)]
    tries = [(one, f) for f in promising if (one := _best_law(rows, (*law.features, f))) is not None]
    if not tries:
        return None
    costs = rows.series.costs_of(rows.names, rows.effective)
    longer, f = min(tries, key=lambda pair: pair[0].finalists[0].score + float(costs[pair[1]]))
    return longer if _established(rows, law, longer, f, len(others), options) else None


def _add_pair(rows: Rows, constant: Selection, options: Options) -> Selection | None:
    """Two features that are established together if none is alone."""
    if rows.clusters is not None:
        return None
    p, pair = p_of_pair(rows.units, options.permutations)
    law = _best_law(rows, pair) if p <= options.alpha else None
    if law is None:
        return None
    for f in pair:
        alone = _best_law(rows, tuple(g for g in pair if g != f)) or constant
        if not _established(rows, alone, law, f, len(rows.x) - 1, options):
            return None
    return law


def _may_be_established(rows: Rows, law: Selection, feature: int, tried: int, options: Options) -> bool:
    """Whether any law with a feature more can be established, at a twentieth of the cost of searching the best one.

    A regression on the shapes of all features at once, and on their products with the new one, stands for every law of
    them: what it does not add to ``law``, no such law adds.
    """
    if any(confounded(law.residual, rows.x[f], rows.x[feature]) for f in law.features):
        return False
    sample = Sample.of(rows, (*law.features, feature))
    *known, new = (simple_shapes(x) for x in sample.x)
    products = [each[:1] * new[:1] for each in known]
    columns = np.concatenate([np.ones((1, sample.y.size)), *known, new, *products])
    # Sums in y, products in log y, and sums relative to y, whose residuals are those of log y while they are small.
    fits = [(NORMAL, rows.y, columns)]
    if rows.positive:
        fits += [(LOGNORMAL, rows.log_y, columns), (LOGNORMAL, np.ones(rows.y.size), columns / np.exp(rows.log_y))]
    root = np.sqrt(sample.w)
    for noise, response, x in fits:
        target, design = response * root, (x * root).T
        left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        deviance = float(sample.deviance(noise, np.array(float(left @ left))))
        if _is_gain(rows, sample, law, feature, deviance, len(sample.x), 1, tried, options):
            return True
    return False


def _established(rows: Rows, less: Selection, more: Selection, feature: int, tried: int, options: Options) -> bool:
    """Whether what a feature adds to a law is no luck."""
    if any(confounded(less.residual, rows.x[f], rows.x[feature]) for f in less.features):
        return False
    extra, parameters = max(more.parameters - less.parameters, 1), more.finalists[0].sum.parameters
    sample = Sample.of(rows, more.features)
    return _is_gain(rows, sample, less, feature, more.deviance, parameters, extra, tried, options)


def _is_gain(
    rows: Rows,
    sample: Sample,
    law: Selection,
    feature: int,
    deviance: float,
    parameters: int,
    extra: int,
    tried: int,
    options: Options,
) -> bool:
    """Whether a law with a feature more fits better by no luck: its deviance, its parameters, ``extra`` of them new."""
    effective = sample.effective
    if rows.clusters is not None:
        # Rows that share runs are discounted (Moulton 1986).
        effective = max(effective / moulton(law.residual, rows.x[feature], rows.clusters), 1.0)
    p = p_of_added_feature(law.deviance, deviance, rows.y.size, effective, parameters, extra, tried)
    gain = sample.deviance_weight * (law.deviance - deviance)
    cost = float(rows.series.costs_of([rows.names[feature]], effective)[0])
    return bool(p <= options.alpha and gain > extra * np.log(max(effective, 1.0)) + cost)


def _best_law(rows: Rows, features: tuple[int, ...]) -> Selection | None:
    """Best laws that depend on exactly these features, under both noises; None if none can be fitted."""
    places = tuple(sorted(features))
    if places not in rows.searched:
        rows.searched[places] = _searched_law(rows, places)
    found: Selection | None = rows.searched[places]
    return found


def _searched_law(rows: Rows, places: tuple[int, ...]) -> Selection | None:
    """:func:`_best_law` of features that were not searched yet, increasing."""
    thinned, whole = Sample.of(rows, places, THINNED), Sample.of(rows, places)
    names = tuple(rows.names[f] for f in places)
    fraction = 1 + (rows.y.size >= MANY_ROWS) + (len(places) == 1)
    found = search_sums(thinned, rows.positive, 4 * KEEP)
    # Sums in which every feature is in some term.
    sums = [one for one in found if all(any(f is not ONE for f in column) for column in zip(*one.terms, strict=True))]
    candidates = sums[: KEEP // fraction]
    if rows.positive:
        near = products(whole, PRODUCTS // fraction)
        candidates += [*near, *(replace(one, noise=NORMAL) for one in near[:1])]
    ranked: list[FittedSum] = []
    for law in sorted(fit_candidates(whole, names, candidates), key=lambda law: law.score):
        if not any(law.sum.terms == other.sum.terms and law.sum.noise is other.sum.noise for other in ranked):
            ranked.append(law)
    if not ranked:
        return None
    first = ranked[0]
    return Selection(places, first.deviance, first.sum.parameters, first.residual, tuple(ranked))


def _holds(law: FittedSum, other: FittedSum) -> bool:
    """Whether a sum is another one and further terms, which nothing in the data shows if both are plausible.

    Such a term would widen intervals without a limit: a cubic term of 0.5 % of the cost is half as much again at ten times
    the size.
    """
    return law.sum.noise is other.sum.noise and set(law.sum.terms) > set(other.sum.terms)


def plausible_sums(rows: Rows, selection: Selection, options: Options) -> list[tuple[SeveralFeaturesLaw, float]]:
    """The first law of a selection and those that fit equally well, each with how much worse its score is."""
    first, *others = selection.finalists
    sample = Sample.of(rows, selection.features)
    slack = min(SLACK + SLACK_FEW / rows.y.size**2, MOST_SLACK)
    perfect = first.rss <= rows.y.size * first.floor**2
    near = [(first, 0.0)]
    for rival in others:
        delta = max(min(rival.score - first.score, rival.plausible_score - first.plausible_score), 0.0)
        if delta - slack < options.delta and not (perfect and rival.sum.parameters > first.sum.parameters):
            near.append((rival, float(delta)))
    near = [(law, delta) for law, delta in near if law is first or not any(_holds(law, other) for other, _ in near)]
    return [(with_uncertainty(law, rows, sample, options.confidence), delta) for law, delta in near]


def law_of_selection(rows: Rows, selection: Selection, options: Options) -> Learnt:
    """The law of a selection with those that fit equally well, not asked yet; its verdict is the worst of its features."""
    first, plausible = selection.finalists[0], plausible_sums(rows, selection, options)
    chosen = plausible[0][0]
    slopes = [law.slope() for law, _ in plausible]
    low = {name: min(slope[name][1] for slope in slopes) for name in chosen.features}
    high = {name: max(slope[name][2] for slope in slopes) for name in chosen.features}
    verdicts = []
    for f in selection.features:
        name, values = rows.names[f], np.unique(rows.x[f])
        shared = rows.clusters is not None and not rows.varying[f]
        # Both values of a flag are all there are, so its shape is known.
        sizes = FEWEST_SIZES if np.array_equal(values, (0.0, 1.0)) else int(values.size)
        units = rows.runs if shared else rows.y.size
        series, slopes_of_feature = rows.series, (low[name], high[name])
        verdicts.append(
            judge(Evidence(units, rows.runs, sizes, slopes_of_feature, series.to_vary(name), ways=series.ways))
        )
    target = rows.log_y if chosen.sum.noise.log else rows.y
    away = target - float(rows.w @ target) / target.size
    constants = [c for term, c in zip(chosen.sum.terms, chosen.sum.coefficients, strict=True) if is_constant(term)]
    law = new_law(
        rows.series,
        rows.runs,
        family=chosen.family,
        mean=chosen.expression(),
        noise=chosen.noise,
        slopes=({name: middle for name, (middle, _, _) in slopes[0].items()}, low, high),
        features=chosen.features,
        verdict=next((one for one in verdicts if one[0] != "law"), verdicts[0]),
        r2=float(1.0 - first.rss / float(rows.w @ away**2)),
        coefficient=chosen.sum.leading_coefficient(chosen.smearing),
        intercept=float(constants[0]) * chosen.smearing if constants else None,
        alternatives=tuple(
            Alternative(other.family, other.distribution(), {name: s[name][0] for name in s}, delta)
            for (other, delta), s in zip(plausible[1:], slopes[1:], strict=True)
            if delta < options.delta
        ),
    )
    return Learnt(law, tuple(one for one, _ in plausible), rows)
