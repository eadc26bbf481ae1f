"""What a law says of costs: mean, probabilities, quantiles, density and samples, over arrays of features.

A law is a distribution, or a clause whose parts are a mixture. ``values`` are features (``evaluation.Values``); y and p
broadcast against them, results have the common shape. Costs are in the unit the law is written in (``units.factor``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from perflaw.language import ast
from perflaw.language.evaluation import Values, evaluate, shape_of
from perflaw.language.families import FAMILIES, Array, Formulas

Law = ast.Distribution | ast.Clause
"""What the functions here take; of a clause the condition is not looked at."""
ONE_SIGMA = (0.15865525, 0.84134475)
"""Between these quantiles a normal distribution is within one standard deviation."""
_STEPS = 200
"""Halvings of a mixture's quantile: they reach neighbouring floats from any interval that starts finite."""
_Method = Callable[[Formulas, Array, Array], Array]


def mean(law: Law, values: Values) -> Array:
    """Expected cost, of the shape of the values.

    >>> from perflaw.language import parse_distribution
    >>> mean(parse_distribution("Norm(2*n + 1, 3)"), {"n": [1.0, 10.0]})
    array([ 3., 21.])
    """
    return _weighted(law, values, lambda one, a, b: one.mean(a, b))


def cdf(law: Law, y: ArrayLike, values: Values) -> Array:
    """Probability of a cost of at most y.

    >>> from perflaw.language import parse_distribution
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
    return lambda y: np.asarray(sum(weight * family.cdf(y, a, b) for weight, family, (a, b) in parts))


def scatter(law: Law, values: Values) -> Array:
    """How far costs lie about their mean: half of what the middle 68 % span; of a mixture, within its parts.

    >>> from perflaw.language import parse_distribution
    >>> round(float(scatter(parse_distribution("Norm(100, 10)"), {})), 1)
    10.0
    """
    low, high = (_weighted(law, values, partial(_quantile_of, np.asarray(p))) for p in ONE_SIGMA)
    return np.asarray((high - low) / 2.0)


def _quantile_of(p: Array, family: Formulas, a: Array, b: Array) -> Array:
    return family.quantile(p, a, b)


def quantile(law: Law, p: ArrayLike, values: Values) -> Array:
    """The smallest cost with at least probability p below or at it; NaN where p is no probability.

    >>> from perflaw.language import parse_distribution
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
        return _bisected(partial(cdf, law, values=values), wanted, np.minimum.reduce(each), np.maximum.reduce(each))


def log_density(law: Law, y: ArrayLike, values: Values) -> Array:
    """Logarithm of the density at y (of the probability, for ``Binom``).

    >>> from perflaw.language import parse_distribution
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

    >>> from perflaw.language import parse_distribution
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


def _bisected(below: Callable[[Array], Array], p: Array, low: Array, high: Array) -> Array:
    """The smallest y with ``below(y) >= p`` between the quantiles of the parts, which enclose it."""
    enough = below(low) >= p
    low, high = np.where(enough, np.nextafter(low, -np.inf), low), np.where(enough, low, high)
    for _ in range(_STEPS):
        middle = low + (high - low) / 2
        if np.all((middle <= low) | (middle >= high) | ~np.isfinite(middle)):
            break
        enough = below(middle) >= p
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
