"""What trials say about configurations not tried: a law over knobs with all its doubt, as draws of Gaussian processes.

Responses are taken on the logarithm where all are positive (what knobs do multiplies), standardized with the worst ones pulled
in: how bad the bad ones are says little about the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack, solve_triangular

# ---- Responses as the surrogate takes them: on the logarithm where they allow it, standardized, greater is better.

FEW = 0.2
"""Share of rates of 0 up to which the others are still taken on the logarithm."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How responses become standardized ones, and back."""

    logarithm: bool
    """Whether they are taken on the logarithm."""
    sign: float
    """1 where more is better, −1 where less is."""
    centre: float
    """What is subtracted."""
    spread: float
    """What is divided by; 1 where all are equal."""
    floor: float = 0.0
    """Least response that the logarithm is taken of: a rate of 0, of which there are few, is half the least other one."""

    def to(self, values: Array) -> Array:
        """Return standardized responses, greater is better."""
        base = np.log(np.maximum(values, self.floor)) if self.logarithm else values
        return (self.sign * base - self.centre) / self.spread

    def back(self, scores: Array) -> Array:
        """Return responses in their own unit."""
        base = self.sign * (scores * self.spread + self.centre)
        return np.exp(base) if self.logarithm else base

    def step(self, share: float) -> float:
        """Return how much a response that is better by a ``share`` (0.05) is in standardized units."""
        if self.logarithm:
            return float(np.log1p(share) / self.spread)
        return float(share * max(abs(self.centre), self.spread) / self.spread)


def scale_of(values: Array, sign: float) -> Scale:
    """Return the scale of responses (n,)."""
    floor = _floor(values, sign)
    logarithm = floor > 0.0
    base = sign * (np.log(np.maximum(values, floor)) if logarithm else values)
    spread = float(np.std(base))
    if not np.isfinite(spread) or spread <= 1e-9 * max(1.0, float(np.max(np.abs(base)))):
        spread = 1.0
    return Scale(logarithm, sign, float(np.mean(base)), spread, floor)


def _floor(values: Array, sign: float) -> float:
    """Return the least response that is taken as it is, on the logarithm; 0 where there is no logarithm to take."""
    positive = values[values > 0.0]
    zeros = int(np.sum(values == 0.0))
    few = zeros <= FEW * values.size and sign > 0
    if positive.size + zeros < values.size or not positive.size or (zeros and not few):
        return 0.0
    return float(positive.min()) / (2.0 if zeros else 1.0)


# ---- Covariance of laws over knobs: a sum over knobs, pairs and triples of products of one-dimensional curves
# (ANOVA).
#
# K = Σ zᵢ + w Σ zᵢzⱼ + w² Σ zᵢzⱼzₖ with zᵢ = vᵢ·kᵢ: on the logarithm of a metric a product of per-knob curves is the
# sum, and
# what knobs do together is the rest (Durrande et al. 2013; Duvenaud, Nickisch, Rasmussen 2011). kᵢ is smooth (Matérn
# 5/2), rough
# (exponential: cliffs), or equality (knobs without an order).


@dataclass(frozen=True, slots=True)
class Curves:
    """Parameters of one covariance over d knobs; all positive."""

    shares: Array
    """Variance of each knob's own curve, (d,)."""
    lengths: Array
    """Over which part of its range a knob's curve bends, (d,)."""
    together: float
    """Weight of pairs against what the knobs' own curves have; its square that of triples."""
    noise: float
    """Variance of one trial about the law."""
    rough: bool
    """Whether curves may have cliffs."""


def distances(a: Array, b: Array, ordered: Mask) -> Array:
    """Return |a − b| by knob, (d, n, m), of points (n, d), (m, d) in the unit cube; 0 or 1 for knobs without an order.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]]), np.array([True, False])).ravel().tolist()
    [0.5, 1.0]
    """
    gaps = np.abs(a.T[:, :, None] - b.T[:, None, :])
    gaps[~ordered] = gaps[~ordered] > 1e-9
    return gaps


