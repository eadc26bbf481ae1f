"""The costs of whole executions by component and calling context, from the call trees of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from perflaw.store.columns import Array, Tables
from perflaw.store.counted import CountedCalls, read_counted
from perflaw.store.experiment import Recording, execution_of
from perflaw.store.schema import component_of
from perflaw.store.tables import read_each
from perflaw.types import CPU, TIME, Component, Metric, ProgramCosts, Run
from perflaw.types.programs import OUTSIDE

_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "components": (),
    "component_costs": (),
    "calltree": ("node", "parent", "component", "site_line"),
    "moments": ("node", "metric", "n", "sum_x", "open"),
}
"""Tables that hold the costs, and the columns that are needed; all where none is named."""


def read_program(recordings: Sequence[Recording], metric: Metric) -> ProgramCosts:
    """The costs of all complete executions in a metric; StoreError if a table is missing or damaged.

    An execution is the program's own run with the runs of its child processes. It counts if all of them are complete.
    Wall time on a busy machine is without what the kernel had the program queue for a CPU, where CPU time is recorded too.
    """
    runs = [recording.run for recording in recordings]
    busy = any(run.machine and run.machine.is_busy(run.wall_ns) and run.clock.name != "fake" for run in runs)
    if metric != TIME or not busy or not all(CPU in run.metrics for run in runs):
        [costs] = _read_costs(recordings, metric)
        return costs
    costs, on_cpu = _read_costs(recordings, TIME, CPU)
    queued = np.array([run.machine.queued_ns if run.machine else 0 for run in costs.runs], dtype=np.float64)
    return _without_queueing(costs, on_cpu, queued)


def _without_queueing(costs: ProgramCosts, on_cpu: ProgramCosts, queued: Array) -> ProgramCosts:
    """Wall time without that which each run queued for a CPU, ns (R,).

    The kernel tells how long a run queued in all, not where. Queueing comes with running: for each ns on a CPU a function
    queues as long as any other, and at most as long as it was off the CPU. The rest is waiting of its own accord.
    """
    off = np.maximum(costs.own - on_cpu.own, 0.0)
    context_off = np.maximum(costs.context_own - on_cpu.context_own, 0.0)
    rate = np.array([_queueing_rate(*run) for run in zip(off, np.maximum(on_cpu.own, 1.0), queued, strict=True)])[
        :, None
    ]
    left_out = np.minimum(off, rate * np.maximum(on_cpu.own, 1.0))
    own = costs.own - left_out
    context_own = costs.context_own - np.minimum(context_off, rate * np.maximum(on_cpu.context_own, 1.0))
    _match_totals(own, costs.context, costs.context_calls, context_own)
    return replace(costs, own=own, context_own=context_own, queued=left_out.sum(axis=1))


def _queueing_rate(off: Array, cpu: Array, queued: float) -> float:
    """The rate r at which the least of off (F,) and r times cpu (F,) sums to a run's queueing; infinite if off is less."""
    order = np.argsort(off / cpu)
    # Before each function in this order: what those whose time off the CPU is queueing throughout queued, and the others' CPU.
    full = np.concatenate([[0.0], np.cumsum(off[order])[:-1]])
    rest = np.cumsum(cpu[order][::-1])[::-1]
    rates = (queued - full) / rest
    fits = np.flatnonzero(rates <= off[order] / cpu[order])
    return float(max(rates[fits[0]], 0.0)) if fits.size else float("inf")


def _read_costs(recordings: Sequence[Recording], *metrics: Metric) -> list[ProgramCosts]:
    """The costs in each of the metrics; every table is read once."""
    by_id = {recording.run.id: recording.run for recording in recordings}
    incomplete = {execution_of(one.run, by_id).id for one in recordings if not one.run.complete}
    executions: dict[str, Run] = {}
    readers = [_ContextReader(metric) for metric in metrics]
    complete = [one for one in recordings if execution_of(one.run, by_id).id not in incomplete]
    folders = [recording.folder for recording in complete]
    columns = zip(*(read_each(folders, name, needed) for name, needed in _TABLES.items()), strict=True)
    for recording, tables in zip(complete, columns, strict=True):
        execution = execution_of(recording.run, by_id)
        executions.setdefault(execution.id, execution)
        for reader in readers:
            reader.read(recording, dict(zip(_TABLES, tables, strict=True)), execution.id)
    runs = tuple(executions.values())
    return [_costs_of(reader, runs) for reader in readers]


