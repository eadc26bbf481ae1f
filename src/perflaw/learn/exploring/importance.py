"""Which knobs matter: shares of a metric's variance over the whole space, by knob and by pair of knobs (functional ANOVA).

Where every combination of levels was tried, the shares are sums of squares and nothing is interpolated (Fisher). Elsewhere they
are those of the Gaussian process. Before either, a permutation test has to establish that the metric depends on any knob.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from perflaw.confidence import HIGH, LOW
from perflaw.learn.exploring.gaussian_process import (
    EffectVariances,
    GaussianProcess,
    Observations,
    correlations,
    distances,
)
from perflaw.learn.exploring.observations import Array, ConfigurationSpace, Mask, Responses, levels_of, ordered_knobs
from perflaw.types.explored import Importance, VarianceShare
from perflaw.types.studies import Configuration

ALPHA = 0.01
"""Probability that importance is reported for pure noise."""
MIN_CONFIGURATIONS = 8
"""Number of configurations from which on importance is computed; degrees of freedom from which on the noise is measured."""
HYPERPARAMETERS, EFFECTS = 12, 40
"""Draws of the process's hyperparameters, and of its effects under each."""
MAX_FITTED = 160
"""Number of configurations that the process is fitted to; of more, a random subset."""
MIN_SHARE = 0.003
"""Shares whose interval begins above this are established."""
PERMUTATIONS = 499
"""Permutations of the test."""
LENGTH = 0.5
"""Length scale of the test's kernels."""
MAX_PERMUTED = 300
"""Number of configurations that are permuted; of more, an evenly spaced subset."""


def importance(seen: Responses, space: ConfigurationSpace, seed: int = 0) -> Importance:
    """Return the shares of knobs and pairs, the largest first, and the share of what takes more knobs.

    There are none, with the reason, if the data do not establish that the metric depends on any knob.
    """
    rng = np.random.default_rng([seed, len(seen.y)])
    noise = float(np.sqrt(seen.within / seen.freedom)) if seen.freedom else float("nan")

    def nothing(p: float, spread: float, reason: str) -> Importance:
        return Importance(seen.metric, seen.logarithm, (), 0.0, spread, p, False, reason)

    if len(seen.y) < MIN_CONFIGURATIONS:
        return nothing(
            float("nan"), noise, f"{len(seen.y)} configurations were tried, but {MIN_CONFIGURATIONS} are needed"
        )
    if np.ptp(seen.y) <= 1e-12 * max(1.0, float(np.abs(seen.y).max())):
        return nothing(1.0, noise, "the metric is the same in all trials")
    places, levels = levels_in_cube(space, seen.configurations[0])
    ordered, x = ordered_knobs(space)[places], seen.x[:, places]
    p = dependence(levels, ordered, x, seen.y, rng) if levels else 1.0
    if p > ALPHA:
        return nothing(p, noise, f"no knob is shown to matter (p = {p:.2g}); more trials may show that one does")
    scale = float(seen.y.std()) or 1.0
    observed = Observations(
        x, ordered, (seen.y - seen.y.mean()) / scale, seen.weight, np.zeros(len(seen.y)),
        within=seen.within / scale**2, freedom=seen.freedom,
    )  # fmt: skip
    grid = full_grid(levels, x, observed.y)
    if grid is None:
        effects = GaussianProcess(_random_part(observed, rng), HYPERPARAMETERS, rng).effects(levels, EFFECTS, rng)
    else:
        if observed.freedom >= MIN_CONFIGURATIONS:
            variance = observed.within / observed.freedom
        else:
            posteriors = GaussianProcess(_random_part(observed, rng), HYPERPARAMETERS, rng).posteriors
            variance = float(np.mean([posterior.parameters.noise for posterior in posteriors]))
        draws = HYPERPARAMETERS * EFFECTS
        effects = grid_effects(grid, variance, float(seen.weight.mean()), draws, rng)
    variances = np.concatenate([effects.mains, effects.pairs, effects.triples[:, None]], axis=1)
    parts = variances / np.maximum(variances.sum(axis=1, keepdims=True), 1e-300)
    means = parts.mean(axis=0).tolist()
    lows, highs = np.quantile(parts, [LOW, HIGH], axis=0).tolist()
    names = [space.knobs[place].name for place in places]
    rows = zip([*((name,) for name in names), *combinations(names, 2)], means[:-1], lows[:-1], highs[:-1], strict=True)
    shares = [VarianceShare(which, mean, low, high, low > MIN_SHARE) for which, mean, low, high in rows]
    shares.sort(key=lambda share: (-share.share, share.knobs))
    return Importance(seen.metric, seen.logarithm, tuple(shares), means[-1], noise, p, grid is not None)


