"""The evidence of an experiment: sampled invocations and totals of each component, over all recordings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from perflaw.errors import UsageError
from perflaw.store.columns import Array, Table, grouped
from perflaw.store.contexts import QUEUEING
from perflaw.store.counted import read_counted
from perflaw.store.experiment import Recording
from perflaw.store.schema import component_of
from perflaw.store.tables import read_each
from perflaw.types import CPU, EVENTS, TIME, Component, Evidence, Metric, RunCost
from perflaw.types.call_trees import MARK, QUEUED
from perflaw.types.recordings import WAITING

SparseColumns = dict[str, list[tuple[Array, Array]]]
"""Name of a column → row numbers among the component's invocations, and the values there; an entry for each run."""
EvidenceByKey = Mapping[tuple[str, str], Evidence]
"""Evidence by component and metric."""
BRANCH: Final = re.compile(r"branch\.(\S+\.)?L\d+((_\d+)?\.(not_)?taken|\.to_(\S+\.)?L\d+(_\d+)?)")
"""Names of features that count outcomes of a branch; a parameter may be named ``branch`` as well."""
CALLS: Final = "calls."
"""Prefix of the names of call edges."""
COST_COLUMNS: Final = {TIME.name: "x", CPU.name: "x_cpu", EVENTS.name: "x_events"}
"""Metrics that have a column in the table of invocations."""


def find_metric(recordings: Sequence[Recording], name: str) -> Metric:
    """The metric of that name; UsageError if a recording does not have it."""
    for recording in recordings:
        known = {metric.name: metric for metric in recording.run.metrics}
        if not known:
            why = "it is a run of a compiled program of which only execution counts were recorded"
            raise UsageError(f"run {recording.run.id} has no costs of calls", why, "perflaw trend")
        if name not in known:
            why = f"it has {', '.join(known)}"
            remedy = f"perflaw record --metric {name} -- …"
            raise UsageError(f"--metric {name}: not measured in run {recording.run.id}", why, remedy)
    return known[name]


_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "components": (),
    "component_costs": (),
    "calltree": ("node", "component", "depth"),
    "moments": ("node", "metric", "sum_x"),
    "invocations": (),
    "invocation_costs": ("sequence", "metric", "x"),
    "features": ("sequence", "feature", "value", "text"),
    "callees": ("sequence", "node", "k"),
}
"""Tables that hold the evidence, and the columns that are needed; all where none is named."""
_OF_INVOCATIONS: Final = ("features", "callees")
"""Those that say what was read of each sampled invocation."""


def gather(
    recordings: Sequence[Recording],
    metric: Metric = TIME,
    progress: Callable[[float], None] = lambda part: None,
    features: bool = True,
) -> list[Evidence]:
    """Evidence of each component's cost in a metric, ordered by name; StoreError if a table is missing or damaged.

    ``progress`` is called with the part of the recordings that is read. Without ``features`` the sampled invocations have
    neither features nor callees, which are most of what there is to read.
    """
    samples: dict[tuple[str, str, int], _ComponentSamples] = {}
    folders = [recording.folder for recording in recordings]
    names = [name for name in _TABLES if features or name not in _OF_INVOCATIONS]
    columns = zip(*(read_each(folders, name, _TABLES[name]) for name in names), strict=True)
    for number_of_run, (recording, tables) in enumerate(zip(recordings, columns, strict=True), 1):
        components, component_costs, calltree, moments, sampled, further, *of_invocations = tables
        costs = {row[0]: row[2:] for row in component_costs if row[1] == metric.name}
        # Cost of the top functions over all threads, or the sum of what all functions cost by themselves, because a top
        # function that never returns, as one that calls exit, has no cost. Of time at least the span of all events, in
        # which there may be what was not selected; what was excluded is no part of the program, as pytest of a suite.
        tops = set(calltree["node"][calltree["depth"] == 1].tolist())
        whole = sum(int(sum_x) for node, _, sum_x in moments.where("metric", metric.name) if node in tops)
        waiting = {row[0] for row in components if row[1] == WAITING}  # of generators, whose callers have that time
        whole = max(whole, sum(itself for number, (_, itself) in costs.items() if number not in waiting))
        queued: Mapping[int, tuple[int, int]] = {}
        if metric == TIME:
            # That others had the CPU is no cost of the program.
            queued = {row[0]: row[2:] for row in component_costs if row[1] == QUEUEING.name}
            left_out = sum(itself for _, itself in queued.values())
            run = recording.run
            # The thread queued between the recorded functions as well.
            queued_ns = max(left_out, run.machine.queued_ns if run.machine else 0)
            span = 0 if run.configuration.get("exclude") else run.span_ns - queued_ns
            whole = max(span, whole - left_out, 0)
        by_number: dict[int, _ComponentSamples] = {}
        counted, moved = _counted_by_component(recording, metric)
        for row in components:
            number, name, file, line, *_, calls, _ = row
            entry = samples.setdefault((name, file, line), _ComponentSamples(component_of(row)))
            total, self_total = costs.get(number, (0, 0))
            added, taken = moved.get(number, (0, 0))
            of_queueing, itself = queued.get(number, (0, 0))
            total, self_total = max(total + added - of_queueing, 0), self_total + added - taken - itself
            run_cost = RunCost(recording.run, calls, total, self_total, whole, counted.get(number, 0))
            entry.runs.append(run_cost)
            by_number[number] = entry
        invocations = _gather_invocations(recording.run.id, sampled, further, metric, by_number)
        if of_invocations:
            features_table, callees = of_invocations
            _gather_features(features_table, invocations, by_number)
            _gather_edges(callees, calltree, invocations, by_number)
        progress(number_of_run / len(recordings))
    return [samples[key].evidence() for key in sorted(samples)]


