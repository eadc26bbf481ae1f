"""Recordings merged into one calling-context tree, and the longest invocations of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from socket import gethostname
from typing import Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.parts import are_here, merged_in_parts, step_of, untold
from perflaw.store.columns import NULL, WIDE, Array, Column, Row, Table, Tables
from perflaw.store.experiment import Recording
from perflaw.store.merge import merge
from perflaw.store.schema import WORST, component_of
from perflaw.store.tables import has_table, read_table, read_tables
from perflaw.types import CPU, EVENTS, TIME, Component, Metric
from perflaw.types.call_trees import (
    AWAIT,
    MARK,
    QUEUED,
    RESUMES,
    CallTree,
    LinkMoments,
    NodeMoments,
    PairMoments,
    Samples,
)
from perflaw.types.recordings import MachineLosses, NestedSpan, WorstCall

OF_NO_TREE: Final = ("worst", "spans", "counted", "queued", "parts")
"""Tables of which nothing is in a call tree: they are not read."""
MIN_NOISE_NS: Final = 100
"""Duration of a cache miss: the cost of an invocation is not known better than this."""
PART: Final = 8
"""Recordings, or merged parts of them, that are merged at once."""
PART_OF_A_METRIC: Final = 0.05
"""Part of the reading that making the tree of a metric is."""
MERGED: Final = 0.3
"""Cost of merging a recording with others for the first time, in that of reading it."""
TABLES_READ: Final = 0.9
"""Part of the reading that is done when all tables are read and merged once; the rest is merging them further."""


def read_call_tree(recordings: Sequence[Recording], metric: Metric, tell: Callable[[float], None] = untold) -> CallTree:
    """The tree of all recordings together. StoreError where a table is missing or damaged."""
    [tree] = read_call_trees(recordings, [metric], tell)
    return tree


def read_call_trees(
    recordings: Sequence[Recording], asked: Sequence[Metric], tell: Callable[[float], None] = untold
) -> list[CallTree]:
    """The trees of all recordings together in some metrics. StoreError where a table is missing or damaged.

    ``tell`` is told the part of the reading that is done, 0 to 1.
    """
    read = 1.0 - min(PART_OF_A_METRIC * len(asked), 0.5)
    tables = read_merged([recording.folder.absolute() for recording in recordings], step_of(tell, 0.0, read))
    metrics = {known.name: known for recording in recordings for known in recording.run.metrics}
    noise = max(
        0.0
        if recording.run.clock.name == "fake"
        else float(max(recording.run.clock.event_ns / 5, recording.run.clock.tick_ns, MIN_NOISE_NS))
        for recording in recordings
    )
    clocks = [recording.run.clock for recording in recordings]
    event_ns = max((float(clock.event_ns) for clock in clocks if clock.name != "fake"), default=0.0)
    # Limits of the recorder that were reached, and runs that did not end normally.
    lost = [recording.run.lost for recording in recordings]
    folded, unlinked = sum(one.folded_calls for one in lost), sum(one.unlinked for one in lost)
    incomplete = sum(not recording.run.complete for recording in recordings)
    notes = []
    if folded:
        notes.append(f"{folded} calls from further contexts are put together by function")
    if unlinked:
        notes.append(f"{unlinked} times a descendant's part was not kept: its variance counts as its ancestor's own")
    if incomplete:
        notes.append(f"{incomplete} of {len(lost)} runs did not end normally: they hold what had completed")
    with_marks = all("off" in recording.run.words for recording in recordings)
    trees: list[CallTree] = []
    for number, metric in enumerate(asked, 1):
        # What does not depend on the metric is read once, and the same arrays in all trees.
        tree = of_metric(trees[0], tables, metric) if trees else call_tree(tables, metric, metrics, with_marks)
        trees.append(tree)
        tell(read + (1.0 - read) * number / len(asked))
    trees = [replace(tree, notes=tuple(notes), clock_noise=noise, event_ns=event_ns) for tree in trees]
    machines = [recording.run.machine for recording in recordings]
    watched = [machine.losses for machine in machines if machine is not None and machine.losses is not None]
    if len(watched) < sum(machine is not None for machine in machines) or not watched:
        return trees
    losses = tuple(chain.from_iterable(one.losses_ns for one in watched))
    return [replace(tree, losses=MachineLosses(sum(one.watched_ns for one in watched), losses)) for tree in trees]


def read_merged(folders: Sequence[Path], tell: Callable[[float], None] = untold) -> Tables:
    """The tables of call trees of some recordings as one, given by their folders; StoreError where one is missing or damaged.

    They are read and merged some at a time, and then what came of that is merged likewise. Sums are exact, so that this
    gives the tables of one merge of all of them. ``tell`` is told the part that is done.
    """
    read = partial(_read_together, host=gethostname())
    if not are_here():
        return merged_in_parts(read, merge, folders, PART, tell)
    done, read_once = 0.0, 1.0 if len(folders) <= PART else TABLES_READ

    def tell_read(recordings: float) -> None:
        nonlocal done
        done += recordings
        tell(read_once * done / len(folders) / (1.0 + MERGED))

    merged = merged_in_parts(partial(read, tell=tell_read), merge, folders, PART)
    if len(folders) > PART:
        tell(1.0)
    return merged


def _read_together(folders: Sequence[Path], host: str, tell: Callable[[float], None] = untold) -> Tables:
    """The recordings in some folders as one; ``host`` is the one whose paths these are.

    ``tell`` is told how many are read each time that one is, and in the same unit what merging them was.
    """
    for folder in folders:
        if gethostname() != host and not folder.is_dir():
            why = "each worker of a cluster reads recordings itself, and this one does not see the folder"
            raise StoreError(f"{folder} is not there on {gethostname()}", why, "--cluster local:4")
    tables = []
    for folder in folders:
        tables.append(read_tables(folder, OF_NO_TREE))
        tell(1.0)
    merged = merge(tables)
    tell(MERGED * len(folders))
    return merged


def call_tree(tables: Tables, metric: Metric, metrics: dict[str, Metric], with_marks: bool = False) -> CallTree:
    """One metric of the tree in these tables; ``with_marks``: whether every run tells what its threads were off the CPU for."""
    nodes, histogram = tables["calltree"], tables["histograms"]
    moments = {}
    for name in metrics:
        # Nodes without a completed invocation have zeros.
        columns = _columns(tables["moments"], name, ("node", "n", "sum_x", "sum_xx"))
        n, sum_x, sum_xx = (np.zeros(len(nodes), kind) for kind in (np.int64, object, object))
        for target, column in ((n, "n"), (sum_x, "sum_x"), (sum_xx, "sum_xx")):
            target[columns["node"]] = columns[column]
        moments[name] = NodeMoments(n, sum_x, sum_xx)
    return CallTree(
        metric,
        metrics,
        tuple(map(component_of, tables["components"])),
        nodes["parent"],
        nodes["component"],
        nodes["site"],
        nodes["site_line"],
        moments,
        *_pairs_and_links(tables, metric),
        _samples(tables, metric, with_marks),
        (histogram["node"], histogram["bucket"], histogram["count"]),
    )


def of_metric(tree: CallTree, tables: Tables, metric: Metric) -> CallTree:
    """Another metric of a tree that was read from these tables."""
    pairs, links = _pairs_and_links(tables, metric)
    samples = tree.samples and _samples_of_metric(tree.samples, metric)
    return replace(tree, metric=metric, pairs=pairs, links=links, samples=samples)


def _pairs_and_links(tables: Tables, metric: Metric) -> tuple[PairMoments, LinkMoments]:
    pairs = _columns(tables["pairs"], metric.name, ("node", "i", "j", "sum_yy"))
    return PairMoments(**pairs), LinkMoments(**_columns(tables["links"], metric.name, tuple(LinkMoments.__slots__)))


def _columns(table: Table, metric: str, names: tuple[str, ...]) -> dict[str, Array]:
    """Columns of the rows of a metric; sums become Python's integers."""
    rows, columns = table.where("metric", metric), {}
    for name in names:
        columns[name] = rows[name]
        if columns[name].dtype == WIDE:
            columns[name] = np.empty(len(rows), dtype=object)
            columns[name][:] = rows.columns[name].plain()
    return columns


