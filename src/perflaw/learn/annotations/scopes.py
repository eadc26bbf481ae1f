"""From the leaves of a tree to the scopes of an annotation: conditions, probabilities, laws, and curves to draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from perflaw.laws.build import number
from perflaw.laws.tree import Distribution
from perflaw.learn.annotations.conditions import Condition, Mask, Test, expression_of
from perflaw.learn.annotations.mixture import mixture
from perflaw.learn.annotations.relevant import learn_relevant, with_own_mean
from perflaw.learn.annotations.scan import threshold
from perflaw.learn.annotations.table import AnnotationOptions, Column, Table
from perflaw.learn.annotations.tree import Node
from perflaw.learn.cells import Array
from perflaw.learn.modes import borders, labels
from perflaw.learn.series import Learnt, Series
from perflaw.learn.series.law import distribution
from perflaw.types import Curve, Law, Metric, Noise, Scope

# ---- How much of a response a monotone curve can explain at most: every law of one feature is such a curve.


def most_explained(x: Array, y: Array) -> float:
    """Largest R² that a law of x (n,) can reach for y (n,), of values or of logarithms: x all different, n ≥ 2.

    Rising and falling curves by isotonic regression (Robertson, Wright & Dykstra 1988, §1.4).

    >>> steps = np.arange(20.0)
    >>> most_explained(steps, steps**2), round(most_explained(steps, np.cos(3.0 * steps)), 2)
    (1.0, 0.11)
    """
    ordered = y[np.argsort(x, kind="stable")]
    scales = [ordered, np.log(ordered)] if (y > 0).all() else [ordered]
    return max(_explained(side) for scale in scales for side in (scale, -scale))


def _explained(y: Array) -> float:
    """R² of the best curve that never falls over responses in order, (n,)."""
    centred = y - y.mean()
    total = float(centred @ centred)
    return 1.0 - float(((centred - rising(centred)) ** 2).sum()) / total if total > 0 else 1.0


def rising(y: Array) -> Array:
    """The curve nearest to y (n,) that never falls: the largest of the least means from a place on (max-min formula).

    >>> rising(np.array([1.0, 3.0, 2.0, 5.0])).tolist()
    [1.0, 2.5, 2.5, 5.0]
    """
    n = y.size
    sums = np.concatenate([np.zeros(1), np.cumsum(y)])
    width = np.arange(1, n + 1) - np.arange(n)[:, None]
    means = np.where(width > 0, (sums[1:] - sums[:-1, None]) / np.maximum(width, 1), np.inf)
    least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    within = np.where(width > 0, least, -np.inf)
    return np.maximum.accumulate(within, axis=0)[np.arange(n), np.arange(n)]


# ---- Laws found on selected records (Freud §3.2, "Further Refinements"): additive noise removed, or the main trend
# alone.

NOISE_REMOVED, MAIN_TREND = "noise removed", "main trend"
FEWEST_VALUES, FEWEST_EACH = 6, 5
"""Values of a feature, and records of each, that make a selection worth trying."""
MOST = 0.5
"""Share of the records that have such values at least."""
TELLING = 0.5
"""R² from which the law of all records is told rather than one of selected records."""
DOMINANT = 0.5
"""Share of the records that the dominant cluster holds at least."""
ROUNDING = 1e-6
"""R² that two ways to sum squares differ by at most."""


def cleaned(node: Node, metric: Metric, quantum: float, options: AnnotationOptions) -> tuple[Learnt, str] | None:
    """A good law of selected records and what was done, where the law of all records is not good; else None."""
    part, law = node.part, node.learnt.law
    if part is None or part.r2 >= options.good_r2 or (law.features and (law.r2 or 0.0) >= TELLING):
        return None
    groups = list(_groups(node))
    series: list[tuple[Series, str]] = []
    for name, x, y, group in groups:
        if metric.unit == "ns":
            series.append((_series(node, name, *_least(x, y, group), quantum), NOISE_REMOVED))
    for name, x, y, group in groups:
        kept = _dominant(y, group)
        if kept is not None:
            series.append((_series(node, name, *_means(x[kept], y[kept], group[kept]), quantum), MAIN_TREND))
    series = [one for one in series if _may_be_good(one[0], options)]
    found, _ = learn_relevant([one for one, _ in series], options)
    good = [(learnt, mark) for learnt, (_, mark) in zip(found, series, strict=True) if _good(learnt, options)]
    return max(good, key=lambda one: one[0].law.r2 or 0.0) if good else None


def _good(learnt: Learnt, options: AnnotationOptions) -> bool:
    law = learnt.law
    return bool(law.features) and law.verdict == "law" and (law.r2 or 0.0) >= options.good_r2


def _may_be_good(series: Series, options: AnnotationOptions) -> bool:
    """Whether a law can explain enough, seen at a fraction of the cost of learning it; zeros have laws of their own."""
    if options.paper or (series.y == 0).any() or series.y.size < 2:
        return True
    (x,) = series.features.values()
    return most_explained(x, series.y) >= options.good_r2 - ROUNDING


def _groups(node: Node) -> Iterator[tuple[str, Array, Array, NDArray[np.intp]]]:
    """Features of few values with records grouped by them: name, x, y, number of the group, (n,) each."""
    rows = np.flatnonzero(node.mask)
    y = node.table.evidence.cost[rows]
    for column in node.table.columns:
        if column.kind not in ("feature", "run"):
            continue
        x = np.asarray(column.values, dtype=np.float64)[rows]
        read = ~np.isnan(x)
        _, group, count = np.unique(x[read], return_inverse=True, return_counts=True)
        if np.count_nonzero(count >= FEWEST_EACH) < FEWEST_VALUES:
            continue
        enough = (count >= FEWEST_EACH)[group]
        if enough.mean() < MOST:
            continue
        renumbered = np.unique(group[enough], return_inverse=True)[1]
        yield column.name, x[read][enough], y[read][enough], renumbered.reshape(-1)


def _least(x: Array, y: Array, group: NDArray[np.intp]) -> tuple[Array, Array]:
    """The smallest cost of each group."""
    order = np.lexsort((y, group))
    first = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    return x[order][first], y[order][first]


def _means(x: Array, y: Array, group: NDArray[np.intp]) -> tuple[Array, Array]:
    number = np.unique(group, return_inverse=True)[1].reshape(-1)
    size = np.bincount(number)
    return np.bincount(number, x) / size, np.bincount(number, y) / size


def _dominant(y: Array, group: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Records of the cluster that holds most, among costs relative to their group's median; None where there is one."""
    if (y <= 0).any():
        return None
    order = np.lexsort((y, group))
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    size = np.diff(np.r_[starts, y.size])
    median = y[order][starts + (size - 1) // 2]
    relative = y / median[group]
    found = borders(relative)
    if not found.size:
        return None
    label = labels(relative, found)
    count = np.bincount(label)
    return label == int(count.argmax()) if count.max() >= DOMINANT * y.size else None


def _series(node: Node, name: str, x: Array, y: Array, quantum: float) -> Series:
    return Series(node.table.evidence.component.name, y, {name: x}, None, None, quantum)


# ---- The distribution of costs that depend on no input: Norm, LogNorm, Exp or Binom, by likelihood (Freud §2.2).

CLEARLY = 10.0
"""Exp and Binom replace the normal and lognormal distribution where their criterion is better by so much."""
CONTINUOUS = frozenset({"ns", "bytes"})
"""Units of continuous quantities: nothing to count there."""
FEWEST = 10
"""Records from which a distribution is told from another."""


def of_records(learnt: Learnt, table: Table, mask: Mask, unit: str, quantum: float) -> Law:
    """A law with the distribution of single records about its mean: laws are learnt from means over equal inputs."""
    law, evidence = learnt.law, table.evidence
    y, weight = evidence.cost[mask], evidence.weight[mask]
    if not law.features and y.size >= FEWEST and np.ptp(y) > 0:
        found = _special(law, y, weight * (y.size / weight.sum()), unit, quantum)
        if found is not None:
            return found
        law = with_own_mean(law, y, weight)
    scale = _scatter(learnt, table, mask)
    if scale <= law.noise.scale or law.breakpoints:
        return law
    noise = replace(law.noise, scale=scale)
    return replace(law, expression=distribution(law.mean, noise), noise=noise)


def _scatter(learnt: Learnt, table: Table, mask: Mask) -> float:
    """Standard deviation of single records about a law's mean, on the scale of its noise; 0 where it cannot be said."""
    evidence, named = table.evidence, table.named
    y, weight = evidence.cost[mask], evidence.weight[mask]
    at = {name: np.asarray(named[name], dtype=np.float64)[mask] for name in learnt.law.features if name in named}
    log = learnt.law.noise.distribution == "lognormal"
    if len(at) < len(learnt.law.features) or (log and y.min() <= 0):
        return 0.0
    mean = learnt.mean(at or {"": np.zeros(y.size)})
    residual = np.log(y) - np.log(np.maximum(mean, 1e-300)) if log else y - mean
    fine = np.isfinite(residual)
    total = float(weight[fine].sum())
    centre = float(weight[fine] @ residual[fine]) / total if log and total else 0.0
    return float(np.sqrt(weight[fine] @ (residual[fine] - centre) ** 2 / total)) if total else 0.0


def _special(law: Law, y: Array, weight: Array, unit: str, quantum: float) -> Law | None:
    """A constant law under another distribution where that is clearly likelier; y, weight (n,)."""
    if float(y.min()) < 0:
        return None
    normal, lognormal = _normal(y, weight, quantum), _lognormal(y, weight, quantum)
    known = min(normal, lognormal) + 2.0 * np.log(y.size)
    mean = float(weight @ y / y.size)
    if known - (_exponential(mean, y.size) + np.log(y.size)) > CLEARLY:
        return _replaced(law, Distribution("Exp", (number(mean),)), mean, Noise("exponential", mean))
    found = _binomial(y, weight, mean) if unit not in CONTINUOUS else None
    if found is not None and known - (found[1] + 2.0 * np.log(y.size)) > CLEARLY:
        p = mean / found[0]
        scale = float(np.sqrt(mean * (1.0 - p)))
        return _replaced(
            law, Distribution("Binom", (number(found[0], None), number(p))), mean, Noise("binomial", scale)
        )
    if law.noise.distribution == "lognormal" and lognormal - normal > CLEARLY:
        scale = float(np.sqrt(weight @ (y - mean) ** 2 / y.size))
        return _replaced(law, None, mean, Noise("normal", scale))
    if law.noise.distribution == "normal" and normal - lognormal > CLEARLY:
        logs = np.log(y)
        scale = float(np.sqrt(weight @ (logs - weight @ logs / y.size) ** 2 / y.size))
        return _replaced(law, None, mean, Noise("lognormal", scale))
    return None


def _replaced(law: Law, expression: Distribution | None, mean: float, noise: Noise) -> Law:
    """The law with another mean and noise; without an expression the one of normal or lognormal noise."""
    constant = number(mean)
    return replace(
        law, expression=expression or distribution(constant, noise), mean=constant, coefficient=mean, noise=noise
    )


def _normal(y: Array, weight: Array, quantum: float) -> float:
    """−2 log likelihood."""
    n = y.size
    variance = float(weight @ (y - weight @ y / n) ** 2) / n + quantum**2 / 12.0
    return float(n * (np.log(2.0 * np.pi * variance) + 1.0))


def _lognormal(y: Array, weight: Array, quantum: float) -> float:
    if float(y.min()) <= 0:
        return np.inf
    logs, n = np.log(y), y.size
    variance = (
        float(weight @ (logs - weight @ logs / n) ** 2) / n + (quantum / float(np.exp(np.median(logs)))) ** 2 / 12
    )
    return float(n * (np.log(2.0 * np.pi * variance) + 1.0) + 2.0 * weight @ logs)


def _exponential(mean: float, n: int) -> float:
    return float(2.0 * n * (np.log(mean) + 1.0)) if mean > 0 else np.inf


def _binomial(y: Array, weight: Array, mean: float) -> tuple[int, float] | None:
    """Trials and −2 log likelihood, trials by moments; None where y are no such counts."""
    variance = float(weight @ (y - mean) ** 2) / y.size
    if not (np.mod(y, 1.0) == 0).all() or mean <= 0 or not 0 < variance < mean:
        return None
    trials = max(round(mean / (1.0 - variance / mean)), int(y.max()))
    p = mean / trials
    if p >= 1:
        return None
    log = gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1) + xlogy(y, p) + xlogy(trials - y, 1 - p)
    return trials, float(-2.0 * weight @ log)


