"""What a law says of costs: mean, probabilities, quantiles, density and samples, over arrays of features.

A law is a distribution, or a clause whose parts are a mixture. ``values`` are features (``evaluation.Values``); y and p
broadcast against them, results have the common shape. Costs are in the unit the law is written in (``units.factor``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw import special
from perflaw.laws import tree as ast
from perflaw.laws.evaluation import Values, evaluate, shape_of
from perflaw.laws.tree import Tree

# ---- The four distributions over arrays of parameters: formulas alone.
#
# A parameter that a distribution cannot have (a negative deviation, a mean of 0 for ``LogNorm``) gives NaN. A deviation
# of 0 puts all probability on the mean. Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions.

Array = NDArray[np.float64]
_HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)
_NORMAL_LIMIT = 1e15
"""From this many trials on, ``Binom`` is sampled as the normal distribution that it then is."""


@dataclass(frozen=True, slots=True)
class PageFormulas:
    """The formulas of a distribution as JSON trees, which the report page evaluates.

    Names in them are ``a`` and ``b``, the parameters; ``y``, a cost; ``z``, a normal quantile that stands for its
    probability. The function ``normal`` is Φ.
    """

    mean: Tree
    """Expected value."""
    quantile: Tree
    """Cost that is exceeded with probability 1 − Φ(z)."""
    cdf: Tree
    """Probability of at most y."""
    density: Tree
    """Density at y."""


def _normal_formulas(mean: Tree, deviation: Tree) -> PageFormulas:
    standardised: Tree = ["/", ["-", "y", mean], deviation]
    return PageFormulas(
        mean,
        ["+", mean, ["*", "z", deviation]],
        ["normal", standardised],
        ["/", _bell(standardised), ["*", deviation, _ROOT_TAU]],
    )


def _log_normal_formulas() -> PageFormulas:
    """Nothing lies at or below 0; ``_TINY`` keeps the logarithm finite there."""
    positive: Tree = ["max", "y", _TINY]
    log: Tree = ["log", ["/", positive, ["max", "a", _TINY]]]
    standardised: Tree = ["/", ["+", log, ["/", ["^", "b", 2], 2]], "b"]
    return PageFormulas(
        "a",
        ["*", "a", ["exp", ["-", ["*", "z", "b"], ["/", ["^", "b", 2], 2]]]],
        ["*", [">", "y", 0], ["normal", standardised]],
        ["*", [">", "y", 0], ["/", _bell(standardised), ["*", positive, ["*", "b", _ROOT_TAU]]]],
    )


def _bell(standardised: Tree) -> Tree:
    return ["exp", ["*", -0.5, ["^", standardised, 2]]]


_ROOT_TAU = float(np.sqrt(2 * np.pi))
_TINY = 1e-300


class Formulas(Protocol):
    """A distribution; ``a`` and ``b`` are its parameters (``b`` is ignored where it has one)."""

    page: PageFormulas
    """The same formulas for the report page."""

    def mean(self, a: Array, b: Array) -> Array:
        """Expected value."""

    def cdf(self, y: Array, a: Array, b: Array) -> Array:
        """Probability of at most y."""

    def quantile(self, p: Array, a: Array, b: Array) -> Array:
        """Smallest y with ``cdf(y) >= p``."""

    def log_density(self, y: Array, a: Array, b: Array) -> Array:
        """Logarithm of the density, or of the probability where values are whole numbers."""

    def sample(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """One value for each pair of parameters."""


class Norm:
    """Mean a, standard deviation b."""

    page = _normal_formulas("a", "b")

    def mean(self, a: Array, b: Array) -> Array:
        """The mean."""
        return np.where(b >= 0, a, np.nan)

    def cdf(self, y: Array, a: Array, b: Array) -> Array:
        """Φ((y − a)/b)."""
        return np.where(b == 0, (y >= a) * 1.0, np.where(b > 0, special.ndtr((y - a) / b), np.nan))

    def quantile(self, p: Array, a: Array, b: Array) -> Array:
        """The normal quantile: a + b·Φ⁻¹(p)."""
        return np.where(b == 0, a + 0 * p, np.where(b > 0, a + b * special.ndtri(p), np.nan))

    def log_density(self, y: Array, a: Array, b: Array) -> Array:
        """−½z² − log b − ½log 2π."""
        spread = -0.5 * ((y - a) / b) ** 2 - np.log(b) - _HALF_LOG_TAU
        return np.where(b == 0, np.where(y == a, np.inf, -np.inf), np.where(b > 0, spread, np.nan))

    def sample(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """Drawn as a + b·z."""
        return np.where(b >= 0, a + b * rng.standard_normal(a.shape), np.nan)


class LogNorm:
    """*Mean* a, standard deviation b of the logarithm: log y is normal about log a − b²/2."""

    page = _log_normal_formulas()
    _log = Norm()

    def mean(self, a: Array, b: Array) -> Array:
        """The mean."""
        return np.where((a > 0) & (b >= 0), a, np.nan)

    def cdf(self, y: Array, a: Array, b: Array) -> Array:
        """That of the logarithm; 0 up to 0."""
        inside = self._log.cdf(np.log(np.maximum(y, 0)), self._centre(a, b), b)
        return np.where(np.isnan(self.mean(a, b)), np.nan, np.where(y > 0, inside, 0.0))

    def quantile(self, p: Array, a: Array, b: Array) -> Array:
        """The exponential of that of the logarithm."""
        return np.exp(self._log.quantile(p, self._centre(a, b), b))

    def log_density(self, y: Array, a: Array, b: Array) -> Array:
        """That of the logarithm − log y."""
        log = np.log(np.maximum(y, 0))
        inside = self._log.log_density(log, self._centre(a, b), b) - log
        return np.where(np.isnan(self.mean(a, b)), np.nan, np.where(y > 0, inside, -np.inf))

    def sample(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """The exponential of a normal value."""
        return np.exp(self._log.sample(self._centre(a, b), b, rng))

    @staticmethod
    def _centre(a: Array, b: Array) -> Array:
        return np.where(a > 0, np.log(np.where(a > 0, a, 1)), np.nan) - b**2 / 2


class Exp:
    """Mean a."""

    page = PageFormulas(
        "a",
        ["*", ["-", "a"], ["log", ["-", 1, ["normal", "z"]]]],
        ["*", [">", "y", 0], ["-", 1, ["exp", ["/", ["-", "y"], "a"]]]],
        ["*", [">=", "y", 0], ["/", ["exp", ["/", ["-", "y"], "a"]], "a"]],
    )

    def mean(self, a: Array, b: Array) -> Array:
        """The mean."""
        return np.where(a >= 0, a, np.nan)

    def cdf(self, y: Array, a: Array, b: Array) -> Array:
        """1 − exp(−y/a), 0 below 0."""
        inside = np.where(a == 0, 1.0, -np.expm1(-y / a))
        return np.where(a >= 0, np.where(y >= 0, inside, 0.0), np.nan)

    def quantile(self, p: Array, a: Array, b: Array) -> Array:
        """−a·log(1 − p)."""
        return np.where(a > 0, -a * np.log1p(-p), np.where(a == 0, 0 * p, np.nan))

    def log_density(self, y: Array, a: Array, b: Array) -> Array:
        """−y/a − log a, −∞ below 0."""
        inside = np.where(a == 0, np.where(y == 0, np.inf, -np.inf), -y / a - np.log(a))
        return np.where(a >= 0, np.where(y >= 0, inside, -np.inf), np.nan)

    def sample(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """The mean times a standard exponential value."""
        return np.where(a >= 0, a * rng.standard_exponential(a.shape), np.nan)


class Binom:
    """a trials (rounded to a whole number), each with probability b."""

    page = _normal_formulas(["*", "a", "b"], ["sqrt", ["max", ["*", ["*", "a", "b"], ["-", 1, "b"]], 1e-12]])
    """Those of the normal distribution with the same mean and deviation."""

    def mean(self, a: Array, b: Array) -> Array:
        """Trials times probability."""
        return np.where((a >= 0) & (b >= 0) & (b <= 1), np.round(a) * b, np.nan)

    def cdf(self, y: Array, a: Array, b: Array) -> Array:
        """I₁₋ᵦ(n − k, k + 1), the regularised incomplete beta function."""
        n, k = np.round(a), np.floor(y)
        inside = special.betainc(np.maximum(n - k, 1), np.maximum(k, 0) + 1, 1 - b)
        return np.where(np.isnan(self.mean(a, b)), np.nan, np.where(k < 0, 0.0, np.where(k >= n, 1.0, inside)))

    def quantile(self, p: Array, a: Array, b: Array) -> Array:
        """The smallest whole number that suffices, by bisection."""
        n = np.round(a)
        low, high = np.full(np.broadcast_shapes(p.shape, n.shape), -1.0), n + 0 * p
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            if np.all((middle <= low) | (middle >= high)):  # beyond 2^53 whole numbers have no successors
                break
            enough = self.cdf(middle, n, b) >= p
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(np.isnan(self.mean(a, b)) | np.isnan(p), np.nan, high)

    def log_density(self, y: Array, a: Array, b: Array) -> Array:
        """Logarithm of the binomial probability; −∞ between whole numbers."""
        n = np.round(a)
        k = np.clip(y, 0, n)
        choices = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        inside = choices + special.xlogy(k, b) + special.xlog1py(n - k, -b)
        possible = (y >= 0) & (y <= n) & (y == np.floor(y))
        return np.where(np.isnan(self.mean(a, b)), np.nan, np.where(possible, inside, -np.inf))

    def sample(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """Whole numbers."""
        bad = np.isnan(self.mean(a, b)) | ~np.isfinite(a)
        n, p = np.where(bad, 0, np.round(a)), np.where(bad, 0, b)
        many = n > _NORMAL_LIMIT
        drawn = np.asarray(rng.binomial(np.where(many, 0, n).astype(np.int64), p), dtype=float)
        about = np.round(n * p + np.sqrt(n * p * (1 - p)) * rng.standard_normal(a.shape))
        return np.where(bad, np.nan, np.where(many, np.clip(about, 0, n), drawn))


FAMILIES: dict[str, Formulas] = {"Norm": Norm(), "LogNorm": LogNorm(), "Exp": Exp(), "Binom": Binom()}
"""Every distribution by its name in the language."""
Law = ast.Distribution | ast.Clause
"""What the functions here take; of a clause the condition is not looked at."""
ONE_SIGMA = (0.15865525, 0.84134475)
"""Between these quantiles a normal distribution is within one standard deviation."""
_STEPS = 200
"""Halvings of a mixture's quantile: they reach neighbouring floats from any interval that starts finite."""
_Method = Callable[[Formulas, Array, Array], Array]


