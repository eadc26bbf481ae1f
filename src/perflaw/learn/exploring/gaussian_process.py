"""The Gaussian process behind a study: what trials say about the law of a metric over all configurations.

One model serves the policy (where is the next trial worth most), the result (which configuration is best, and how sure is
that) and the importance of knobs (what share of the variance does each explain).

The covariance of two configurations is a sum over knobs, pairs and triples of knobs (an ANOVA kernel; Durrande et al. 2013;
Duvenaud, Nickisch, Rasmussen 2011): K = Σ zᵢ + w Σ zᵢzⱼ + w² Σ zᵢzⱼzₖ, where zᵢ = vᵢ·kᵢ is the covariance of one knob's own
curve. On the logarithm of a metric the first sum is a product of one curve a knob. The correlation kᵢ is smooth (Matérn 5/2),
rough (exponential, which allows cliffs), or equality for knobs without an order.

Ten to sixty trials determine a dozen hyperparameters poorly, and the most likely ones are often overconfident. Predictions
are therefore averaged over draws from the posterior of the hyperparameters, made by elliptical slice sampling (Murray, Adams,
MacKay 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
P = ParamSpec("P")
R = TypeVar("R")

CURVE_VARIANCE, CURVE_LENGTH, INTERACTION = (np.log(0.12), 1.5), (np.log(0.7), 0.7), (np.log(1.5), 1.0)
"""Mean and standard deviation of the priors, on the logarithm; responses have variance 1."""
ROUGH_LENGTHS = 3.0
"""Factor by which the length scales of rough curves are longer: an exponential correlation falls faster."""
NOISE_SPREAD = 1.0
"""Standard deviation of the logarithm of the noise's standard deviation, under its prior."""
MEAN_VARIANCE = 4.0
"""Prior variance of the law's mean over the space."""
BURN_IN, THINNING = 40, 4
"""Steps of the sampler before the first draw, and from one draw to the next."""
REST_POINTS = 150
"""Configurations at which the variance of what takes three knobs is computed."""
JITTER = 1e-7
"""Variance that is added to a covariance before it is factored, against rounding."""


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, run with one thread in BLAS and LAPACK; the number of threads is restored afterwards.

    For matrices of this size, the libraries' own threads cost ten times what they save.
    """

    @wraps(function)
    def limited(*arguments: P.args, **named: P.kwargs) -> R:
        with _thread_pools().limit(limits=1, user_api="blas"):
            return function(*arguments, **named)

    return limited


_thread_pools = cache(ThreadpoolController)
"""The thread pools of the libraries, searched once, at the first use."""


# ---- The kernel.


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Parameters of the covariance over d knobs; all are positive."""

    variances: Array
    """Variance of each knob's own curve, (d,)."""
    lengths: Array
    """Length scale of each knob's curve, as a part of the knob's range, (d,)."""
    interaction: float
    """Weight w of pairs relative to the knobs' own curves; its square is the weight of triples."""
    noise: float
    """Variance of one trial about the law."""
    rough: bool
    """Whether curves may have cliffs."""


def distances(a: Array, b: Array, ordered: Mask) -> Array:
    """Return |a − b| by knob, (d, n, m), of points (n, d) and (m, d) in the unit cube; 0 or 1 for knobs without an order.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]]), np.array([True, False])).ravel().tolist()
    [0.5, 1.0]
    """
    gaps = np.abs(a.T[:, :, None] - b.T[:, None, :])
    gaps[~ordered] = gaps[~ordered] > 1e-9
    return gaps


def correlations(gaps: Array, lengths: Array, ordered: Mask, rough: bool = False) -> Array:
    """Return the correlation of each knob's curve at points with ``gaps``, (d, n, m)."""
    scaled = gaps / np.where(ordered, lengths, 1.0)[:, None, None]
    if rough:
        found = np.exp(-scaled)
    else:
        scaled *= np.sqrt(5.0)
        found = (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)
    found[~ordered] = gaps[~ordered] == 0.0
    return np.asarray(found)


def covariance(gaps: Array, parameters: Hyperparameters, ordered: Mask) -> Array:
    """Return the prior covariance (n, m) of the law, without its mean, at points with ``gaps`` (d, n, m)."""
    curves = correlations(gaps, parameters.lengths, ordered, parameters.rough)
    curves *= parameters.variances[:, None, None]
    return _combined(curves, parameters.interaction)


def prior_variance(parameters: Hyperparameters) -> float:
    """Return the prior variance of the law, without its mean, at any point."""
    return float(_combined(parameters.variances[:, None], parameters.interaction)[0])


