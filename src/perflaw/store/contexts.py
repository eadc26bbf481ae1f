"""Components and calling contexts of a program, numbered over all recordings, with the costs of each execution by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from perflaw.store.columns import Array, Row, Tables
from perflaw.store.counted import CountedCalls, read_counted
from perflaw.store.experiment import Recording
from perflaw.store.schema import component_of
from perflaw.store.tables import has_table, read_table
from perflaw.types import CPU, TIME, Component, Metric, ProgramCosts, Run
from perflaw.types.call_trees import MARK, QUEUED
from perflaw.types.programs import OUTSIDE
from perflaw.types.recordings import WAITING

QUEUEING: Final = Metric(f"{MARK}{QUEUED}", "ns")
"""Time in which a program was ready to run and others had the CPU."""
_OUTSIDE: Final = {CPU: 1, TIME: 1, QUEUEING: 0}
"""Metrics in which what ran outside the recording has a cost, by its CPU time."""


def costs_of(reader: ContextReader, runs: tuple[Run, ...]) -> ProgramCosts:
    """The costs of the executions that were read; ``runs`` are their runs, by whose ids they are known."""
    number = {run.id: place for place, run in enumerate(runs)}
    calls, own = np.zeros((2, len(runs), len(reader.components)))
    context_calls, context_made, context_own = np.zeros((3, len(runs), len(reader.contexts)))
    edge_calls = np.zeros((len(runs), len(reader.edges)))
    for name, edges, along in reader.edge_calls:
        np.add.at(edge_calls[number[name]], edges, along)
    for name, called, values, contexts, context_values, callers in reader.costs:
        row = number[name]
        np.add.at(context_made[row], callers[callers >= 0], context_values[0][callers >= 0])
        np.add.at(calls[row], called, values[0])
        np.add.at(own[row], called, values[1])
        np.add.at(context_calls[row], contexts, context_values[0])
        np.add.at(context_own[row], contexts, context_values[1])
    context = np.array([component for component, _ in reader.contexts], dtype=np.intp)
    active = tuple(tuple(sorted({component, *reader.sets[above]})) for component, above in reader.contexts)
    match_totals(own, context, context_calls, context_own)
    components = tuple(reader.components.values())
    return ProgramCosts(
        reader.metric,
        runs,
        components,
        calls,
        own,
        context,
        context_calls,
        context_made,
        context_own,
        active,
        tuple(reader.edges),
        edge_calls,
        tuple(max(lines, key=lambda line: lines[line]) for lines in reader.edge_lines),
    )


def match_totals(own: Array, context: Array, context_calls: Array, context_own: Array) -> None:
    """Scale the own costs of contexts in place so that those of a component sum to its own cost.

    They differ where contexts beyond a limit are put together, and where a generator runs in several contexts. Where
    contexts have no cost of their own, the component's cost is distributed by calls.
    """
    np.maximum(context_own, 0.0, out=context_own)
    for row in range(len(own)):
        for weights in (context_own[row], context_calls[row], np.ones(context.size)):
            total = np.bincount(context, weights, minlength=own.shape[1])
            missing = np.bincount(context, context_own[row], minlength=own.shape[1]) <= 0
            places = missing[context] & (total[context] > 0) & (own[row][context] > 0)
            context_own[row][places] = weights[places]
        total = np.bincount(context, context_own[row], minlength=own.shape[1])
        factor = np.divide(np.maximum(own[row], 0.0), total, out=np.zeros(own.shape[1]), where=total > 0)
        context_own[row] *= factor[context]


@dataclass(slots=True)
class ContextReader:
    """Components and contexts numbered over all recordings, and the costs of each recording by these numbers."""

    metric: Metric
    """What is read of the costs."""
    components: dict[tuple[str, str, int], Component] = field(default_factory=dict)
    """Component by name, file and first line, in the order of its number."""
    contexts: dict[tuple[int, int], int] = field(default_factory=dict)
    """Number of a component, number of the set of components above → number of the context."""
    sets: list[frozenset[int]] = field(default_factory=lambda: [frozenset()])
    """Sets of active components by number; 0 is the empty one."""
    costs: list[tuple[str, Array, Array, Array, Array, Array]] = field(default_factory=list)
    """Execution, components with their (2, n) calls and own costs, contexts with theirs and with the context that
    calls them (-1: none); one for each recording."""
    edges: dict[tuple[int, int], int] = field(default_factory=dict)
    """Caller (-1 for none) and callee by number → number of the edge."""
    edge_lines: list[dict[int, float]] = field(default_factory=list)
    """Of each edge, the calls by line of their call site."""
    edge_calls: list[tuple[str, Array, Array]] = field(default_factory=list)
    """Execution, edges by number, and the calls along them; one for each recording."""
    _set_numbers: dict[frozenset[int], int] = field(default_factory=lambda: {frozenset(): 0})
    _component_numbers: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _extended: dict[tuple[int, int], int] = field(default_factory=dict)
    """Number of a set, number of a component → number of the set with the component."""

    def number(self, row: Row) -> int:
        """The number of the component of a row of the table ``components``."""
        _, name, file, line, *_ = row
        key = (name, file, line)
        if key not in self.components:
            self.components[key] = component_of(row)
            self._component_numbers[key] = len(self.components) - 1
        return self._component_numbers[key]

    def read(self, recording: Recording, tables: Tables, execution: str) -> None:
        """Take in the costs of a recording, whose tables are given."""
        metric = self.metric
        numbers: dict[int, int] = {}
        calls = []
        for row in tables["components"]:
            number, name, *_, ended, still_open = row
            if name == WAITING:  # of suspended generators and coroutines: others have that time, and it is theirs
                continue
            numbers[number] = self.number(row)
            calls.append((numbers[number], ended + still_open))
        costs = (row for row in tables["component_costs"] if row[1] == metric.name)
        own = [(numbers[row[0]], row[3]) for row in costs if row[0] in numbers]
        if counted := read_counted(recording, metric):
            for function, caller, cost in zip(counted.component, counted.caller_component, counted.cost, strict=True):
                own += [(numbers[function], cost), (numbers[caller], -cost)] if cost else []
        # CPU time of the process before its tracer began and after the recording ended, where it is known. Of wall time the
        # same is taken, for a process does not wait while it starts and ends.
        machine = recording.run.machine
        outside = machine.before_ns + machine.after_ns if machine and metric in _OUTSIDE else 0
        if outside > 0:
            # Nothing is called there: it has no context but its own, and stands beside the program's first functions.
            number = self._component_numbers.setdefault(("", "", 0), len(self.components))
            self.components.setdefault(("", "", 0), Component(OUTSIDE))
            calls.append((number, 1))
            own.append((number, outside * _OUTSIDE[metric]))
        components = np.array([one for one, _ in [*calls, *own]], dtype=np.intp)
        values = np.array([[n for _, n in calls] + [0] * len(own), [0] * len(calls) + [cost for _, cost in own]], float)
        contexts, context_values, callers = self._of_contexts(tables, numbers, execution, counted)
        if outside > 0:
            alone = self.contexts.setdefault((number, 0), len(self.contexts))
            contexts, callers = np.append(contexts, alone), np.append(callers, -1)
            context_values = np.append(context_values, [[1.0], [float(outside * _OUTSIDE[metric])]], axis=1)
        self.costs.append((execution, components, values, contexts, context_values, callers))

    def _of_contexts(
        self,
        tables: Tables,
        numbers: Mapping[int, int],
        execution: str,
        counted: CountedCalls | None,
    ) -> tuple[Array, Array, Array]:
        """Contexts of the nodes of a call tree, (n,), their calls and own costs, (2, n), and their callers, (n,).

        The calls along edges are kept in ``edge_calls``.
        """
        tree = tables["calltree"]
        place = {node: row for row, node in enumerate(tree["node"].tolist())}
        values = np.zeros((2, len(place)))
        parent_row = np.array([place.get(parent, -1) for parent in tree["parent"].tolist()], dtype=np.intp)
        of_metric = tables["moments"].where("metric", self.metric.name)
        rows = np.array([place[node] for node in of_metric["node"].tolist()], dtype=np.intp)
        inclusive = np.zeros(len(place))
        inclusive[rows] = np.array(of_metric.columns["sum_x"].plain(), dtype=np.float64)
        values[0, rows] = of_metric["n"] + of_metric["open"]
        values[1] = inclusive
        called = parent_row >= 0
        np.subtract.at(values[1], parent_row[called], inclusive[called])
        if counted:
            for caller, node, count, cost in zip(
                counted.caller, counted.node, counted.calls, counted.cost, strict=True
            ):
                values[:, place[int(node)]] += count, cost
                if caller >= 0:
                    values[1, place[int(caller)]] -= cost
        called_by = [numbers.get(component, -1) for component in tree["component"].tolist()]
        lines = tree["site_line"].tolist()
        contexts, callers, edges = self.walk(parent_row.tolist(), called_by, lines, values[0].tolist())
        kept = contexts >= 0
        self.edge_calls.append((execution, edges[kept], values[0, kept]))
        return contexts[kept], values[:, kept], callers[kept]

    def walk(
        self, parents: list[int], components: list[int], lines: list[int], calls: list[float], top: int = -1
    ) -> tuple[Array, Array, Array]:
        """Contexts of some nodes of a call tree, callers first; the contexts that call them, and edges; -1: none.

        Given are the place of each node's parent among them, or -1, its component or -1, the line of its call site, and its
        calls. Everything is within calls of ``top``, if that is given: where it has no parent, its contexts begin.
        """
        contexts, callers, edges = (np.full(len(parents), -1, dtype=np.intp) for _ in range(3))
        # Number of the set above the callees of each node; the last is that of the nodes without a parent.
        above = [0] * len(parents)
        above.append(self._with(0, top) if top >= 0 else 0)
        for row, (parent, known, line, count) in enumerate(zip(parents, components, lines, calls, strict=True)):
            if known < 0:
                continue
            over, caller = above[parent], components[parent] if parent >= 0 else top
            if parent < 0 and known == top:
                over, caller = 0, -1
            edge = edges[row] = self.edges.setdefault((caller, known), len(self.edges))
            if edge == len(self.edge_lines):
                self.edge_lines.append({})
            of_edge = self.edge_lines[edge]
            of_edge[line] = of_edge.get(line, 0.0) + count
            contexts[row] = self.contexts.setdefault((known, over), len(self.contexts))
            callers[row] = contexts[parent] if parent >= 0 else -1
            above[row] = self._with(over, known)
        return contexts, callers, edges

    def _with(self, over: int, component: int) -> int:
        """Number of a set with a component added."""
        number = self._extended.get((over, component))
        if number is None:
            extended = self.sets[over] | {component}
            number = self._set_numbers.setdefault(extended, len(self.sets))
            if number == len(self.sets):
                self.sets.append(extended)
            self._extended[over, component] = number
        return number


def own_queueing(recording: Recording, parent: Array) -> Array:
    """(V,) ns in which each node of a call tree was itself ready to run and others had the CPU.

    ``parent`` is the (V,) callers of the nodes, -1 for none. Recordings of earlier versions do not tell: there it is 0. As
    with all own costs of nodes, that of one whose callees are folded into a cycle may be negative, because the cycle's node
    holds its inner calls twice; the sum over the tree is right. What never returned has at least its callees' queueing.
    """
    own = np.zeros(len(parent))
    if has_table(recording.folder, "queued"):
        queued = read_table(recording.folder, "queued")
        own[queued["node"]] = np.array(queued.columns["sum_x"].plain(), dtype=np.float64)
        unended, called = own == 0, parent >= 0
        np.subtract.at(own, parent[called], own[called].copy())
        own[unended] = np.maximum(own[unended], 0.0)
    return own