def mean(law: Law, values: Values) -> Array:
    """Expected cost, of the shape of the values.

    >>> from perflaw.laws.reading import parse_distribution
    >>> mean(parse_distribution("Norm(2*n + 1, 3)"), {"n": [1.0, 10.0]})
    array([ 3., 21.])
    """
    return _weighted(law, values, lambda one, a, b: one.mean(a, b))


def cdf(law: Law, y: ArrayLike, values: Values) -> Array:
    """Probability of a cost of at most y.

    >>> from perflaw.laws.reading import parse_distribution
    >>> cdf(parse_distribution("Exp(10)"), [0.0, 10.0], {}).round(3)
    array([0.   , 0.632])
    """
    at = np.asarray(y, dtype=float)
    return _weighted(law, values, lambda one, a, b: one.cdf(at, a, b))


def cdf_at(law: Law, values: Values) -> Callable[[Array], Array]:
    """The same as a function of y alone: the law's parameters are computed once."""
    with np.errstate(all="ignore"):
        parts = [
            (weight, FAMILIES[part.distribution.name], _parameters(part.distribution, values))
            for weight, part in zip(_weights(_parts(law)), _parts(law), strict=True)
        ]
        each = [(weight, _below(family, a, b)) for weight, family, (a, b) in parts]
    return each[0][1] if len(each) == 1 else lambda y: np.asarray(sum(weight * below(y) for weight, below in each))


