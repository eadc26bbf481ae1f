"""The surrogate of a metric: the Gaussian process on standardized responses, robust against disturbed trials.

Responses are taken on the logarithm where all are positive, since effects of knobs multiply. Bad responses are compressed:
how bad the bad configurations are says little about the best one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.gaussian_process import Array, GaussianProcess, Mask, Observations

MAX_ZEROS = 0.2
"""Share of responses of 0 up to which the others are still taken on the logarithm."""
DRAWS, MAX_FITTED = 16, 160
"""Draws of the hyperparameters, and responses that are fitted; of more, the best and the latest."""
OUTLIER_SIGMAS = 4.0
"""Standard deviations below its prediction from which a trial counts as disturbed."""
MIN_FOR_OUTLIERS = 8
"""Number of responses below which no trial counts as disturbed."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Between responses and standardized ones, of which greater is better."""

    logarithm: bool
    """Whether responses are taken on the logarithm."""
    sign: float
    """1 where more is better, −1 where less is better."""
    centre: float
    """Mean that is subtracted."""
    spread: float
    """Standard deviation that is divided by; 1 where all responses are equal."""
    floor: float = 0.0
    """Smallest response on the logarithm: half of the smallest positive response where a few responses are 0."""

    def to(self, values: Array) -> Array:
        """Return standardized responses."""
        base = np.log(np.maximum(values, self.floor)) if self.logarithm else values
        return (self.sign * base - self.centre) / self.spread

    def back(self, scores: Array) -> Array:
        """Return responses in their own unit."""
        base = self.sign * (scores * self.spread + self.centre)
        return np.exp(base) if self.logarithm else base

    def step(self, share: float) -> float:
        """Return the standardized distance to a response that is better by a ``share`` (0.05)."""
        if self.logarithm:
            return float(np.log1p(share) / self.spread)
        return float(share * max(abs(self.centre), self.spread) / self.spread)


def scale_of(values: Array, sign: float) -> Scale:
    """Return the scale of responses (n,); ``sign`` is 1 where more is better, −1 where less is better."""
    positive, zeros = values[values > 0.0], int(np.sum(values == 0.0))
    few_zeros = zeros <= MAX_ZEROS * values.size and sign > 0
    logarithm = positive.size > 0 and positive.size + zeros == values.size and (zeros == 0 or few_zeros)
    floor = float(positive.min()) / (2.0 if zeros else 1.0) if logarithm else 0.0
    base = sign * (np.log(np.maximum(values, floor)) if logarithm else values)
    spread = float(np.std(base))
    if not np.isfinite(spread) or spread <= 1e-9 * max(1.0, float(np.max(np.abs(base)))):
        spread = 1.0
    return Scale(logarithm, sign, float(np.mean(base)), spread, floor)


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A fitted law of a response over the unit cube, with its uncertainty."""

    process: GaussianProcess
    """The process of the standardized responses."""
    scale: Scale
    """Between responses and standardized ones."""

    @property
    def x(self) -> Array:
        """Configurations that the law was fitted to, in the unit cube, (n, d)."""
        return self.process.seen.x

    @property
    def noise(self) -> float:
        """Standard deviation of one trial about the law, standardized; the median over draws."""
        return float(np.median([one.parameters.noise for one in self.process.posteriors]) ** 0.5)

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Return means and standard deviations at points (m, d) by draw, (s, m) each, standardized, without noise."""
        return self.process.predict(at)

    def sample(self, at: Array, number: int, generator: np.random.Generator, widened: float | None = None) -> Array:
        """Draw the whole law at points (m, d), ``number`` times under each draw of hyperparameters, (s·number, m).

        ``widened`` multiplies the deviations from each draw's mean.
        """
        drawn = self.process.sample(at, number, generator)
        if widened is None:
            return drawn
        middle = self.predict(at)[0].repeat(number, axis=0)
        return np.asarray(middle + widened * (drawn - middle))

    def misfit(self) -> float:
        """Return the ratio of leave-one-out residuals to what the law admits, at least 1: a factor for its uncertainty."""
        residuals = self.process.residuals()
        return float(max(1.0, np.sqrt(np.mean(np.minimum(residuals * residuals, OUTLIER_SIGMAS**2)))))

    def gains(self, means: Array, sds: Array) -> tuple[float, float, float]:
        """Return the relative improvement, with its 80 % interval, of standardized differences with means and sds (s,)."""
        ends = np.concatenate([means + z * sds for z in (-1.645, -0.84, -0.25, 0.25, 0.84, 1.645)])
        low, middle, high = np.quantile(ends, [0.1, 0.5, 0.9]) * self.scale.spread
        if self.scale.logarithm:  # where less is better, an improvement by 20 % leaves 0.8 of the response
            low, middle, high = self.scale.sign * np.expm1(self.scale.sign * np.array([low, middle, high]))
            return float(middle), float(low), float(high)
        unit = max(abs(self.scale.centre), self.scale.spread)
        return float(middle / unit), float(low / unit), float(high / unit)


def fit_surrogate(
    x: Array,
    ordered: Mask,
    values: Array,
    sign: float,
    seed: int,
    errors: Array | None = None,
    draws: int = DRAWS,
    trials: Array | None = None,
) -> Surrogate:
    """Fit the law to responses.

    Args:
        x: configurations in the unit cube, (n, d), n ≥ 1.
        ordered: which knobs have an order, (d,).
        values: responses, (n,), finite.
        sign: 1 where more is better, −1 where less is better.
        seed: seed of the draws.
        errors: standard errors of the responses in their unit, (n,), nan where unknown.
        draws: number of draws of the hyperparameters.
        trials: number of trials that each response is the mean of, (n,); 1 each where it is None.
    """
    scale = scale_of(values, sign)
    keep = _best_and_latest(sign * values)
    y = scale.to(values[keep])
    below = np.maximum(-2.0 - y, 0.0)
    y = np.where(below > 0, -2.0 - np.log1p(below), y)
    variance = np.zeros(y.size)
    if errors is not None:
        relative = errors[keep] / np.maximum(np.abs(values[keep]), scale.floor) if scale.logarithm else errors[keep]
        variance = np.where(np.isfinite(relative), (relative / scale.spread) ** 2, 0.0)
    generator = np.random.default_rng([seed, y.size])
    seen = Observations(x[keep], ordered, y, np.ones(y.size) if trials is None else trials[keep], variance)
    process = GaussianProcess(seen, draws, generator)
    if y.size >= MIN_FOR_OUTLIERS and process.posteriors:
        disturbed = process.residuals() < -OUTLIER_SIGMAS
        if disturbed.any():
            process = GaussianProcess(replace(seen, known_variance=variance + disturbed), draws, generator)
    return Surrogate(process, scale)


def _best_and_latest(scores: Array) -> NDArray[np.intp]:
    """Return the places of at most ``MAX_FITTED`` responses, of which half are the best and half the latest."""
    if scores.size <= MAX_FITTED:
        return np.arange(scores.size)
    best = np.argsort(-scores, kind="stable")[: MAX_FITTED // 2]
    latest = np.setdiff1d(np.arange(scores.size), best)[-(MAX_FITTED - best.size) :]
    return np.sort(np.concatenate([best, latest]))