def levels_in_cube(space: ConfigurationSpace, base: Configuration) -> tuple[list[int], list[Array]]:
    """Return the places of the knobs with several levels, and the levels of each in the unit cube, (L,) increasing.

    ``base`` is any configuration of the space.
    """
    places, several = [], []
    for place, knob in enumerate(space.knobs):
        levels = np.unique([space.unit({**base, knob.name: level})[place] for level in levels_of(space, knob)])
        if levels.size > 1:
            places.append(place)
            several.append(np.asarray(levels, dtype=np.float64))
    return places, several


def main_knobs(found: Importance) -> list[str]:
    """Return the knobs by what they explain alone plus half of what they explain in pairs, the largest first."""
    worth: dict[str, float] = {}
    for share in found.shares:
        for name in share.knobs:
            worth[name] = worth.get(name, 0.0) + share.share / len(share.knobs)
    return sorted(worth, key=lambda name: (-worth[name], name))


def _random_part(seen: Observations, rng: np.random.Generator) -> Observations:
    """Return at most ``MAX_FITTED`` of the observations."""
    if len(seen.y) <= MAX_FITTED:
        return seen
    rows = np.sort(rng.choice(len(seen.y), MAX_FITTED, replace=False))
    known = seen.known_variance[rows]
    return replace(seen, x=seen.x[rows], y=seen.y[rows], trials=seen.trials[rows], known_variance=known)


# ---- Full grids: sums of squares.


def full_grid(levels: Sequence[Array], x: Array, y: Array) -> Array | None:
    """Return responses as an array with one axis a knob; None where a combination of levels is missing."""
    places = [np.argmin(np.abs(x[:, i, None] - axis), axis=1) for i, axis in enumerate(levels)]
    off = [np.abs(x[:, i] - axis[place]).max() for i, (axis, place) in enumerate(zip(levels, places, strict=True))]
    shape = tuple(len(axis) for axis in levels)
    if max(off) > 1e-6 or len(y) != np.prod(shape):
        return None
    grid = np.full(shape, np.nan)
    grid[tuple(places)] = y
    return None if np.isnan(grid).any() else grid


def grid_effects(values: Array, noise: float, trials: float, draws: int, rng: np.random.Generator) -> EffectVariances:
    """Draw the variances of effects on a full grid, with one axis a knob.

    The sum of squares of an effect holds noise in each of its degrees of freedom. The noise is subtracted, and drawn anew
    for the interval. ``noise`` is the variance of a single trial, ``trials`` the mean number of trials in a cell.
    """
    knobs = range(values.ndim)

    def mean(*kept: int) -> Array:
        """Return means over all axes but those kept, minus the mean of all."""
        others = tuple(axis for axis in knobs if axis not in kept)
        return np.asarray(values.mean(axis=others) - values.mean())

    pairs = list(combinations(knobs, 2))
    squares = [float((mean(i) ** 2).mean()) for i in knobs]
    squares += [float(((mean(i, j) - mean(i)[:, None] - mean(j)[None, :]) ** 2).mean()) for i, j in pairs]
    freedoms = [size - 1 for size in values.shape]
    freedoms += [freedoms[i] * freedoms[j] for i, j in pairs]
    squares.append(float(values.var()) - sum(squares))
    freedoms.append(values.size - 1 - sum(freedoms))
    unit = noise / trials / values.size  # variance that noise adds for each degree of freedom

    def drawn(variance: float, freedom: int) -> Array:
        if freedom <= 0:
            return np.zeros(draws)
        middle = np.sqrt(max(variance - freedom * unit, 0.0))
        first = (middle + np.sqrt(unit) * rng.standard_normal(draws)) ** 2
        others = unit * (rng.chisquare(freedom - 1, draws) if freedom > 1 else np.zeros(draws))
        return np.asarray(np.maximum(first + others - freedom * unit, 0.0))

    parts = np.stack([drawn(variance, freedom) for variance, freedom in zip(squares, freedoms, strict=True)], axis=1)
    return EffectVariances(parts[:, : values.ndim], parts[:, values.ndim : -1], parts[:, -1], noise)


