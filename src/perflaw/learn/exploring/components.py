"""Parts of a response over a space of configurations, by a Gaussian process whose hyperparameters are uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.optimize import minimize

from perflaw.learn.exploring.centred import STEP, Axis, Weights, pairs_of, several, single, slope_after, total
from perflaw.learn.exploring.spaces import Array

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
