"""The law of a metric over knobs and features of the workload: the law learner's, or one of what knobs multiply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import normal_quantile
from perflaw.learn.exploring.gaussian_process import one_thread
from perflaw.learn.exploring.loglinear import LogLinear, fit_loglinear, foreseen
from perflaw.learn.exploring.observations import Array
from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series.law import new_law
from perflaw.learn.series.learnt import FACTORS, percentile95
from perflaw.types import Law, Noise, Prediction

CLEARLY = 6.0
"""The learner's own law is kept unless the other is better by so much (Kass and Raftery 1995: strong)."""
FORESEEN = 0.5
"""Share of the variance that a law has to foresee in trials left out to be called one."""


@one_thread
def metric_law(
    name: str,
    y: Array,
    features: Mapping[str, Array],
    groups: Sequence[str] | NDArray[np.str_],
    depends: bool = True,
    at: Sequence[Mapping[str, float]] = (),
) -> Law:
    """Learn how responses (n,) depend on features (n,) each.

    ``groups`` name the configuration of each row: rows of one share what that configuration was like. ``depends``: whether
    a test established that anything matters at all; without, only the learner's own evidence counts. ``at``: points of
    predictions that are told before those beyond the data.
    """
    varying = _informative(features)
    points = [*at, *_beyond(features)]
    labels = np.unique(np.asarray(groups), return_inverse=True)[1]
    learnt = learn([Series(name, y, varying, labels)], points or None)[0]
    known = _advised(learnt.law)
    if not depends or not varying or (y <= 0).any():
        return known
    found = fit_loglinear(varying, np.log(y))
    if found is None or found.score + 2 * float(np.log(y).sum()) > _score(learnt, y) - CLEARLY:
        return known
    return _law(found, name, y, varying, labels, points)


def _advised(law: Law) -> Law:
    """The law with advice for studies: what more recordings would be there are more trials here."""
    reason, advised, _ = law.reason.partition(": add ")
    return replace(law, reason=f"{reason}: try more configurations") if advised else law


def _informative(features: Mapping[str, Array]) -> dict[str, Array]:
    """Features that vary; of two that are each other's opposite (a knob of two settings without order) the second."""
    varying = {name: values for name, values in features.items() if np.ptp(values) > 0}
    opposite = {name for name, values in varying.items() for other, others in varying.items()
                if name < other and "=" in name and np.array_equal(values, 1 - others)}  # fmt: skip
    return {name: values for name, values in varying.items() if name not in opposite}


def _beyond(features: Mapping[str, Array]) -> list[dict[str, float]]:
    tops = {name: float(percentile95(values)) for name, values in features.items()}
    return [{name: float(factor) * top for name, top in tops.items()} for factor in FACTORS] if tops else []


def _score(learnt: Learnt, y: Array) -> float:
    """−2 log likelihood (without its constants) and what the law's parameters cost, on the scale of y."""
    law, left = learnt.law, learnt.residuals()
    variance = max(float(left @ left) / y.size, 1e-12)
    parameters = 2 * len(law.features) + (law.verdict == "law")
    jacobian = 0.0 if law.noise.distribution == "normal" else 2 * float(np.log(y).sum())
    return float(y.size * np.log(variance) + jacobian + parameters * np.log(y.size))


def _law(
    found: LogLinear,
    name: str,
    y: Array,
    features: Mapping[str, Array],
    groups: NDArray[np.intp],
    points: Sequence[Mapping[str, float]],
) -> Law:
    log_y = np.log(y)
    left = log_y - found.design(features, y.size) @ found.coefficients
    r2 = float(1 - (left @ left) / max(float(((log_y - log_y.mean()) ** 2).sum()), 1e-300))
    told = foreseen(features, log_y, groups)
    doubt = ""
    if told < FORESEEN:
        seen = f"of those it was learnt from {r2 * 100:.0f} %"
        doubt = f"of trials left out it foresees {max(told, 0) * 100:.0f} % of the variance, {seen}: try more configurations"
    return new_law(
        Series(name, y, features),
        int(np.unique(groups).size),
        family="loglinear",
        mean=found.expression(),
        noise=Noise("lognormal", found.scale),
        slopes=_slopes(found, features),
        features=found.features,
        verdict=("inconclusive" if doubt else "law", doubt),
        r2=r2,
        coefficient=float(np.exp(found.coefficients[0] + found.scale**2 / 2)),
        predictions=_predictions(found, points),
    )


def _slopes(
    found: LogLinear, features: Mapping[str, Array]
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Local exponents d log y / d log x at the upper end of the data, with its interval."""
    top = {name: float(values.max()) for name, values in features.items()}
    reach = normal_quantile(2)
    slope, low, high = {}, {}, {}
    for feature in found.features:
        gradient = np.zeros(len(found.coefficients))
        for place, term in enumerate(found.terms, 1):
            for factor in term:
                if factor.feature == feature:
                    others = [one.value(np.array([top[one.feature]]))[0] for one in term if one is not factor]
                    gradient[place] += factor.slope(top[feature]) * float(np.prod(others))
        value, error = float(gradient @ found.coefficients), float(np.sqrt(gradient @ found.covariance @ gradient))
        slope[feature], low[feature], high[feature] = value, value - reach * error, value + reach * error
    return slope, low, high


def _predictions(found: LogLinear, points: Sequence[Mapping[str, float]]) -> tuple[Prediction, ...]:
    asked = [one for one in points if all(feature in one for feature in found.features)]
    if not asked:
        return ()
    columns = {name: np.array([one[name] for one in asked]) for name in found.features}
    limits = zip(*(np.clip(one, 0, 1e300).tolist() for one in found.limits(columns, len(asked))), strict=True)
    return tuple(Prediction(dict(one), *five) for one, five in zip(asked, limits, strict=True))