def _samples(tables: Tables, metric: Metric, with_marks: bool) -> Samples:
    invocations, callees = tables["invocations"], tables["callees"]
    columns = _columns_by_text(invocations, tables["invocation_costs"], "metric", "x", 0.0)
    awaits = columns.pop(f"{MARK}{AWAIT}", None)
    resumes = columns.pop(RESUMES, None)
    costs = {name: column for name, column in columns.items() if not name.startswith(MARK)}
    marks = {name.removeprefix(MARK): column for name, column in columns.items() if name.startswith(MARK)}
    words = invocations.columns["run"].words or ()
    samples = Samples(
        tuple(words[code] for code in invocations["run"].tolist()),
        invocations["sequence"],
        invocations["node"],
        invocations["started"],
        np.zeros(0),
        invocations["x"].astype(np.float64),
        _nan_for_null(invocations["x_cpu"]),
        invocations["x_events"].astype(np.float64),
        invocations["weight"].astype(np.float64),
        invocations["stratum"],
        invocations["uniform_key"] >= 0,
        _places(invocations, callees),
        callees["node"],
        callees["k"],
        np.zeros(0),
        callees["y"].astype(np.float64),
        _nan_for_null(callees["y_cpu"]),
        costs,
        _columns_by_text(invocations, tables["features"], "feature", "value", np.nan),
        {QUEUED: np.zeros(len(invocations))} | marks if with_marks else {},
        awaits,
        resumes,
    )
    return _samples_of_metric(samples, metric)


