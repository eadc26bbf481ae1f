"""Matching of borders by the mass between them (Brünink & Rosenblum, FSE'16, Definition 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def matched(shares: ArrayLike, epsilon: float) -> NDArray[np.intp]:
    """Places of the borders that stay, (k,), given the shares F of the mass below each, increasing, (m,).

    Scanned from the left, the leftmost of those that match it is kept: no chains. A border with less than ε of the mass on
    one side is dropped.

    >>> matched([0.01, 0.3, 0.34, 0.38, 0.97], 0.05)
    array([1, 3])
    """
    share = np.asarray(shares, dtype=np.float64)
    kept: list[int] = []
    for place in np.flatnonzero((share >= epsilon) & (share <= 1.0 - epsilon)):
        if not kept or share[place] - share[kept[-1]] >= epsilon:
            kept.append(int(place))
    return np.array(kept, dtype=np.intp)
