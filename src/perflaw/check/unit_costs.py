"""Unit costs of all functions in old and new runs compared, with what disturbs many functions at once taken out.

A run is slower when the machine is, and that is one number for all functions. The cost of an event of the tracer is
calibrated in every run, and the error of that is one number for all events. What else moves many functions together
(a neighbour on the other core while one phase of the program runs, a cache that another program fills) is estimated as
factors: directions in which the unit costs of the functions vary together between runs. A change of the program moves
few functions, so the scores of a run on the factors are fitted robustly over all other functions, and what remains of
a function is compared (Wang, Zhao, Hastie & Owen 2017, "Confounder adjustment in multiple hypothesis testing", Annals of
Statistics 45, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.special import digamma, fdtrc, trigamma

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Mask = NDArray[np.bool_]

MIN_FUNCTIONS: Final = 5
"""Functions that matter without which the speed of a run is unknown."""
TRACER_FUNCTIONS: Final = 10
"""Functions that matter without which the error of the tracer's cost of an event is unknown."""
MAX_EVENTS: Final = 0.03
"""Events in a ns of a function's own cost: Python makes no call in less than 30 ns."""
CLIP: Final = 3.0
"""Standard deviations beyond which a unit cost is disturbed and counts as that far off."""
HUBER: Final = 2.0
"""Standard deviations from which on an observation's weight in a robust mean falls (Huber 1964)."""
SPARSE: Final = 0.7
"""The same for the functions that tell the scores of a run: some of them may have changed in all of their runs."""
FLOOR: Final = 0.003
"""Smallest standard deviation of the logarithm of a unit cost: no clock is more exact."""
MIN_PRIOR, MAX_PRIOR = 2.0, 30.0
"""Limits of the degrees of freedom that the variances of the other functions count for in that of a function."""
DRIFT: Final = 0.008
"""Standard deviation by which the unit costs of two recordings differ for no reason."""
FREEDOM_OF_FACTOR: Final = 6.0
"""Degrees of freedom of a function's scatter that there must be for each factor."""
MAX_LEVERAGE: Final = 0.8
"""Part of its own adjustment, at most, that a function is taken to give."""
SCALE_ROUNDS: Final = 2
"""Rounds in which the scale of the residuals is estimated again."""
MEAN_SQUARE: Final = 0.9205
"""Mean of the squares of standard normal numbers if squares beyond 4 count as 4."""
ROUNDS: Final = 8
"""Rounds of reweighting: the estimates change by less than a hundredth of their error after these."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitChanges:
    """Change of the unit cost of each of F functions from old runs to new ones."""

    change: Array
    """(F,) logarithm of new over old; 0 where no size is known on both sides."""
    error: Array
    """(F,) its standard error; infinite where no size is known on both sides."""
    freedom: Array
    """(F,) degrees of freedom of the error."""
    own_freedom: Array
    """(F,) those that come from the function's own runs."""
    tracer_adjusted: bool
    """Whether the error of the tracer's cost of an event is taken out: there are enough functions to tell it."""


def compare_units(
    unit: Array, size: Places, new: Mask, usable: Mask, events: Array | None = None, once: Mask | None = None
) -> UnitChanges:
    """Changes from the old runs to the new ones, of the logarithms of unit costs (R, F), NaN where a function had none.

    ``size`` (R,) numbers the sizes of the runs, ``new`` (R,) says which are new, and ``usable`` (F,) which functions
    matter and are known in every run: they tell what disturbs runs. ``events`` (F,) are the events of the tracer in a
    unit of a function's own cost, 1/ns; None for a metric that neither the machine nor the tracer disturbs. ``once``
    (F,) are functions that a run calls once: code that is cold, such as that of modules, drifts more than hot code.
    """
    count = int(size.max()) + 1
    members = np.zeros((count, size.size))
    members[size, np.arange(size.size)] = 1.0
    members = members[members.sum(axis=1) > 0]
    factors = 0
    if events is not None and usable.sum() >= MIN_FUNCTIONS:
        unit = unit - np.median(_from_medians(unit, members)[:, usable], axis=1)[:, None]
        unit, factors = _without_factors(unit, members, new, usable, events)
    change, residual, scale, information = _robust_change(unit, members, new)
    known = np.isfinite(unit)
    observations, sizes = known.sum(axis=0), (members @ known > 0).sum(axis=0)
    own_freedom = np.maximum(observations - sizes - (information > 0) - factors, 0.0)
    # The variance of a robust mean: of the clipped residuals, over the squared share of those that are not clipped.
    near = np.abs(np.nan_to_num(residual)) <= HUBER * scale
    clipped = np.clip(np.nan_to_num(residual), -HUBER * scale, HUBER * scale)
    share = np.maximum((near & known).sum(axis=0), 1.0) / np.maximum(observations, 1)
    variance = np.maximum((clipped**2).sum(axis=0) / np.maximum(own_freedom, 1.0) / share**2, FLOOR**2)
    # Functions of one kind tell each other how far they scatter, and drift from one recording to the next.
    cold = usable & (np.zeros(usable.size, dtype=np.bool_) if once is None else once)
    kinds = [~usable, usable & ~cold, cold]
    if min((usable & ~cold).sum(), cold.sum()) < 2 * MIN_FUNCTIONS:
        kinds = [~usable, usable]
    freedom = own_freedom.copy()
    for kind in kinds:
        variance[kind], freedom[kind] = _moderated(variance[kind], own_freedom[kind])
    tested = information > 0
    error = np.full(change.size, np.inf)
    error[tested] = np.sqrt(variance[tested] / information[tested] + DRIFT**2)
    ratio = np.where(tested, change / error, 0.0)
    drifts = [_spread(ratio[kind & tested]) for kind in kinds[1:] if (kind & tested).sum() >= 2 * MIN_FUNCTIONS]
    for kind, drift in zip(kinds[1:], drifts, strict=False):
        error[kind] *= max(1.0, drift)
    error[kinds[0]] *= max([1.0, *drifts])
    tracer_adjusted = events is not None and int(usable.sum()) >= TRACER_FUNCTIONS
    return UnitChanges(change, error, freedom, own_freedom, tracer_adjusted)


