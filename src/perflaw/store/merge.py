"""Recordings merge by addition: threads, processes, runs and hosts, in any order, to the same bytes.

Everything additive is an exact integer sum; samples are bottom-k samples (Cohen & Kaplan, PODC'07) and merge by keeping
the smallest priorities again. Numbers of components and nodes are given anew in a canonical order.
"""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.store.schema import LOCAL, OTHER, Row, Tables, empty_tables, sample_sizes

_ADDED = {
    "components": 7, "component_costs": 2, "moments": 2, "pairs": 4, "links": 3, "histograms": 2, "strata": 2,
}  # fmt: skip
"""Table → index of its first summed column; the ones before are the key."""
_OF_SAMPLES = ("features", "invocation_costs", "callees")
"""Tables whose rows go with a sampled invocation."""
_WITH_NULLS = ("features", "callees")
_STRATUM, _UNIFORM_KEY, _STRATUM_KEY = 8, 9, 10
"""Columns of an invocation."""


def merge(recordings: Sequence[Tables]) -> Tables:
    """The tables of several recordings as one. Samples of equal run and sequence are one sample."""
    merged = empty_tables()
    numbering: dict[Row, int] = {}
    paths: dict[tuple[int, int, int], int] = {}
    for tables in recordings:
        _append(merged, _renumbered(tables, _component_map(tables, numbering), paths))
    for name in _ADDED:
        merged[name] = _summed(name, merged[name])
    for name in (*_OF_SAMPLES, "invocations"):
        merged[name] = list(dict.fromkeys(merged[name]))
    merged["calltree"] = list({row[0]: row for row in sorted(merged["calltree"], reverse=True)}.values())
    return canonical(merged)


def canonical(tables: Tables) -> Tables:
    """The same recording, numbered and sorted in a canonical order, its samples cut to size and weighted."""
    order = sorted(tables["components"], key=lambda row: row[1:7])
    components = {row[0]: number for number, row in enumerate(order)}
    renumbered = _renumbered(tables, components, {}, _node_order(tables, components))
    sizes = sample_sizes(len({row[0] for row in renumbered["strata"]}))
    renumbered["invocations"] = _weighted(_cut(renumbered["invocations"], sizes), renumbered["strata"])
    kept = {row[:2] for row in renumbered["invocations"]}
    for name in _OF_SAMPLES:
        renumbered[name] = [row for row in renumbered[name] if row[:2] in kept]
    return {name: sorted(rows, key=_sort_key if name in _WITH_NULLS else None) for name, rows in renumbered.items()}


def _sort_key(row: Row) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, value) for value in row)


def _component_map(tables: Tables, numbering: dict[Row, int]) -> dict[int, int]:
    """Number of each component of one recording in the numbering that all share."""
    return {row[0]: numbering.setdefault(row[1:7], len(numbering)) for row in tables["components"]}


def _node_order(tables: Tables, components: dict[int, int]) -> list[Row]:
    """Call-tree rows by depth, then parent, component and site, in canonical numbers: parents before children."""
    place = {0: 0}
    ordered: list[Row] = []
    by_depth: dict[int, list[Row]] = {}
    for row in tables["calltree"]:
        by_depth.setdefault(row[5], []).append(row)
    for depth in sorted(by_depth):
        level = sorted(by_depth[depth], key=lambda row: (place.get(row[1], -1), components.get(row[2], -1), row[3]))
        for row in level:
            place[row[0]] = len(ordered)
            ordered.append(row)
    return ordered


