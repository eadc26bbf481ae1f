"""The two noise models and their likelihoods on one scale.

Additive: y = μ + σε. Multiplicative: log y = log μ + σε, with the Jacobian −Σ log y in its likelihood, so that both
are densities of y itself and all laws compare whatever their noise. Floors of σ keep a perfect fit finite; both are
strictly equivariant to the unit of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflaw.learn.laws.series import Array

RELATIVE_FLOOR = 1e-8
"""σ is at least this part of the response: below it numbers are rounding, not measurement."""


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """How responses scatter: on which scale residuals are additive."""

    name: str
    """``normal`` or ``lognormal``."""

    @property
    def log(self) -> bool:
        """Residuals live on the log scale."""
        return self.name == "lognormal"

    def target(self, mean: Array) -> Array:
        """Responses or means on the scale of the residuals."""
        return np.log(mean) if self.log else mean

    def floor(self, y: Array, w: Array, quantum: Array) -> Array:
        """Smallest credible σ: y, w (B, n), quantum (B,) -> (B,); rounding to a grid has σ = quantum/√12."""
        count = w.sum(axis=-1)
        step = quantum / np.sqrt(12.0)
        if self.log:
            return np.asarray(np.maximum(step * np.sqrt((w / (y * y)).sum(axis=-1) / count), RELATIVE_FLOOR))
        # A response of zeros alone has no scale of its own; any positive floor does, for all laws fit it equally.
        size = RELATIVE_FLOOR * np.sqrt((w * y * y).sum(axis=-1) / count)
        return np.asarray(np.maximum(np.maximum(step, size), 1e-150))

    def deviance(self, rss: Array, floor: Array, count: Array, log_y: Array) -> Array:
        """−2 log likelihood of y at the best σ ≥ floor, up to a constant; all (B,), ``log_y`` is Σ log y."""
        variance = np.maximum(rss / count, floor**2)
        jacobian = 2.0 * log_y if self.log else 0.0
        return count * np.log(variance) + rss / variance + jacobian


NORMAL = NoiseModel("normal")
LOGNORMAL = NoiseModel("lognormal")
