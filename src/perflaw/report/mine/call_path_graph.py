"""The call paths of one function as a graph (Figure 1): its functions and calls, their groups, and their places.

Functions stand in layers by their distance from the start of the program, the function itself last. A chain of functions
without branches is one node. Of many call paths those with the most calls are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perflaw.types.specifications import CallPath, Edge, PathSpec

MAX_NODES = 42
"""Nodes of a drawing; the call paths with the fewest calls are left out."""
SWEEPS = 6
"""How often the layers are ordered by the places of their neighbours."""


@dataclass(frozen=True, slots=True)
class Node:
    """A function, or a chain of functions."""

    names: tuple[str, ...]
    """Functions, callers first."""
    layer: int
    """Distance from the start."""
    place: float
    """Place within the layers' width, in widths of a node."""


@dataclass(frozen=True, slots=True)
class Line:
    """Calls from one node to another."""

    source: int
    """Place of the caller's node."""
    target: int
    """Place of the callee's node."""
    groups: tuple[int, ...]
    """Places of the groups whose call paths lead through it; -1 for paths without a group."""
    calls: int
    """Calls of the function that came by it."""
    edge: Edge
    """The call edge, as expressions name it."""
    bends: tuple[tuple[float, int], ...]
    """(place, layer) of the points between its ends."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The drawing."""

    nodes: tuple[Node, ...]
    """Nodes."""
    lines: tuple[Line, ...]
    """Calls between them."""
    left: int
    """Call paths that are not drawn."""


def call_path_graph(spec: PathSpec) -> Graph:
    """The drawing of a specification's call paths."""
    group_of = {path: place for place, group in enumerate(spec.groups) for path in group.paths}
    order = sorted(range(len(spec.paths)), key=lambda path: (-sum(spec.path_counts[path]), path))
    atoms = {edge for group in spec.groups for term in group.expression for edge, _ in term}
    # The first paths, as many as need no more than MAX_NODES nodes.
    paths = [spec.paths[path] for path in order]
    low, high = 1, len(paths)
    while low < high:
        middle = (low + high + 1) // 2
        if len(set(_chains(paths[:middle], atoms).values())) <= MAX_NODES:
            low = middle
        else:
            high = middle - 1
    drawn = paths[:low]
    chains = _chains(drawn, atoms)
    kept = order[: len(drawn)]
    folded = [tuple(dict.fromkeys(chains[name] for name in spec.paths[path])) for path in kept]
    calls: Counter[tuple[int, int]] = Counter()
    groups: dict[tuple[int, int], set[int]] = {}
    for path, steps in zip(kept, folded, strict=True):
        for pair in pairwise(steps):
            calls[pair] += sum(spec.path_counts[path])
            groups.setdefault(pair, set()).add(group_of.get(path, -1))
    members: list[tuple[str, ...]] = [()] * (max(chains.values(), default=-1) + 1)
    for name, node in chains.items():
        members[node] = (*members[node], name)
    layers = _layers(folded, len(members))
    places, bends = _places(layers, list(calls))
    nodes = tuple(Node(names, layer, place) for names, layer, place in zip(members, layers, places, strict=True))
    lines = tuple(
        Line(a, b, tuple(sorted(groups[a, b])), n, (members[a][-1], members[b][0]), bends.get((a, b), ()))
        for (a, b), n in calls.items()
    )
    return Graph(nodes, lines, len(spec.paths) - len(drawn))


def _layers(paths: Sequence[Sequence[int]], nodes: int) -> list[int]:
    """Layer of each node: the length of the longest way from the start, without calls back up (recursion)."""
    layers = [0] * nodes
    for _ in range(min(nodes, 64)):
        changed = False
        for path in paths:
            for place, (a, b) in enumerate(pairwise(path)):
                if b not in path[: place + 1] and layers[b] <= layers[a] < nodes:
                    layers[b] = layers[a] + 1
                    changed = True
        if not changed:
            break
    ends = {path[-1] for path in paths if path}
    for end in ends:
        layers[end] = max(layers)
    return layers


def _chains(paths: Sequence[CallPath], atoms: Collection[Edge]) -> dict[str, int]:
    """Function → number of its node. A function with one caller, whose caller calls nothing else, joins its caller."""
    callers: dict[str, set[str]] = {}
    callees: dict[str, set[str]] = {}
    for path in paths:
        callers.setdefault(path[0], set()).add("")
        for a, b in pairwise(path):
            callers.setdefault(b, set()).add(a)
            callees.setdefault(a, set()).add(b)
    last = {path[-1] for path in paths}
    number: dict[str, int] = {}
    for path in paths:
        for before, name in pairwise(("", *path)):
            if name in number:
                continue
            alone = callers[name] == {before} and callees.get(before) == {name} and before in number
            joins = alone and name not in last and (before, name) not in atoms
            number[name] = number[before] if joins else max(number.values(), default=-1) + 1
    return number


def _places(
    layers: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> tuple[list[float], dict[tuple[int, int], tuple[tuple[float, int], ...]]]:
    """Places of nodes and of the bends of long lines, by the means of their neighbours (Sugiyama, Tagawa & Toda 1981)."""
    rows: list[list[object]] = [[] for _ in range(max(layers, default=0) + 1)]
    for node, layer in enumerate(layers):
        rows[layer].append(node)
    links: list[tuple[object, object]] = []
    passed: dict[tuple[int, int], list[object]] = {}
    for a, b in pairs:
        steps = [(a, b, layer) for layer in range(layers[a] + 1, layers[b])]
        for step in steps:
            rows[step[2]].append(step)
        passed[a, b] = list(steps)
        links += pairwise([a, *steps, b])
    at = _swept(rows, links)
    bends = {
        pair: tuple((at[step], layers[pair[0]] + 1 + i) for i, step in enumerate(steps))
        for pair, steps in passed.items()
    }
    return [at[node] for node in range(len(layers))], bends


def _swept(rows: list[list[object]], links: Sequence[tuple[object, object]]) -> dict[object, float]:
    """Place of each item in its row, items at least one apart, rows centred."""
    beside: dict[object, list[object]] = {}
    for a, b in links:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    row_of = {one: number for number, row in enumerate(rows) for one in row}
    at: dict[object, float] = {one: place - (len(row) - 1) / 2 for row in rows for place, one in enumerate(row)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for number in range(len(rows)) if down else reversed(range(len(rows))):
            wanted = {}
            for one in rows[number]:
                near = [
                    at[other]
                    for other in beside.get(one, ())
                    if (row_of[other] < number) == down and row_of[other] != number
                ]
                wanted[one] = sum(near) / len(near) if near else at[one]
            rows[number].sort(key=lambda one: (wanted[one], at[one]))

            # The items stand near their wanted places, in their order, at least one apart.
            place = float("-inf")
            for one in rows[number]:
                place = max(place + 1.0, wanted[one])
                at[one] = place
            shift = sum(wanted[one] - at[one] for one in rows[number]) / max(len(rows[number]), 1)
            for one in rows[number]:
                at[one] += shift
    return at
