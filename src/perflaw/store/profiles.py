"""The profile of recordings: calls and costs by calling context and by function, without any learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.parts import untold
from perflaw.store.columns import Array, Tables
from perflaw.store.contexts import match_totals, own_queueing
from perflaw.store.counted import read_counted
from perflaw.store.experiment import Recording, execution_of
from perflaw.store.schema import component_of
from perflaw.store.tables import read_each
from perflaw.types import TIME, Component
from perflaw.types.profiles import Profile, SiteCost
from perflaw.types.recordings import WAITING

_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "components": (),
    "component_costs": (),
    "calltree": ("node", "parent", "component", "site_line"),
    "moments": ("node", "metric", "n", "sum_x", "open"),
}
"""Tables that a profile is made of, and the columns that are needed; all where none is named."""


def newest_execution(recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings of the program's newest run: its own and those of its child processes."""
    by_id = {one.run.id: one.run for one in recordings}
    programs = [one.run for one in recordings if execution_of(one.run, by_id).id == one.run.id]
    newest = max(programs, key=lambda run: (run.started, run.id))
    return [one for one in recordings if execution_of(one.run, by_id).id == newest.id]


def read_profile(recordings: Sequence[Recording], tell: Callable[[float], None] = untold) -> Profile:
    """The profile of all recordings together; ``tell`` is told the part of the reading that is done.

    StoreError where a table is missing or damaged, or where recordings hold no costs of calls in a common metric.
    """
    names = [[metric.name for metric in recording.run.metrics] for recording in recordings]
    common = [name for name in names[0] if all(name in each for each in names)]
    if not common:
        run = next((one.run.id for one, has in zip(recordings, names, strict=True) if not has), recordings[0].run.id)
        why = "only how often places of the program were executed was recorded"
        raise StoreError(f"run {run} has no costs of calls", why, "perflaw trend")
    contexts = _Contexts(common)
    folders = [recording.folder for recording in recordings]
    columns = zip(*(read_each(folders, name, needed) for name, needed in _TABLES.items()), strict=True)
    for done, (recording, tables) in enumerate(zip(recordings, columns, strict=True), 1):
        contexts.add(recording, dict(zip(_TABLES, tables, strict=True)))
        tell(done / len(recordings))
    return contexts.profile(recordings)


