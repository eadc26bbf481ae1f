"""Quantiles of weighted samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def quantile(x: Floats, weight: Floats, p: float) -> float:
    """The least of the sorted ``x`` with at least the part ``p`` of all weight up to it.

    >>> quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    total = np.cumsum(weight)
    return float(x[min(int(np.searchsorted(total, p * total[-1] * (1 - 1e-12))), len(x) - 1)])
