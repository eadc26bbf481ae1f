"""Laws of a call's cost, learnt from cells; dependences too small to matter become constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.cells import Cells
from perflaw.learn.plausibility import prior_costs
from perflaw.learn.series import Learnt, Series, learn
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.ways import ways_of
from perflaw.parts import untold
from perflaw.types import Evidence, Law

MIN_EFFECT = 1.25
"""A law whose mean varies by less than this factor over its data becomes a constant: it matters to nobody."""
CORE = (0.02, 0.98)
"""Quantiles of the data between which the mean has to vary: a few points at the edge are no reason for a law."""


def cell_series(evidence: Evidence, cells: Cells, options: AnnotationOptions) -> Series:
    """The series of a component's cells."""
    given = {name for cost in evidence.runs for name in cost.run.features}
    costs = {} if options.paper else prior_costs(cells.features, given)
    placeholders = {name for cost in evidence.runs for name in cost.run.configuration}
    name, quantum, varied = evidence.component.name, options.quantum, tuple(sorted(given & placeholders))
    ways = ways_of([cost.run for cost in evidence.runs])
    return Series(name, cells.y, cells.features, cells.run, quantum=quantum, costs=costs, varied=varied, ways=ways)


def learn_relevant(
    series: Sequence[Series],
    options: AnnotationOptions,
    *,
    regimes: bool = False,
    tell: Callable[[float], None] = untold,
) -> tuple[list[Learnt], set[int]]:
    """A law for each series, and the indexes of those whose dependence is too small to matter: they are constants.

    Without ``regimes`` no law has breakpoints: regimes are scopes, which the tree decides on. ``tell`` is told the part
    that is done.
    """
    learnt = _learn(series, options, regimes=regimes, tell=lambda done: tell(done / len(series)))
    small = [index for index, one in enumerate(learnt) if _is_small(one, options.resolution)]
    constants = _learn([replace(series[index], features={}) for index in small], options)
    for index, constant in zip(small, constants, strict=True):
        learnt[index] = constant
    return learnt, set(small)


def _learn(
    series: Sequence[Series],
    options: AnnotationOptions,
    *,
    regimes: bool = False,
    tell: Callable[[float], None] = untold,
) -> list[Learnt]:
    """Laws of the law learner, or the paper's own regressions."""
    if not series:
        return []
    if options.paper:
        from perflaw.learn.annotations.paper import learn_paper

        return learn_paper(series, options.good_r2)
    return learn(series, None, LawOptions(regimes=regimes), tell)


def _is_small(learnt: Learnt, resolution: float) -> bool:
    """Whether a law's mean hardly varies over its data, or by less than the resolution of a call's measurement."""
    if not learnt.law.features:
        return False
    means = learnt.mean(learnt.rows.series.features)
    low, high = np.quantile(means, CORE, method="inverted_cdf")
    return bool(high < max(MIN_EFFECT * low, low + resolution))


def as_small(law: Law) -> Law:
    """A constant whose reason is that its dependence is too small to matter."""
    percent = f"{(MIN_EFFECT - 1) * 100:.0f} %"
    reason = f"over the data it varies by less than {percent}, or by less than the measurement of a call resolves"
    return replace(law, verdict="none", reason=reason)


def is_good(learnt: Learnt, options: AnnotationOptions) -> bool:
    """Whether a law depends on features and explains enough."""
    law = learnt.law
    return bool(law.features) and law.verdict == "law" and (law.r2 or 0.0) >= options.good_r2
