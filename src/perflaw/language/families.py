"""The four distributions over arrays of parameters: formulas alone (SciPy's special functions, not ``scipy.stats``).

A parameter that a distribution cannot have (a negative deviation, a mean of 0 for ``LogNorm``) gives NaN. A deviation of
0 puts all probability on the mean. Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
_HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)
_NORMAL_LIMIT = 1e15
"""From this many trials on, ``Binom`` is sampled as the normal distribution that it then is."""


class Formulas(Protocol):
    """A distribution; ``a`` and ``b`` are its parameters (``b`` is ignored where it has one)."""

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
