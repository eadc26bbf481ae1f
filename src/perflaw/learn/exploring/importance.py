"""Which knobs matter: shares of a metric's variance over the whole space, by knob and by pair (functional ANOVA)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflaw.learn.exploring.components import Axis, Data, Parts, pairs_of, parts, single
from perflaw.learn.exploring.responses import Responses, axes_of, data_of
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.types.explored import Importance, Share

# ---- Parts of the variance where every combination of levels was tried: sums of squares, nothing interpolated
# (Fisher).


def cube(axes: Sequence[Axis], x: Array, y: Array) -> Array | None:
    """Responses as an array with an axis a knob; None where a combination of levels is missing."""
    places = [np.argmin(np.abs(x[:, i, None] - axis.levels), axis=1) for i, axis in enumerate(axes)]
    off = [np.abs(x[:, i] - axis.levels[place]).max() for i, (axis, place) in enumerate(zip(axes, places, strict=True))]
    shape = tuple(len(axis.levels) for axis in axes)
    if max(off) > 1e-6 or len(y) != np.prod(shape):
        return None
    found = np.full(shape, np.nan)
    found[tuple(places)] = y
    return None if np.isnan(found).any() else found


def exact(values: Array, noise: float, draws: int, rng: np.random.Generator) -> Parts:
    """Draws of the parts' variances; ``noise`` is the variance of one cell's mean.

    A part's sum of squares holds noise in each of its degrees of freedom: it is taken out, and drawn anew for the interval.
    """
    count = values.ndim
    mains = [_alone(values, (i,)) for i in range(count)]
    pairs = [_both(values, i, j) for i, j in pairs_of(count)]
    freedom = [n - 1 for n in values.shape]
    both = [freedom[i] * freedom[j] for i, j in pairs_of(count)]
    left = float(values.var()) - sum(map(_variance, mains)) - sum(map(_variance, pairs))
    others = values.size - 1 - sum(freedom) - sum(both)
    variances, freedoms = [*map(_variance, mains), *map(_variance, pairs), left], [*freedom, *both, others]
    each = zip(variances, freedoms, strict=True)
    part = np.stack([_drawn(one, df, noise / values.size, draws, rng) for one, df in each], axis=1)
    return Parts(part[:, :count], part[:, count:-1], part[:, -1], noise)


def _variance(values: Array) -> float:
    return float((values**2).mean())


def _alone(values: Array, kept: tuple[int, ...]) -> Array:
    """Means over all but the axes kept, about the mean of all."""
    others = tuple(axis for axis in range(values.ndim) if axis not in kept)
    return np.asarray(values.mean(axis=others) - values.mean())


def _both(values: Array, i: int, j: int) -> Array:
    """What two knobs do beyond what each does alone."""
    return np.asarray(_alone(values, (i, j)) - _alone(values, (i,))[:, None] - _alone(values, (j,))[None, :])


def _drawn(variance: float, freedom: int, noise: float, draws: int, rng: np.random.Generator) -> Array:
    """Draws of what a part's variance is without noise, ``noise`` a degree of freedom, (draws,)."""
    if freedom <= 0:
        return np.zeros(draws)
    middle = np.sqrt(max(variance - freedom * noise, 0.0))
    first = (middle + np.sqrt(noise) * rng.standard_normal(draws)) ** 2
    rest = noise * (rng.chisquare(freedom - 1, draws) if freedom > 1 else np.zeros(draws))
    return np.asarray(np.maximum(first + rest - freedom * noise, 0.0))


# ---- Whether a metric depends on any knob at all: permutations of configurations, the greatest of all knobs and
# pairs counted.

PERMUTATIONS = 499
LENGTH = 0.5
"""Length scale of the tests' kernels."""
MOST_ROWS = 300
"""Configurations that are permuted; of more evenly many."""


