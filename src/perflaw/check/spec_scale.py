"""How much faster or slower a platform is as a whole, so that specifications are held to relative terms (§3.4, end).

A machine under load, or another one, stretches all times alike. The factor is the one at which most groups of all
functions keep to their shares; a group that does not keep to them at any factor counts no more than a bounded amount,
so that one regression does not pass for a slow machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.histograms import cdf
from perflaw.types import Histogram

Array = NDArray[np.float64]

FACTORS = np.exp(np.linspace(-np.log(8.0), np.log(8.0), 175))
"""Factors tried, 2.4 % apart; the middle one is 1."""
BOUND = 0.3
"""A group deviates by no more than this, however far its shares are off."""
DOUBT_PER_TENTH = 0.02
"""What a factor of 1.1 costs, per group: where little speaks for a factor it is 1."""
FEWEST = 3
"""Groups from which on a common factor can be told from a regression, on a platform that is known."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One group of call paths, old and new."""

    below: tuple[float, ...]
    """Share of its calls below each border, as the specification says."""
    borders: tuple[float, ...]
    """The borders."""
    histogram: Histogram
    """Its new calls."""


def common_factor(units: Sequence[Unit], known: bool) -> float:
    """The factor for all of them; 1 where the platform is ``known`` and too few groups speak."""
    if not units or (known and len(units) < FEWEST):
        return 1.0
    loss = sum((np.minimum(_deviation(unit), BOUND) for unit in units), np.zeros(FACTORS.size))
    cost = DOUBT_PER_TENTH * np.abs(np.log(FACTORS)) / np.log(1.1)
    return float(FACTORS[int(np.argmin(loss + cost * len(units) * (1.0 if known else 0.05)))])


def _deviation(unit: Unit) -> Array:
    """Largest difference of the shares below a border, at each factor, (F,)."""
    places = np.multiply.outer(FACTORS, np.array(unit.borders))
    shares = cdf(unit.histogram, places.ravel()).reshape(places.shape)
    return np.asarray(np.abs(shares - np.array(unit.below)).max(axis=1))
