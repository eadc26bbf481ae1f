"""Specifications of one function from several runs, builds and machines as one (Brünink & Rosenblum, RQ1, RQ2).

Counts are added, platform by platform, over the borders that all have and the call paths without functions that one build
lacks; groups and expressions are found again in the sums. A path that models put into groups which do not match, and
whose calls differ from the one to the others, is quarantined: nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError
from perflaw.learn.paths.aligning import aligned, by_platform, coarser, common_borders, common_platforms
from perflaw.learn.paths.compare import OUTSIDE, agreeing, labelled
from perflaw.learn.paths.counting import Counted, whole, whole_counts
from perflaw.learn.paths.grouping import differ, group_paths
from perflaw.learn.paths.inlining import inlined, without
from perflaw.learn.paths.mine import grouped
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import PathSpec
from perflaw.types.durations import CallPath

Ints = NDArray[np.int64]
Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def merge(specs: Sequence[PathSpec], options: MiningOptions | None = None) -> PathSpec:
    """One specification from several of one function; their order does not matter. DataError for different functions.

    Quarantined call paths are in a group of that standing. Those without calls (perturbed, too few) add their notes alone,
    and those without borders, where others have some: they are no models (§3.4).
    """
    if len({(spec.component, spec.metric, spec.unit) for spec in specs}) != 1:
        names = ", ".join(sorted({f"{spec.component} ({spec.metric})" for spec in specs})) or "nothing"
        raise DataError(
            f"{names}: cannot be merged", "models of one function by one clock merge", "perflaw mine --merge"
        )
    ordered = sorted(specs, key=_key)
    usable = [spec for spec in ordered if spec.paths]
    models = [spec for spec in usable if spec.borders] or usable
    notes = tuple(dict.fromkeys(note for spec in ordered for note in spec.notes))
    if len(models) < len(usable):
        notes = (*notes, f"{len(usable) - len(models)} of {len(usable)} found no borders: their calls are left out")
        usable = models
    if len(usable) < 2:
        return replace((usable or ordered)[0], notes=notes)
    return _merged(usable, notes, options or MiningOptions())


def _key(spec: PathSpec) -> tuple[object, ...]:
    """An order of specifications that depends on what is in them alone."""
    names = tuple((one.host, one.build, one.tick) for one in spec.platforms)
    return names, spec.points, spec.borders, spec.paths, spec.path_counts, spec.utility, spec.notes


@dataclass(frozen=True, slots=True, eq=False)
class _Models:
    """What was merged, over common paths and clusters."""

    specs: Sequence[PathSpec]
    """The specifications."""
    names: frozenset[str]
    """Functions left out of paths."""
    paths: tuple[CallPath, ...]
    """All paths."""
    counts: Ints
    """(specifications, P, C) calls."""
    effective: Array
    """(specifications, P) independent ones."""
    platforms: dict[int, Ints]
    """Platform → (P, C)."""

    def counted(self) -> Counted:
        """All together."""
        return Counted(self.paths, self.counts.sum(axis=0), self.effective.sum(axis=0), self.platforms)


def _merged(specs: Sequence[PathSpec], notes: tuple[str, ...], options: MiningOptions) -> PathSpec:
    """Several that have calls."""
    kept = aligned(specs, options.epsilon)
    platforms, places = common_platforms(specs)
    models = _models(specs, kept, places)
    data = models.counted()
    name = f"{specs[0].component} {specs[0].metric}"
    found, more = grouped(name, data, options, _conflicting(models, options))
    borders = common_borders(specs, kept, places)
    calls = data.counts.sum(axis=0)
    main = max(borders, key=lambda place: (int(models.platforms[place].sum()), -place))
    return replace(
        specs[0],
        borders=borders[main],
        quantiles=tuple(float(share) for share in np.cumsum(calls)[:-1] / max(int(calls.sum()), 1)),
        groups=found.groups,
        paths=data.paths,
        path_counts=whole(data.counts),
        unknown=found.unknown,
        stable=all(spec.stable for spec in specs),
        observations=sum(spec.observations for spec in specs),
        points=sum(spec.points for spec in specs),
        utility=max(spec.utility for spec in specs),
        platforms=platforms,
        platform_borders=borders if len(platforms) > 1 else None,
        platform_counts=whole_counts(data),
        atoms=found.atoms,
        share=_share(specs),
        notes=tuple(dict.fromkeys((*notes, *more, *_left_out(models, len(kept))))),
    )


def _models(specs: Sequence[PathSpec], kept: list[tuple[int, ...]], places: list[dict[int, int]]) -> _Models:
    """Their calls over common paths and clusters."""
    names = inlined(specs)
    paths = tuple(sorted({without(path, names) for spec in specs for path in spec.paths}))
    row = {path: number for number, path in enumerate(paths)}
    counts = np.zeros((len(specs), len(paths), len(kept) + 1), dtype=np.int64)
    effective = np.zeros((len(specs), len(paths)))
    platforms = {place: np.zeros(counts.shape[1:], dtype=np.int64) for local in places for place in local.values()}
    for number, spec in enumerate(specs):
        rows = [row[without(path, names)] for path in spec.paths]
        borders = [one[number] for one in kept]
        for local, table in by_platform(spec).items():
            np.add.at(platforms[places[number][local]], rows, coarser(table, borders))
        whole_table = np.array(spec.path_counts, dtype=np.int64).reshape(len(rows), -1)
        np.add.at(counts[number], rows, coarser(whole_table, borders))
        np.add.at(effective[number], rows, _worth(spec) * whole_table.sum(axis=1))
    return _Models(specs, names, paths, counts, effective, platforms)


def _worth(spec: PathSpec) -> Array:
    """Independent calls that one call of each path is worth, (P,): as its group's, or as the least of any group's."""
    each = [group.effective / max(sum(group.counts), 1) for group in spec.groups]
    out = np.full(len(spec.paths), min((one for one in each if one > 0), default=1.0))
    for group, one in zip(spec.groups, each, strict=True):
        out[list(group.paths)] = one
    return out


def _conflicting(models: _Models, options: MiningOptions) -> Labels:
    """Paths (k,) that some model puts elsewhere than all together do, and on which its calls differ from the others'.

    Those that were quarantined before stay so.
    """
    data = models.counted()
    together = group_paths(data.counts, data.effective, options)
    calls = data.counts.sum(axis=1).astype(np.float64)
    independent = models.counts * (models.effective / np.maximum(models.counts.sum(axis=2), 1))[:, :, None]
    apart: set[int] = set()
    for number, label in enumerate(_labels(models)):
        apart |= {int(path) for path in np.flatnonzero(label == OUTSIDE)}
        both = np.flatnonzero((label >= 0) & (together >= 0))
        for path in both[~agreeing(label[both], together[both], calls[both])]:
            mine = independent[number, path]
            if differ(mine, independent[:, path].sum(axis=0) - mine, len(models.paths), options):
                apart.add(int(path))
    return np.array(sorted(apart), dtype=np.intp)


def _labels(models: _Models) -> list[Labels]:
    """Group of each path in every model, (P,): OUTSIDE for quarantined ones, below that for those of no group."""
    row = {path: number for number, path in enumerate(models.paths)}
    every = []
    for spec in models.specs:
        label = np.full(len(models.paths), OUTSIDE - 1, dtype=np.intp)
        for path, (group, _) in labelled(spec, models.names).items():
            label[row[path]] = group
        every.append(label)
    return every


def _share(specs: Sequence[PathSpec]) -> float | None:
    """Part of the programs' time, by calls."""
    known = [(spec.share, spec.points) for spec in specs if spec.share is not None]
    calls = sum(points for _, points in known)
    return sum(share * points for share, points in known) / calls if calls else None


def _left_out(models: _Models, kept: int) -> list[str]:
    """What a reader should know of the merging."""
    notes = []
    if any(len(spec.borders) > kept for spec in models.specs):
        each = ", ".join(str(one) for one in sorted({len(spec.borders) for spec in models.specs}))
        notes.append(f"models merged have {each} borders, {kept} in common: others divide the calls elsewhere")
    if models.names:
        notes.append(f"left out of call paths, being absent from one build: {', '.join(sorted(models.names))}")
    return notes
