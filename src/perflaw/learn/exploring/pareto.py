"""The Pareto front: configurations than which none is better in every metric with a goal, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.exploring.field import Field
from perflaw.learn.exploring.spaces import Array
from perflaw.types.explored import FrontPoint

LEAST = 0.2
"""Configurations less probable than this are not told."""
MOST_DRAWS = 120


def front(fields: Mapping[str, Field], numbers: Mapping[int, tuple[int, ...]]) -> tuple[FrontPoint, ...]:
    """Return the front of the configurations tried, along the first metric, the best first.

    ``fields`` have the same configurations in the same order; ``numbers`` are the trials of each place.
    """
    several = [one for one in fields.values() if one.metric.goal]
    if len(several) < 2:
        return ()
    tried, draws = several[0].tried, min(MOST_DRAWS, *(len(one.draws) for one in several))
    scores = np.stack([one.sign * one.mean()[:draws, :tried] for one in several], axis=-1)
    probability = np.mean([undominated(one) for one in scores], axis=0)
    middle = undominated(scores.mean(axis=0))
    places = np.flatnonzero((probability >= LEAST) & (middle | (probability >= 0.5)))
    order = places[np.argsort(-scores.mean(axis=0)[places, 0], kind="stable")]
    return tuple(
        FrontPoint(several[0].configurations[i], {name: one.estimate(i) for name, one in fields.items()},
                   numbers.get(i, ()), float(probability[i]))
        for i in order.tolist()
    )  # fmt: skip


def undominated(scores: Array) -> NDArray[np.bool_]:
    """Which of (n, k) scores, greater is better, no other reaches in all and passes in one.

    >>> undominated(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0]])).tolist()
    [True, True, False]
    """
    no_worse = np.all(scores[None, :, :] >= scores[:, None, :], axis=2)
    better = np.any(scores[None, :, :] > scores[:, None, :], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=1))
