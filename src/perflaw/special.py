"""Special functions, and tails and quantiles of the normal, Student, chi-square, F and beta distributions.

SciPy has them too. It is twice as large as everything else that perflaw installs, and importing a part of it takes longer
than learning the laws of a small recording. Names and arguments are SciPy's; its results are met to twelve digits, tails
included, from 10⁻³ to 10⁷ degrees of freedom (``tests/test_special.py``).

All tails are the regularized incomplete beta function

    I_x(a, b) = F·R,    F = xᵃ(1−x)ᵇ / B(a, b),

of which Student's t and F are special cases, and chi-square the limit of F. The factor F is computed from deviances, where
no large logarithms cancel (Loader 2000, "Fast and accurate computation of binomial probabilities"). R is a continued
fraction (DiDonato and Morris 1992, ACM TOMS 18, algorithm 708, eq. 9; Lentz's evaluation), which takes √a steps, or for
large parameters an integral over the logit of x, whose integrand is nearly exp(−s) or a bell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Real = Any
"""A float or an array: the formulas below are those of both, with the functions of ``_Floats`` or of ``_Arrays``."""
Kernel = Callable[..., Real]

_MANY: Final = 50.0
"""From these parameters on, both of them, R is an integral and not a continued fraction."""
_LIMIT: Final = 1e32
"""Degrees of freedom of the denominator with which F is chi-square, and of Student's t that is normal."""
_TINY: Final = 1e-308
_HALF_LOG_TAU: Final = 0.5 * math.log(2.0 * math.pi)
_CHUNK: Final = 4096
"""Integrals that are computed at once."""


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python's floats for the elements of an array (n,)."""
    return lambda values: np.fromiter(map(function, values.tolist()), np.float64, values.size)


class _Floats:
    """Functions of single numbers."""

    log, log1p, exp, sqrt, lgamma = math.log, math.log1p, math.exp, math.sqrt, math.lgamma
    least, most = min, max

    @staticmethod
    def where(condition: bool, one: float, other: float) -> float:
        return one if condition else other

    @staticmethod
    def all(condition: bool) -> bool:
        return condition

    @staticmethod
    def remainder(a: float, b: float, x: float, y: float, slope: float) -> float:
        if min(a, b) <= _MANY:
            return float(_continued_fraction(_Floats, a, b, x, y, slope))
        return float(_integral(*(np.array([value]) for value in (a, b, x, y, slope)))[0])


class _Arrays:
    """Functions of arrays (n,)."""

    log, log1p, exp, sqrt = np.log, np.log1p, np.exp, np.sqrt
    least, most, where, all = np.minimum, np.maximum, np.where, np.all
    lgamma = staticmethod(_each(math.lgamma))

    @staticmethod
    def remainder(*arguments: Array) -> Array:
        large = np.minimum(*arguments[:2]) > _MANY
        result = np.empty(large.size)
        if not large.all():
            result[~large] = _continued_fraction(_Arrays, *(values[~large] for values in arguments))
        places = np.flatnonzero(large)
        for start in range(0, places.size, _CHUNK):
            part = places[start : start + _CHUNK]
            result[part] = _integral(*(values[part] for values in arguments))
        return result


# ---- The incomplete beta function.


def _continued_fraction(m: Any, a: Real, b: Real, x: Real, y: Real, slope: Real) -> Real:
    """R by the continued fraction, for x up to about (a + 1)/(a + b + 2); ``y`` is 1 − x and ``slope`` a·y − b·x."""
    c = fraction = a * (slope + 1.0) / (a + 1.0)
    d, n = 0.0 * a, 0.0
    for _ in range(10_000):
        n += 1.0
        place = a + (2.0 * n - 1.0)
        share = n * (b - n) * x / place
        above = (a + (n - 1.0)) * (a + b + (n - 1.0)) * x / place * share
        below = n + share + (a + n) * (slope + 1.0 + n * (1.0 + y)) / (place + 2.0)
        d = 1.0 / (below + above * d)
        c = below + above / c
        fraction = fraction * (c * d)
        if m.all(abs(c * d - 1.0) < 4e-16):
            break
    return 1.0 / fraction