def covariance(gaps: Array, curves: Curves, ordered: Mask) -> Array:
    """Return the prior covariance (n, m) of the law at points with ``gaps`` (d, n, m)."""
    scaled = gaps / np.where(ordered, curves.lengths, 1.0)[:, None, None]
    if curves.rough:
        like = np.exp(-scaled)
    else:
        scaled *= 2.23606797749979
        like = (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)
    like[~ordered] = gaps[~ordered] == 0.0
    like *= curves.shares[:, None, None]
    return _powers(like, curves.together)


def _powers(z: Array, w: float) -> Array:
    """Elementary symmetric sums of first to third order by Newton's identities."""
    first = z.sum(axis=0)
    if z.shape[0] == 1:
        return np.asarray(first)
    square = z * z
    second = 0.5 * (first * first - square.sum(axis=0))
    if z.shape[0] == 2:
        return np.asarray(first + w * second)
    third = (first * second - first * square.sum(axis=0) + (square * z).sum(axis=0)) / 3.0
    return np.asarray(first + w * second + w * w * third)


def prior_variance(curves: Curves) -> float:
    """Return the prior variance of the law at any point."""
    return float(_powers(curves.shares[:, None], curves.together)[0])


# ---- Which covariances fit the trials: draws from the posterior by elliptical slice sampling (Murray, Adams, MacKay
# 2010).
#
# With ten to sixty trials the likelihood alone says little about a dozen parameters, and its maximum is often sure of
# something
# wrong; so predictions are averaged over draws. The priors are on logarithms.

SHARE, LENGTH, TOGETHER = (np.log(0.12), 1.5), (np.log(0.7), 0.7), (np.log(1.5), 1.0)
"""Median and spread of the priors, on the logarithm; responses have variance 1."""
NOISE_SPREAD = 1.0
"""Of the prior of the noise, on the logarithm of its standard deviation."""
BURN, EVERY = 40, 4
"""Steps before the first draw, and from one to the next."""
LEVEL = 4.0
"""Prior variance of the mean."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One draw: a covariance with the trials solved for."""

    curves: Curves
    """Its parameters."""
    factor: Array
    """Cholesky factor of the trials' covariance, (n, n), lower."""
    solved: Array
    """Covariance⁻¹ · responses, (n,)."""


