"""Dependences too small to matter are told as constants, and constants cost what their records do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.build import lognormal, number
from perflaw.learn.annotations.paper import learn_paper
from perflaw.learn.annotations.table import AnnotationOptions
from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series import Options as LawOptions
from perflaw.types import Law, Prediction

# ---- The learner that annotations ask: ours, or the paper's own regressions.


def learn_laws(series: Sequence[Series], options: AnnotationOptions, *, regimes: bool = False) -> list[Learnt]:
    """A law for each series. Without breakpoints unless asked: regimes are scopes, and the tree decides on them."""
    if not series:
        return []
    if options.paper:
        return learn_paper(series, options.good_r2)
    return learn(series, None, LawOptions(regimes=regimes))


MIN_EFFECT = 1.25
"""A law whose mean varies by less than this factor over its data is told as a constant: it does not matter to anyone."""
USUAL = (0.02, 0.98)
"""Quantiles between which the mean has to vary: a few points at the edge are no reason for a law."""
OFF = 1.5
"""A lognormal distribution's mean that is so many times the records' own rests on a tail that nobody saw."""


def learn_relevant(
    series: Sequence[Series], options: AnnotationOptions, *, regimes: bool = False
) -> tuple[list[Learnt], set[int]]:
    """A law for each series, and the numbers of those whose dependence is too small to matter: they get constants."""
    learnt = learn_laws(series, options, regimes=regimes)
    small = [index for index, found in enumerate(learnt) if negligible(found, options.resolution)]
    plain = [replace(series[index], features={}) for index in small]
    for index, constant in zip(small, learn_laws(plain, options), strict=True):
        learnt[index] = constant
    return learnt, set(small)


def negligible(learnt: Learnt, resolution: float) -> bool:
    """Whether a law's mean hardly varies over the data it was learnt from, or by less than a call is measured."""
    if not learnt.law.features:
        return False
    means = learnt.mean(learnt.rows.series.features)
    low, high = np.quantile(means, USUAL, method="inverted_cdf")
    return bool(high < max(MIN_EFFECT * low, low + resolution))


def too_small(law: Law) -> Law:
    """A constant that says why it is one."""
    percent = f"{(MIN_EFFECT - 1) * 100:.0f} %"
    return replace(
        law, verdict="none", reason=f"it varies by less than {percent}, or than calls are measured, over the data"
    )


def with_own_mean(law: Law, y: NDArray[np.float64], weight: NDArray[np.float64]) -> Law:
    """A lognormal constant with the mean of its records (n,) where the distribution's own is out of proportion."""
    mean = float(weight @ y / weight.sum())
    if law.noise.distribution != "lognormal" or mean <= 0 or 1 / OFF < law.coefficient / mean < OFF:
        return law
    ratio = mean / law.coefficient
    return replace(
        law,
        expression=lognormal(number(mean), law.noise.scale),
        mean=number(mean),
        coefficient=mean,
        predictions=tuple(_scaled(one, ratio) for one in law.predictions),
    )


def _scaled(one: Prediction, ratio: float) -> Prediction:
    limits = (one.mean, one.mean_low, one.mean_high, one.new_low, one.new_high)
    return Prediction(one.features, *(limit * ratio for limit in limits))
