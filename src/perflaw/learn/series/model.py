"""A law of one feature: its mean as a function of parameters, its noise, and its intervals once it is fitted.

The mean is ``μ(x) = m0·(1 − t(x)) + m1·t(x)``, where ``t`` rises from 0 at the smallest to 1 at the largest x; without
intercept it is ``μ(x) = m1·t(x)``. The parameters are thus the responses at the two ends of the data (their logarithms
under multiplicative noise, which keeps μ positive on the data) and the exponent, if the family learns one.

Intervals are for the mean and, wider, for a new row from a new run. Additive noise: μ ± t·√(gᵀCg) for the mean and
± t·√(σ² + gᵀCg) for a new row. Multiplicative noise: the mean is exp(η + σ²/2), where η is the log median, and its
interval is Cox's (Zhou & Gao 1997, §2.3), t·√(gᵀCg + σ⁴/2ν) on the log scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.catalogue import CONSTANT, Family
from perflaw.learn.series.series import Array

RELATIVE_FLOOR = 1e-8
"""Smallest credible σ relative to the response: smaller differences are rounding, not measurement."""
LARGEST = 1e300
"""Largest answer of a law."""
USUAL_EXPONENTS, STEEP_COST = (-2.0, 4.0), 30.0
"""Exponents that programs have, and the score that any other costs."""
STEEPEST = 50.0
"""Largest magnitude of a local exponent and its limits."""
TOP, BOTTOM, EXPONENT = 0, 1, 2
"""Places of the parameters: response at the largest x, at the smallest x, exponent."""
Theta = tuple[Array, Array, Array]
"""Parameters m1, m0 (responses) and b; each (...,)."""
Band = tuple[Array, Array, Array, Array, Array]
"""Mean, its lower and upper limit, the lower and upper limit of a new row; all of one shape."""


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """How responses scatter: y = μ + σε (additive), or log y = log μ + σε (multiplicative).

    Both likelihoods are densities of y itself, so that laws compare whatever their noise. A floor of σ keeps a perfect
    fit finite. Both are equivariant to the unit of y.
    """

    name: str
    """``normal`` or ``lognormal``."""

    @property
    def log(self) -> bool:
        """Whether noise is multiplicative: residuals are additive on the log scale."""
        return self.name == "lognormal"

    def floor(self, y: Array, w: Array, quantum: Array) -> Array:
        """Smallest credible σ: y, w (B, n), quantum (B,) -> (B,); rounding to a grid has σ = quantum/√12."""
        count = w.sum(axis=-1)
        step = quantum / np.sqrt(12.0)
        if self.log:
            return np.asarray(np.maximum(step * np.sqrt((w / (y * y)).sum(axis=-1) / count), RELATIVE_FLOOR))
        # Responses that are all zero have no scale. Any positive floor serves, because all laws fit them equally well.
        size = RELATIVE_FLOOR * np.sqrt((w * y * y).sum(axis=-1) / count)
        return np.asarray(np.maximum(np.maximum(step, size), 1e-150))

    def deviance(self, rss: Array | float, floor: Array | float, count: Array | float, log_y: Array) -> Array:
        """−2 log likelihood of y at the best σ ≥ floor, up to a constant; all (B,), ``log_y`` is Σ log y."""
        variance = np.maximum(rss / count, floor**2)
        jacobian = 2.0 * log_y if self.log else 0.0
        return count * np.log(variance) + rss / variance + jacobian


NORMAL = NoiseModel("normal")
LOGNORMAL = NoiseModel("lognormal")


@dataclass(frozen=True, slots=True)
class Ends:
    """Smallest and largest x of the data a law was fitted to; each (...,)."""

    low: Array
    """Smallest x."""
    high: Array
    """Largest x."""

    @property
    def top(self) -> Array:
        """Largest |x|, which terms are relative to."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def parameter_places(*, intercept: bool, exponent: bool) -> tuple[int, ...]:
    """Places of the parameters that a law learns, in increasing order."""
    return (TOP, *((BOTTOM,) if intercept else ()), *((EXPONENT,) if exponent else ()))