def _samples_of_metric(samples: Samples, metric: Metric) -> Samples:
    """The samples with their costs, and those of their callees, in a metric."""
    by_metric = {TIME.name: samples.time, CPU.name: samples.cpu, EVENTS.name: samples.events, **samples.costs}
    of_callees = {TIME.name: samples.y_time, CPU.name: samples.y_cpu}
    x = by_metric.get(metric.name, np.zeros(len(samples.time)))
    return replace(samples, x=x, y=of_callees.get(metric.name, np.full(len(samples.k), np.nan)))


def _nan_for_null(column: Array) -> Array:
    return np.where(column == NULL, np.nan, column.astype(np.float64))


def _places(invocations: Table, table: Table) -> Array:
    """Place of each row's invocation among the sampled invocations."""
    if not len(table):
        return np.empty(0, np.int64)
    run_column: Column = table.columns["run"].encoded(invocations.columns["run"].words or ())
    keys = (invocations["run"].astype(np.int64) << 40) + invocations["sequence"]
    wanted = (run_column.array().astype(np.int64) << 40) + table["sequence"]
    order = np.argsort(keys, kind="stable")
    return order[np.searchsorted(keys[order], wanted)]


def _columns_by_text(invocations: Table, table: Table, key: str, value: str, missing: float) -> dict[str, Array]:
    """Text in the column ``key`` → number at each sampled invocation, ``missing`` where the table has none."""
    places, codes, values = _places(invocations, table), table[key], table[value]
    columns: dict[str, Array] = {}
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(codes[known], kind="stable")]
    words = table.columns[key].words or ()
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else ():
        column = columns[words[codes[rows[0]]]] = np.full(len(invocations), missing)
        column[places[rows]] = values[rows]
    return columns


def worst_calls(recordings: Sequence[Recording], component: Component) -> tuple[WorstCall, ...]:
    """The longest invocations of a function over all recordings, the longest first, with the longest calls within them.

    Recordings of earlier versions of perflaw kept none. StoreError where a table is damaged.
    """
    calls = [call for recording in recordings for call in _worst_of(recording, component)]
    return tuple(sorted(calls, key=lambda call: (-call.time_ns, call.run, call.sequence))[:WORST])


def _worst_of(recording: Recording, component: Component) -> Iterator[WorstCall]:
    """The longest invocations of a function in a recording, in no order."""
    if not has_table(recording.folder, "worst"):
        return
    components = read_table(recording.folder, "components")
    identity = (component.name, component.file, component.line, component.language, component.origin)
    numbers = {row[0] for row in components if row[1:6] == identity}
    rows = [row for row in read_table(recording.folder, "worst") if row[2] in numbers]
    if not rows:
        return
    columns = ("node", "parent", "component", "site_line")
    nodes = {row[0]: row[1:] for row in read_table(recording.folder, "calltree", columns)}
    names = {row[0]: str(row[1]) for row in components}

    def name(node: int) -> str:
        return names.get(nodes[node][1], "(unknown)")

    spans: dict[Row, list[NestedSpan]] = {row[:2]: [] for row in rows}  # by run and sequence
    for run, sequence, _, parent, node, started, time in read_table(recording.folder, "spans"):
        if (run, sequence) in spans:
            spans[run, sequence].append(NestedSpan(name(node), nodes[node][2], parent, started, time))
    features: dict[Row, dict[str, float | str]] = {key: {} for key in spans}
    for run, sequence, feature, value, text in read_table(recording.folder, "features"):
        if (run, sequence) in features and (value is not None or text is not None):
            features[run, sequence][feature] = text if value is None else value
    for run, sequence, _, node, started, time, cpu, calls in rows:
        path = []
        while node > 0:
            path.append(name(node))
            node = nodes[node][0]
        key, cpu_ns = (run, sequence), float("nan") if cpu is None else float(cpu)
        context = tuple(reversed(path))
        yield WorstCall(run, sequence, started, time, cpu_ns, calls, context, tuple(spans[key]), features[key])