def _counted_by_component(recording: Recording, metric: Metric) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Component → its calls that were counted and not timed; → their estimated cost, and that of those it makes."""
    calls: dict[int, int] = {}
    moved: dict[int, tuple[int, int]] = {}
    if counted := read_counted(recording, metric):
        rows = zip(counted.component, counted.caller_component, counted.calls, counted.cost, strict=True)
        for function, caller, count, cost in rows:
            calls[int(function)] = calls.get(int(function), 0) + int(count)
            added, taken = moved.get(int(function), (0, 0))
            moved[int(function)] = added + round(cost), taken
            added, taken = moved.get(int(caller), (0, 0))
            moved[int(caller)] = added, taken + round(cost)
    return calls, moved


def by_key(evidence: Iterable[Evidence], metric: Metric) -> dict[tuple[str, str], Evidence]:
    """Evidence by component and metric; of several components of one name that of the largest total cost."""
    ordered = sorted(evidence, key=lambda one: sum(cost.total for cost in one.runs))
    return {(one.component.name, metric.name): one for one in ordered}


@dataclass(slots=True)
class _ComponentSamples:
    """What was gathered of a component so far; it is the same in two runs if its name, file and first line are."""

    component: Component
    invocations: list[Table] = field(default_factory=list)
    """Sampled invocations of each run that has any."""
    cost: list[Array] = field(default_factory=list)
    """Their costs."""
    run: list[str] = field(default_factory=list)
    """Run of each sampled invocation."""
    features: SparseColumns = field(default_factory=dict)
    """Numbers that were read of the invocations."""
    categories: SparseColumns = field(default_factory=dict)
    """Texts that were read of the invocations."""
    edges: SparseColumns = field(default_factory=dict)
    """Calls of callees, named ``calls.<component>``; a row number may occur more than once."""
    runs: list[RunCost] = field(default_factory=list)

    def evidence(self) -> Evidence:
        """The evidence, with every column in full length."""
        count = len(self.run)

        def concatenated(arrays: list[Array]) -> Array:
            return np.concatenate(arrays) if arrays else np.empty(0)

        def dense(columns: SparseColumns, missing: object, kind: DTypeLike) -> dict[str, Array]:
            out = {}
            for name, pieces in columns.items():
                out[name] = np.full(count, missing, dtype=kind)
                for places, values in pieces:
                    out[name][places] = values
            return out

        edges = {name: np.zeros(count) for name in self.edges}
        for name, pieces in self.edges.items():
            for places, values in pieces:
                np.add.at(edges[name], places, values)
        numbers = dense(self.features, np.nan, np.float64)
        branches = {name: column for name, column in numbers.items() if BRANCH.fullmatch(name)}
        # The tracer records the outcomes that are not 0, and at least one of an invocation whose branches it counted.
        counted = np.logical_or.reduce([np.zeros(count, np.bool_), *(~np.isnan(one) for one in branches.values())])
        return Evidence(
            self.component,
            concatenated(self.cost).astype(np.float64),
            concatenated([table["weight"] for table in self.invocations]).astype(np.float64),
            concatenated([table["uniform_key"] for table in self.invocations]) >= 0,
            np.array(self.run, dtype=np.str_),
            {name: column for name, column in numbers.items() if name not in branches},
            tuple(self.runs),
            {name: column.astype(np.str_) for name, column in dense(self.categories, "", np.object_).items()},
            edges,
            {name: np.where(counted, np.nan_to_num(column), np.nan) for name, column in branches.items()},
        )


@dataclass(frozen=True, slots=True)
class _RunInvocations:
    """The sampled invocations of a run, in order of their sequence numbers."""

    sequence: Array
    """Sequence number of each."""
    component: Array
    """Number of the component of each."""
    place: Array
    """Row number of each among the invocations of its component in all runs."""

    def rows(self, sequence: Array) -> Array:
        """Numbers of the invocations with these sequence numbers."""
        return np.searchsorted(self.sequence, sequence)


def _gather_invocations(
    run: str, table: Table, further: Table, metric: Metric, by_number: Mapping[int, _ComponentSamples]
) -> _RunInvocations:
    """Append a run's sampled invocations to those of their components."""
    column = COST_COLUMNS.get(metric.name)
    cost = table[column] if column else _further_cost(table, further, metric.name)
    if metric == TIME:
        # The kernel tells of each call how long it was ready to run and others had the CPU: that is no cost of the call.
        cost = cost - _further_cost(table, further, MARK + QUEUED)
    place = np.empty(len(table), np.int64)
    for rows_of_component in _groups(table["component"]):
        part = table.take(rows_of_component)
        entry = by_number[int(part["component"][0])]
        place[rows_of_component] = np.arange(len(entry.run), len(entry.run) + len(rows_of_component))
        entry.invocations.append(part)
        entry.cost.append(cost[rows_of_component])
        entry.run += [run] * len(rows_of_component)
    return _RunInvocations(table["sequence"], table["component"], place)


