"""Ranks, and tails of distributions, without ``scipy.stats``: importing that takes longer than learning a hundred laws."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, stdtr

from perflaw.learn.series.series import Array


def ranks(values: Array) -> Array:
    """Ranks along the last axis from 1, ties sharing the mean of theirs; shape kept.

    >>> ranks(np.array([[30.0, 10.0, 20.0], [5.0, 5.0, 1.0]])).tolist()
    [[3.0, 1.0, 2.0], [2.5, 2.5, 1.0]]
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1, np.shape(values)[-1])
    order = np.argsort(flat, axis=-1)
    row = np.arange(len(flat))[:, None]
    ordered = flat[row, order]
    last = np.ones(ordered.shape, dtype=bool)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    out, places = np.empty_like(flat), np.arange(flat.shape[-1])
    if last.all():
        out[row, order] = places + 1.0
        return out.reshape(np.shape(values))
    first = np.maximum.accumulate(np.where(np.roll(last, 1, axis=-1), places, 0), axis=-1)
    final = np.minimum.accumulate(np.where(last, places, places.size)[:, ::-1], axis=-1)[:, ::-1]
    out[row, order] = (first + final) / 2.0 + 1.0
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
