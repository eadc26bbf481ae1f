"""Covariance of laws over knobs: a sum over knobs, pairs and triples of products of one-dimensional curves (ANOVA).

K = Σ zᵢ + w Σ zᵢzⱼ + w² Σ zᵢzⱼzₖ with zᵢ = vᵢ·kᵢ: on the logarithm of a metric a product of per-knob curves is the sum, and
what knobs do together is the rest (Durrande et al. 2013; Duvenaud, Nickisch, Rasmussen 2011). kᵢ is smooth (Matérn 5/2), rough
(exponential: cliffs), or equality (knobs without an order).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Curves:
    """Parameters of one covariance over d knobs; all positive."""

    shares: Array
    """Variance of each knob's own curve, (d,)."""
    lengths: Array
    """Over which part of its range a knob's curve bends, (d,)."""
    together: float
    """Weight of pairs against what the knobs' own curves have; its square that of triples."""
    noise: float
    """Variance of one trial about the law."""
    rough: bool
    """Whether curves may have cliffs."""


def distances(a: Array, b: Array, ordered: Mask) -> Array:
    """Return |a − b| by knob, (d, n, m), of points (n, d), (m, d) in the unit cube; 0 or 1 for knobs without an order.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]]), np.array([True, False])).ravel().tolist()
    [0.5, 1.0]
    """
    gaps = np.abs(a.T[:, :, None] - b.T[:, None, :])
    gaps[~ordered] = gaps[~ordered] > 1e-9
    return gaps


def covariance(gaps: Array, curves: Curves, ordered: Mask) -> Array:
    """Return the prior covariance (n, m) of the law at points with ``gaps`` (d, n, m)."""
    scaled = gaps / np.where(ordered, curves.lengths, 1.0)[:, None, None]
    if curves.rough:
        like = np.exp(-scaled)
    else:
        scaled *= 2.23606797749979
        like = (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)
    like[~ordered] = gaps[~ordered] == 0.0
    like *= curves.shares[:, None, None]
    return _powers(like, curves.together)


def _powers(z: Array, w: float) -> Array:
    """Elementary symmetric sums of first to third order by Newton's identities."""
    first = z.sum(axis=0)
    if z.shape[0] == 1:
        return np.asarray(first)
    square = z * z
    second = 0.5 * (first * first - square.sum(axis=0))
    if z.shape[0] == 2:
        return np.asarray(first + w * second)
    third = (first * second - first * square.sum(axis=0) + (square * z).sum(axis=0)) / 3.0
    return np.asarray(first + w * second + w * w * third)


def prior_variance(curves: Curves) -> float:
    """Return the prior variance of the law at any point."""
    return float(_powers(curves.shares[:, None], curves.together)[0])
