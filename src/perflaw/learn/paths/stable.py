"""Borders that are found again and again (Brünink & Rosenblum, Algorithm 1, with specs/mining.md's resolutions).

Borders of single observations match where the mass below them does: in the observation's own distribution (durations that
drift, hosts of another speed) or in that of all observations (a changing mix of the same kinds). Either will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.learn.paths.common import Border, Durations, common_borders, durations_of, paper_common_borders
from perflaw.learn.paths.histograms import total
from perflaw.learn.paths.looks import Found, Look, found_in, looks_at
from perflaw.learn.paths.options import MiningOptions
from perflaw.types import Observed


@dataclass(frozen=True, slots=True)
class Stable:
    """Borders of one function, over its observations."""

    borders: tuple[float, ...]
    """Between clusters of durations, increasing; of the platform of most calls where there are several."""
    quantiles: tuple[float, ...]
    """Share of the calls below each."""
    stable: bool
    """Whether enough observations show this partition and nothing else; never for a single one."""
    platform_borders: Mapping[int, tuple[float, ...]] | None
    """Platform → borders there, as many as ``borders``; None on one platform."""
    observations: int
    """Observations of enough calls to speak of."""
    points: int
    """Calls in all."""
    matches: tuple[bool, ...] = ()
    """(observations,) whether each shows just these borders; in order of time."""
    notes: tuple[str, ...] = ()
    """Why there is no claim."""


def stable_borders(observed: Observed, options: MiningOptions) -> Stable:
    """Borders that enough observations show, each on its own; no claim where there are too few calls."""
    durations = durations_of(observed)
    points = sum(total(h) for h in durations.of.values())
    looks = looks_at(observed, options.fewest)
    if not looks:
        nothing = dict.fromkeys(durations.of, ()) if len(durations.of) > 1 else None
        note = f"{points} calls: too few to look for borders ({options.fewest} are needed)"
        return Stable((), (), False, nothing, 0, points, notes=(note,))
    found = found_in(looks, observed, options)
    borders = _borders(found, looks, durations, options)
    matches = matching(borders, found, looks, durations, options)
    each = {platform: tuple(border.places[platform] for border in borders) for platform in durations.of}
    return Stable(
        borders=each[durations.main],
        quantiles=tuple(border.share for border in borders),
        stable=len(looks) > 1 and float(np.mean(matches)) >= options.found_again,
        platform_borders=each if len(each) > 1 else None,
        observations=len(looks),
        points=points,
        matches=matches,
        notes=_notes(looks),
    )


def _borders(found: list[Found], looks: list[Look], durations: Durations, options: MiningOptions) -> list[Border]:
    """Those that enough observations have in common."""
    least = options.found_again * len(looks)
    if options.paper:
        return paper_common_borders(found, looks, durations, least, options.epsilon)
    return common_borders(found, durations, least, options.epsilon)


def matching(
    borders: Sequence[Border],
    found: Sequence[Found],
    looks: Sequence[Look],
    durations: Durations,
    options: MiningOptions,
) -> tuple[bool, ...]:
    """Whether the borders of each observation match these and these match its own (Definition 4, both ways), (looks,).

    A border that an observation hardly shows is enough to match, and too little to contradict.
    """
    near = [[_near(one, border, durations, options) for border in borders] for one in found]
    matches = []
    for number in range(len(looks)):
        here = [i for i, one in enumerate(found) if one.look == number]
        mine = all(any(near[i]) for i in here if found[i].sure)
        matches.append(mine and all(any(near[i][k] for i in here) for k in range(len(borders))))
    return tuple(matches)


def _near(one: Found, border: Border, durations: Durations, options: MiningOptions) -> bool:
    """Whether few calls lie between the two: of all there, or by shares of each one's own calls."""
    there = durations.below(one.platform, border.places[one.platform])
    if abs(durations.below(one.platform, one.place) - there) < options.epsilon:
        return True
    return not options.paper and abs(one.own - border.share) < options.epsilon


def _notes(looks: Sequence[Look]) -> tuple[str, ...]:
    """What a reader should know: a clock that stands still."""
    if all(np.count_nonzero(look.durations.counts) == 0 for look in looks):
        return ("every call took no time by this clock",)
    return ()
