"""New calls sorted into the groups of specifications, and how much slower their machine is as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.check.spec_options import SpecOptions
from perflaw.check.spec_scale import Unit, common_factor
from perflaw.check.tallies import Part, borders_on, group_of, parts_of
from perflaw.learn.paths.histograms import merged, total
from perflaw.types import Observed, PathSpec
from perflaw.types.spec_files import MinedSpec

FEWEST_OF_GROUP = 20.0
"""Independent calls that a group must be worth to be looked at."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """New calls of a function sorted into the groups of its specification."""

    mined: MinedSpec
    """The specification."""
    groups: tuple[tuple[Part, ...], ...]
    """Calls of each group, by run and call path."""
    hosts: Mapping[int, int | None]
    """Platform of the new recordings → the specification's own on the same machine; None where it has none."""
    outside: float
    """Share of the calls that belong to no group."""


def sort_calls(mined: MinedSpec, observed: Observed) -> Sorted:
    """Every call path to its group."""
    spec, parts = mined.spec, parts_of(observed)
    groups = {path: group_of(spec, path) for path in {part.path for part in parts}}
    known = {one.host: place for place, one in enumerate(spec.platforms)}
    calls = sum(total(part.histogram) for part in parts)
    left = sum(total(part.histogram) for part in parts if groups[part.path] is None)
    return Sorted(
        mined,
        tuple(tuple(part for part in parts if groups[part.path] == place) for place in range(len(spec.groups))),
        {place: known.get(one.host) for place, one in enumerate(observed.platforms)},
        left / calls if calls else 0.0,
    )


Factors = Mapping[tuple[str, int], float]
"""(function, platform of the new recordings) → how many times slower than specified it is."""


def factors_of(several: Sequence[Sorted], options: SpecOptions) -> dict[tuple[str, int], float]:
    """One factor a known machine over all functions; on another machine one a function, whatever it is."""
    found: dict[tuple[str, int], float] = {}
    if options.absolute:
        return found
    known = [(one, place) for one in several for place, own in one.hosts.items() if own is not None]
    for place in {place for _, place in known}:
        units = [unit for one, other in known if other == place for unit in _units(one, place)]
        factor = common_factor(units, known=True)
        found.update({(one.mined.spec.component, place): factor for one, other in known if other == place})
    for one in several:
        for place, own in one.hosts.items():
            if own is None:
                found[one.mined.spec.component, place] = common_factor(_units(one, place), known=False)
    return found


def _units(one: Sorted, platform: int) -> list[Unit]:
    """Groups with enough calls on a platform."""
    found = []
    for place, parts in enumerate(one.groups):
        here = [part for part in parts if part.platform == platform]
        if sum(part.worth for part in here) >= FEWEST_OF_GROUP and one.mined.spec.borders:
            shares = below(one.mined.spec, place, one.hosts[platform])
            borders = own_borders(one.mined.spec, one.hosts[platform])
            found.append(Unit(shares, borders, merged([part.histogram for part in here])))
    return found


def below(spec: PathSpec, place: int, platform: int | None) -> tuple[float, ...]:
    """Share of a group's calls below each border, on one of the specification's own platforms or over all."""
    group = spec.groups[place]
    shares = (group.behaviours or {}).get(-1 if platform is None else platform, group.distribution)
    return tuple(float(one) for one in np.cumsum(shares)[:-1])


def own_borders(spec: PathSpec, platform: int | None) -> tuple[float, ...]:
    """Borders on one of the specification's own platforms, else those of most calls."""
    return spec.borders if platform is None else borders_on(spec, platform)