@cache
def _nodes() -> tuple[Array, Array]:
    """Nodes and weights (72,) of Gauss and Legendre on [0, 10] and [10, 40]."""
    from numpy.polynomial.legendre import leggauss

    (first, weight), (second, far) = leggauss(40), leggauss(32)
    return np.concatenate([5.0 + 5.0 * first, 25.0 + 15.0 * second]), np.concatenate([5.0 * weight, 15.0 * far])


def _integral(a: Array, b: Array, x: Array, y: Array, slope: Array) -> Array:
    """R (n,) as ∫₀^∞ exp(−slope·s − (a + b)·ρ(s)) ds, where logit x − s runs over the tail; for x up to a/(a + b).

    ρ is the cumulant generating function of a binary variable with mean x, without its linear term. Where s is small, it is
    the sum of its first cumulants.
    """
    nodes, weights = _nodes()
    n, p = a + b, np.minimum(x, y)[:, None]
    scale = 1.0 / (slope + np.sqrt(n * x * y))
    s = scale[:, None] * nodes
    signed = np.where((x <= y)[:, None], -s, s)
    w, skew = p * (1.0 - p), 1.0 - 2.0 * p
    cumulants = (
        1.0,
        skew,
        1.0 - 6.0 * w,
        skew * (1.0 - 12.0 * w),
        1.0 - w * (30.0 - 120.0 * w),
        skew * (1.0 - w * (60.0 - 360.0 * w)),
        1.0 - w * (126.0 - w * (1680.0 - 5040.0 * w)),
    )
    rest: Array = np.zeros_like(s)
    for order in range(8, 1, -1):
        rest = (rest * signed / (order + 1)) + cumulants[order - 2]
    small = 0.5 * w * signed**2 * rest
    rho = np.where(s < 0.03, small, np.log1p(p * np.expm1(signed)) - p * signed)
    return np.asarray(np.exp(-slope[:, None] * s - n[:, None] * rho) @ weights * scale)


def _excess(m: Any, r: Real, ratio: Real) -> Real:
    """The difference r − log(1 + r), where ``ratio`` is 1 + r."""
    near = abs(r) < 0.3
    close = m.where(near, r, 0.0)
    v = close / (2.0 + close)
    v2 = v * v
    series = 1.0 / 23.0
    for odd in range(21, 1, -2):
        series = series * v2 + 1.0 / odd
    return m.where(near, close * v - 2.0 * v * v2 * series, r - m.log(ratio))


def _stirling_error(m: Any, z: Real) -> Real:
    """The logarithm of Γ(z) less Stirling's formula for it, (z − ½) log z − z + ½ log 2π."""
    far = z >= 10.0
    large, small = m.where(far, z, 10.0), m.where(far, 10.0, z)
    w = 1.0 / (large * large)
    series = (
        1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * (691 / 360360 - w / 156)))))
    ) / large
    return m.where(far, series, m.lgamma(small) - (small - 0.5) * m.log(small) + small - _HALF_LOG_TAU)


def _log_factor(m: Any, a: Real, b: Real, x: Real, y: Real, slope: Real) -> Real:
    """The logarithm of F."""
    n = a + b
    errors = _stirling_error(m, n) - _stirling_error(m, a) - _stirling_error(m, b)
    deviance = a * _excess(m, -slope / a, n * x / a) + b * _excess(m, slope / b, n * y / b)
    return errors - deviance + 0.5 * m.log(a / n * b) - _HALF_LOG_TAU


