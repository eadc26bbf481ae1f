"""Local minima of densities, and Freud's own borders between modes: all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_POINTS, PAPER_GRID = 1000, 512
"""Points and places of the paper's density."""


def minima(height: Array) -> list[int]:
    """Places of local minima strictly inside, the middle of flat ones."""
    starts = np.flatnonzero(np.r_[True, np.diff(height) != 0])
    level = height[starts]
    ends = np.r_[starts[1:], height.size] - 1
    inner = np.flatnonzero((level[1:-1] < level[:-2]) & (level[1:-1] < level[2:])) + 1
    return [int(place) for place in (starts[inner] + ends[inner]) // 2]


def density_minima(y: Array) -> Array:
    """Freud's borders (§4.3), for ``--paper``: all local minima of a variable-bandwidth density of y, (k,).

    Bandwidths are Silverman's over the square root of a first density (Abramson 1982); no minimum is tested.
    """
    if y.size < 2 or np.ptp(y) == 0:
        return np.zeros(0)
    some = np.sort(y)[np.linspace(0, y.size - 1, min(y.size, MOST_POINTS)).astype(np.intp)]
    spread = np.subtract(*np.percentile(some, [75, 25])) / 1.349
    bandwidth = 0.9 * (min(float(some.std()), spread) or float(some.std())) * some.size**-0.2
    pilot = np.exp(-0.5 * ((some[:, None] - some) / bandwidth) ** 2).mean(axis=1)
    local = bandwidth / np.sqrt(pilot / np.exp(np.log(pilot).mean()))
    grid = np.linspace(some[0] - 2 * bandwidth, some[-1] + 2 * bandwidth, PAPER_GRID)
    height = (np.exp(-0.5 * ((grid[:, None] - some) / local) ** 2) / local).sum(axis=1)
    return grid[minima(height)]