CURVE_POINTS = 61
MOST_LEVELS = 3
"""A feature of so few consecutive numbers is a choice: conditions name its value."""

Point = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Scoped:
    """The scopes of a component, and what was done to find them."""

    scopes: tuple[Scope, ...]
    """Laws with their conditions and probabilities."""
    learnt: tuple[Learnt, ...]
    """The law behind each scope, as it can be asked."""
    marks: tuple[str, ...]
    """Selections of records that laws stand on."""


def scoped(
    leaves: Sequence[Node], metric: Metric, quantum: float, options: AnnotationOptions, at: Point | None
) -> Scoped:
    """Scopes of the leaves of a component."""
    scopes: list[Scope] = []
    learnt: list[Learnt] = []
    marks: list[str] = []
    for node in leaves:
        for condition, probability, law, behind in _of_leaf(node, metric, quantum, options, marks):
            where = expression_of(_plain(condition, node.table))
            scopes.append(Scope(where, probability, asked(law, behind, at)))
            learnt.append(behind)
    return Scoped(tuple(scopes), tuple(learnt), tuple(dict.fromkeys(marks)))


Piece = tuple[Condition, float, Law, Learnt]
"""Condition, probability, law, and what answers for it."""


def _of_leaf(node: Node, metric: Metric, quantum: float, options: AnnotationOptions, marks: list[str]) -> list[Piece]:
    """The scopes of one leaf: its behaviours, its cleaned law, its regimes, or its law."""
    shares = mixture(node, quantum, options)
    if shares is None or not any(share.learnt.law.features for share in shares):
        clean = cleaned(node, metric, quantum, options)
        if clean is not None:
            learnt, mark = clean
            marks.append(mark)
            return [(node.condition, 1.0, learnt.law, learnt)]
    if shares is not None:
        return [
            (
                node.condition,
                share.probability,
                of_records(share.learnt, node.table, share.mask, metric.unit, quantum),
                share.learnt,
            )
            for share in shares
        ]
    return _regimes(node, metric, quantum)