@dataclass(frozen=True, slots=True)
class Model:
    """A law to fit: a family, with or without intercept, and a noise model."""

    family: Family
    """Its family."""
    intercept: bool
    """μ(x) has a constant part."""
    noise: NoiseModel
    """Its noise."""

    @property
    def places(self) -> tuple[int, ...]:
        """Places of the parameters that it learns."""
        return parameter_places(intercept=self.intercept, exponent=self.family.free)

    def mean(self, theta: Theta, ends: Ends, x: Array) -> tuple[Array, list[Array]]:
        """Mean at x and its derivatives by :attr:`places`; theta and ends (..., 1), x (..., k) -> (..., k)."""
        m1, m0, b = theta
        family, top = self.family, ends.top
        if family is CONSTANT:
            return m1 + 0.0 * x, [np.ones_like(x)]
        value = family.value(x, b, top)
        by_b = family.by_exponent(x, value, top) if family.free else np.zeros(1)
        if not self.intercept:
            return m1 * value, [value, m1 * by_b] if family.free else [value]
        first = family.value(ends.low, b, top)
        span = family.value(ends.high, b, top) - first
        t = (value - first) / span
        mean = m0 + (m1 - m0) * t
        if not family.free:
            return mean, [t, 1.0 - t]
        by_b = (by_b - family.by_exponent(ends.low, first, top) * (1.0 - t)) / span
        return mean, [t, 1.0 - t, (m1 - m0) * by_b]

    def scaled(self, theta: Theta, mean: Array, gradient: list[Array]) -> list[Array]:
        """Gradient on the noise's own scale: d log μ / d log m under multiplicative noise; shapes of ``gradient``."""
        if not self.noise.log:
            return gradient
        inner: dict[int, Array | float] = {TOP: theta[TOP], BOTTOM: theta[BOTTOM], EXPONENT: 1.0}
        return [inner[place] * column / mean for place, column in zip(self.places, gradient, strict=True)]

    def coefficients(self, theta: Theta, ends: Ends) -> tuple[Array, Array]:
        """Intercept a and coefficient c of ``a + c·x^p·log(x)^l`` in the unit of y; a is 0 without intercept."""
        m1, m0, b = theta
        if self.family is CONSTANT:
            return np.zeros_like(m1), m1
        top = ends.top
        unit = self.family.unit(b, top)
        if not self.intercept:
            return np.zeros_like(m1), m1 / unit
        first = self.family.value(ends.low, b, top)
        slope = (m1 - m0) / (self.family.value(ends.high, b, top) - first)
        return m0 - slope * first, slope / unit

    def local_exponent(self, theta: Theta, ends: Ends, x: Array) -> Array:
        """Slope d log μ / d log x at x; where μ (nearly) vanishes, relative to a thousandth of its ends."""
        m1, m0, b = theta
        if self.family is CONSTANT:
            return np.zeros_like(m1 + x)
        top = ends.top
        elasticity = self.family.elasticity(x, b, top)
        if not self.intercept:
            return elasticity + 0.0 * m1
        value = self.family.value(x, b, top)
        slope = (m1 - m0) / (self.family.value(ends.high, b, top) - self.family.value(ends.low, b, top))
        mean, _ = self.mean(theta, ends, x)
        least = 1e-3 * (np.abs(m0) + np.abs(m1)) + 1e-290
        return slope * value * elasticity / np.maximum(mean, least)


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A model fitted to one series (shapes below without the dots) or to several (… = B)."""

    model: Model
    """The model."""
    theta: Array
    """Response at the largest x, at the smallest x, exponent; (..., 3)."""
    covariance: Array
    """Covariance of the parameters on the noise's scale; (..., 3, 3)."""
    ends: Array
    """Smallest and largest x; (..., 2)."""
    variance: Array
    """σ² of a row about the law on the noise's scale; (...,)."""
    variance_error: Array
    """Variance of the estimate of σ²; (...,)."""
    quantile: Array
    """Student's t for the confidence and degrees of freedom; (...,)."""

    def row(self, i: int | NDArray[np.intp]) -> FittedModel:
        """The i-th of several; or those at some places."""
        columns = (self.theta, self.covariance, self.ends, self.variance, self.variance_error, self.quantile)
        return FittedModel(self.model, *(column[i] for column in columns))

    @property
    def parameters(self) -> Theta:
        """Parameters ready to broadcast against points, (..., 1) each."""
        return self.theta[..., 0, None], self.theta[..., 1, None], self.theta[..., 2, None]

    @property
    def range(self) -> Ends:
        """Ends of the data, (..., 1) each."""
        return Ends(self.ends[..., 0, None], self.ends[..., 1, None])

    @property
    def smearing(self) -> Array:
        """Smearing factor, the mean of the noise over its median, (..., 1)."""
        return np.exp(np.minimum(self.variance[..., None] / 2.0, 300.0)) if self.model.noise.log else np.ones(1)

    def mean(self, x: Array) -> Array:
        """Expected response at x (..., k), never negative."""
        mean, _ = self.model.mean(self.parameters, self.range, x)
        return clipped(mean * self.smearing)

    def band(self, x: Array) -> Band:
        """Mean, its lower and upper limit, and those of a new row, at x (..., k); each (..., k)."""
        middle, gradient = self.model.mean(self.parameters, self.range, x)
        t, variance = self.quantile[..., None], self.variance[..., None]
        if not self.model.noise.log:
            spread = self._spread(gradient)
            mean_half, new_half = t * np.sqrt(spread), t * np.sqrt(spread + variance)
            return finite_band(middle, middle - mean_half, middle + mean_half, middle - new_half, middle + new_half)
        # A law that has crossed 0 outside its data is 0 there, up to its uncertainty.
        above, smearing = middle > 0, self.smearing
        safe = np.where(above, middle, 1.0)
        spread = self._spread(self.model.scaled(self.parameters, safe, gradient))
        mean_half = t * np.sqrt(spread + self.variance_error[..., None] / 4.0)
        new_half = t * np.sqrt(spread + variance)
        short = t * np.sqrt(spread) * smearing
        difference = self.model.intercept
        return finite_band(
            np.where(above, safe * smearing, 0.0),
            np.where(above, safe * smearing * np.exp(-mean_half), 0.0),
            np.where(above, safe * smearing * upper_factor(mean_half, difference=difference), short),
            np.where(above, safe * np.exp(-new_half), 0.0),
            np.where(above, safe * upper_factor(new_half, difference=difference), short),
        )

    def slope(self) -> tuple[Array, Array, Array]:
        """Local exponent at the largest x with its limits, (...,) each, by the delta method."""
        relative_size = np.maximum(np.abs(self.theta[..., :EXPONENT]).max(axis=-1), 1e-150)
        gradient = []
        for place in self.model.places:
            size = np.ones(1) if self.model.noise.log or place == EXPONENT else np.asarray(relative_size)
            step = np.maximum(np.sqrt(self.covariance[..., place, place]) * 0.01, 1e-7 * size)
            above, below = self._exponent_after(place, step), self._exponent_after(place, -step)
            gradient.append(((above - below) / (2.0 * step))[..., None])
        middle = self.model.local_exponent(self.parameters, self.range, self.range.high)[..., 0]
        half = self.quantile * np.sqrt(self._spread(gradient)[..., 0])
        half = np.where(np.isfinite(half), half, STEEPEST)
        middle, low, high = (np.clip(limit, -STEEPEST, STEEPEST) for limit in (middle, middle - half, middle + half))
        return middle, low, high

    def _spread(self, gradient: list[Array]) -> Array:
        """gᵀCg, (..., k)."""
        places = self.model.places
        total = sum(
            gradient[i] * gradient[j] * self.covariance[..., p, q, None]
            for i, p in enumerate(places)
            for j, q in enumerate(places)
        )
        return np.maximum(total, 0.0)

    def _exponent_after(self, place: int, step: Array) -> Array:
        """Local exponent at the largest x, (...,), after a step of one parameter on the noise's scale."""
        theta = self.theta.copy()
        if self.model.noise.log and place != EXPONENT:
            theta[..., place] = theta[..., place] * np.exp(np.clip(step, -50.0, 50.0))
        else:
            theta[..., place] = theta[..., place] + step
        parameters = theta[..., 0, None], theta[..., 1, None], theta[..., 2, None]
        return np.asarray(self.model.local_exponent(parameters, self.range, self.range.high)[..., 0])