def _combined(curves: Array, weight: float) -> Array:
    """Return Σ zᵢ + w Σ zᵢzⱼ + w² Σ zᵢzⱼzₖ of the curves' covariances z (d, …)."""
    singles, pairs, triples = _symmetric_sums(curves)
    return np.asarray(singles + weight * pairs + weight * weight * triples)


def _symmetric_sums(z: Array) -> tuple[Array, Array, Array]:
    """Return the elementary symmetric sums of z (d, …) of first to third order, by Newton's identities."""
    first = z.sum(axis=0)
    none = np.zeros_like(first)
    if z.shape[0] == 1:
        return first, none, none
    squares = z * z
    square = squares.sum(axis=0)
    second = 0.5 * (first * first - square)
    if z.shape[0] == 2:
        return first, second, none
    return first, second, (first * second - first * square + (squares * z).sum(axis=0)) / 3.0


# ---- The posterior.


@dataclass(frozen=True, slots=True)
class Observations:
    """Standardized responses of configurations, as the process takes them."""

    x: Array
    """Configurations in the unit cube, (n, d)."""
    ordered: Mask
    """Which knobs have an order, (d,)."""
    y: Array
    """Response of each, (n,), of variance about 1."""
    trials: Array
    """Number of trials that each response is the mean of, (n,); may be a fraction for trials that were cut short."""
    known_variance: Array
    """Variance of each response on top of the common noise, (n,)."""
    noise: float = 0.05
    """Standard deviation of the noise that is expected before any trial."""
    within: float = 0.0
    """Sum of squares of trials about the mean of their configuration, where responses are means."""
    freedom: int = 0
    """Degrees of freedom of ``within``."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """The process under one draw of the hyperparameters, solved for the responses."""

    parameters: Hyperparameters
    """The draw."""
    inverse: Array
    """Inverse L⁻¹ of the lower Cholesky factor of the responses' covariance, (n, n)."""
    solved: Array
    """Covariance⁻¹ · responses, (n,)."""

    def whiten(self, between: Array) -> Array:
        """Return L⁻¹·Kᵀ, (n, m), for a covariance K (m, n) of m points with the responses."""
        return np.asarray(self.inverse @ between.T)

    def sample(self, between: Array, among: Array, number: int, generator: np.random.Generator) -> Array:
        """Draw (number, m) values whose covariance is ``among`` (m, m), and ``between`` (m, n) with the responses."""
        half = self.whiten(between)
        left = among - half.T @ half
        left[np.diag_indices_from(left)] += JITTER
        try:
            root = np.linalg.cholesky(left)
        except np.linalg.LinAlgError:  # rounding left the covariance slightly indefinite
            values, vectors = np.linalg.eigh(left)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(between @ self.solved + generator.standard_normal((number, len(between))) @ root.T)


@dataclass(frozen=True, slots=True, eq=False)
class EffectVariances:
    """What the variance of a response over the space is made of (functional ANOVA), as posterior draws."""

    mains: Array
    """Variance of what each knob does on average over the others, (draws, d)."""
    pairs: Array
    """Variance of what two knobs do beyond that, (draws, d·(d − 1)/2), in the order of ``itertools.combinations``."""
    triples: Array
    """Variance of what takes three knobs or more, (draws,)."""
    noise: float
    """Variance of a single trial."""