def _costs_of(reader: _ContextReader, runs: tuple[Run, ...]) -> ProgramCosts:
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
    _match_totals(own, context, context_calls, context_own)
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


def _match_totals(own: Array, context: Array, context_calls: Array, context_own: Array) -> None:
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
class _ContextReader:
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

    def read(self, recording: Recording, tables: Tables, execution: str) -> None:
        """Take in the costs of a recording, whose tables are given."""
        metric = self.metric
        numbers: dict[int, int] = {}
        calls = []
        for row in tables["components"]:
            number, name, file, line, *_, ended, still_open = row
            key = (name, file, line)
            if key not in self.components:
                self.components[key] = component_of(row)
                self._component_numbers[key] = len(self.components) - 1
            numbers[number] = self._component_numbers[key]
            calls.append((numbers[number], ended + still_open))
        own = [(numbers[row[0]], row[3]) for row in tables["component_costs"] if row[1] == metric.name]
        if counted := read_counted(recording, metric):
            for function, caller, cost in zip(counted.component, counted.caller_component, counted.cost, strict=True):
                own += [(numbers[function], cost), (numbers[caller], -cost)] if cost else []
        # CPU time of the process before its tracer began and after the recording ended, where it is known. Of wall time the
        # same is taken, for a process does not wait while it starts and ends.
        machine = recording.run.machine
        outside = machine.before_ns + machine.after_ns if machine and metric in (CPU, TIME) else 0
        if outside > 0:
            # Nothing is called there: it has no context but its own, and stands beside the program's first functions.
            number = self._component_numbers.setdefault(("", "", 0), len(self.components))
            self.components.setdefault(("", "", 0), Component(OUTSIDE))
            calls.append((number, 1))
            own.append((number, outside))
        components = np.array([one for one, _ in [*calls, *own]], dtype=np.intp)
        values = np.array([[n for _, n in calls] + [0] * len(own), [0] * len(calls) + [cost for _, cost in own]], float)
        contexts, context_values, callers = self._of_contexts(tables, numbers, execution, counted)
        if outside > 0:
            alone = self.contexts.setdefault((number, 0), len(self.contexts))
            contexts, callers = np.append(contexts, alone), np.append(callers, -1)
            context_values = np.append(context_values, [[1.0], [float(outside)]], axis=1)
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
        # Number of the set above the callees of each node; the last is 0.
        above = [0] * (len(place) + 1)
        contexts, callers, edges = ([-1] * len(place) for _ in range(3))
        called_by, parents = tree["component"].tolist(), parent_row.tolist()
        each = zip(parents, called_by, tree["site_line"].tolist(), values[0].tolist(), strict=True)
        for row, (parent, component, line, calls) in enumerate(each):
            if component >= 0:
                known, over = numbers[component], above[parent]
                caller = numbers[called_by[parent]] if parent >= 0 and called_by[parent] >= 0 else -1
                edge = edges[row] = self.edges.setdefault((caller, known), len(self.edges))
                if edge == len(self.edge_lines):
                    self.edge_lines.append({})
                of_edge = self.edge_lines[edge]
                of_edge[line] = of_edge.get(line, 0.0) + calls
                contexts[row] = self.contexts.setdefault((known, over), len(self.contexts))
                callers[row] = contexts[parent] if parent >= 0 else -1
                # Number of the set with the component added.
                with_known = self._extended.get((over, known))
                if with_known is None:
                    extended = self.sets[over] | {known}
                    with_known = self._set_numbers.setdefault(extended, len(self.sets))
                    if with_known == len(self.sets):
                        self.sets.append(extended)
                    self._extended[over, known] = with_known
                above[row] = with_known
        context, caller_of, edge_of = (np.array(one, dtype=np.intp) for one in (contexts, callers, edges))
        kept = context >= 0
        self.edge_calls.append((execution, edge_of[kept], values[0, kept]))
        return context[kept], values[:, kept], caller_of[kept]
