"""Responses as the surrogate takes them: on the logarithm where they allow it, standardized, greater is better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

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