def _from_medians(unit: Array, members: Array) -> Array:
    """Logarithms of unit costs relative to the median of their size, (R, F)."""
    out = np.array(unit)
    for row in members > 0:
        some = np.isfinite(unit[row]).any(axis=0)
        out[np.ix_(row, some)] -= np.nanmedian(unit[np.ix_(row, some)], axis=0)
    return out


def _without_factors(unit: Array, members: Array, new: Mask, usable: Mask, events: Array) -> tuple[Array, int]:
    """Unit costs without what the speed, the tracer and the factors of their run explain, and the number of factors.

    The speed moves all functions alike, the tracer each by its events. The loadings of the factors are the leading
    singular vectors of the standardized residuals; a singular value counts as a factor beyond the threshold of Gavish &
    Donoho (2014, "The optimal hard threshold for singular values is 4/√3", equation 5).
    """
    functions = int(usable.sum())
    loadings = np.ones((unit.shape[1], 1))
    if functions >= TRACER_FUNCTIONS:
        loadings = np.column_stack([loadings, np.minimum(events, MAX_EVENTS)])
    _, residual, scale, information = _robust_change(_adjusted(unit, members, loadings, usable, new), members, new)
    freedom = len(unit) - len(members) - int(information.max() > 0)
    allowed = int(min(freedom / FREEDOM_OF_FACTOR, functions / MIN_FUNCTIONS - loadings.shape[1]))
    if allowed < 1:
        return _adjusted(unit, members, loadings, usable, new), 0
    standardized = np.nan_to_num(np.clip(residual / scale, -CLIP, CLIP))
    left, values, _ = np.linalg.svd(standardized[:, usable], full_matrices=False)
    ratio = min(freedom, functions) / max(freedom, functions)
    threshold = (0.56 * ratio**3 - 0.95 * ratio**2 + 1.82 * ratio + 1.43) * float(np.median(values[:freedom]))
    factors = min(int((values[:freedom] > threshold).sum()), allowed)
    loadings = np.column_stack([loadings, scale[:, None] * (standardized.T @ left[:, :factors])])
    return _adjusted(unit, members, loadings, usable, new), factors


def _adjusted(unit: Array, members: Array, loadings: Array, usable: Mask, new: Mask) -> Array:
    """Unit costs without what the loadings (F, K) explain in each run, by robust scores of the run.

    The scores that a function is adjusted by are those that the other functions give (the deleted residual of a
    regression), so that a change of its own does not hide in them.
    """
    _, _, scale, _ = _robust_change(unit, members, new)
    away = _from_medians(unit, members)
    design, target = loadings[usable] / scale[usable, None], away[:, usable] / scale[usable]
    size = np.sqrt((design**2).sum(axis=0))
    design = design / size
    scores = np.zeros((len(unit), design.shape[1]))
    for _ in range(ROUNDS):
        weight = 1.0 / np.maximum(np.abs(target - scores @ design.T) / SPARSE, 1.0)
        gram = np.einsum("fk,rf,fl->rkl", design, weight, design) + 1e-9 * np.eye(design.shape[1])
        scores = np.linalg.solve(gram, np.einsum("fk,rf->rk", design, weight * target)[..., None])[..., 0]
    leverage = np.zeros(unit.shape)
    leverage[:, usable] = weight * np.einsum("fk,rkl,fl->rf", design, np.linalg.inv(gram), design)
    remaining = (away - scores / size @ loadings.T) / np.maximum(1.0 - leverage, 1.0 - MAX_LEVERAGE)
    return np.asarray(unit - away + remaining)


