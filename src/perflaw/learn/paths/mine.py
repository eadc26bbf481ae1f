"""Mining: from the observations of a function to its specification (Brünink & Rosenblum, FSE'16, §3)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import without_perturbed
from perflaw.learn.paths.edges import (
    Array,
    Bools,
    Labels,
    edge_table,
    edges_of,
    exact_columns,
    hitting_set,
    holds,
    minimal_sets,
    soft_columns,
)
from perflaw.learn.paths.grouping import Ints, PathCounts, count_calls, group_paths, paper_groups, table_rows
from perflaw.learn.paths.stable import Span, StableBorders, matching_span, stable_borders, utility
from perflaw.types import Observed, PathGroup, PathSpec
from perflaw.types.specifications import Edge, Standing, Term

DIFFERENCE_FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Factors of the difference that matters: there are fewer groups until the edges suffice to separate them."""

EFFORT_EXPONENT = 0.7
"""How the time to mine a function grows with the call paths that its runs show, as measured (docs/figures.md)."""


def effort(observed: Observed) -> float:
    """What mining a function takes, compared with others: for the estimate of the time left.

    >>> effort(Observed("f", "time", "ns", (), (), ()))
    1.0
    """
    return float((1 + sum(len(one.paths) for one in observed.observations)) ** EFFORT_EXPONENT)


def mine(observed: Observed, options: MiningOptions, now_ns: int | None) -> PathSpec:
    """The specification of one function; ``now_ns`` (since 1970) is needed for its utility, which is 1 without.

    If there are too few calls, or if recording lengthened the durations, there are no borders, and notes say why.
    """
    spec, usable, stable = _specification(observed, options)
    return spec if now_ns is None else replace(spec, utility=utility(usable, stable, now_ns, options))


def mine_with_span(observed: Observed, options: MiningOptions) -> tuple[PathSpec, Span | None]:
    """The specification of one function, and of which time its utility is to be told: see :func:`utility_after`."""
    spec, usable, stable = _specification(observed, options)
    return spec, matching_span(usable, stable, options)


def _specification(observed: Observed, options: MiningOptions) -> tuple[PathSpec, Observed, StableBorders]:
    """The specification, whose utility is 1, of observations that recording did not lengthen, and their borders."""
    usable = without_perturbed(observed, options)
    stable = stable_borders(usable, options)
    data = count_calls(usable, stable)
    found, notes = group_and_explain(f"{observed.component} {observed.metric}", data, options)
    if len(data.paths) == 1 and stable.borders:
        if len(data.paths[0]) > 1:
            notes = ("one call path: durations of several kinds, that the way to the function does not explain",)
        else:
            notes = ("no callers on its call path: what explains durations of several kinds is not known",)
    spec = PathSpec(
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
        utility=1.0,
        platforms=observed.platforms,
        platform_borders=stable.platform_borders,
        platform_counts=data.by_platform(),
        atoms=found.atoms,
        share=observed.share,
        notes=(*usable.notes, *stable.notes, *notes),
        selected=tuple(sorted({one.selected for one in usable.observations} - {""})),
    )
    return spec, usable, stable


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
        less = f"groups that differ by less than {100 * wider.difference:.0f} % of the calls are one"
        notes.append(f"{less}: {options.most_atoms} edges do not tell more apart")
    return found, tuple(notes)


# ---- Groups of call paths with the expressions over edges that hold for each group alone (§3.5).

MIN_PURITY = 0.8
"""Fraction of the calls for which a group's expression holds that must be its own, and fraction of its own calls for which
the expression must hold; with less it is inseparable."""


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedGroups:
    """Groups with expressions."""

    groups: tuple[PathGroup, ...]
    """The groups, those of most calls first and the quarantined one last."""
    atoms: tuple[Edge, ...]
    """Edges that the expressions use."""
    unknown: tuple[int, ...]
    """Paths of no group."""
    enough: bool
    """Whether the edges separate as much as they should."""


@dataclass(frozen=True, slots=True)
class _Explanation:
    """The explanation of one group."""

    expression: tuple[Term, ...]
    """Conjunctions of which one holds for the group's paths."""
    standing: Standing
    """Whether the group is separable."""
    mislabelled: float
    """Fraction of its calls for which the expression does not hold."""


def explain_groups(
    name: str, data: PathCounts, labels: Labels, options: MiningOptions, quarantined: Labels
) -> ExplainedGroups:
    """Groups by their labels (P,), numbered from 0; paths with -1 join a group if its expression alone holds for them.

    ``name`` makes ids differ from function to function. Paths ``quarantined`` (k,) are put into a group of their own.
    """
    known = np.setdiff1d(np.flatnonzero(labels >= 0), quarantined)
    joined = np.full(labels.size, -1, dtype=np.intp)
    joined[known] = np.unique(labels[known], return_inverse=True)[1]
    table = edge_table([data.paths[path] for path in known])
    calls = data.counts[known].sum(axis=1).astype(np.float64)
    if options.exact:
        columns = exact_columns(table.rows, joined[known], calls)
    else:
        columns = soft_columns(table.rows, joined[known], calls, options.left, options.most_atoms)
    edges = tuple(table.edges[column] for column in columns.chosen)
    explanations = _explanations(table.rows[:, list(columns.chosen)], joined[known], calls, edges)
    for path in np.setdiff1d(np.flatnonzero(joined < 0), quarantined):
        matching = [
            number
            for number, one in enumerate(explanations)
            if not one.standing and holds(one.expression, data.paths[path])
        ]
        if len(matching) == 1:
            joined[path] = matching[0]
    groups = [_group(name, data, np.flatnonzero(joined == number), one) for number, one in enumerate(explanations)]
    groups.sort(key=lambda group: (-sum(group.counts), group.id))
    if quarantined.size:
        groups.append(_group(name, data, quarantined, _Explanation((), "quarantined", 0.0)))
    used = {edge for group in groups for term in group.expression for edge, _ in term}
    return ExplainedGroups(
        groups=tuple(groups),
        atoms=tuple(edge for edge in edges if edge in used),
        unknown=tuple(int(path) for path in np.setdiff1d(np.flatnonzero(joined < 0), quarantined)),
        enough=columns.enough,
    )


