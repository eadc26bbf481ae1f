"""Sums of two or three plain terms of one feature, such as 90·n + 0.02·n²: laws that a free exponent would imitate.

Where a program does two things, its cost is a sum. Between a power of a free exponent, or an exponential, and such a sum
the data often hardly tell, and far beyond the data they differ by powers of ten. Both are therefore compared by the same
information criterion wherever one feature has a law with a free parameter. An exponential, which programs seldom have
and which leaves nothing of a prediction if it is wrong, needs more evidence than that against every sum, the fourth power
among its terms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, FAMILIES, POWER, family_named
from perflaw.learn.series.candidates import EXTRA_COST
from perflaw.learn.series.learnt import Learnt, PredictionPoints
from perflaw.learn.series.model import LOGNORMAL, NORMAL
from perflaw.learn.series.partition import BLEND_COST
from perflaw.learn.series.series import Array, Options, quiet
from perflaw.learn.series.several_features import Selection, law_of_selection, plausible_sums
from perflaw.learn.series.term_search import SELECTION, FittedSum, fit_alike
from perflaw.learn.series.terms import ONE, Factor, Sample, factor_of, solve, steepness_cost

EVIDENCE: Final = SELECTION
"""Score by which an exponential must beat every sum: as much as a sum's further term costs for being one of many."""
CHOICE: Final = BLEND_COST - SELECTION
"""Score that the choice of the terms costs a sum, beyond what each term costs."""
MOST_TERMS: Final = 3
"""Most terms of a sum; it has at least two sizes more than terms."""
FITTED: Final = 2
"""Number of sums that are fitted exactly, of each number of terms and under each noise."""
SPARE: Final = 4
"""Number of further sums whose residuals are computed row by row, to find those that are fitted."""
QUARTIC: Final = Factor(4.0)
"""The steepest power; it stands against exponentials alone."""
TERMS: Final = tuple(ONE if one is CONSTANT else factor_of(one.shape, one.surprise) for one in FAMILIES if one.blend)
"""Terms of sums."""


ROWS: Final = 6_000
"""Rows of all series that are fitted at once: their terms stay in the cache."""
Key = tuple[int, int, tuple[Factor, ...]]
"""What series have in common that are fitted at once: their number of rows, the most terms of a sum, the terms."""


@dataclass(frozen=True, slots=True, eq=False)
class _Blendable:
    """A series whose smooth law has a free parameter, which a sum of plain terms might have instead."""

    place: int
    """Its place among the laws."""
    learnt: Learnt
    """The smooth law."""
    feature: int
    """Place of the law's feature."""
    sample: Sample
    """The rows with this feature alone."""
    exponential: bool
    """The law is an exponential and not a power."""

    @property
    def key(self) -> Key:
        """What it has in common with the series that it is fitted with."""
        ends = np.array([self.sample.bottom[0], self.sample.top[0]])
        terms = (*TERMS, *([QUARTIC] if self.exponential else []))
        shapes = tuple(one for one in terms if one is ONE or one.defined(ends))
        return self.sample.y.size, min(MOST_TERMS, np.unique(self.sample.x[0]).size - 2), shapes