class GaussianProcess:
    """The law of a response over the unit cube after trials, as draws of hyperparameters with their posteriors."""

    def __init__(self, seen: Observations, draws: int, generator: np.random.Generator) -> None:
        """Draw the hyperparameters ``draws`` times from their posterior.

        Each step of the sampler also proposes to change from smooth to rough curves, or back.
        """
        self.seen = seen
        self.posteriors: list[Posterior] = []
        gaps = distances(seen.x, seen.x, seen.ordered)

        def likelihood(rough: bool, z: Array) -> float:
            return _factored(seen, gaps, _parameters(seen, z, rough))[1]

        z, rough = np.zeros(2 * seen.ordered.size + 2), False
        level = likelihood(rough, z)
        for step in range(BURN_IN + THINNING * draws):
            z, level = _slice_step(partial(likelihood, rough), z, level, generator)
            other = likelihood(not rough, z)
            if np.log(generator.uniform()) < other - level:
                rough, level = not rough, other
            if step >= BURN_IN and (step - BURN_IN) % THINNING == THINNING - 1:
                parameters = _parameters(seen, z, rough)
                factor, _ = _factored(seen, gaps, parameters)
                if factor is not None:
                    inverse = np.asarray(np.linalg.inv(factor[:-1, :-1]), dtype=np.float64)
                    self.posteriors.append(Posterior(parameters, inverse, factor[-1, :-1] @ inverse))

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Return means and standard deviations of the law at points (m, d) by draw, (s, m) each, without noise."""
        gaps = distances(at, self.seen.x, self.seen.ordered)
        means, deviations = [], []
        for posterior in self.posteriors:
            between = covariance(gaps, posterior.parameters, self.seen.ordered) + MEAN_VARIANCE
            half = posterior.whiten(between)
            left = prior_variance(posterior.parameters) + MEAN_VARIANCE - np.einsum("ij,ij->j", half, half)
            means.append(between @ posterior.solved)
            deviations.append(np.sqrt(np.maximum(left, 1e-10)))
        return np.array(means), np.array(deviations)

    def sample(self, at: Array, number: int, generator: np.random.Generator) -> Array:
        """Draw the whole law at points (m, d), ``number`` times under each draw of hyperparameters, (s·number, m)."""
        ordered = self.seen.ordered
        between, among = distances(at, self.seen.x, ordered), distances(at, at, ordered)
        several = [
            posterior.sample(
                covariance(between, posterior.parameters, ordered) + MEAN_VARIANCE,
                covariance(among, posterior.parameters, ordered) + MEAN_VARIANCE,
                number,
                generator,
            )
            for posterior in self.posteriors
        ]
        return np.concatenate(several)

    def residuals(self) -> Array:
        """Return standardized leave-one-out residuals, (n,), the median over draws (Rasmussen and Williams, eq. 5.12)."""
        found = [one.solved / np.sqrt(np.einsum("ij,ij->j", one.inverse, one.inverse)) for one in self.posteriors]
        return np.asarray(np.median(found, axis=0))

    def effects(self, levels: Sequence[Array], number: int, generator: np.random.Generator) -> EffectVariances:
        """Draw the variances of the law's effects over the space of the knobs' ``levels`` (Lᵢ,) each, in the unit cube."""
        parts = [self._effects(posterior, levels, number, generator) for posterior in self.posteriors]
        mains, pairs, triples = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return EffectVariances(
            mains, pairs, triples, float(np.mean([posterior.parameters.noise for posterior in self.posteriors]))
        )

    def _effects(
        self, posterior: Posterior, levels: Sequence[Array], number: int, generator: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Draw variances of effects under one draw of hyperparameters: (number, d), (number, pairs), (number,).

        The law's mean over some knobs is a Gaussian process too. Its covariance is the kernel's, with the covariance of
        every averaged knob replaced by its mean over the levels.
        """
        d, weight = len(levels), posterior.parameters.interaction
        between, among = [], []  # covariances of each knob's curve: of its levels with the trials, and with one another
        for i, places in enumerate(levels):
            between.append(self._curve(posterior.parameters, i, places, self.seen.x[:, i]))
            among.append(self._curve(posterior.parameters, i, places, places))
        averaged = np.array([part.mean(axis=0) for part in between])
        overall = np.array([part.mean() for part in among])

        def draw(left: dict[int, Array], right: dict[int, Array]) -> Array:
            """Draw the mean over all knobs but those of ``left`` and ``right``: their covariances (m, n) and (m, m)."""
            m = len(next(iter(left.values())))
            outer = np.array([left.get(i, np.broadcast_to(averaged[i], (m, averaged.shape[1]))) for i in range(d)])
            inner = np.array([right.get(i, np.full((m, m), overall[i])) for i in range(d)])
            return posterior.sample(
                _combined(outer, weight) + MEAN_VARIANCE, _combined(inner, weight) + MEAN_VARIANCE, number, generator
            )

        mains, pairs = [], []
        for i in range(d):
            values = draw({i: between[i]}, {i: among[i]})
            mains.append(values.var(axis=1))
        for i in range(d):
            for j in range(i + 1, d):
                a, b = len(levels[i]), len(levels[j])
                first, second = np.repeat(np.arange(a), b), np.tile(np.arange(b), a)
                values = draw(
                    {i: between[i][first], j: between[j][second]},
                    {i: among[i][np.ix_(first, first)], j: among[j][np.ix_(second, second)]},
                ).reshape(number, a, b)
                values = values - values.mean(axis=1, keepdims=True) - values.mean(axis=2, keepdims=True)
                pairs.append(values.reshape(number, -1).var(axis=1))
        triples = np.zeros(number)
        if d > 2:
            picks = [generator.integers(len(places), size=REST_POINTS) for places in levels]
            left = np.array([(part - part.mean(axis=0))[pick] for part, pick in zip(between, picks, strict=True)])
            right = np.array(
                [
                    (part - part.mean(axis=0) - part.mean(axis=1, keepdims=True) + part.mean())[np.ix_(pick, pick)]
                    for part, pick in zip(among, picks, strict=True)
                ]
            )
            outer, inner = (weight**2 * _symmetric_sums(part)[2] for part in (left, right))
            triples = (posterior.sample(outer, inner, number, generator) ** 2).mean(axis=1)
        return np.stack(mains, axis=1), np.stack(pairs, axis=1) if pairs else np.empty((number, 0)), triples

    def _curve(self, parameters: Hyperparameters, knob: int, a: Array, b: Array) -> Array:
        """Return the prior covariance (n, m) of one knob's own curve at places (n,) and (m,)."""
        only = slice(knob, knob + 1)
        gaps = distances(a[:, None], b[:, None], self.seen.ordered[only])
        found = correlations(gaps, parameters.lengths[only], self.seen.ordered[only], parameters.rough)[0]
        return np.asarray(parameters.variances[knob] * found)