def _regimes(node: Node, metric: Metric, quantum: float) -> list[Piece]:
    """A law, or the segments of a piecewise one with the condition of each."""
    law = node.learnt.law
    if not law.breakpoints:
        law = of_records(node.learnt, node.table, node.mask, metric.unit, quantum)
        return [(node.condition, 1.0, law, node.learnt)]
    x = node.cells.features[law.breakpoints[0].feature]
    ends = [_end(one.feature, one.value, x) for one in law.breakpoints]
    conditions = [(*([ends[i - 1].opposite()] if i else []), *(ends[i : i + 1])) for i in range(len(law.segments))]
    return [
        ((*node.condition, *condition), 1.0, segment, node.learnt)
        for condition, segment in zip(conditions, law.segments, strict=True)
    ]


def _end(feature: str, value: float, x: np.ndarray) -> Test:
    """The test of "up to a breakpoint", by a round number between the values seen on its sides."""
    return threshold(feature, float(x[x <= value].max(initial=-np.inf)), float(x[x > value].min(initial=np.inf)))


def _plain(condition: Condition, table: Table) -> Condition:
    """A condition that names the value of a choice where it leaves one alone, instead of its limits."""
    out = condition
    for column in table.columns:
        tests = [test for test in condition if test.feature == column.name]
        if not tests or column.kind in ("branch", "edge"):
            continue
        left = [level for level in _levels(column) if all(test.holds({column.name: level}).all() for test in tests)]
        if len(left) == 1:
            value = str(left[0][0]) if column.kind == "category" else float(left[0][0])
            chosen = Test(column.name, "==", value)
            out = tuple(dict.fromkeys(chosen if test.feature == column.name else test for test in out))
    return out


def _levels(column: Column) -> list[Array]:
    """Values of a choice, one array each; none for other features."""
    if column.kind == "category":
        return [np.array([level]) for level in np.unique(column.values) if level]
    values = np.asarray(column.values, dtype=np.float64)
    levels = np.unique(values[~np.isnan(values)])
    consecutive = levels.size <= MOST_LEVELS and (np.diff(levels) == 1).all() and float(levels[0]).is_integer()
    return [np.array([level]) for level in levels] if consecutive else []


def asked(law: Law, learnt: Learnt, at: Point | None) -> Law:
    """The law with its prediction at the point asked for, where that says the features the law needs."""
    if not at or not set(law.features) <= set(at) or not set(learnt.law.features) <= set(at):
        return law
    return replace(law, predictions=tuple(learnt.predict([at])))


def curves(learnt: Sequence[Learnt]) -> tuple[Curve, ...]:
    """The first scope's law drawn over each of its features, from the smallest value seen to ten times the largest."""
    first = learnt[0]
    return tuple(_curve(first, name) for name in first.law.features)


def _curve(learnt: Learnt, feature: str) -> Curve:
    low, high = learnt.law.range[feature]
    return learnt.curve(feature, low, high * 10 if high > 0 else high, CURVE_POINTS)