def _explanations(rows: Bools, labels: Labels, calls: Array, edges: tuple[Edge, ...]) -> list[_Explanation]:
    """The explanation of each group, from patterns over the chosen edges (P, k), groups (P,) and calls (P,)."""
    patterns = [tuple(bool(on_path) for on_path in row) for row in rows]
    weight: dict[Pattern, Array] = {}
    for pattern, group, n in zip(patterns, labels, calls, strict=True):
        weight.setdefault(pattern, np.zeros(int(labels.max()) + 1))[group] += n
    winner = {pattern: int(share.argmax()) for pattern, share in weight.items()}
    explanations = []
    for group in range(int(labels.max(initial=-1)) + 1):
        own = sorted(pattern for pattern, best in winner.items() if best == group)
        taken, right = sum(weight[one].sum() for one in own), sum(weight[one][group] for one in own)
        calls_of_group = max(float(calls[labels == group].sum()), 1.0)
        if not own or right < MIN_PURITY * max(taken, calls_of_group):
            explanations.append(_Explanation((), "inseparable", 0.0))
        else:
            others = sorted(pattern for pattern, best in winner.items() if best != group)
            mislabelled = float(1.0 - right / calls_of_group)
            explanations.append(_Explanation(shortest_expression(own, others, edges), "", mislabelled))
    return explanations


def _group(name: str, data: PathCounts, members: Labels, explanation: _Explanation) -> PathGroup:
    """The group of some paths; its id of eight letters depends on its expression, or on its paths without one."""

    def shares(counts: Ints) -> tuple[float, ...]:
        return tuple(float(share) for share in counts / max(int(counts.sum()), 1))

    counts = data.counts[members].sum(axis=0)
    identity = explanation.expression or [edges_of(data.paths[path]) for path in members]
    behaviours = None
    if len(data.platforms) > 1:
        sums = {platform: table[members].sum(axis=0) for platform, table in data.platforms.items()}
        behaviours = {platform: shares(here) for platform, here in sums.items() if here.sum()}
    return PathGroup(
        id=hashlib.sha256(json.dumps([name, identity]).encode()).hexdigest()[:8],
        paths=tuple(int(path) for path in members),
        distribution=shares(counts),
        counts=tuple(int(calls) for calls in counts),
        effective=float(data.effective[members].sum()),
        expression=explanation.expression,
        standing=explanation.standing,
        mislabelled=explanation.mislabelled,
        behaviours=behaviours,
    )


# ---- The shortest expressions, in disjunctive normal form. Combinations of edges that no path shows are don't-cares: they
# keep expressions short. For an unseen path with such a combination no expression holds, or several do; its group is then
# unknown.

Pattern = tuple[bool, ...]
"""Which of the chosen edges lie on a path."""
Cube = tuple[tuple[int, bool], ...]
"""A conjunction of literals over places in a pattern."""
MAX_EXHAUSTIVE_EDGES = 8
"""Number of edges up to which all shortest conjunctions are tried; with more, one for each pattern."""


def shortest_expression(own: list[Pattern], others: list[Pattern], edges: tuple[Edge, ...]) -> tuple[Term, ...]:
    """Fewest conjunctions, then fewest literals, that hold for all ``own`` patterns and for none of the ``others``.

    It is the empty conjunction if there are no others. No pattern is both an own and another one.

    >>> e1, e2 = ("a", "b"), ("b", "c")
    >>> shortest_expression([(True, False)], [(False, True), (False, False)], (e1, e2))
    (((('a', 'b'), True),),)
    >>> shortest_expression([(False, False)], [(False, True), (True, False)], (e1, e2))
    (((('a', 'b'), False), (('b', 'c'), False)),)
    """

    def length(cube: Cube) -> tuple[int, int, Cube]:
        """The shortest first, then those that say what lies on a path rather than what does not."""
        return len(cube), sum(not value for _, value in cube), cube

    cubes = sorted({cube for pattern in own for cube in _shortest_cubes(pattern, others)}, key=length)
    holding = [
        sum(1 << number for number, cube in enumerate(cubes) if all(pattern[place] == value for place, value in cube))
        for pattern in own
    ]
    chosen = hitting_set(holding)[0]
    return tuple(tuple((edges[place], value) for place, value in cubes[number]) for number in chosen)


def _shortest_cubes(pattern: Pattern, others: list[Pattern]) -> list[Cube]:
    """Shortest conjunctions that hold for the pattern and for no other: they hit every set of places that differ."""
    places = range(len(pattern))
    differing = {sum(1 << place for place in places if pattern[place] != other[place]) for other in others}
    if len(pattern) > MAX_EXHAUSTIVE_EDGES:
        return [tuple((place, pattern[place]) for place in hitting_set(differing)[0])]
    found: list[int] = []
    sets = minimal_sets(differing)
    for size in range(len(pattern) + 1):
        for some in combinations(places, size):
            mask = sum(1 << place for place in some)
            if all(mask & one for one in sets) and not any(mask & shorter == shorter for shorter in found):
                found.append(mask)
    return [tuple((place, pattern[place]) for place in places if mask >> place & 1) for mask in found]