@dataclass(slots=True)
class _Contexts:
    """Contexts, functions and call sites numbered over all recordings, with their calls and own costs."""

    metrics: Sequence[str]
    components: dict[Component, int] = field(default_factory=dict)
    keys: dict[tuple[int, int], int] = field(default_factory=dict)
    """Number of the caller's context (-1 for none), number of the function → number of the context."""
    sites: dict[tuple[int, int, int], Array] = field(default_factory=dict)
    """Caller and callee by number, and the line between → calls, and the total in each metric."""
    parts: list[tuple[Array, Array, Array]] = field(default_factory=list)
    """Of each recording: context, calls and (metrics, n) own costs of its nodes. Where a recursion is folded, the own
    cost of a node may be negative; over the nodes of a function they sum to its own cost."""
    function_own: list[tuple[Array, Array]] = field(default_factory=list)
    """Functions by number, and their (metrics, n) own costs; several for each recording."""
    queued: float = 0.0

    def add(self, recording: Recording, tables: Tables) -> None:
        """Take in a recording."""
        tree = tables["calltree"]
        size = int(tree["node"].max(initial=0)) + 1
        parent, component, line = np.full((3, size), -1, np.int64)
        for column, name in ((parent, "parent"), (component, "component"), (line, "site_line")):
            column[tree["node"]] = tree[name]
        numbers = {-1: -1}
        for row in tables["components"]:
            one = component_of(row)
            if one.name == WAITING:  # of suspended generators and coroutines: others have that time, and it is theirs
                parent[component == row[0]] = -1
                component[component == row[0]] = -1
            else:
                numbers[row[0]] = self.components.setdefault(one, len(self.components))
        self._add_functions(tables, numbers)
        calls, own = self._own_costs(recording, tables, parent, np.array([numbers[one] for one in component.tolist()]))

        # The sum over a subtree is an inclusive cost, also of calls that had not ended; callees have higher numbers.
        total = own.copy()
        for node in range(size - 1, 0, -1):
            if parent[node] >= 0:
                total[:, parent[node]] += total[:, node]

        context = np.full(size, -1, np.int64)
        active: list[frozenset[tuple[int, int, int]]] = [frozenset()] * size
        """Call sites above each node: within a recursion, the outermost call at a site alone counts."""
        for node in range(size):
            if component[node] < 0:
                continue
            function, above = numbers[int(component[node])], int(parent[node])
            caller = numbers[int(component[above])] if above >= 0 else -1
            outer = int(context[above]) if above >= 0 else -1
            recursive = outer >= 0 and function == caller
            context[node] = outer if recursive else self.keys.setdefault((outer, function), len(self.keys))
            active[node] = active[above] if above >= 0 else frozenset()
            if caller < 0 or line[node] <= 0:
                continue
            site = (caller, int(line[node]), function)
            costs = self.sites.setdefault(site, np.zeros(1 + len(self.metrics)))
            costs[0] += calls[node]
            if site not in active[node]:
                costs[1:] += total[:, node]
                active[node] = active[node] | {site}
        known = context >= 0
        self.parts.append((context[known], calls[known], own[:, known]))

    def _add_functions(self, tables: Tables, numbers: Mapping[int, int]) -> None:
        """Take in the own costs of functions, which are exact."""
        for place, name in enumerate(self.metrics):
            rows = tables["component_costs"].where("metric", name)
            rows = rows.take(np.flatnonzero([one in numbers for one in rows["component"].tolist()]))
            own = np.zeros((len(self.metrics), len(rows)))
            own[place] = np.array(rows.columns["self"].plain(), dtype=np.float64)
            self.function_own.append((np.array([numbers[one] for one in rows["component"].tolist()], np.intp), own))

    def _own_costs(self, recording: Recording, tables: Tables, parent: Array, function: Array) -> tuple[Array, Array]:
        """Calls (V,) and own costs (metrics, V) of the nodes; what counted calls took is theirs, not their callers'."""
        calls, own = np.zeros(len(parent)), np.zeros((len(self.metrics), len(parent)))
        below = parent >= 0
        for place, name in enumerate(self.metrics):
            rows = tables["moments"].where("metric", name)
            np.maximum.at(calls, rows["node"], (rows["n"] + rows["open"]).astype(np.float64))
            total = np.zeros(len(parent))
            total[rows["node"]] = np.array(rows.columns["sum_x"].plain(), dtype=np.float64)
            own[place] = total
            np.subtract.at(own[place], parent[below], total[below])
            unended = rows["node"][rows["open"] > 0]  # whose own cost is not known, but that of what they called is
            own[place][unended] = np.maximum(own[place][unended], 0.0)
            metric = next(metric for metric in recording.run.metrics if metric.name == name)
            if counted := read_counted(recording, metric):
                called = counted.caller >= 0
                moved = np.zeros((len(self.metrics), len(parent)))
                np.add.at(moved[place], counted.node, counted.cost)
                np.subtract.at(moved[place], counted.caller[called], counted.cost[called])
                own += moved
                known = function >= 0
                self.function_own.append((function[known], moved[:, known]))
            if name == TIME.name:  # in which others had the CPU is no cost of the program
                known = function >= 0
                queued = np.zeros_like(own)
                queued[place] = np.where(known, own_queueing(recording, parent), 0.0)
                self.queued += float(queued.sum())
                own -= queued
                self.function_own.append((function[known], -queued[:, known]))
        return calls, own

    def profile(self, recordings: Sequence[Recording]) -> Profile:
        """The profile of everything that was taken in."""
        size, functions = len(self.keys), len(self.components)
        parent, component = np.array(list(self.keys), dtype=np.int64).reshape(size, 2).T
        calls, own = np.zeros(size), np.zeros((len(self.metrics), size))
        for context, part_calls, part_own in self.parts:
            np.add.at(calls, context, part_calls)
            np.add.at(own.T, context, part_own.T)
        function_own = np.zeros((len(self.metrics), functions))
        for function, costs in self.function_own:
            np.add.at(function_own.T, function, costs.T)
        np.maximum(function_own, 0.0, out=function_own)
        for place in range(len(self.metrics)):
            rows = slice(place, place + 1)
            match_totals(function_own[rows], component, calls[None], own[rows])
        total = own.copy()
        for node in range(size - 1, -1, -1):  # callers have lower numbers
            if parent[node] >= 0:
                total[:, parent[node]] += total[:, node]
        outermost = _outermost(parent, component)

        def by_function(values: Array) -> Array:
            return np.bincount(component, values, minlength=functions)

        components = tuple(self.components)
        sites = tuple(
            SiteCost(
                components[caller], line, components[callee], int(row[0]), dict(zip(self.metrics, row[1:], strict=True))
            )
            for (caller, line, callee), row in self.sites.items()
        )
        places = dict(zip(self.metrics, range(len(self.metrics)), strict=True))
        return Profile(
            tuple(one.run for one in recordings),
            {metric.name: metric for metric in recordings[0].run.metrics if metric.name in places},
            components,
            parent,
            component,
            calls.astype(np.int64),
            {name: own[place] for name, place in places.items()},
            {name: total[place] for name, place in places.items()},
            by_function(calls).astype(np.int64),
            {name: by_function(own[place]) for name, place in places.items()},
            {name: by_function(total[place] * outermost) for name, place in places.items()},
            sites,
            self.queued,
        )


def _outermost(parent: Array, component: Array) -> Array:
    """(V,) whether no context above is of the same function."""
    active: list[frozenset[int]] = []
    result = np.zeros(len(parent), np.bool_)
    for node, (above, function) in enumerate(zip(parent.tolist(), component.tolist(), strict=True)):
        before = active[above] if above >= 0 else frozenset()
        result[node] = function not in before
        active.append(before | {function} if result[node] else before)
    return result
