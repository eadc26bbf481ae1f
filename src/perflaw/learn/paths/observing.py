"""Observations from raw arrays: what the recorder keeps, made of durations that were kept one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perflaw.learn.paths.batches import batches_of
from perflaw.learn.paths.histograms import histogram_of
from perflaw.types import Observation
from perflaw.types.specifications import MOST_BUCKETS, MOST_SCALE

FEWEST = 1000
"""Calls after which an observation is closed (Brünink & Rosenblum, §3.1)."""


def observe(
    values: ArrayLike,
    paths: ArrayLike,
    times_ns: ArrayLike,
    every: int = FEWEST,
    longest_ns: int | None = None,
    platform: int = 0,
    run: str = "",
    scale: int = MOST_SCALE,
    most: int = MOST_BUCKETS,
) -> tuple[Observation, ...]:
    """Observations of ``every`` calls each, from durations (n,), numbers of their call paths (n,) and ends (n,).

    They are taken in the order of their ends; with ``longest_ns`` an observation is closed after that time as well.
    What is left at the end is an observation of fewer.

    >>> [(one.start_ns, one.end_ns, sorted(one.paths)) for one in observe([5, 6, 7], [0, 1, 0], [10, 20, 30], every=2)]
    [(5, 20, [0, 1]), (23, 30, [0])]
    """
    y, path, end = np.asarray(values, np.float64), np.asarray(paths, np.int64), np.asarray(times_ns, np.int64)
    order = np.argsort(end, kind="stable")
    y, path, end = y[order], path[order], end[order]
    return tuple(
        _observation(y[part], path[part], end[part], platform, run, scale, most)
        for part in _stretches(end, every, longest_ns)
    )


def _stretches(end: NDArray[np.int64], every: int, longest_ns: int | None) -> Iterator[slice]:
    """Where observations begin and end among calls in order."""
    first = 0
    while first < end.size:
        last = min(first + every, end.size)
        if longest_ns is not None:
            last = max(min(last, int(np.searchsorted(end, end[first] + longest_ns, side="right"))), first + 1)
        yield slice(first, last)
        first = last


def _observation(
    y: NDArray[np.float64],
    path: NDArray[np.int64],
    end: NDArray[np.int64],
    platform: int,
    run: str,
    scale: int,
    most: int,
) -> Observation:
    """One of calls in order."""
    each = {int(number): y[path == number] for number in np.unique(path)}
    return Observation(
        start_ns=int(end[0] - max(y[0], 0)),
        end_ns=int(end[-1]),
        paths={number: histogram_of(some, scale, most) for number, some in each.items()},
        batches=batches_of(y),
        path_batches={number: batches_of(some) for number, some in each.items()},
        platform=platform,
        run=run,
    )