def _further_cost(invocations: Table, further: Table, metric: str) -> Array:
    """Costs of a run's sampled invocations in a metric that has no column among them; 0 where none was recorded."""
    rows = further.where("metric", metric)
    costs = dict(zip(rows["sequence"].tolist(), rows["x"].tolist(), strict=True))
    return np.array([costs.get(sequence, 0) for sequence in invocations["sequence"].tolist()], dtype=np.int64)


def _groups(*keys: Array) -> list[NDArray[np.intp]]:
    """Numbers of the rows of each group of equal keys, in the order of the keys."""
    order, starts = grouped(keys)
    return np.split(order, starts[1:]) if len(order) else []


def _gather_features(table: Table, invocations: _RunInvocations, by_number: Mapping[int, _ComponentSamples]) -> None:
    """Append the numbers and the texts (names of types) that were read of the sampled invocations."""
    row, codes, names = invocations.rows(table["sequence"]), table["feature"], table.columns["feature"].words or ()
    texts = np.array([*(table.columns["text"].words or ()), ""], dtype=object)
    is_number = ~np.isnan(table["value"])
    for chosen, values in ((is_number, table["value"]), (~is_number, texts[table["text"]])):
        entries = np.flatnonzero(chosen)
        for group in _groups(invocations.component[row[entries]], codes[entries]):
            cells = entries[group]
            samples = by_number[int(invocations.component[row[cells[0]]])]
            columns = samples.features if chosen is is_number else samples.categories
            columns.setdefault(names[codes[cells[0]]], []).append((invocations.place[row[cells]], values[cells]))


def _gather_edges(
    table: Table, tree: Table, invocations: _RunInvocations, by_number: Mapping[int, _ComponentSamples]
) -> None:
    """Append how often the sampled invocations called each component directly; callees without a node have no edge."""
    table = table.take(np.flatnonzero(table["node"] > 0))
    row, calls = invocations.rows(table["sequence"]), table["k"]
    order = np.argsort(tree["node"])
    callee = tree["component"][order][np.searchsorted(tree["node"][order], table["node"])]
    for cells in _groups(invocations.component[row], callee):
        samples = by_number[int(invocations.component[row[cells[0]]])]
        called = by_number[int(callee[cells[0]])].component
        if called.line:  # a pseudo-component without a line is no function: the waiting of a generator
            columns = samples.edges.setdefault(CALLS + called.name, [])
            columns.append((invocations.place[row[cells]], calls[cells]))