def _renumbered(
    tables: Tables, components: dict[int, int], paths: dict[tuple[int, int, int], int], order: list[Row] | None = None
) -> Tables:
    """A recording with new component numbers; nodes get the number that ``paths`` has for their calling context."""
    nodes = {LOCAL: LOCAL, OTHER: OTHER}
    result = empty_tables()
    for number, parent, component, site, line, depth in order or sorted(tables["calltree"], key=lambda row: row[5]):
        key = (nodes[parent] if depth else -1, site, components.get(component, -1))
        nodes[number] = paths.setdefault(key, len(paths))
        result["calltree"].append((nodes[number], key[0], key[2], site, line, depth))
    result["components"] = [(components[row[0]], *row[1:]) for row in tables["components"]]
    result["moments"] = [(nodes[row[0]], *row[1:]) for row in tables["moments"]]
    result["component_costs"] = [(components[row[0]], *row[1:]) for row in tables["component_costs"]]
    # Where two callees become one, their product stands twice in its square.
    result["pairs"] = [
        (nodes[n], metric, *sorted((nodes[i], nodes[j])), total * (1 + (i != j and nodes[i] == nodes[j])))
        for n, metric, i, j, total in tables["pairs"]
    ]
    result["links"] = [(nodes[row[0]], nodes[row[1]], *row[2:]) for row in tables["links"]]
    result["histograms"] = [(nodes[row[0]], *row[1:]) for row in tables["histograms"]]
    result["strata"] = [(components[row[0]], *row[1:]) for row in tables["strata"]]
    result["invocations"] = [(*row[:2], components[row[2]], nodes[row[3]], *row[4:]) for row in tables["invocations"]]
    result["features"] = list(tables["features"])
    result["invocation_costs"] = list(tables["invocation_costs"])
    result["callees"] = [(*row[:2], nodes[row[2]], *row[3:]) for row in tables["callees"]]
    return result


def _append(merged: Tables, tables: Tables) -> None:
    for name, rows in tables.items():
        merged[name] += rows


def _summed(name: str, rows: list[Row]) -> list[Row]:
    """Rows of equal key added up; the least and greatest X of the moments are compared instead."""
    first = _ADDED[name]
    sums: dict[Row, list[int]] = {}
    for row in rows:
        found = sums.get(row[:first])
        if found is None:
            sums[row[:first]] = list(row[first:])
        elif name == "moments":
            sums[row[:first]] = _added_moments(found, list(row[first:]))
        else:
            sums[row[:first]] = [a + b for a, b in zip(found, row[first:], strict=True)]
    return [(*key, *values) for key, values in sums.items()]


def _added_moments(a: list[int], b: list[int]) -> list[int]:
    """n, ΣX, ΣX², min, max, open of two sets of invocations together; an empty set has no least value."""
    least = min(a[3], b[3]) if a[0] and b[0] else a[3] if a[0] else b[3]
    return [a[0] + b[0], a[1] + b[1], a[2] + b[2], least, max(a[4], b[4]), a[5] + b[5]]


def _cut(rows: list[Row], sizes: tuple[int, int]) -> list[Row]:
    """The samples that stay: per component the smallest uniform priorities, and the smallest of each stratum."""
    in_uniform, in_stratum = sizes
    kept: set[Row] = set()
    uniform: dict[int, list[Row]] = {}
    strata: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row[_UNIFORM_KEY] >= 0:
            uniform.setdefault(row[2], []).append(row)
        strata.setdefault((row[2], row[_STRATUM]), []).append(row)
    for group in uniform.values():
        kept.update(sorted(group, key=lambda row: (row[_UNIFORM_KEY], row[0], row[1]))[:in_uniform])
    for group in strata.values():
        kept.update(sorted(group, key=lambda row: (row[_STRATUM_KEY], row[0], row[1]))[:in_stratum])
    return [row for row in rows if row in kept]


def _weighted(rows: list[Row], strata: list[Row]) -> list[Row]:
    """Samples with the number of invocations each stands for: those of its stratum over the samples of it."""
    counts = {row[:2]: row[2] for row in strata}
    sampled: dict[tuple[int, int], int] = {}
    for row in rows:
        sampled[row[2], row[_STRATUM]] = sampled.get((row[2], row[_STRATUM]), 0) + 1
    return [(*row[:-1], counts[row[2], row[_STRATUM]] / sampled[row[2], row[_STRATUM]]) for row in rows]
