"""Laws of several features: sums (5·x + 3·z), products (c·x^a·z^b) and interactions (3·x·z + 5·x), on any workloads.

The order of the work: :mod:`feature_selection` finds the features, each of which has to be established;
:mod:`term_search` finds the terms and fits them to all rows; this module makes the law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.series.choose import MANY_ROWS
from perflaw.learn.series.feature_selection import State, others_promising, select_features, select_from
from perflaw.learn.series.feature_terms import SeveralLaw, is_constant, sample_of
from perflaw.learn.series.law import new_law
from perflaw.learn.series.learnt import FACTORS, Learnt, percentile95
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Array, Options, quiet
from perflaw.learn.series.term_search import Candidate, uncertain
from perflaw.learn.series.verdict import FEWEST_SIZES, Evidence, judge
from perflaw.types import Alternative, Law, Verdict

SLACK, SLACK_FEW, MOST_SLACK = 0.9, 100.0, 2.0
"""Benefit of the doubt of a law beside the chosen one, ``SLACK + SLACK_FEW / n²`` and at most ``MOST_SLACK``.

More than a law of one feature gets: many more shapes are tried (calibrated in benchmarks/learner_several.py).
"""

Plausible = list[tuple[SeveralLaw, float]]
"""Laws with their score differences to the first."""


def several(learnt: Sequence[Learnt], at: Sequence[Mapping[str, float]] | None, options: Options) -> Learnt | None:
    """The law of several features of a series where its responses establish one, or None.

    ``learnt`` are the series' laws of at most one feature.
    """
    rows = learnt[0].rows
    if not _possible(rows, options):
        return None
    with quiet():
        state = select_features(learnt, options)
        return None if state is None else _learnt(rows, state, at, options)


def several_at_once(
    rows: Rows,
    established: NDArray[np.bool_],
    strongest: Sequence[int],
    at: Sequence[Mapping[str, float]] | None,
    options: Options,
) -> Learnt | None:
    """The same before any law of one feature is learnt, where there are so many rows that it is no help; or None.

    ``strongest`` are the features that responses follow most.
    """
    if rows.y.size < MANY_ROWS or not _possible(rows, options):
        return None
    with quiet():
        promising = established.any() and strongest and others_promising(rows, strongest[0])
        state = select_from(rows, strongest[0], options) if promising else None
        return None if state is None else _learnt(rows, state, at, options)


def _possible(rows: Rows, options: Options) -> bool:
    return bool(options.several and len(rows.names) > 1 and np.ptp(rows.y) > 0)


def _learnt(rows: Rows, state: State, at: Sequence[Mapping[str, float]] | None, options: Options) -> Learnt:
    plausible = _plausible(rows, state, options)
    law = _law(rows, state, plausible, options)
    found = Learnt(law, tuple(one for one, _ in plausible), rows)
    asked = at if at is not None else beyond(rows)
    return Learnt(replace(law, predictions=tuple(found.predict(asked))), found.plausible, rows)


def beyond(rows: Rows) -> list[dict[str, float]]:
    """2 and 10 times the 95th percentile of every feature."""
    top = {name: percentile95(x) for name, x in rows.series.features.items()}
    return [{name: float(factor * value) for name, value in top.items()} for factor in FACTORS]


def _plausible(rows: Rows, state: State, options: Options) -> Plausible:
    """The chosen law and those that the data cannot tell from it."""
    first, *others = state.finalists
    sample = sample_of(rows, list(state.features))
    near = [(first, 0.0)]
    slack = min(SLACK + SLACK_FEW / rows.y.size**2, MOST_SLACK)
    perfect = first.rss <= rows.y.size * first.floor**2
    for other in others:
        away = max(min(other.score - first.score, other.open_score - first.open_score), 0.0)
        if away - slack < options.delta and not (perfect and other.sum.parameters > first.sum.parameters):
            near.append((other, float(away)))
    return [(uncertain(one, rows, sample, options.confidence), delta) for one, delta in near]


def _law(rows: Rows, state: State, plausible: Plausible, options: Options) -> Law:
    chosen, first = plausible[0][0], state.finalists[0]
    slopes = [one.slope() for one, _ in plausible]
    low = {name: min(one[name][1] for one in slopes) for name in chosen.features}
    high = {name: max(one[name][2] for one in slopes) for name in chosen.features}
    constants = [c for t, c in zip(chosen.sum.terms, chosen.sum.coefficients, strict=True) if is_constant(t)]
    return new_law(
        rows.series,
        rows.runs,
        family=_family(chosen),
        mean=chosen.sum.expression(chosen.smear),
        noise=chosen.noise,
        slopes=({name: middle for name, (middle, _, _) in slopes[0].items()}, low, high),
        features=chosen.features,
        verdict=_verdict(rows, state, low, high),
        r2=_r2(rows, first),
        coefficient=chosen.sum.leading(chosen.smear),
        intercept=float(constants[0]) * chosen.smear if constants else None,
        alternatives=tuple(
            Alternative(_family(one), one.distribution(), {name: s[name][0] for name in s}, delta)
            for (one, delta), s in zip(plausible[1:], slopes[1:], strict=True)
            if delta < options.delta
        ),
    )


def _family(law: SeveralLaw) -> str:
    return "sum" if len(law.sum.terms) > 1 else "product"


def _verdict(rows: Rows, state: State, low: Mapping[str, float], high: Mapping[str, float]) -> tuple[Verdict, str]:
    """The worst verdict over the law's features."""
    verdicts = []
    for f in state.features:
        name = rows.names[f]
        shared = rows.clusters is not None and not rows.varying[f]
        evidence = Evidence(
            established=True,
            constant=False,
            varies=True,
            units=rows.runs if shared else rows.y.size,
            runs=rows.runs,
            sizes=_sizes(rows.x[f]),
            slopes=(low[name], high[name]),
            feature=name,
        )
        verdicts.append(judge(evidence))
    return next((one for one in verdicts if one[0] != "law"), verdicts[0])


def _sizes(x: Array) -> int:
    """Distinct values; both values of a flag are all there are, so its shape is known."""
    values = np.unique(x)
    return FEWEST_SIZES if np.array_equal(values, (0.0, 1.0)) else int(values.size)


def _r2(rows: Rows, candidate: Candidate) -> float:
    """1 − RSS/TSS on the scale of the noise."""
    target = rows.log_y if candidate.sum.noise.log else rows.y
    away = target - float(rows.w @ target) / target.size
    return float(1.0 - candidate.rss / float(rows.w @ away**2))
