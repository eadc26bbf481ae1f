"""Parts of the variance where every combination of levels was tried: sums of squares, nothing interpolated (Fisher)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflaw.learn.exploring.centred import Axis, pairs_of
from perflaw.learn.exploring.components import Parts
from perflaw.learn.exploring.spaces import Array


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
