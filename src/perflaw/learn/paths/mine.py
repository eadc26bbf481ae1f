"""Mining: from what was observed of a function to its specification (Brünink & Rosenblum, FSE'16, §3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.counting import Counted, counted, whole, whole_counts
from perflaw.learn.paths.explaining import Explained, explained
from perflaw.learn.paths.grouping import group_paths
from perflaw.learn.paths.nesting import undisturbed
from perflaw.learn.paths.options import MiningOptions
from perflaw.learn.paths.paper_grouping import paper_groups
from perflaw.learn.paths.stable import stable_borders
from perflaw.learn.paths.utility import utility
from perflaw.types import Observed, PathSpec

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