def _below(family: Formulas, a: Array, b: Array) -> Callable[[Array], Array]:
    """``family.cdf`` of y alone; what the parameters determine is computed once."""
    if isinstance(family, Norm) and (b > 0).all():
        return lambda y: np.asarray(special.ndtr((y - a) / b))
    if isinstance(family, LogNorm) and (a > 0).all() and (b > 0).all():
        centre = np.log(a) - b**2 / 2
        return lambda y: np.asarray(special.ndtr((np.log(np.maximum(y, 0)) - centre) / b))
    return lambda y: family.cdf(y, a, b)


def scatter(law: Law, values: Values) -> Array:
    """How far costs lie about their mean: half of what the middle 68 % span; of a mixture, within its parts.

    >>> from perflaw.laws.reading import parse_distribution
    >>> round(float(scatter(parse_distribution("Norm(100, 10)"), {})), 1)
    10.0
    """

    def mean_quantile(p: float) -> Array:
        return _weighted(law, values, lambda family, a, b: family.quantile(np.asarray(p), a, b))

    low, high = map(mean_quantile, ONE_SIGMA)
    return np.asarray((high - low) / 2.0)


def quantile(law: Law, p: ArrayLike, values: Values) -> Array:
    """The smallest cost with at least probability p below or at it; NaN where p is no probability.

    >>> from perflaw.laws.reading import parse_distribution
    >>> quantile(parse_distribution("Norm(100, 10)"), [0.5, 0.975], {}).round(1)
    array([100. , 119.6])
    """
    wanted = np.asarray(p, dtype=float)
    wanted = np.where((wanted >= 0) & (wanted <= 1), wanted, np.nan)
    parts = _parts(law)
    with np.errstate(all="ignore"):
        each = [_of(part.distribution, values, lambda one, a, b: one.quantile(wanted, a, b)) for part in parts]
        if len(parts) == 1:
            return each[0]
        # Bisection finds the smallest y with below(y) >= p between the quantiles of the parts, which enclose it.
        low, high = np.minimum.reduce(each), np.maximum.reduce(each)
        below = partial(cdf, law, values=values)
        enough = below(low) >= wanted
        low, high = np.where(enough, np.nextafter(low, -np.inf), low), np.where(enough, low, high)
        for _ in range(_STEPS):
            middle = low + (high - low) / 2
            if np.all((middle <= low) | (middle >= high) | ~np.isfinite(middle)):
                break
            enough = below(middle) >= wanted
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high