def _robust_change(unit: Array, members: Array, new: Mask) -> tuple[Array, Array, Array, Array]:
    """Change of each function (F,), residuals (R, F), their scale (F,), and the information on the change (F,).

    The model of a function is a level for each size and a change of the new runs. It starts with medians; observations
    far from it have less weight (Huber 1964). The information is the reciprocal variance of the change for residuals of
    variance 1.
    """
    known = np.isfinite(unit)
    filled = np.where(known, unit, 0.0)
    sizes, observations = (members @ known > 0).sum(axis=0), known.sum(axis=0)
    away = _from_medians(unit, members)
    residual = np.where(new[:, None], away - medians(away[new]), away - medians(away[~new]))
    scale = np.full(unit.shape[1], FLOOR)
    for turn in range(ROUNDS):
        if turn < SCALE_ROUNDS:
            lost = np.sqrt(observations / np.maximum(observations - sizes - 1, 1.0))
            scale = np.maximum(1.4826 * np.nan_to_num(medians(np.abs(residual))) * lost, FLOOR)
        weight = known / np.maximum(np.abs(np.nan_to_num(residual)) / (HUBER * scale), 1.0)
        total = np.maximum(members @ weight, 1e-12)
        side = new[:, None] - members.T @ ((members @ (weight * new[:, None])) / total)
        middle = filled - members.T @ ((members @ (weight * filled)) / total)
        squares = (weight * side**2).sum(axis=0)
        change = np.where(squares > 1e-9, (weight * side * middle).sum(axis=0) / np.maximum(squares, 1e-12), 0.0)
        residual = np.where(known, middle - side * change, np.nan)
    together = np.maximum(members @ known, 1.0)
    side = new[:, None] - members.T @ ((members @ (known * new[:, None])) / together)
    information = (known * side**2).sum(axis=0)
    return change, residual, scale, np.where(information > 1e-9, information, 0.0)


def medians(values: Array) -> Array:
    """Medians of the known values of each column, NaN without any."""
    out = np.full(values.shape[1], np.nan)
    some = np.isfinite(values).any(axis=0)
    out[some] = np.nanmedian(values[:, some], axis=0)
    return out


def _spread(values: Array) -> float:
    """Standard deviation about 0 of most of the values: squares beyond two of it count as four (Huber 1964, section 9).

    >>> round(_spread(np.r_[np.linspace(-1.5, 1.5, 50), 40.0]), 2)
    0.95
    """
    spread = 1.4826 * float(np.median(np.abs(values)))
    for _ in range(ROUNDS):
        spread *= float(np.sqrt(np.minimum((values / max(spread, 1e-12)) ** 2, 4.0).mean() / MEAN_SQUARE))
    return spread


def _moderated(variance: Array, freedom: Array) -> tuple[Array, Array]:
    """Variances drawn towards that of all functions, by as much as these resemble each other, with their freedom (F,).

    Smyth (2004, "Linear models and empirical Bayes methods", section 6.2), with medians in the place of means. A
    function whose variance is larger than that of any other by chance is drawn less (Phipson, Lee, Majewski, Alexander
    & Smyth 2016, "Robust hyperparameter estimation protects against hypervariable genes", section 3).
    """
    seen = freedom > 0
    if seen.sum() < MIN_FUNCTIONS:
        return variance, freedom
    half = freedom[seen] / 2
    log_variance = np.log(variance[seen]) - digamma(half) + np.log(half)
    middle = float(np.median(log_variance))
    excess = (1.4826 * float(np.median(np.abs(log_variance - middle)))) ** 2 - float(np.mean(trigamma(half)))
    worth = MAX_PRIOR
    if excess > 0:
        grid = np.geomspace(MIN_PRIOR, MAX_PRIOR, 40)
        worth = float(grid[np.abs(trigamma(grid / 2) - excess).argmin()])
    prior = exp(middle + float(digamma(worth / 2)) - log(worth / 2))
    by_chance = fdtrc(np.maximum(freedom, 1.0), worth, variance / prior) * seen.sum()
    prior_freedom = worth * np.minimum(by_chance, 1.0)
    together = freedom + prior_freedom
    return np.asarray((variance * freedom + prior * prior_freedom) / together), together * seen
