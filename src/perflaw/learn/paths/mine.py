"""Mining: from the observations of a function to its specification (Brünink & Rosenblum, FSE'16, §3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perflaw.learn.paths.edges import Labels
from perflaw.learn.paths.explaining import ExplainedGroups, explain_groups
from perflaw.learn.paths.grouping import PathCounts, count_calls, group_paths, paper_groups, table_rows
from perflaw.learn.paths.observations import without_perturbed
from perflaw.learn.paths.options import MiningOptions
from perflaw.learn.paths.stable import stable_borders, utility
from perflaw.types import Observed, PathSpec

DIFFERENCE_FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Factors of the difference that matters: there are fewer groups until the edges suffice to separate them."""


def mine(observed: Observed, options: MiningOptions, now_ns: int) -> PathSpec:
    """The specification of one function; ``now_ns`` (since 1970) is needed for its utility.

    If there are too few calls, or if recording lengthened the durations, there are no borders, and notes say why.
    """
    usable = without_perturbed(observed, options)
    stable = stable_borders(usable, options)
    data = count_calls(usable, stable)
    found, notes = group_and_explain(f"{observed.component} {observed.metric}", data, options)
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
        path_counts=table_rows(data.counts),
        unknown=found.unknown,
        stable=stable.stable,
        observations=stable.observations,
        points=stable.points,
        utility=utility(usable, stable, now_ns, options),
        platforms=observed.platforms,
        platform_borders=stable.platform_borders,
        platform_counts=data.by_platform(),
        atoms=found.atoms,
        share=observed.share,
        notes=(*usable.notes, *stable.notes, *notes),
    )


def group_and_explain(
    name: str, data: PathCounts, options: MiningOptions, quarantined: Labels | None = None
) -> tuple[ExplainedGroups, tuple[str, ...]]:
    """Groups of call paths that the allowed number of edges can separate, and notes for the reader.

    ``name`` makes ids differ from function to function. Paths ``quarantined`` (k,) do not decide what groups there are.
    """
    apart = np.zeros(0, dtype=np.intp) if quarantined is None else quarantined
    counts = data.counts.copy()
    counts[apart] = 0
    for factor in DIFFERENCE_FACTORS:
        wider = replace(options, difference=options.difference * factor)
        labels = paper_groups(counts) if options.paper else group_paths(counts, data.effective, wider)
        found = explain_groups(name, data, labels, options, apart)
        if found.enough or options.exact or options.paper:
            break
    notes = []
    if not found.enough and options.exact:
        notes.append("the edges tell all call paths apart; that fewer do not is not proven")
    elif not found.enough:
        notes.append(f"{options.most_atoms} edges do not tell the groups of call paths apart")
    elif factor > 1.0:
        less = f"groups that differ by less than {wider.difference:.0%} of the calls are one"
        notes.append(f"{less}: {options.most_atoms} edges do not tell more apart")
    return found, tuple(notes)
