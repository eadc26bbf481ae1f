"""Ranks, and tails of distributions, without ``scipy.stats``: importing that takes longer than learning a hundred laws."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, stdtr

from perflaw.learn.laws.series import Array


def ranks(values: Array) -> Array:
    """Ranks along the last axis from 1, ties sharing the mean of theirs; shape kept.

    >>> ranks(np.array([[30.0, 10.0, 20.0], [5.0, 5.0, 1.0]])).tolist()
    [[3.0, 1.0, 2.0], [2.5, 2.5, 1.0]]
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1, np.shape(values)[-1])
    order = np.argsort(flat, axis=-1, kind="stable")
    ordered = np.take_along_axis(flat, order, axis=-1)
    fresh = np.ones(ordered.shape, dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    out = np.empty_like(flat)
    for row, (starts, places) in enumerate(zip(fresh, order, strict=True)):
        first = np.flatnonzero(starts)
        count = np.diff(first, append=starts.size)
        out[row, places] = np.repeat(first + (count + 1) / 2.0, count)
    return out.reshape(np.shape(values))


def student_tail(statistic: Array, degrees: int) -> Array:
    """P(T > statistic) of Student's t.

    >>> round(float(student_tail(np.array(2.228), 10)), 3)
    0.025
    """
    return np.asarray(stdtr(degrees, -statistic))


def normal_tail(statistic: float) -> float:
    """P(Z > statistic) of the standard normal.

    >>> round(normal_tail(1.96), 3)
    0.025
    """
    return float(ndtr(-statistic))
