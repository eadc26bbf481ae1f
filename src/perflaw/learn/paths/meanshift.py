"""Mean shift on a line, with a flat kernel (Comaniciu & Meer, IEEE PAMI 24, 2002): numbers that lie close together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_STEPS = 300
"""After so many a point has gone where it goes; it usually takes fewer than ten."""


def mean_shift(x: Array, bandwidth: float) -> NDArray[np.intp]:
    """Number of the cluster of every point, (n,), numbered from the left.

    Every point climbs to the mean of the points within the bandwidth of it, again and again. Of summits within the
    bandwidth of each other the one with the most points around it stays; a point belongs to the nearest that stays.

    >>> mean_shift(np.array([0.3, 0.7, 0.31, 0.29, 0.72]), 0.05)
    array([0, 1, 0, 0, 1])
    """
    if x.size == 0:
        return np.zeros(0, dtype=np.intp)
    line = np.sort(x)
    summits, crowd = _summits(line, bandwidth)
    stay: list[float] = []
    for place in np.lexsort((summits, -crowd)):
        if all(abs(summits[place] - other) > bandwidth for other in stay):
            stay.append(float(summits[place]))
    kept = np.sort(stay)
    return np.asarray(np.searchsorted((kept[1:] + kept[:-1]) / 2, x, side="right"))


def _summits(line: Array, bandwidth: float) -> tuple[Array, NDArray[np.intp]]:
    """Where points in order climb to, and how many points lie around there, (n,) each."""
    sums, here = np.r_[0.0, np.cumsum(line)], line
    for _ in range(MOST_STEPS):
        first, last = _around(line, here, bandwidth)
        there = (sums[last] - sums[first]) / (last - first)
        if np.abs(there - here).max() <= 1e-3 * bandwidth:
            break
        here = there
    first, last = _around(line, here, bandwidth)
    return here, last - first


def _around(line: Array, here: Array, bandwidth: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First point within the bandwidth and the one after the last, (n,) each; never none, whatever rounding does."""
    first = np.searchsorted(line, here - bandwidth, side="left")
    last = np.searchsorted(line, here + bandwidth, side="right")
    first = np.minimum(first, line.size - 1)
    return first, np.maximum(last, first + 1)
