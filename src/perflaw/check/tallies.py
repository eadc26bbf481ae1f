"""Calls of new or old recordings sorted into the groups of a specification, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.atoms import holds
from perflaw.learn.paths.batches import independent, merged_batches
from perflaw.learn.paths.histograms import clusters, merged, total
from perflaw.types import Batches, Histogram, Observed, PathSpec
from perflaw.types.durations import CallPath
from perflaw.types.spec_files import Tally

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """Calls that came by one call path in one run."""

    run: str
    """Id of the run."""
    platform: int
    """Place in ``Observed.platforms``."""
    path: CallPath
    """How they came."""
    histogram: Histogram
    """Their durations."""
    batches: Batches
    """Their order."""

    @property
    def worth(self) -> float:
        """Independent calls that they are worth."""
        return worth_of(self.batches, total(self.histogram))


def worth_of(batches: Batches, calls: int) -> float:
    """Independent calls that so many are worth, at most as many; at least one where there are any."""
    return min(float(calls), max(independent(batches, calls), 1.0)) if calls else 0.0


def parts_of(observed: Observed) -> list[Part]:
    """Observations put together by run and call path, in the order of runs and paths."""
    found: dict[tuple[str, int, CallPath], list[tuple[Histogram, Batches | None]]] = {}
    for one in observed.observations:
        for path, histogram in one.paths.items():
            key = (one.run, one.platform, observed.paths[path])
            found.setdefault(key, []).append((histogram, one.path_batches.get(path)))
    return [
        Part(*key, merged([h for h, _ in some]), merged_batches([b for _, b in some if b is not None]))
        for key, some in sorted(found.items(), key=lambda item: (_run_key(item[0][0]), item[0][1:]))
    ]


def _run_key(run: str) -> tuple[int, str]:
    return (int(run) if run.isdecimal() else 0, run)


def group_of(spec: PathSpec, path: CallPath) -> int | None:
    """Group that a call path belongs to: a known one to its own, another to the only one whose expression holds."""
    known = spec.paths.index(path) if path in spec.paths else None
    if known is not None:
        return next((place for place, group in enumerate(spec.groups) if known in group.paths), None)
    fitting = [place for place, group in enumerate(spec.groups) if not group.standing and holds(group.expression, path)]
    return fitting[0] if len(fitting) == 1 else None


def tallies_of(spec: PathSpec, observed: Observed) -> tuple[tuple[Tally, ...], ...]:
    """For every group of the specification what single runs showed of it."""
    parts = parts_of(observed)
    groups = {path: group_of(spec, path) for path in {part.path for part in parts}}
    return tuple(
        _by_run([part for part in parts if groups[part.path] == place], spec) for place in range(len(spec.groups))
    )


def histograms_of(spec: PathSpec, observed: Observed) -> tuple[Histogram, ...]:
    """Durations of each group's calls, all runs together."""
    parts = [(group_of(spec, part.path), part.histogram) for part in parts_of(observed)]
    return tuple(merged([h for group, h in parts if group == place]) for place in range(len(spec.groups)))


def _by_run(parts: Sequence[Part], spec: PathSpec) -> tuple[Tally, ...]:
    runs: dict[str, list[Part]] = {}
    for part in parts:
        runs.setdefault(part.run, []).append(part)
    return tuple(
        Tally(
            run,
            whole(sum((clusters(part.histogram, borders_on(spec, part.platform)) for part in some), np.zeros(1))),
            sum(part.worth for part in some),
        )
        for run, some in runs.items()
    )


def borders_on(spec: PathSpec, platform: int) -> tuple[float, ...]:
    """Borders on one of the specification's own platforms."""
    return spec.borders if spec.platform_borders is None else spec.platform_borders.get(platform, spec.borders)


def whole(values: Array) -> tuple[int, ...]:
    """Whole calls that add up to the same."""
    ends = np.rint(np.cumsum(values)).astype(np.int64)
    return tuple(int(one) for one in np.diff(ends, prepend=0))