def clipped(values: Array, unknown: float = 0.0) -> Array:
    """Answers between 0 and the largest; ``unknown`` where an overflow left no number."""
    return np.clip(np.where(np.isnan(values), unknown, values), 0.0, LARGEST)


def upper_factor(half: Array, *, difference: bool) -> Array:
    """Upper limit over the middle for an interval of half-width ``half`` on the log scale.

    Wide intervals grow linearly if the mean may be a ``difference`` of parts, for then the difference is uncertain.
    """
    if difference:
        return np.where(half < 1.0, np.exp(np.minimum(half, 1.0)), np.e * np.maximum(half, 1.0))
    return np.exp(np.minimum(half, 600.0))


def finite_band(mean: Array, low: Array, high: Array, new_low: Array, new_high: Array) -> Band:
    """Mean and limits as finite numbers that are not negative; after an overflow the limits span everything."""
    low, high = clipped(low), clipped(high, LARGEST)
    # Under very wide noise the limit of the mean passes that of a row; the interval of a new row stays the wider one.
    return clipped(mean), low, high, np.minimum(clipped(new_low), low), np.maximum(clipped(new_high, LARGEST), high)


def widest(bands: Sequence[Band]) -> Band:
    """The first band's mean with the union of the intervals of all bands."""
    mean, low, high, new_low, new_high = bands[0]
    for _, *limits in bands[1:]:
        low, high = np.minimum(low, limits[0]), np.maximum(high, limits[1])
        new_low, new_high = np.minimum(new_low, limits[2]), np.maximum(new_high, limits[3])
    return mean, low, high, new_low, new_high


