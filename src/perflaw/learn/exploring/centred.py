"""Kernels of one knob that average to 0 over its levels, and their sum over knobs, pairs of them, and all the rest.

The parts of a Gaussian process with such a kernel are the parts of its functional ANOVA (Durrande et al. 2013, "ANOVA
kernels"; Lu et al. 2022): what one knob does on average, what two do beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from perflaw.learn.exploring.spaces import Array

STEP = 1e-4
"""Change of a logarithm that derivatives after length scales are taken by."""
CONSTANT = 4.0
"""Prior variance of the mean, in variances of the responses."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A knob as the kernel sees it."""

    name: str
    """Its name."""
    levels: Array
    """(L,) places of its levels in 0 to 1."""
    ordered: bool
    """Whether near places are alike; else only equal ones are."""

    def raw(self, a: Array, b: Array, length: float) -> Array:
        """Matérn 5/2 of the distance, (n, m); of settings without order 1 where they are equal."""
        distance = np.abs(a[:, None] - b[None, :])
        if not self.ordered:
            return (distance < 1e-9).astype(np.float64)
        scaled = np.sqrt(5.0) * distance / length
        return np.asarray((1 + scaled + scaled**2 / 3) * np.exp(-scaled))

    def kernel(self, a: Array, b: Array, length: float) -> Array:
        """Centred over the levels and of mean variance 1 there, (n, m)."""
        among = self.raw(self.levels, self.levels, length)
        means, whole = among.mean(axis=0), among.mean()
        left, right = (self.raw(at, self.levels, length).mean(axis=1) for at in (a, b))
        size = float(np.mean(np.diag(among) - means**2 / whole))
        return np.asarray((self.raw(a, b, length) - np.outer(left, right) / whole) / max(size, 1e-9))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Hyperparameters of a kernel: variances in variances of the responses, lengths in the unit cube."""

    lengths: Array
    """(D,) length scales."""
    mains: Array
    """(D,) variance of what each knob does alone."""
    pairs: Array
    """(P,) variance of each interaction, in the order of ``combinations``."""
    rest: float
    """Variance of what takes three knobs or more."""
    noise: float
    """Variance of a single trial."""

    @classmethod
    def unpacked(cls, theta: Array, knobs: int) -> Weights:
        """From the vector of logarithms that is searched."""
        pairs = knobs * (knobs - 1) // 2
        lengths, mains, both, last = np.split(np.exp(theta), np.cumsum([knobs, knobs, pairs]))
        return cls(lengths, mains, both, float(last[0]), float(last[1]))


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Pairs of places, in the order of their variances."""
    return list(combinations(range(count), 2))


def single(axes: Sequence[Axis], a: Array, b: Array, lengths: Array) -> list[Array]:
    """Kernels of all knobs between (n, D) and (m, D) places."""
    return [axis.kernel(a[:, i], b[:, i], float(lengths[i])) for i, axis in enumerate(axes)]


def several(kernels: Sequence[Array]) -> Array:
    """What takes three knobs or more, of mean variance about 1: all products of three kernels and more."""
    one, two, _ = _orders(kernels)
    return np.asarray((_product(kernels) - 1.0 - one - two) / _size(len(kernels)))


def total(kernels: Sequence[Array], weights: Weights) -> Array:
    """The whole kernel without noise, (n, m)."""
    found = CONSTANT + sum(v * one for v, one in zip(weights.mains, kernels, strict=True))
    for (i, j), variance in zip(pairs_of(len(kernels)), weights.pairs, strict=True):
        found = found + variance * kernels[i] * kernels[j]
    return np.asarray(found + weights.rest * several(kernels) if len(kernels) > 2 else found)


def slope_after(kernels: Sequence[Array], weights: Weights, place: int) -> Array:
    """Derivative of the whole kernel after one knob's kernel, element by element."""
    found = np.full_like(kernels[place], weights.mains[place])
    for (i, j), variance in zip(pairs_of(len(kernels)), weights.pairs, strict=True):
        if place in (i, j):
            found += variance * kernels[j if i == place else i]
    if len(kernels) > 2:
        others = [one for i, one in enumerate(kernels) if i != place]
        found += weights.rest * (_product(others) - 1.0 - sum(others)) / _size(len(kernels))
    return found


def _product(kernels: Sequence[Array]) -> Array:
    found = np.ones_like(kernels[0])
    for one in kernels:
        found = found * (1.0 + one)
    return found


def _orders(kernels: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Sums of all kernels, of all products of two, and of all squares."""
    one = np.sum(kernels, axis=0)
    squares = np.sum(np.square(kernels), axis=0)
    return one, (one**2 - squares) / 2, squares


def _size(count: int) -> float:
    """Mean variance of all products of three kernels and more."""
    return float(max(1.0, 2.0**count - 1 - count - count * (count - 1) / 2))
