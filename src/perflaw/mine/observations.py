"""Observed calls of one function: by other callers than were recorded, and compared with those of earlier measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from perflaw.learn.paths.durations import clusters, merged, merged_batches, quantile, total
from perflaw.learn.paths.selection import without_functions
from perflaw.types import Histogram, Observed

Part = TypeVar("Part")
FEWEST_COMPARED: Final = 200
"""Calls below which it is not said whether durations have changed."""
MOVED_SHARE: Final = 0.15
"""Part of the calls that are of another kind than before: three times what distinguishes groups of call paths."""
MOVED_FACTOR: Final = 2.0
"""Factor between medians: less may be the machine."""


def without_callers(observed: Observed) -> Observed:
    """All calls of a function, whoever called it."""
    observations = [
        replace(
            one,
            paths={0: merged(list(one.paths.values()))},
            path_batches={0: one.batches},
            cpu_paths={0: merged(list(one.cpu_paths.values()))} if one.cpu_paths else {},
        )
        for one in observed.observations
    ]
    return replace(observed, paths=((observed.component,),), observations=tuple(observations))


def by_callers(observed: Observed, callers: frozenset[str]) -> Observed:
    """Calls of a function by its own callers: those of others that were recorded at the same time divide nothing."""
    paths = [without_functions(path, frozenset(path[:-1]) - callers) for path in observed.paths]
    if tuple(paths) == observed.paths:
        return observed
    kept = tuple(dict.fromkeys(paths))

    def joined(of_paths: Mapping[int, Part], join: Callable[[list[Part]], Part]) -> dict[int, Part]:
        parts: dict[int, list[Part]] = {}
        for place, part in of_paths.items():
            parts.setdefault(kept.index(paths[place]), []).append(part)
        return {place: join(several) for place, several in parts.items()}

    observations = [
        replace(
            one,
            paths=joined(one.paths, merged),
            path_batches=joined(one.path_batches, merged_batches),
            cpu_paths=joined(one.cpu_paths, merged),
        )
        for one in observed.observations
    ]
    return replace(observed, paths=kept, observations=tuple(observations))


def has_changed(known: Sequence[Observed], borders: Sequence[float], newest: Observed) -> bool:
    """Whether the shares of the kinds of calls that the borders separate have moved; without borders, the median."""
    before, after = _durations(known), _durations([newest])
    if min(total(before), total(after)) < FEWEST_COMPARED:
        return False
    if borders:
        shares = [clusters(each, borders) / total(each) for each in (before, after)]
        return float(np.abs(shares[0] - shares[1]).sum()) / 2 >= MOVED_SHARE
    medians = [max(float(quantile(each, 0.5)), 1.0) for each in (before, after)]
    return max(medians) >= MOVED_FACTOR * min(medians)


def _durations(several: Sequence[Observed]) -> Histogram:
    """The durations of all calls."""
    return merged([one for each in several for item in each.observations for one in item.paths.values()])