def dependence(axes: Sequence[Axis], x: Array, y: Array, rng: np.random.Generator) -> float:
    """Return p of the hypothesis that responses y (n,) at places x (n, D) depend on no knob.

    The statistic is the greatest, over knobs and pairs, of y'Ky standardized by its permutations (Westfall and Young
    1993, single step), so that one strong pair is seen among many that say nothing.
    """
    if len(y) > MOST_ROWS:
        rows = np.linspace(0, len(y) - 1, MOST_ROWS).astype(int)
        x, y = x[rows], y[rows]
    knobs = single(axes, x, x, np.full(len(axes), LENGTH))
    kernels = [*knobs, *(knobs[i] * knobs[j] for i, j in pairs_of(len(knobs)))]
    centred = ranks(y)
    several = np.stack([centred, *(rng.permutation(centred) for _ in range(PERMUTATIONS))])
    found = np.stack([np.einsum("pi,pi->p", several @ kernel, several) for kernel in map(_centred, kernels)])
    spread = found[:, 1:].std(axis=1, keepdims=True)
    score = (found - found[:, 1:].mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
    greatest = score.max(axis=0)
    return float((1 + np.count_nonzero(greatest[1:] >= greatest[0])) / (1 + PERMUTATIONS))


def ranks(y: Array) -> Array:
    """Responses centred, those far out pulled in: one wild trial decides nothing."""
    middle = np.median(y)
    spread = np.median(np.abs(y - middle)) * 1.4826 or y.std() or 1.0
    pulled = np.clip((y - middle) / spread, -4, 4)
    return np.asarray(pulled - pulled.mean())


def _centred(kernel: Array) -> Array:
    means = kernel.mean(axis=0)
    return np.asarray(kernel - means[None, :] - means[:, None] + means.mean())


ALPHA = 0.01
"""How often pure noise may get any importance."""
FEWEST = 8
"""Configurations below which nothing is said."""
HYPERPARAMETERS, EACH = 12, 40
"""Draws of the process's hyperparameters, and of its parts under each."""
LEAST = 0.003
"""Shares whose interval begins above it are established."""


def importance(found: Responses, space: SpaceLike, seed: int = 0) -> Importance:
    """Return the shares; none, with the reason, where the data do not establish that anything depends on a knob."""
    rng = np.random.default_rng([seed, len(found.y)])
    noise = float(np.sqrt(found.within / found.freedom)) if found.freedom else float("nan")
    few = len(found.y) < FEWEST
    if few or np.ptp(found.y) <= 1e-12 * max(1.0, float(np.abs(found.y).max())):
        reason = (
            f"{len(found.y)} configurations tried, {FEWEST} are needed"
            if few
            else "the metric is the same in all trials"
        )
        p = float("nan") if few else 1.0
        return Importance(found.metric, found.logarithm, (), 0.0, noise, p, False, reason)
    places, axes = axes_of(space, found.configurations[0])
    p = dependence(axes, found.x[:, places], found.y, rng) if axes else 1.0
    if p > ALPHA:
        spread = float(found.y.std()) if np.isnan(noise) else noise
        reason = f"no knob is established to matter (p = {p:.2g}): more trials may tell"
        return Importance(found.metric, found.logarithm, (), 0.0, spread, p, False, reason)
    data, spread = data_of(found, places, axes)
    drawn, whole = _parts(data, rng)
    names = [axis.name for axis in axes]
    scatter = float(np.sqrt(drawn.noise)) * spread
    shares, rest = _shares(drawn, names)
    return Importance(found.metric, found.logarithm, shares, rest, scatter if np.isnan(noise) else noise, p, whole)


def _parts(data: Data, rng: np.random.Generator) -> tuple[Parts, bool]:
    """Draws of the parts, and whether nothing was interpolated."""
    values = cube(data.axes, data.x, data.y)
    if values is None:
        return parts(data, HYPERPARAMETERS, EACH, rng), False
    single = data.within / data.freedom if data.freedom >= FEWEST else parts(data, 1, 1, rng).noise
    found = exact(values, single / float(data.weight.mean()), HYPERPARAMETERS * EACH, rng)
    return Parts(found.mains, found.pairs, found.rest, single), True


def _shares(drawn: Parts, names: list[str]) -> tuple[tuple[Share, ...], float]:
    """Shares of knobs and pairs, the greatest first, and of the rest."""
    knobs = [(name,) for name in names] + [(names[i], names[j]) for i, j in pairs_of(len(names))]
    variances = np.concatenate([drawn.mains, drawn.pairs, drawn.rest[:, None]], axis=1)
    parts_of = variances / np.maximum(variances.sum(axis=1, keepdims=True), 1e-300)
    low, high = np.quantile(parts_of, [0.025, 0.975], axis=0)
    mean = parts_of.mean(axis=0)
    found = [_share(knob, mean, low, high, place) for place, knob in enumerate(knobs)]
    return tuple(sorted(found, key=lambda one: (-one.share, one.knobs))), float(mean[-1])


def _share(knobs: tuple[str, ...], mean: Array, low: Array, high: Array, place: int) -> Share:
    return Share(knobs, float(mean[place]), float(low[place]), float(high[place]), bool(low[place] > LEAST))


def main_knobs(found: Importance) -> list[str]:
    """Knobs in the order of what they explain alone and half of what they explain in pairs."""
    worth: dict[str, float] = {}
    for one in found.shares:
        for name in one.knobs:
            worth[name] = worth.get(name, 0.0) + one.share / len(one.knobs)
    return sorted(worth, key=lambda name: (-worth[name], name))


__all__ = ["Axis", "importance", "main_knobs"]
