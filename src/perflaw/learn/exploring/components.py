"""Parts of a response over a space of configurations, by a Gaussian process whose hyperparameters are uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.optimize import minimize

from perflaw.learn.exploring.spaces import Array

# ---- Kernels of one knob that average to 0 over its levels, and their sum over knobs, pairs of them, and all the
# rest.
#
# The parts of a Gaussian process with such a kernel are the parts of its functional ANOVA (Durrande et al. 2013,
# "ANOVA
# kernels"; Lu et al. 2022): what one knob does on average, what two do beyond that.

STEP = 1e-4
"""Change of a logarithm that derivatives after length scales are taken by."""
CONSTANT = 4.0
"""Prior variance of the mean, in variances of the responses."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A knob as the kernel sees it."""

    name: str
    """Its name."""
    levels: Array
    """(L,) places of its levels in 0 to 1."""
    ordered: bool
    """Whether near places are alike; else only equal ones are."""

    def raw(self, a: Array, b: Array, length: float) -> Array:
        """Matérn 5/2 of the distance, (n, m); of settings without order 1 where they are equal."""
        distance = np.abs(a[:, None] - b[None, :])
        if not self.ordered:
            return (distance < 1e-9).astype(np.float64)
        scaled = np.sqrt(5.0) * distance / length
        return np.asarray((1 + scaled + scaled**2 / 3) * np.exp(-scaled))

    def kernel(self, a: Array, b: Array, length: float) -> Array:
        """Centred over the levels and of mean variance 1 there, (n, m)."""
        among = self.raw(self.levels, self.levels, length)
        means, whole = among.mean(axis=0), among.mean()
        left, right = (self.raw(at, self.levels, length).mean(axis=1) for at in (a, b))
        size = float(np.mean(np.diag(among) - means**2 / whole))
        return np.asarray((self.raw(a, b, length) - np.outer(left, right) / whole) / max(size, 1e-9))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Hyperparameters of a kernel: variances in variances of the responses, lengths in the unit cube."""

    lengths: Array
    """(D,) length scales."""
    mains: Array
    """(D,) variance of what each knob does alone."""
    pairs: Array
    """(P,) variance of each interaction, in the order of ``combinations``."""
    rest: float
    """Variance of what takes three knobs or more."""
    noise: float
    """Variance of a single trial."""

    @classmethod
    def unpacked(cls, theta: Array, knobs: int) -> Weights:
        """From the vector of logarithms that is searched."""
        pairs = knobs * (knobs - 1) // 2
        lengths, mains, both, last = np.split(np.exp(theta), np.cumsum([knobs, knobs, pairs]))
        return cls(lengths, mains, both, float(last[0]), float(last[1]))


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Pairs of places, in the order of their variances."""
    return list(combinations(range(count), 2))


def single(axes: Sequence[Axis], a: Array, b: Array, lengths: Array) -> list[Array]:
    """Kernels of all knobs between (n, D) and (m, D) places."""
    return [axis.kernel(a[:, i], b[:, i], float(lengths[i])) for i, axis in enumerate(axes)]


def several(kernels: Sequence[Array]) -> Array:
    """What takes three knobs or more, of mean variance about 1: all products of three kernels and more."""
    one, two, _ = _orders(kernels)
    return np.asarray((_product(kernels) - 1.0 - one - two) / _size(len(kernels)))


def total(kernels: Sequence[Array], weights: Weights) -> Array:
    """The whole kernel without noise, (n, m)."""
    found = CONSTANT + sum(v * one for v, one in zip(weights.mains, kernels, strict=True))
    for (i, j), variance in zip(pairs_of(len(kernels)), weights.pairs, strict=True):
        found = found + variance * kernels[i] * kernels[j]
    return np.asarray(found + weights.rest * several(kernels) if len(kernels) > 2 else found)


def slope_after(kernels: Sequence[Array], weights: Weights, place: int) -> Array:
    """Derivative of the whole kernel after one knob's kernel, element by element."""
    found = np.full_like(kernels[place], weights.mains[place])
    for (i, j), variance in zip(pairs_of(len(kernels)), weights.pairs, strict=True):
        if place in (i, j):
            found += variance * kernels[j if i == place else i]
    if len(kernels) > 2:
        others = [one for i, one in enumerate(kernels) if i != place]
        found += weights.rest * (_product(others) - 1.0 - sum(others)) / _size(len(kernels))
    return found


