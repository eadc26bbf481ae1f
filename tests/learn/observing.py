"""Observations from raw arrays: what the recorder keeps, made from durations that were kept one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.learn.paths.durations import batches_of, histogram_of
from perflaw.types import Observation
from perflaw.types.specifications import MOST_BUCKETS, MOST_SCALE

CALLS = 1000
"""Calls after which an observation is closed (Brünink & Rosenblum, §3.1)."""


def observe(
    values: ArrayLike,
    paths: ArrayLike,
    times_ns: ArrayLike,
    every: int = CALLS,
    longest_ns: int | None = None,
    platform: int = 0,
    run: str = "",
    scale: int = MOST_SCALE,
    most: int = MOST_BUCKETS,
) -> tuple[Observation, ...]:
    """Observations of ``every`` calls each, from durations (n,), numbers of their call paths (n,) and ends (n,).

    Calls are taken in the order of their ends; an observation is closed after ``longest_ns`` as well. The last one may have
    fewer calls.
    """
    y, path, end = np.asarray(values, np.float64), np.asarray(paths, np.int64), np.asarray(times_ns, np.int64)
    order = np.argsort(end, kind="stable")
    y, path, end = y[order], path[order], end[order]
    observations = []
    for part in _parts(end, every, longest_ns):
        by_path = {int(number): y[part][path[part] == number] for number in np.unique(path[part])}
        observations.append(
            Observation(
                start_ns=int(end[part][0] - max(y[part][0], 0)),
                end_ns=int(end[part][-1]),
                paths={number: histogram_of(some, scale, most) for number, some in by_path.items()},
                batches=batches_of(y[part]),
                path_batches={number: batches_of(some) for number, some in by_path.items()},
                platform=platform,
                run=run,
            )
        )
    return tuple(observations)


def _parts(end: NDArray[np.int64], every: int, longest_ns: int | None) -> Iterator[slice]:
    first = 0
    while first < end.size:
        last = min(first + every, end.size)
        if longest_ns is not None:
            last = max(min(last, int(np.searchsorted(end, end[first] + longest_ns, side="right"))), first + 1)
        yield slice(first, last)
        first = last