def _parts(m: Any, a: Real, b: Real, x: Real, y: Real) -> tuple[Real, Real, Real]:
    """Whether the tail is the upper one (the other is 1 less it), log F, and R; a, b > 0, x and y = 1 − x in (0, 1)."""
    x, y = m.most(x, _TINY), m.most(y, _TINY)
    slope = a * y - b * x
    upper = m.where(m.least(a, b) > _MANY, slope < 0.0, slope + 0.75 * (y - x) < 0.0)
    ends = (m.where(upper, b, a), m.where(upper, a, b), m.where(upper, y, x), m.where(upper, x, y))
    return upper, _log_factor(m, a, b, x, y, slope), m.remainder(*ends, m.where(upper, -slope, slope))


def _tails(m: Any, a: Real, b: Real, x: Real, y: Real) -> tuple[Real, Real]:
    """I_x(a, b) and 1 − I_x(a, b), both accurate."""
    upper, log_factor, remainder = _parts(m, a, b, x, y)
    tail = m.least(m.exp(log_factor) * remainder, 1.0)
    return m.where(upper, 1.0 - tail, tail), m.where(upper, tail, 1.0 - tail)


def _logit_of(a: float, b: float, lower: float, upper: float) -> float:
    """The logit of x at which I_x(a, b) is ``lower``; ``upper`` is 1 − ``lower``, both in (0, 1).

    Halley's method for the logarithm of the smaller tail, a concave function of the logit, from the normal distribution's
    quantile (Abramowitz and Stegun 1964, 26.2.22). A step that leaves the bracket, or after one that helped little, halves it.
    """
    if upper < lower:
        return -_logit_of(b, a, upper, lower)
    log_p = math.log(lower)
    z = math.sqrt(-2.0 * log_p)
    z = (2.30753 + 0.27061 * z) / (1.0 + z * (0.99229 + 0.04481 * z)) - z
    u = math.log(a / b) + z * math.sqrt(1.0 / a + 1.0 / b)
    least, most, before = -math.inf, math.inf, math.inf
    for _ in range(200):
        held = min(max(u, -700.0), 700.0)  # beyond that, the tails are powers of x and y
        x, y = 1.0 / (1.0 + math.exp(-held)), 1.0 / (1.0 + math.exp(held))
        beyond, log_factor, remainder = _parts(_Floats, a, b, x, y)
        log_factor += (a if u < 0.0 else -b) * (u - held)
        log_tail, inverse_slope = log_factor + math.log(remainder), remainder
        if beyond:
            log_tail = math.log1p(-min(math.exp(log_tail), 1.0 - 1e-16))
            inverse_slope = math.exp(min(log_tail - log_factor, 700.0))
        error = log_tail - log_p
        least, most = (u, most) if error < 0.0 else (least, u)
        curving = 1.0 - 0.5 * error * ((a * y - b * x) * inverse_slope - 1.0)
        following = u - error * inverse_slope / min(max(curving, 0.5), 2.0)
        if abs(error) < 1e-5:  # the next one is below rounding
            return float(following)
        poor = not least < following < most or abs(error) > 0.5 * before
        u = 0.5 * (least + most) if poor and most - least < math.inf else following
        before = abs(error)
    return u