@dataclass(frozen=True, slots=True)
class Data:
    """Trials as the sampler wants them."""

    gaps: Array
    """Distances by knob, (d, n, n)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    y: Array
    """Standardized responses, (n,)."""
    extra: Array
    """Known variance of each response on top of the common noise, (n,)."""
    noise: float
    """Standard deviation of the noise that is expected before any trial."""


def data_of(x: Array, ordered: Mask, y: Array, extra: Array, noise: float) -> Data:
    """Return points x (n, d) and standardized responses y (n,) as data."""
    return Data(distances(x, x, ordered), ordered, y, extra, noise)


def solve(data: Data, curves: Curves) -> tuple[Fitted | None, float]:
    """Return the draw and its log likelihood; None where the covariance is numerically singular."""
    matrix = covariance(data.gaps, curves, data.ordered) + LEVEL
    matrix[np.diag_indices_from(matrix)] += curves.noise + data.extra + 1e-8
    factor, bad = lapack.dpotrf(matrix, lower=1, clean=1)
    if bad:
        return None, -np.inf
    solved = cho_solve((factor, True), data.y, check_finite=False)
    return Fitted(curves, factor, solved), float(-0.5 * data.y @ solved - np.log(np.diag(factor)).sum())


def draw(data: Data, number: int, generator: np.random.Generator) -> list[Fitted]:
    """Return ``number`` draws from the posterior of covariances."""
    size = 2 * data.ordered.size + 2
    z, rough = np.zeros(size), False
    level = _likelihood(data, rough, z)
    found: list[Fitted] = []
    for step in range(BURN + EVERY * number):
        z, level = _slice(partial(_likelihood, data, rough), z, level, generator)
        other = _likelihood(data, not rough, z)
        if np.log(generator.uniform()) < other - level:
            rough, level = not rough, other
        if step >= BURN and (step - BURN) % EVERY == EVERY - 1:
            fitted, _ = solve(data, curves_of(data, z, rough))
            found += [fitted] if fitted else []
    return found


def curves_of(data: Data, z: Array, rough: bool) -> Curves:
    """Return the parameters that the standard normal vector z (2d + 2,) stands for under the priors."""
    d = data.ordered.size
    return Curves(
        shares=np.exp(SHARE[0] + SHARE[1] * z[:d]),
        lengths=np.exp(LENGTH[0] + LENGTH[1] * z[d : 2 * d]) * (3.0 if rough else 1.0),
        together=float(np.exp(TOGETHER[0] + TOGETHER[1] * z[2 * d])),
        noise=float((data.noise * np.exp(NOISE_SPREAD * z[2 * d + 1])) ** 2),
        rough=rough,
    )


def _likelihood(data: Data, rough: bool, z: Array) -> float:
    return solve(data, curves_of(data, z, rough))[1]


def _slice(
    likelihood: Callable[[Array], float], z: Array, level: float, generator: np.random.Generator
) -> tuple[Array, float]:
    """One step on the ellipse through z and a draw from the prior; never refuses."""
    other, threshold = generator.standard_normal(z.size), level + np.log(generator.uniform())
    angle = generator.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    for _ in range(40):
        point = z * np.cos(angle) + other * np.sin(angle)
        found = likelihood(point)
        if found > threshold:
            return point, found
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = generator.uniform(low, high)
    return z, level


Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DRAWS, MOST = 16, 160
"""Draws of the covariance, and trials that are fitted; of more the best and the latest."""
NOISE = 0.05
"""Noise that is expected before any repetition, as a share of the responses' spread; the trials correct it."""
FAR = 4.0
"""Standard deviations off its prediction from which a trial is taken as disturbed."""


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A fitted law with its doubt."""

    x: Array
    """Trials in the unit cube, (n, d)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    draws: list[Fitted]
    """Draws of the covariance, solved."""
    scale: Scale
    """Between responses and standardized ones."""

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Return means and standard deviations at points (m, d) by draw, (s, m) each, standardized, without noise."""
        gaps = distances(at, self.x, self.ordered)
        parts = [self._one(gaps, fitted) for fitted in self.draws]
        return np.array([mean for mean, _ in parts]), np.array([sd for _, sd in parts])

    def misfit(self) -> float:
        """Return by how much trials lie farther off what the others say of them than the law admits; at least 1."""
        off = np.median([_left_out(fitted) for fitted in self.draws], axis=0)
        return float(max(1.0, np.sqrt(np.mean(np.minimum(off * off, FAR**2)))))

    def gains(self, means: Array, sds: Array) -> tuple[float, float, float]:
        """Return by which share a response is better, middle, low, high (80 %), of standardized differences (s,)."""
        ends = np.concatenate([means + z * sds for z in (-1.645, -0.84, -0.25, 0.25, 0.84, 1.645)])
        low, middle, high = np.quantile(ends, [0.1, 0.5, 0.9]) * self.scale.spread
        if self.scale.logarithm:  # where less is better, 20 % better is 0.8 of it
            low, middle, high = self.scale.sign * np.expm1(self.scale.sign * np.array([low, middle, high]))
            return float(middle), float(low), float(high)
        unit = max(abs(self.scale.centre), self.scale.spread)
        return float(middle / unit), float(low / unit), float(high / unit)

    def _one(self, gaps: Array, fitted: Fitted) -> tuple[Array, Array]:
        cross = covariance(gaps, fitted.curves, self.ordered) + LEVEL
        half = solve_triangular(fitted.factor, cross.T, lower=True, check_finite=False)
        left = prior_variance(fitted.curves) + LEVEL - np.einsum("ij,ij->j", half, half)
        return cross @ fitted.solved, np.sqrt(np.maximum(left, 1e-10))

    def joint(self, at: Array, number: int, generator: np.random.Generator) -> Array:
        """Return ``number`` draws of the whole law at points (m, d) for each draw of the covariance, (s·number, m)."""
        cross, inner = distances(at, self.x, self.ordered), distances(at, at, self.ordered)
        return np.concatenate([self._whole(cross, inner, fitted, number, generator) for fitted in self.draws])

    def _whole(self, cross: Array, inner: Array, fitted: Fitted, number: int, generator: np.random.Generator) -> Array:
        between = covariance(cross, fitted.curves, self.ordered) + LEVEL
        half = solve_triangular(fitted.factor, between.T, lower=True, check_finite=False)
        left = covariance(inner, fitted.curves, self.ordered) + LEVEL - half.T @ half
        root = _root(left)
        noise: Array = generator.standard_normal((number, between.shape[0]))
        return np.asarray(between @ fitted.solved + noise @ root.T)


def fit_surrogate(
    x: Array, ordered: Mask, values: Array, sign: float, seed: int, errors: Array | None = None, draws: int = DRAWS
) -> Surrogate:
    """Fit the law to trials.

    Args:
        x: configurations in the unit cube, (n, d), n ≥ 1.
        ordered: which knobs have an order, (d,).
        values: responses, (n,), finite.
        sign: 1 where more is better, −1 where less is.
        seed: of the draws.
        errors: standard errors of the responses in their unit, (n,), nan where unknown.
        draws: draws of the covariance.
    """
    scale = scale_of(values, sign)
    keep = _kept(sign * values)
    x, y = x[keep], _pulled(scale.to(values[keep]))
    extra = _known(values[keep], None if errors is None else errors[keep], scale)
    generator = np.random.default_rng([seed, y.size])
    data = data_of(x, ordered, y, extra, NOISE)
    found = draw(data, draws, generator)
    disturbed = _disturbed(data, found)
    if np.any(disturbed > 0):
        data = Data(data.gaps, ordered, y, extra + disturbed, NOISE)
        found = draw(data, draws, generator)
    return Surrogate(x, ordered, found, scale)


def _kept(score: Array) -> NDArray[np.intp]:
    if score.size <= MOST:
        return np.arange(score.size)
    best = np.argsort(-score, kind="stable")[: MOST // 2]
    latest = np.setdiff1d(np.arange(score.size), best)[-(MOST - best.size) :]
    return np.sort(np.concatenate([best, latest]))


def _pulled(y: Array) -> Array:
    """Beyond two spreads on the bad side the logarithm of the distance counts."""
    below = np.maximum(-2.0 - y, 0.0)
    return np.where(below > 0, -2.0 - np.log1p(below), y)


def _known(values: Array, errors: Array | None, scale: Scale) -> Array:
    if errors is None:
        return np.zeros(values.size)
    relative = errors / np.maximum(np.abs(values), scale.floor) if scale.logarithm else errors
    return np.where(np.isfinite(relative), (relative / scale.spread) ** 2, 0.0)


def _disturbed(data: Data, found: list[Fitted]) -> Array:
    """Variance to add to trials that no draw can explain (leave-one-out residuals, Rasmussen & Williams, eq. 5.12)."""
    if data.y.size < 8 or not found:
        return np.zeros(data.y.size)
    off = np.median([_left_out(fitted) for fitted in found], axis=0)
    return np.where(off < -FAR, 1.0, 0.0)


def _left_out(fitted: Fitted) -> Array:
    inverse = solve_triangular(fitted.factor, np.eye(fitted.solved.size), lower=True, check_finite=False)
    return np.asarray(fitted.solved / np.sqrt(np.einsum("ij,ij->j", inverse, inverse)))


def _root(matrix: Array) -> Array:
    """A square root of a covariance (m, m) that rounding may have left slightly indefinite."""
    matrix[np.diag_indices_from(matrix)] += 1e-7
    factor, bad = lapack.dpotrf(matrix, lower=1, clean=1)
    if not bad:
        return np.asarray(factor)
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
