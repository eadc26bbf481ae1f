"""The costs of whole executions by component and calling context, from the call trees of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from perflaw.errors import UsageError
from perflaw.store.columns import Tables
from perflaw.store.contexts import QUEUEING, ContextReader, costs_of, match_totals
from perflaw.store.experiment import Recording, execution_of
from perflaw.store.observations import read_observations
from perflaw.store.schema import table_of
from perflaw.store.tables import has_table, read_each, read_table
from perflaw.types import CPU, TIME, Metric, ProgramCosts, Run
from perflaw.types.recordings import MOST_QUEUED

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
    Wall time on a busy machine is without the time in which others had the CPU, where CPU time is recorded too.
    Where the recordings were made with ``--per`` and observations are there, these are the executions.
    """
    observed = {one.run.per for one in recordings}
    if len(observed) > 1:
        names = " and ".join(sorted(name or "runs" for name in observed))
        raise UsageError(
            f"the experiment has recordings per {names}", "their costs are not of one kind", "perflaw runs"
        )
    if observed != {""} and (observations := read_observations(recordings, metric)):
        return observations
    if metric != TIME or not all(CPU in recording.run.metrics for recording in recordings):
        [costs] = _read_costs(recordings, metric)
        return costs
    return _without_queueing(*_read_costs(recordings, TIME, CPU, QUEUEING))


def _without_queueing(costs: ProgramCosts, on_cpu: ProgramCosts, queued: ProgramCosts) -> ProgramCosts:
    """Wall time without that in which others had the CPU, which the kernel told wherever a thread had been off it.

    It is worth a word where that was so large a part of a run that its wall time misleads.
    """
    left_out = np.clip(queued.own, 0.0, np.maximum(costs.own - on_cpu.own, 0.0))
    own = costs.own - left_out
    context_off = np.maximum(costs.context_own - on_cpu.context_own, 0.0)
    context_own = costs.context_own - np.clip(queued.context_own, 0.0, context_off)
    match_totals(own, costs.context, costs.context_calls, context_own)
    without, of_run = left_out.sum(axis=1), on_cpu.own.sum(axis=1)
    is_busy = bool((without > MOST_QUEUED * (without + of_run)).any())
    return replace(costs, own=own, context_own=context_own, queued=without if is_busy else None)


def _read_costs(recordings: Sequence[Recording], *metrics: Metric) -> list[ProgramCosts]:
    """The costs in each of the metrics; every table is read once."""
    by_id = {recording.run.id: recording.run for recording in recordings}
    incomplete = {execution_of(one.run, by_id).id for one in recordings if not one.run.complete}
    executions: dict[str, Run] = {}
    readers = [ContextReader(metric) for metric in metrics]
    complete = [one for one in recordings if execution_of(one.run, by_id).id not in incomplete]
    folders = [recording.folder for recording in complete]
    columns = zip(*(read_each(folders, name, needed) for name, needed in _TABLES.items()), strict=True)
    for recording, by_place in zip(complete, columns, strict=True):
        execution = execution_of(recording.run, by_id)
        executions.setdefault(execution.id, execution)
        tables = dict(zip(_TABLES, by_place, strict=True))
        for reader in readers:
            more = _queueing_of_nodes(recording) if reader.metric == QUEUEING else {}
            reader.read(recording, tables | more, execution.id)
    runs = tuple(executions.values())
    return [costs_of(reader, runs) for reader in readers]


def _queueing_of_nodes(recording: Recording) -> Tables:
    """The time in which others had the CPU, as the moments of a metric. Recordings of earlier versions do not tell it."""
    queued = read_table(recording.folder, "queued") if has_table(recording.folder, "queued") else ()
    return {"moments": table_of("moments", [(node, QUEUEING.name, 0, cost, 0, 0, 0, 0) for node, cost in queued])}