# ---- Whether the metric depends on any knob at all.


def dependence(levels: Sequence[Array], ordered: Mask, x: Array, y: Array, rng: np.random.Generator) -> float:
    """Return p of the hypothesis that responses y (n,) at places x (n, D) depend on no knob.

    The statistic is the largest, over knobs and pairs, of y'Ky standardized by its permutations (Westfall and Young 1993,
    single step), so that one strong pair is found among many without an effect. A kernel looks above all along its first
    component, which is a trend, and a setting that is best in the middle of its range has none. So each knob has two more
    statistics: without the first component, and of its first two alike. ``levels`` are those of each knob, (L,).
    """
    if len(y) > MAX_PERMUTED:
        rows = np.linspace(0, len(y) - 1, MAX_PERMUTED).astype(int)
        x, y = x[rows], y[rows]
    knobs = [
        centred_kernel(axis, bool(has_order), x[:, i])
        for i, (axis, has_order) in enumerate(zip(levels, ordered, strict=True))
    ]
    pairs = (a * b for a, b in combinations(knobs, 2))
    kernels = [_doubly_centred(kernel) for kernel in (*knobs, *pairs)]
    kernels += [part for kernel in kernels[: len(knobs)] for part in _by_components(kernel)]
    middle = np.median(y)
    spread = np.median(np.abs(y - middle)) * 1.4826 or y.std() or 1.0
    clipped = np.clip((y - middle) / spread, -4, 4)  # one wild trial decides nothing
    centred = clipped - clipped.mean()
    rows = np.stack([centred, *(rng.permutation(centred) for _ in range(PERMUTATIONS))])
    found = np.stack([np.einsum("pi,pi->p", rows @ kernel, rows) for kernel in kernels])
    spreads = found[:, 1:].std(axis=1, keepdims=True)
    scores = (found - found[:, 1:].mean(axis=1, keepdims=True)) / np.where(spreads > 0, spreads, np.inf)
    largest = scores.max(axis=0)
    return float((1 + np.count_nonzero(largest[1:] >= largest[0])) / (1 + PERMUTATIONS))


def _doubly_centred(kernel: Array) -> Array:
    means = kernel.mean(axis=0)
    return np.asarray(kernel - means[None, :] - means[:, None] + means.mean())


def _by_components(kernel: Array) -> list[Array]:
    """The kernel without its first component, and its first two components with equal weight."""
    values, vectors = np.linalg.eigh(kernel)
    if values[-2] < 1e-9 * values[-1]:  # a knob with two levels
        return []
    first = np.outer(vectors[:, -1], vectors[:, -1])
    return [kernel - values[-1] * first, first + np.outer(vectors[:, -2], vectors[:, -2])]


def centred_kernel(levels: Array, ordered: bool, at: Array) -> Array:
    """Return one knob's correlation at places (n,), centred over its levels and of mean variance 1 there, (n, n)."""
    order, length = np.array([ordered]), np.array([LENGTH])

    def correlation(a: Array, b: Array) -> Array:
        return np.asarray(correlations(distances(a[:, None], b[:, None], order), length, order)[0])

    among = correlation(levels, levels)
    whole, beside = among.mean(), correlation(at, levels).mean(axis=1)
    size = float(np.mean(np.diag(among) - among.mean(axis=0) ** 2 / whole))
    return np.asarray((correlation(at, at) - np.outer(beside, beside) / whole) / max(size, 1e-9))