def _logits_of(a: Array, b: Array, lower: Array, upper: Array) -> Array:
    """:func:`_logit_of` of arrays (n,), by the same steps; those that have ended are left out of the next ones."""
    swapped = upper < lower
    a, b, log_p = np.where(swapped, b, a), np.where(swapped, a, b), np.log(np.where(swapped, upper, lower))
    z = np.sqrt(-2.0 * log_p)
    z = (2.30753 + 0.27061 * z) / (1.0 + z * (0.99229 + 0.04481 * z)) - z
    u = np.log(a / b) + z * np.sqrt(1.0 / a + 1.0 / b)
    least, most, before = np.full(u.size, -np.inf), np.full(u.size, np.inf), np.full(u.size, np.inf)
    left = np.arange(u.size)
    for _ in range(200):
        of_a, of_b, at = a[left], b[left], u[left]
        held = np.clip(at, -700.0, 700.0)  # beyond that, the tails are powers of x and y
        x, y = 1.0 / (1.0 + np.exp(-held)), 1.0 / (1.0 + np.exp(held))
        beyond, log_factor, remainder = _parts(_Arrays, of_a, of_b, x, y)
        log_factor = log_factor + np.where(at < 0.0, of_a, -of_b) * (at - held)
        log_tail = log_factor + np.log(remainder)
        log_tail = np.where(beyond, np.log1p(-np.minimum(np.exp(log_tail), 1.0 - 1e-16)), log_tail)
        inverse_slope = np.where(beyond, np.exp(np.minimum(log_tail - log_factor, 700.0)), remainder)
        error = log_tail - log_p[left]
        least[left], most[left] = np.where(error < 0.0, at, least[left]), np.where(error < 0.0, most[left], at)
        curving = 1.0 - 0.5 * error * ((of_a * y - of_b * x) * inverse_slope - 1.0)
        following = at - error * inverse_slope / np.clip(curving, 0.5, 2.0)
        ended = np.abs(error) < 1e-5  # the next one is below rounding
        low, high = least[left], most[left]
        poor = ~((low < following) & (following < high)) | (np.abs(error) > 0.5 * before[left])
        halved = poor & ~ended & (high - low < np.inf)
        u[left] = np.where(halved, 0.5 * (low + high), following)
        before[left] = np.abs(error)
        left = left[~ended]
        if not left.size:
            break
    return np.where(swapped, -u, u)


# ---- Functions of numbers and arrays.

_FEW: Final = 30
"""Up to this size, the elements of an array are computed one after the other, which is as fast."""


def _elements(function: Callable[..., float], *arrays: ArrayLike) -> Any:
    """A function of Python's floats for each element of arrays that broadcast, or for numbers."""
    if not any(map(np.ndim, arrays)):
        return np.float64(function(*map(float, arrays)))  # type: ignore[arg-type]  # map does not know that they are numbers
    values = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in arrays))
    result = np.fromiter(map(function, *(one.ravel().tolist() for one in values)), np.float64, values[0].size)
    return result.reshape(values[0].shape)


def _function(kernel: Kernel, inside: Callable[..., Any], edge: Callable[..., Any], vectorised: bool = True) -> Kernel:
    """A function over numbers and arrays that broadcast, from its formula.

    Where its arguments are not ``inside``, it has the values of ``edge``, which is called with arrays; NaN stays NaN. Single
    numbers are kept, because learners ask for the same ones often.
    """

    @lru_cache(maxsize=4096)
    def of_numbers(*numbers: float) -> float:
        return float(kernel(_Floats, *numbers) if inside(*numbers) else edge(*map(np.float64, numbers)))

    def function(*arguments: ArrayLike) -> Any:
        if not vectorised or max(map(np.size, arguments)) <= _FEW:
            return _elements(of_numbers, *arguments)
        arrays = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in arguments))
        flat = [one.ravel() for one in arrays]
        fine = np.asarray(inside(*flat))
        result = np.empty(fine.size)
        with np.errstate(all="ignore"):
            if not fine.all():
                result[~fine] = edge(*(one[~fine] for one in flat))
            if fine.any():
                result[fine] = kernel(_Arrays, *(one[fine] for one in flat))
        return result.reshape(arrays[0].shape)

    return function


def _betainc(m: Any, a: Real, b: Real, x: Real) -> Real:
    return _tails(m, a, b, x, 1.0 - x)[0]


def _betaincinv(m: Any, a: Real, b: Real, p: Real) -> Real:
    if m is _Arrays:
        logits = _logits_of(a, b, p, 1.0 - p)
        return np.where(logits > -700.0, 1.0 / (1.0 + np.exp(-logits)), np.exp(logits))
    u = _logit_of(a, b, p, 1.0 - p)
    return 1.0 / (1.0 + math.exp(-u)) if u > -700.0 else math.exp(u)