def log_density(law: Law, y: ArrayLike, values: Values) -> Array:
    """Logarithm of the density at y (of the probability, for ``Binom``).

    >>> from perflaw.laws.reading import parse_distribution
    >>> log_density(parse_distribution("Exp(1)"), 2.0, {})
    array(-2.)
    """
    at = np.asarray(y, dtype=float)
    parts = _parts(law)
    with np.errstate(all="ignore"):
        each = [_of(part.distribution, values, lambda one, a, b: one.log_density(at, a, b)) for part in parts]
        logs = [np.log(weight) + one for weight, one in zip(_weights(parts), each, strict=True)]
        return np.asarray(np.logaddexp.reduce(logs)) if len(logs) > 1 else each[0]


def sample(law: Law, values: Values, rng: np.random.Generator) -> Array:
    """One cost for each value.

    >>> from perflaw.laws.reading import parse_distribution
    >>> sample(parse_distribution("Exp(n)"), {"n": [0.0, 0.0]}, np.random.default_rng(1))
    array([0., 0.])
    """
    parts = _parts(law)
    with np.errstate(all="ignore"):
        each = [_of(part.distribution, values, lambda one, a, b: one.sample(a, b, rng)) for part in parts]
    if len(parts) == 1:
        return each[0]
    chosen = rng.choice(len(parts), size=shape_of(values), p=_weights(parts))
    return (
        np.asarray(np.choose(chosen, each))
        if len(parts) < 30
        else np.take_along_axis(np.stack(each), np.asarray(chosen)[np.newaxis], axis=0)[0]
    )


def _parts(law: Law) -> tuple[ast.Part, ...]:
    return (ast.Part(1.0, law),) if isinstance(law, ast.Distribution) else law.parts


def _weights(parts: tuple[ast.Part, ...]) -> Array:
    """Probabilities that sum to 1 exactly."""
    weights = np.array([part.probability for part in parts])
    return np.asarray(weights / weights.sum())


def _weighted(law: Law, values: Values, method: _Method) -> Array:
    """The method's results of all parts, added up by their probabilities."""
    parts = _parts(law)
    with np.errstate(all="ignore"):
        each = [
            weight * _of(part.distribution, values, method) for weight, part in zip(_weights(parts), parts, strict=True)
        ]
    return np.asarray(np.sum(each, axis=0))


def _of(law: ast.Distribution, values: Values, method: _Method) -> Array:
    """The method of the law's family with its parameters at the values."""
    return np.asarray(method(FAMILIES[law.name], *_parameters(law, values)))


def _parameters(law: ast.Distribution, values: Values) -> tuple[Array, Array]:
    """The family's parameters at the values; one that has one alone gets it twice."""
    parameters = [evaluate(one, values).astype(float) for one in law.arguments]
    return parameters[0], parameters[-1]
