"""What every plausible law answers, whatever its kind: one feature, several, or segments of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from perflaw.learn.laws.band import Band
from perflaw.learn.laws.series import Array

Columns = Mapping[str, Array]
"""Values of features by name, (k,) each; at least one column, for laws without features take their k from it."""


class Asked(Protocol):
    """A law that can be asked for its mean and its intervals at k points."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features it depends on; empty for a constant."""

    def mean(self, at: Columns) -> Array:
        """Expected response, (k,), never negative; ``at`` has (at least) its features."""

    def band(self, at: Columns) -> Band:
        """Mean, its lower and upper limit, those of a new row; (k,) each, finite, none negative."""


def points(at: Columns) -> Array:
    """Zeros, one a point: what a law without features is asked at."""
    return np.zeros_like(next(iter(at.values())))