def _fdtrc(m: Any, dfn: Real, dfd: Real, x: Real) -> Real:
    odds = dfn / dfd * x
    return _tails(m, 0.5 * dfn, 0.5 * dfd, odds / (1.0 + odds), 1.0 / (1.0 + odds))[1]


def _chdtrc(m: Any, v: Real, x: Real) -> Real:
    small = m.least(0.5 * x / _LIMIT, 0.5)
    return _tails(m, 0.5 * v, _LIMIT + 0.0 * v, small, 1.0 - small)[1]


def _chdtri(m: Any, v: float, p: float) -> float:
    return 2.0 * math.exp(_logit_of(0.5 * v, _LIMIT, 1.0 - p, p) + math.log(_LIMIT))


def _stdtr(m: Any, df: Real, t: Real) -> Real:
    df = m.least(df, _LIMIT)
    odds = (t / df) * t
    tail = 0.5 * _tails(m, 0.5 * df, 0.5 + 0.0 * df, 1.0 / (1.0 + odds), odds / (1.0 + odds))[0]
    return m.where(t < 0.0, tail, 1.0 - tail)


def _stdtrit(m: Any, df: float, p: float) -> float:
    df, tail = min(df, _LIMIT), min(p, 1.0 - p)
    u = _logit_of(0.5 * df, 0.5, 2.0 * tail, 1.0 - 2.0 * tail)
    t = math.sqrt(df) * math.exp(-0.5 * u) if u > -1400.0 else math.inf
    return math.copysign(t, p - 0.5)


def _finite(*values: Real) -> Any:
    """Whether all are positive and finite."""
    fine = True
    for value in values:
        fine = fine & (value > 0.0) & (value < math.inf)
    return fine


def _choose(*cases: tuple[Any, Any]) -> Any:
    """The value of the first case that holds; NaN if none does."""
    return np.select([condition for condition, _ in cases], [value for _, value in cases], np.nan)


betainc = _function(
    _betainc,
    lambda a, b, x: _finite(a, b) & (x > 0.0) & (x < 1.0),
    lambda a, b, x: _choose(
        ((a < 0) | (b < 0) | (x < 0) | (x > 1) | np.isnan(a + b + x) | ((a == 0) & (b == 0)), np.nan),
        ((x == 0) | (a == np.inf), 0.0),
        ((x == 1) | (b == np.inf) | (a == 0), 1.0),
        (b == 0, 0.0),
    ),
)
betaincinv = _function(
    _betaincinv,
    lambda a, b, p: _finite(a, b) & (p > 0.0) & (p < 1.0),
    lambda a, b, p: np.where(_finite(a, b) & ((p == 0) | (p == 1)), p, np.nan),
)
fdtrc = _function(
    _fdtrc,
    lambda dfn, dfd, x: _finite(dfn, dfd, x),
    lambda dfn, dfd, x: np.where(_finite(dfn, dfd), _choose((x == 0, 1.0), (x == np.inf, 0.0)), np.nan),
)
chdtrc = _function(
    _chdtrc,
    lambda v, x: _finite(v, x),
    lambda v, x: np.where((v >= 0) & (x >= 0), np.where((x == np.inf) | ((v == 0) & (x > 0)), 0.0, 1.0), np.nan),
)
chdtri = _function(
    _chdtri,
    lambda v, p: _finite(v) & (p > 0.0) & (p < 1.0),
    lambda v, p: np.where(_finite(v), _choose((p == 0, np.inf), (p == 1, 0.0)), np.nan),
    vectorised=False,
)
stdtr = _function(
    _stdtr,
    lambda df, t: (df > 0.0) & (t != 0.0) & (abs(t) < math.inf),
    lambda df, t: np.where(df > 0, _choose((t == 0, 0.5), (t == np.inf, 1.0), (t == -np.inf, 0.0)), np.nan),
)
stdtrit = _function(
    _stdtrit,
    lambda df, p: (df > 0.0) & (p > 0.0) & (p < 1.0) & (p != 0.5),
    lambda df, p: np.where(df > 0, _choose((p == 0.5, 0.0), (p == 0, -np.inf), (p == 1, np.inf)), np.nan),
    vectorised=False,
)