def _product(kernels: Sequence[Array]) -> Array:
    found = np.ones_like(kernels[0])
    for one in kernels:
        found = found * (1.0 + one)
    return found


def _orders(kernels: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Sums of all kernels, of all products of two, and of all squares."""
    one = np.sum(kernels, axis=0)
    squares = np.sum(np.square(kernels), axis=0)
    return one, (one**2 - squares) / 2, squares


def _size(count: int) -> float:
    """Mean variance of all products of three kernels and more."""
    return float(max(1.0, 2.0**count - 1 - count - count * (count - 1) / 2))


PRIOR_LENGTH, PRIOR_MAIN, PRIOR_PAIR, PRIOR_REST, PRIOR_NOISE = (
    (0.7, 0.6),
    (0.1, 1.7),
    (0.02, 1.7),
    (0.01, 1.5),
    (0.05, 2.0),
)
"""Median and standard deviation of the logarithm, of each kind of hyperparameter."""
MOST_FITTED = 160
"""Configurations that hyperparameters are learnt from; of more a random part."""
ITERATIONS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Means of configurations, standardized."""

    axes: tuple[Axis, ...]
    """The knobs."""
    x: Array
    """(n, D) places of configurations tried."""
    y: Array
    """(n,) mean response of each, of mean 0 and variance 1."""
    weight: Array
    """(n,) trials that each is the mean of; parts of one for trials that were cut short."""
    within: float
    """Sum of squares of trials about their configuration's mean."""
    freedom: int
    """Its degrees of freedom."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a response over the space, as draws of their variances."""

    mains: Array
    """(draws, D) of what each knob does alone."""
    pairs: Array
    """(draws, P) of what two do beyond that, in the order of ``pairs_of``."""
    rest: Array
    """(draws,) of what takes three or more."""
    noise: float
    """Variance of a single trial, in variances of the responses."""


def root(covariance: Array) -> Array:
    """Lower factor of a covariance that rounding may have made slightly indefinite."""
    jitter = 1e-10 * max(float(np.trace(covariance)) / len(covariance), 1e-12)
    for _ in range(8):
        try:
            return np.asarray(cholesky(covariance + jitter * np.eye(len(covariance)), lower=True))
        except np.linalg.LinAlgError:
            jitter *= 30
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def parts(data: Data, hyperparameters: int, each: int, rng: np.random.Generator) -> Parts:
    """Draw the parts' variances: under the likeliest hyperparameters and others drawn about them, ``each`` times."""
    some = data if len(data.y) <= MOST_FITTED else _part(data, rng)
    likeliest = _likeliest(some)
    thetas = [likeliest, *_about(likeliest, some, hyperparameters - 1, rng)]
    weights = [Weights.unpacked(theta, len(data.axes)) for theta in thetas]
    drawn = [_drawn(data, one, each, rng) for one in weights]
    mains, pairs, rest = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
    return Parts(mains, pairs, rest, float(np.mean([one.noise for one in weights])))


def _drawn(data: Data, weights: Weights, each: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Variances of the parts under one set of hyperparameters: (each, D), (each, P), (each,)."""
    factor = _factor(data, weights)
    solved = np.asarray(cho_solve((factor, True), data.y))
    knobs = [(axis.kernel(axis.levels, data.x[:, i], length), axis.kernel(axis.levels, axis.levels, length))
             for i, (axis, length) in enumerate(zip(data.axes, weights.lengths.tolist(), strict=True))]  # fmt: skip

    def drawn(variance: float, cross: Array, among: Array) -> Array:
        half = np.linalg.solve(factor, variance * cross.T)
        spread = root(variance * among - half.T @ half)
        values = variance * (cross @ solved) + rng.standard_normal((each, len(among))) @ spread.T
        return np.asarray((values**2).mean(axis=1))

    mains = [drawn(v, cross, among) for v, (cross, among) in zip(weights.mains.tolist(), knobs, strict=True)]
    pairs = []
    for (i, j), variance in zip(pairs_of(len(knobs)), weights.pairs.tolist(), strict=True):
        cross = (knobs[i][0][:, None, :] * knobs[j][0][None, :, :]).reshape(-1, len(data.y))
        pairs.append(drawn(variance, cross, np.asarray(np.kron(knobs[i][1], knobs[j][1]), dtype=np.float64)))
    rest = np.full(each, weights.rest if len(knobs) > 2 else 0.0)
    return np.stack(mains, axis=1), np.stack(pairs, axis=1) if pairs else np.empty((each, 0)), rest


def _part(data: Data, rng: np.random.Generator) -> Data:
    rows = np.sort(rng.choice(len(data.y), MOST_FITTED, replace=False))
    return Data(data.axes, data.x[rows], data.y[rows], data.weight[rows], data.within, data.freedom)


def _factor(data: Data, weights: Weights) -> Array:
    covariance = total(single(data.axes, data.x, data.x, weights.lengths), weights)
    return root(covariance + np.diag(weights.noise / data.weight + 1e-8))


def prior(knobs: int) -> tuple[Array, Array]:
    """Means and standard deviations of the logarithms of all hyperparameters."""
    pairs = len(pairs_of(knobs))
    kinds = [PRIOR_LENGTH] * knobs + [PRIOR_MAIN] * knobs + [PRIOR_PAIR] * pairs + [PRIOR_REST, PRIOR_NOISE]
    return np.log([middle for middle, _ in kinds]), np.array([spread for _, spread in kinds])


def _likeliest(data: Data) -> Array:
    middle, spread = prior(len(data.axes))
    best, value = middle, np.inf
    for start in (middle, middle + np.where(np.arange(middle.size) < len(data.axes), -0.7, 0.0)):
        bounds = list(zip(middle - 4 * spread, middle + 4 * spread, strict=True))
        done = minimize(
            _cost, start, (data,), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}
        )
        if done.fun < value:
            best, value = done.x, done.fun
    return np.asarray(best)


def _cost(theta: Array, data: Data) -> tuple[float, Array]:
    """Negative log posterior of hyperparameters, and its gradient."""
    knobs = len(data.axes)
    weights = Weights.unpacked(theta, knobs)
    kernels = single(data.axes, data.x, data.x, weights.lengths)
    covariance = total(kernels, weights) + np.diag(weights.noise / data.weight + 1e-8)
    try:
        factor = cho_factor(covariance, lower=True)
    except np.linalg.LinAlgError:
        return 1e12, np.zeros_like(theta)
    solved, inverse = cho_solve(factor, data.y), cho_solve(factor, np.eye(len(data.y)))
    middle, spread = prior(knobs)
    away = (theta - middle) / spread
    value = 0.5 * data.y @ solved + np.log(np.diag(factor[0])).sum() + 0.5 * away @ away
    value += 0.5 * (data.freedom * np.log(weights.noise) + data.within / weights.noise)
    inner = 0.5 * (inverse - np.outer(solved, solved))
    return float(value), _gradient(inner, kernels, weights, data) + away / spread


def _gradient(inner: Array, kernels: Sequence[Array], weights: Weights, data: Data) -> Array:
    """Derivatives of the negative log likelihood after the logarithms."""
    found = []
    for i, axis in enumerate(data.axes):
        if not axis.ordered:
            found.append(0.0)
            continue
        at = data.x[:, i]
        moved = (axis.kernel(at, at, float(weights.lengths[i]) * np.exp(STEP)) - kernels[i]) / STEP
        found.append(float(np.sum(inner * slope_after(kernels, weights, i) * moved)))
    found += [float(v * np.sum(inner * one)) for v, one in zip(weights.mains, kernels, strict=True)]
    places = zip(pairs_of(len(kernels)), weights.pairs, strict=True)
    found += [float(v * np.sum(inner * kernels[i] * kernels[j])) for (i, j), v in places]
    found.append(weights.rest * float(np.sum(inner * several(kernels))) if len(kernels) > 2 else 0.0)
    own = weights.noise * float(np.sum(np.diag(inner) / data.weight))
    found.append(own + 0.5 * (data.freedom - data.within / weights.noise))
    return np.array(found)


def _about(likeliest: Array, data: Data, count: int, rng: np.random.Generator) -> list[Array]:
    """Plausible hyperparameters: a normal distribution about the likeliest, no wider than the prior."""
    if not count:
        return []
    step = 0.05
    rows = [(_cost(likeliest + step * unit, data)[1] - _cost(likeliest - step * unit, data)[1]) / (2 * step)
            for unit in np.eye(likeliest.size)]  # fmt: skip
    middle, spread = prior(len(data.axes))
    curvature = np.array(rows)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    deviations = 1.0 / np.sqrt(np.maximum(values, 1.0 / spread.max() ** 2))
    found = likeliest + (rng.standard_normal((count, likeliest.size)) * deviations) @ vectors.T
    return list(np.clip(found, middle - 4 * spread, middle + 4 * spread))
