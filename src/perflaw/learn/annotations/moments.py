"""Sums over records from which every simple law on every part of them is fitted: one basis, or a constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLAT = 1e-9
"""A basis varies in a part if it does so by more than this share of its square there."""


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """The best simple law on each of C parts, for each of R responses."""

    rss: Array
    """Weighted residual sum of squares, (C, R)."""
    parameters: Array
    """Parameters of the mean, (C, R): 1 or 2."""
    basis: NDArray[np.intp]
    """Number of the basis, −1 for a constant, (C, R)."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weighted products of n records: their sums over any part give its fits."""

    products: Array
    """(n, 1 + 2R + 2K + K·R)."""
    responses: int
    """R."""
    bases: int
    """K."""

    def sums(self, order: NDArray[np.intp], starts: NDArray[np.intp]) -> Array:
        """Sums over consecutive parts of the records in an order, (len(starts), …)."""
        return np.add.reduceat(self.products.take(order, axis=0), starts, axis=0)

    def fits(self, sums: Array, worth: float) -> Fits:
        """Best laws of parts from their sums (C, …); ``worth``: independent records a unit of weight."""
        r, k = self.responses, self.bases
        ends = np.cumsum([1, r, r, k, k])
        weight, y, yy, g, gg, gy = np.split(sums, ends, axis=1)
        weight = np.maximum(weight, 1e-12)
        spread = np.maximum(yy - y * y / weight, 0.0)
        if k == 0:
            return Fits(spread, np.ones_like(spread), np.full(spread.shape, -1))
        among = gg - g * g / weight
        usable = among > FLAT * np.maximum(gg, 1e-300)
        gained = gy.reshape(-1, k, r) - g[:, :, None] * y[:, None, :] / weight[:, :, None]
        gained = np.square(gained, out=gained)
        gained /= np.where(usable, among, np.inf)[:, :, None]
        best = gained.argmax(axis=1)
        rest = np.maximum(spread - np.take_along_axis(gained, best[:, None, :], axis=1)[:, 0], 0.0)
        count = np.maximum(weight * worth, 2.0)
        floor = 1e-12 * np.maximum(yy, 1e-300)
        better = count * np.log((spread + floor) / (rest + floor)) > np.log(count)
        return Fits(np.where(better, rest, spread), np.where(better, 2.0, 1.0), np.where(better, best, -1))


def moments_of(responses: Array, bases: Array, weight: Array) -> Moments:
    """Moments of responses (R, n) and bases (K, n) with weights (n,); both are best of mean 0 and size 1."""
    r, k = len(responses), len(bases)
    weighted, weighted_bases = weight * responses, weight * bases
    products = np.concatenate(
        [
            weight[None],
            weighted,
            weighted * responses,
            weighted_bases,
            weighted_bases * bases,
            (bases[:, None, :] * weighted[None, :, :]).reshape(k * r, weight.size),
        ]
    )
    return Moments(np.ascontiguousarray(products.T), r, k)


def standard(rows: Array, weight: Array) -> tuple[Array, Array]:
    """Rows (k, n) with weighted mean 0 and size 1, and the sizes (k,); rows that do not vary become 0."""
    total = weight.sum()
    centred = rows - (rows @ weight / total)[:, None]
    size = np.sqrt((centred**2) @ weight / total)
    flat = size <= 1e-12 * np.abs(rows).max(axis=1, initial=0.0)
    size = np.where(flat, 1.0, size)
    return np.where(flat[:, None], 0.0, centred / size[:, None]), size