# ---- The normal distribution, logarithms, and derivatives of the gamma function.


def ndtr(x: ArrayLike) -> Any:
    """P(Z ≤ x) of the standard normal distribution.

    >>> round(float(ndtr(1.96)), 4)
    0.975
    """
    return 0.5 * _elements(math.erfc, np.multiply(x, -math.sqrt(0.5)))


def ndtri(p: ArrayLike) -> Any:
    """The standard normal distribution's quantile at p (Wichura 1988, algorithm AS 241, in Python's ``statistics``).

    >>> round(float(ndtri(0.975)), 3)
    1.96
    """
    from statistics import NormalDist  # with the fractions and decimals that it imports, it costs more than its use

    inverse = NormalDist().inv_cdf

    def quantile(p: float) -> float:
        if 0.0 < p < 1.0:
            return inverse(p)
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)

    return _elements(quantile, p)


def gammaln(x: ArrayLike) -> Any:
    """The logarithm of |Γ(x)|, infinite at 0 and at negative whole numbers; near its zeros, 1 and 2, to 10⁻¹⁵ absolutely."""
    return _elements(_lgamma, x)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def expit(x: ArrayLike) -> Any:
    """The logistic function 1/(1 + exp(−x)), without overflow.

    >>> expit(0.0).item(), expit(-1000.0).item()
    (0.5, 0.0)
    """
    small = np.exp(-np.abs(x))
    return np.where(np.less(x, 0.0), small, 1.0) / (1.0 + small)


def xlogy(x: ArrayLike, y: ArrayLike) -> Any:
    """x·log y, and 0 where x is 0, whatever y is; NaN stays NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(x, 0.0) & ~np.isnan(y), 0.0, np.multiply(x, np.log(y)))[()]


def xlog1py(x: ArrayLike, y: ArrayLike) -> Any:
    """x·log(1 + y), and 0 where x is 0, whatever y is; NaN stays NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(x, 0.0) & ~np.isnan(y), 0.0, np.multiply(x, np.log1p(y)))[()]


def digamma(x: ArrayLike) -> Any:
    """The derivative of log Γ at positive x: its asymptotic series from 10 on, and the recurrence below (DLMF 5.11.2, 5.5.2).

    >>> round(float(digamma(1.0)), 6)
    -0.577216
    """
    large, less = _from_ten(np.asarray(x, dtype=np.float64), 1)
    w = 1.0 / large**2
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12))))))
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.log(large) - 0.5 / large - series - less)[()]


def trigamma(x: ArrayLike) -> Any:
    """The second derivative of log Γ at positive x, computed likewise (DLMF 5.15.8, 5.15.5).

    >>> round(float(trigamma(1.0)), 6)
    1.644934
    """
    large, more = _from_ten(np.asarray(x, dtype=np.float64), 2)
    w = 1.0 / large**2
    series = 1 / 6 - w * (1 / 30 - w * (1 / 42 - w * (1 / 30 - w * (5 / 66 - w * (691 / 2730 - w * 7 / 6)))))
    return (1.0 / large + 0.5 * w + series * w / large + more)[()]


def _from_ten(x: Array, power: int) -> tuple[Array, Array]:
    """The sum x + k that is at least 10, and Σ 1/(x + i)ᵖ over i < k; NaN for negative x."""
    x = np.where(x < 0.0, np.nan, x)
    total = np.zeros(x.shape)
    with np.errstate(divide="ignore"):
        for _ in range(10):
            small = x < 10.0
            total = np.where(small, total + 1.0 / x**power, total)
            x = np.where(small, x + 1.0, x)
    return x, total
