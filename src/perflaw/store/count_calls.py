"""Calls as execution counts: of each function, and of each pair of caller and callee, from a recording's call tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from perflaw.store.columns import Array
from perflaw.store.experiment import Recording
from perflaw.store.schema import COLLECTING
from perflaw.store.tables import read_table
from perflaw.types import TIME, Location

CALLS: Final = ("function", "edge")
"""Kinds that the call tree of every run gives."""


def read_calls(recording: Recording, kinds: Sequence[str]) -> Iterator[tuple[list[Location], Array]]:
    """Calls that began, of each function and of each pair of caller and callee."""
    functions: dict[int, Location] = {}
    calls = []
    for number, name, file, line, language, _, _, ended, still_open in read_table(recording.folder, "components"):
        if name == COLLECTING:
            continue
        functions[number] = Location("function", name, file, line, name, language)
        calls.append(ended + still_open)
    if "function" in kinds:
        yield list(functions.values()), np.array(calls, dtype=np.int64)
    if "edge" in kinds:
        edges = dict(_edges(recording, functions))
        yield list(edges), np.array(list(edges.values()), dtype=np.int64)


def _edges(recording: Recording, functions: dict[int, Location]) -> dict[Location, int]:
    """Calls of one function by another: what its nodes below that one add up to."""
    tree = {
        row[0]: (row[1], row[2]) for row in read_table(recording.folder, "calltree", ("node", "parent", "component"))
    }
    moments = read_table(recording.folder, "moments", ("node", "metric", "n", "open"))
    edges: dict[Location, int] = {}
    for node, metric, ended, still_open in moments:
        parent, component = tree[node]
        if metric == TIME.name and parent in tree and tree[parent][1] in functions and component in functions:
            caller, callee = functions[tree[parent][1]], functions[component]
            edge = replace(callee, kind="edge", name=f"{caller.name} -> {callee.name}", function=caller.name)
            edges[edge] = edges.get(edge, 0) + ended + still_open
    return edges