def blends(learnt: Sequence[Learnt | None], at: PredictionPoints, options: Options) -> list[Learnt | None]:
    """The laws of series whose smooth laws ``learnt`` have a free parameter, if sums of plain terms stand beside them.

    The sum is the law if it explains the series better; if it does nearly as well, it widens the intervals. None if no
    sum is plausible, and in the place of None.
    """
    groups: dict[Key, list[_Blendable]] = defaultdict(list)
    for place, law in enumerate(learnt):
        one = None if law is None else _blendable(place, law)
        if one is not None:
            groups[one.key].append(one)
    out: list[Learnt | None] = [None] * len(learnt)
    for key, members in groups.items():
        size = max(1, ROWS // key[0])
        for start in range(0, len(members), size):
            some = members[start : start + size]
            with quiet():
                for one, sums in zip(some, _best_sums(some, key), strict=True):
                    out[one.place] = _blend(one, sums, at, options) if sums else None
    return out


def _blendable(place: int, learnt: Learnt) -> _Blendable | None:
    """The series of a law that sums can stand beside."""
    rows, law = learnt.rows, learnt.law
    family = family_named(law.family)
    if family is None or not family.free or len(law.features) != 1 or not rows.positive:
        return None
    feature = rows.names.index(law.features[0])
    if (rows.x[feature] <= 0).any():
        return None
    return _Blendable(place, learnt, feature, Sample.of(rows, [feature]), family is not POWER)


def _blend(one: _Blendable, sums: list[FittedSum], at: PredictionPoints, options: Options) -> Learnt | None:
    """The law of a series whose best sums are ``sums``, the best first; None if no sum is plausible."""
    learnt, exponential = one.learnt, one.exponential
    rows, law = learnt.rows, learnt.law
    family = family_named(law.family)
    parameters, bic = 1 + (law.intercept is not None), float(np.log(max(one.sample.effective, 1.0)))
    base = one.sample.deviance_weight * Selection.of(learnt).deviance + (family.surprise if family else 0.0)
    base += EVIDENCE if exponential else steepness_cost(law.exponent or 0.0)
    lead = base + parameters * (bic + EXTRA_COST) - sums[0].score - CHOICE
    near = base + parameters * bic - min(one.plausible_score for one in sums)
    if max(lead, near) <= -options.delta:
        return None
    if lead <= 0:
        sums.sort(key=lambda one: one.plausible_score)
    best = sums[0]
    selection = Selection((one.feature,), best.deviance, best.sum.parameters, best.residual, tuple(sums))
    if lead > 0:
        found = law_of_selection(rows, selection, options)
        beside = learnt.plausible if min(lead, near) < options.delta and not exponential else ()
        return replace(found, plausible=(*found.plausible, *beside)).with_predictions(at)
    return learnt.widened([sum_ for sum_, _ in plausible_sums(rows, selection, options)])


def _best_sums(some: Sequence[_Blendable], key: Key) -> list[list[FittedSum]]:
    """For each series the sums that explain it best, with positive coefficients, best first."""
    _, most, shapes = key
    x, y, w = (np.array([getattr(one.sample, name) for one in some]) for name in ("x", "y", "w"))
    top = x.max(axis=-1)
    values = np.stack([np.ones_like(y) if one is ONE else one.ratio(x[:, 0], top) for one in shapes], axis=1)
    found: list[list[FittedSum]] = [[] for _ in some]
    for size in range(2, most + 1):
        subsets = np.array(list(combinations(range(len(shapes)), size)))
        for noise, weight in ((LOGNORMAL, w / y**2), (NORMAL, w)):
            series, sums = _screened(values, subsets, y, weight)
            if not series.size:
                continue
            samples = [some[b].sample for b in series]
            names = [(some[b].learnt.rows.names[some[b].feature],) for b in series]
            terms = [tuple((shapes[i],) for i in subset) for subset in subsets[sums]]
            columns = values[series[:, None], subsets[sums]]
            fitted = fit_alike(samples, names, terms, noise, columns)
            for b, one in zip(series, fitted, strict=True):
                if one is not None and (one.sum.coefficients > 0).all():
                    found[b].append(one)
    return [sorted(sums, key=lambda one: one.score) for sums in found]


def _screened(
    values: Array, subsets: NDArray[np.intp], y: Array, weight: Array
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The sums of terms with positive coefficients and the least weighted residuals, the best few of each series.

    ``values`` (B, M, n) are those of all terms, ``subsets`` (S, k) the sums, y and weight (B, n) the responses. The answer
    is a place among the series and a place among the sums, (N,) each, series by series.
    """
    weighted = values * weight[:, None]
    gram, right = weighted @ values.transpose(0, 2, 1), (weighted @ y[..., None])[..., 0]
    size, places = subsets.shape[1], np.arange(len(y))[:, None]
    grams, rights = gram[:, subsets[:, :, None], subsets[:, None, :]], right[:, subsets]
    coefficients = solve(grams.reshape(-1, size, size), rights.reshape(-1, size)).reshape(rights.shape)
    # What a sum explains is exact enough to leave a few of them, whose residuals decide.
    explained = np.where((coefficients > 0).all(axis=-1), (coefficients * rights).sum(axis=-1), -np.inf)
    few = np.argsort(-explained, axis=-1, kind="stable")[:, : FITTED + SPARE]
    columns = values[places[..., None], subsets[few]]
    residual = y[:, None] - (coefficients[places, few][..., None, :] @ columns)[..., 0, :]
    rss = (residual**2 * weight[:, None]).sum(axis=-1)
    rss = np.where(np.isfinite(explained[places, few]), rss, np.inf)
    order = np.argsort(rss, axis=-1, kind="stable")[:, :FITTED]
    series, rank = np.nonzero(np.isfinite(rss[places, order]))
    sums = few[series, order[series, rank]]
    return series, sums