def residual_and_gradient(
    model: Model, data: tuple[Array, Array, Array], theta: Array, ends: Array
) -> tuple[Array, Array]:
    """Residuals (n,) on the noise's scale and the gradient (p, n) of a law.

    ``data`` are x, y and log y, (n,) each; theta (3,) are the parameters, ends (2,) the smallest and largest x.
    """
    x, y, log_y = data
    parameters = theta[0, None], theta[1, None], theta[2, None]
    mean, gradient = model.mean(parameters, Ends(ends[0, None], ends[1, None]), x)
    if not model.noise.log:
        return y - mean, np.stack(gradient)
    mean = np.maximum(mean, 1e-300)
    return log_y - np.log(mean), np.stack(model.scaled(parameters, mean, gradient))


def cluster_covariance(gradient: Array, w: Array, residual: Array, run: NDArray[np.intp]) -> Array:
    """Covariance (p, p) of a law's parameters from the spread between runs, if the rows of a run share an effect.

    gradient (p, n), w, residual and run (n,). One run is left out at a time, the law linearised at its fit (the
    jackknife, "CR3": Bell & McCaffrey 2002, §3), with R − 1 degrees of freedom. If all runs have the same design, this
    gives the exact t interval of the runs' own estimates.
    """
    runs, size = int(run.max()) + 1, len(gradient)
    weighted = gradient * w
    grams = np.zeros((runs, size, size))
    np.add.at(grams, run, weighted.T[:, :, None] * gradient.T[:, None, :])
    sums = np.zeros((runs, size))
    np.add.at(sums, run, (weighted * residual).T)
    others = grams.sum(axis=0) - grams
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("ii->i", grams.sum(axis=0)), 1e-300))
    # If one run alone determines a parameter, the Gram matrix of the others is singular: the pseudo-inverse leaves that
    # direction out of the move, and the factor R² below stands for what no other run can confirm.
    scaled = others * scale[:, None] * scale[None, :]
    lonely = np.linalg.cond(scaled) > 1e10
    scaled[lonely] = grams.sum(axis=0) * scale[:, None] * scale[None, :]
    inverse = np.linalg.pinv(scaled)
    moves = np.empty((runs, size))
    for r in range(runs):
        moves[r] = scale * (inverse[r] @ (sums[r] * scale)) * (runs if lonely[r] else 1.0)
    return np.asarray(moves.T @ moves * ((runs - 1.0) / runs))


def covariance_between_runs(
    model: Model, data: tuple[Array, Array, Array], theta: Array, ends: Array, w: Array, run: NDArray[np.intp]
) -> Array:
    """:func:`cluster_covariance` of a law as a matrix of all parameters, (3, 3), 0 for unused ones.

    ``data``, ``theta`` and ``ends`` as of :func:`residual_and_gradient`; w and run (n,).
    """
    residual, gradient = residual_and_gradient(model, data, theta, ends)
    out = np.zeros((3, 3))
    out[np.ix_(model.places, model.places)] = cluster_covariance(gradient, w, residual, run)
    return out


def moulton(residual: Array, x: Array, run: NDArray[np.intp]) -> float:
    """Moulton's factor, at least 1: the number of rows of a run that are worth one independent row; all (n,).

    It is 1 + (m − 1)·ρ_x·ρ_e with the intra-run correlations of the feature and of the residual and the mean run size
    m (Moulton 1986, eq. 3); a feature that is spread alike over all runs costs nothing.
    """
    size = np.bincount(run)
    rows = float(size.mean() + size.var() / size.mean())
    return 1.0 + (rows - 1.0) * max(_intraclass(x, run, size), 0.0) * max(_intraclass(residual, run, size), 0.0)


def _intraclass(values: Array, run: NDArray[np.intp], size: NDArray[np.intp]) -> float:
    """Intraclass correlation by one-way analysis of variance (Fisher 1925, §38)."""
    runs, n = size.size, run.size
    if n == runs or np.ptp(values) == 0:
        return 0.0
    means = np.bincount(run, values) / size
    inside = float(((values - means[run]) ** 2).sum() / (n - runs))
    across = float((size * (means - values.mean()) ** 2).sum() / (runs - 1))
    m = float((n - (size**2).sum() / n) / (runs - 1))
    total = across + (m - 1.0) * inside
    return (across - inside) / total if total > 0 else 0.0
