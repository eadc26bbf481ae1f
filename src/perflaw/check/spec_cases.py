"""Specifications beside new recordings: which calls belong to which group, and by how much shares differ in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perflaw.check.evalues import NOTHING, Effects
from perflaw.check.spec_tallies import Factors, Part, Sorted, SpecOptions, below, own_borders
from perflaw.learn.paths.histograms import cdf, merged, total
from perflaw.types import PathGroup, PathSpec
from perflaw.types.specifications import CallPath, MinedSpec, Tally

FEWEST = 30.0
"""Independent calls that a call path must be worth, old and new, to be looked at on its own."""
MOST_PATHS = 40
"""Call paths of a group that are looked at on their own, those of most calls: they must fit into seconds."""


@dataclass(frozen=True, slots=True)
class Look:
    """Shares of some calls at one border, run by run; differences are towards slower calls."""

    paths: tuple[CallPath, ...]
    """The call paths."""
    border: float
    """The border, as the specification says, ns."""
    expected: float
    """Share of the calls slower than it that the specification says."""
    base: Effects
    """Differences in the runs that it was mined from."""
    new: Effects
    """Differences in new runs."""
    whole: bool
    """These are all calls of the group."""
    worth: float
    """Independent new calls."""


@dataclass(frozen=True, slots=True)
class Case:
    """A group of call paths with all looks at it."""

    mined: MinedSpec
    """The specification."""
    place: int
    """Which of its groups."""
    looks: tuple[Look, ...]
    """The group as a whole at every border first, then its call paths."""
    runs: int
    """New runs."""
    calls: int
    """New calls."""
    worth: float
    """Independent calls that these are worth."""
    outside: float
    """Share of the function's new calls that belong to no group."""

    @property
    def spec(self) -> PathSpec:
        """The specification itself."""
        return self.mined.spec

    @property
    def group(self) -> PathGroup:
        """The group itself."""
        return self.mined.spec.groups[self.place]


def case_of(one: Sorted, place: int, factors: Factors, options: SpecOptions) -> Case:
    """All looks at one group."""
    parts = one.groups[place]
    runs = list(dict.fromkeys(part.run for part in parts))
    looks = [_look(one, place, border, parts, factors, options) for border in range(len(one.mined.spec.borders))]
    for path in _heaviest(parts):
        some = [part for part in parts if part.path == path]
        if sum(part.worth for part in some) >= FEWEST and _worth_before(one.mined.spec, place, path) >= FEWEST:
            looks += [
                _look(one, place, border, some, factors, options, path) for border in range(len(one.mined.spec.borders))
            ]
    calls, worth = sum(total(part.histogram) for part in parts), sum(part.worth for part in parts)
    return Case(one.mined, place, tuple(looks), len(runs), calls, worth, one.outside)


def _heaviest(parts: Sequence[Part]) -> list[CallPath]:
    """Call paths of most calls, where there are several."""
    calls: dict[CallPath, int] = {}
    for part in parts:
        calls[part.path] = calls.get(part.path, 0) + total(part.histogram)
    order = sorted(calls, key=lambda path: (-calls[path], path))
    return order[:MOST_PATHS] if len(order) > 1 else []


def _look(
    one: Sorted,
    place: int,
    border: int,
    parts: Sequence[Part],
    factors: Factors,
    options: SpecOptions,
    path: CallPath | None = None,
) -> Look:
    spec, group = one.mined.spec, one.mined.spec.groups[place]
    slower = 1.0 - below(spec, place, None)[border]
    tallies = one.mined.tallies[place] if one.mined.tallies else ()
    if path is not None:
        slower = _slower_by(spec, group, path, border)
        base = _as_one_run(slower, _worth_before(spec, place, path))
    elif len(tallies) > 1:
        base = _of_runs(tallies, border, slower)
    else:
        stated = not sum(group.counts) or not _agrees(group)
        base = NOTHING if stated else _as_one_run(slower, group.effective)
    runs: dict[str, list[Part]] = {}
    for part in parts:
        runs.setdefault(part.run, []).append(part)
    measured = [_difference(one, place, border, some, slower, factors, options, path) for some in runs.values()]
    new = Effects(np.array([d for d, _ in measured]), np.array([v for _, v in measured]))
    return Look(
        paths=tuple(dict.fromkeys(part.path for part in parts)),
        border=spec.borders[border],
        expected=slower,
        base=base,
        new=new,
        whole=path is None,
        worth=sum(part.worth for part in parts),
    )


def _difference(
    one: Sorted,
    place: int,
    border: int,
    parts: Sequence[Part],
    slower: float,
    factors: Factors,
    options: SpecOptions,
    path: CallPath | None,
) -> tuple[float, float]:
    """How much larger the share of slow calls is in a run than it should be, and the variance of that.

    The border may stand anywhere within the minimum effect: where that explains the share there is no difference.
    """
    spec, worth = one.mined.spec, max(sum(part.worth for part in parts), 1.0)
    histogram, platform = merged([part.histogram for part in parts]), parts[0].platform
    own = one.hosts[platform]
    expected = slower if path is not None else 1.0 - below(spec, place, own)[border]
    here = own_borders(spec, own)[border] * factors.get((spec.component, platform), 1.0)
    slack = 1.0 if options.absolute else options.min_effect
    most, least = (1.0 - cdf(histogram, [here / slack, here * slack])).tolist()
    share = min(max(expected, least), most)
    smooth = (share * worth + 0.5) / (worth + 1.0)
    return share - expected, smooth * (1.0 - smooth) / worth


def _agrees(group: PathGroup) -> bool:
    """Whether the shares are those of the counts, and not what a person wrote."""
    n = sum(group.counts)
    return all(abs(share - calls / n) < 1e-4 for share, calls in zip(group.distribution, group.counts, strict=True))


def _of_runs(tallies: Sequence[Tally], border: int, slower: float) -> Effects:
    """Differences in the runs behind the specification, each with its own sampling variance."""
    some = [one for one in tallies if sum(one.counts)]
    share = np.array([sum(one.counts[border + 1 :]) / sum(one.counts) for one in some])
    worth = np.maximum(np.array([one.worth for one in some]), 1.0)
    smooth = (share * worth + 0.5) / (worth + 1.0)
    return Effects(share - slower, smooth * (1.0 - smooth) / worth)


def _as_one_run(slower: float, worth: float) -> Effects:
    """All that is behind a share taken as one run."""
    smooth = (slower * worth + 0.5) / (worth + 1.0)
    return Effects(np.zeros(1), np.array([smooth * (1.0 - smooth) / max(worth, 1.0)]))


def _slower_by(spec: PathSpec, group: PathGroup, path: CallPath, border: int) -> float:
    """Share of slow calls that one call path had, drawn towards its group's where it had few calls."""
    usual = sum(group.distribution[border + 1 :])
    if path not in spec.paths:
        return usual
    counts = spec.path_counts[spec.paths.index(path)]
    return (sum(counts[border + 1 :]) + FEWEST * usual) / (sum(counts) + FEWEST)


def _worth_before(spec: PathSpec, place: int, path: CallPath) -> float:
    """Independent calls by a call path behind the specification; a file without call paths speaks of all alike."""
    group = spec.groups[place]
    if not group.paths:
        return group.effective
    if path not in spec.paths:
        return 0.0
    return sum(spec.path_counts[spec.paths.index(path)]) * group.effective / max(sum(group.counts), 1)
