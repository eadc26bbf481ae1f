"""Whether a metric depends on any knob at all: permutations of configurations, the greatest of all knobs and pairs counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflaw.learn.exploring.centred import Axis, pairs_of, single
from perflaw.learn.exploring.spaces import Array

PERMUTATIONS = 499
LENGTH = 0.5
"""Length scale of the tests' kernels."""
MOST_ROWS = 300
"""Configurations that are permuted; of more evenly many."""


def dependence(axes: Sequence[Axis], x: Array, y: Array, rng: np.random.Generator) -> float:
    """Return p of the hypothesis that responses y (n,) at places x (n, D) depend on no knob.

    The statistic is the greatest, over knobs and pairs, of y'Ky standardized by its permutations (Westfall and Young
    1993, single step), so that one strong pair is seen among many that say nothing.
    """
    if len(y) > MOST_ROWS:
        rows = np.linspace(0, len(y) - 1, MOST_ROWS).astype(int)
        x, y = x[rows], y[rows]
    knobs = single(axes, x, x, np.full(len(axes), LENGTH))
    kernels = [*knobs, *(knobs[i] * knobs[j] for i, j in pairs_of(len(knobs)))]
    centred = ranks(y)
    several = np.stack([centred, *(rng.permutation(centred) for _ in range(PERMUTATIONS))])
    found = np.stack([np.einsum("pi,pi->p", several @ kernel, several) for kernel in map(_centred, kernels)])
    spread = found[:, 1:].std(axis=1, keepdims=True)
    score = (found - found[:, 1:].mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
    greatest = score.max(axis=0)
    return float((1 + np.count_nonzero(greatest[1:] >= greatest[0])) / (1 + PERMUTATIONS))


def ranks(y: Array) -> Array:
    """Responses centred, those far out pulled in: one wild trial decides nothing."""
    middle = np.median(y)
    spread = np.median(np.abs(y - middle)) * 1.4826 or y.std() or 1.0
    pulled = np.clip((y - middle) / spread, -4, 4)
    return np.asarray(pulled - pulled.mean())


def _centred(kernel: Array) -> Array:
    means = kernel.mean(axis=0)
    return np.asarray(kernel - means[None, :] - means[:, None] + means.mean())
