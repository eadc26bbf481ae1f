"""Mining: from what was observed of a function to its specification (Brünink & Rosenblum, FSE'16, §3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.common import Border, durations_of
from perflaw.learn.paths.counting import Counted, counted, whole, whole_counts
from perflaw.learn.paths.explaining import Explained, explained
from perflaw.learn.paths.grouping import group_paths, paper_groups
from perflaw.learn.paths.histograms import quantile
from perflaw.learn.paths.looks import found_in, looks_at, undisturbed
from perflaw.learn.paths.options import MiningOptions
from perflaw.learn.paths.stable import Stable, matching, stable_borders
from perflaw.types import Observed, PathSpec

# ---- How useful further observations would be (Brünink & Rosenblum, Algorithms 2 and 3).

LAST = 10
"""Observations whose common borders the earlier ones are held against (Algorithm 3)."""


def utility(observed: Observed, stable: Stable, now_ns: int, options: MiningOptions | None = None) -> float:
    """min(1, (now − t_end) / (t_end − t_start)) of the stretch up to now in which all observations match, 0 … 1.

    It is 1 without observations, and where the newest shows other borders than the last ten have in common.
    """
    options = options or MiningOptions()
    looks = looks_at(observed, options.fewest)
    matches = stable.matches if len(looks) <= LAST else _held(observed, options)
    first = first_stable(matches)
    if first is None or len(matches) != len(looks):
        return 1.0
    start, end = looks[first].start_ns, looks[-1].end_ns
    return min(1.0, max(now_ns - end, 0) / (end - start)) if end > start else 1.0


def first_stable(matches: tuple[bool, ...]) -> int | None:
    """The earliest observation from which on all match; None where the newest does not (Algorithm 2).

    >>> first_stable((True, False, True, True)), first_stable((True, False)), first_stable((True, True))
    (2, None, 0)
    """
    first = None
    for place in reversed(range(len(matches))):
        if not matches[place]:
            break
        first = place
    return first


def _held(observed: Observed, options: MiningOptions) -> tuple[bool, ...]:
    """Whether each observation matches the borders that the last ten have in common."""
    looks = looks_at(observed, options.fewest)
    last = replace(observed, observations=tuple(one for look in looks[-LAST:] for one in look.observations))
    recent = stable_borders(last, options)
    durations = durations_of(observed)
    known = recent.platform_borders or {looks[-1].platform: recent.borders}
    borders = []
    for k, share in enumerate(recent.quantiles):
        # Where the last ones did not come from, the border lies at the same share of the calls.
        places = {
            platform: known[platform][k] if platform in known else float(quantile(h, share))
            for platform, h in durations.of.items()
        }
        borders.append(Border(places, share, LAST))
    return matching(borders, found_in(looks, observed, options), looks, durations, options)


COARSER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Times the difference that matters: groups are made fewer until the edges suffice to tell them."""


def mine(observed: Observed, options: MiningOptions, now_ns: int) -> PathSpec:
    """The specification of one function; ``now_ns`` (since 1970) is for its utility.

    Without calls enough or with durations that recording has made longer there are no borders, and notes say why.
    """
    usable = undisturbed(observed, options)
    stable = stable_borders(usable.observed, options)
    data = counted(usable.observed, stable)
    found, notes = grouped(f"{observed.component} {observed.metric}", data, options)
    if len(data.paths) == 1 and stable.borders:
        notes = ("one call path: durations of several kinds that the way to the function does not explain",)
    return PathSpec(
        component=observed.component,
        metric=observed.metric,
        unit=observed.unit,
        borders=stable.borders,
        quantiles=stable.quantiles,
        groups=found.groups,
        paths=data.paths,
        path_counts=whole(data.counts),
        unknown=found.unknown,
        stable=stable.stable,
        observations=stable.observations,
        points=stable.points,
        utility=utility(usable.observed, stable, now_ns, options),
        platforms=observed.platforms,
        platform_borders=stable.platform_borders,
        platform_counts=whole_counts(data),
        atoms=found.atoms,
        share=observed.share,
        notes=(*observed.notes, *usable.notes, *stable.notes, *notes),
    )


def grouped(
    name: str, data: Counted, options: MiningOptions, apart: NDArray[np.intp] | None = None
) -> tuple[Explained, tuple[str, ...]]:
    """Groups of call paths that so many edges can tell, and what a reader should know of them.

    Paths ``apart`` (k,) have no say in what groups there are, and are quarantined.
    """
    quarantined = np.zeros(0, dtype=np.intp) if apart is None else apart
    counts = data.counts.copy()
    counts[quarantined] = 0
    for factor in COARSER:
        wider = replace(options, difference=options.difference * factor)
        labels = paper_groups(counts) if options.paper else group_paths(counts, data.effective, wider)
        found = explained(name, data, labels, options, quarantined)
        if found.enough or options.exact or options.paper:
            break
    if not found.enough:
        return found, (_UNPROVEN if options.exact else _TOO_MANY.format(options.most_atoms),)
    return found, ((_COARSE.format(wider.difference, options.most_atoms),) if factor > 1.0 else ())


_COARSE = "groups that differ by less than {:.0%} of the calls are one: {} edges do not tell more apart"
_TOO_MANY = "{} edges do not tell the groups of call paths apart"
_UNPROVEN = "the edges tell all call paths apart; that fewer do not is not proven"