# ---- The sampler of hyperparameters.


def _parameters(seen: Observations, z: Array, rough: bool) -> Hyperparameters:
    """Return the hyperparameters that the standard normal vector z (2d + 2,) stands for under the priors."""
    d = seen.ordered.size
    return Hyperparameters(
        variances=np.exp(CURVE_VARIANCE[0] + CURVE_VARIANCE[1] * z[:d]),
        lengths=np.exp(CURVE_LENGTH[0] + CURVE_LENGTH[1] * z[d : 2 * d]) * (ROUGH_LENGTHS if rough else 1.0),
        interaction=float(np.exp(INTERACTION[0] + INTERACTION[1] * z[2 * d])),
        noise=float((seen.noise * np.exp(NOISE_SPREAD * z[2 * d + 1])) ** 2),
        rough=rough,
    )


def _factored(seen: Observations, gaps: Array, parameters: Hyperparameters) -> tuple[Array | None, float]:
    """Return a Cholesky factor and the log likelihood; None and −∞ where the covariance is numerically singular.

    The factor (n + 1, n + 1) is that of the responses' covariance bordered by the responses y, so its last row is L⁻¹·y.
    """
    n = seen.y.size
    matrix = np.empty((n + 1, n + 1))
    matrix[:n, :n] = covariance(gaps, parameters, seen.ordered) + MEAN_VARIANCE
    matrix[np.arange(n), np.arange(n)] += parameters.noise / seen.trials + seen.known_variance + 1e-8
    matrix[n, :n], matrix[:n, n], matrix[n, n] = seen.y, seen.y, 1e300  # more than y's square by the inverse can be
    try:
        factor = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None, -np.inf
    half = factor[n, :n]
    likelihood = -0.5 * half @ half - np.log(np.diag(factor)[:n]).sum()
    likelihood -= 0.5 * (seen.freedom * np.log(parameters.noise) + seen.within / parameters.noise)
    return factor, float(likelihood)


def _slice_step(
    likelihood: Callable[[Array], float], z: Array, level: float, generator: np.random.Generator
) -> tuple[Array, float]:
    """Move to a point of the ellipse through z and a draw from the prior; return it with its log likelihood."""
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


# ---- The surrogate of a metric: the process on standardized responses, robust against disturbed trials. Responses are taken
# on the logarithm where all are positive, since effects of knobs multiply. Bad responses are compressed: how bad the bad
# configurations are says little about the best one.

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
    """Fit the law to finite responses ``values`` (n,) at configurations ``x`` (n, d) in the unit cube, n ≥ 1.

    ``ordered`` (d,) says which knobs have an order, ``sign`` is 1 where more is better and −1 where less is. ``errors``
    (n,) are the responses' standard errors in their unit, NaN where unknown, ``trials`` (n,) numbers of trials that
    they are means of.
    """
    scale = scale_of(values, sign)
    keep = np.arange(values.size)
    if values.size > MAX_FITTED:  # half of them the best, half the latest
        best = np.argsort(-sign * values, kind="stable")[: MAX_FITTED // 2]
        latest = np.setdiff1d(keep, best)[-(MAX_FITTED - best.size) :]
        keep = np.sort(np.concatenate([best, latest]))
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
