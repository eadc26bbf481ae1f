"""The costs of whole executions by component and calling context, from the call trees of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from perflaw.errors import UsageError
from perflaw.store.columns import Array
from perflaw.store.contexts import ContextReader, costs_of, match_totals
from perflaw.store.experiment import Recording, execution_of
from perflaw.store.observations import read_observations
from perflaw.store.tables import read_each
from perflaw.types import CPU, TIME, Metric, ProgramCosts, Run

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
    runs = [recording.run for recording in recordings]
    busy = any(run.machine and run.machine.is_busy(run.wall_ns) and run.clock.name != "fake" for run in runs)
    if metric != TIME or not busy or not all(CPU in run.metrics for run in runs):
        [costs] = _read_costs(recordings, metric)
        return costs
    costs, on_cpu = _read_costs(recordings, TIME, CPU)
    queued, used = np.array([without_tracer(run) for run in costs.runs], dtype=np.float64).reshape(-1, 2).T
    return _without_queueing(costs, on_cpu, queued, used)


def without_tracer(run: Run) -> tuple[int, int]:
    """How long a run queued for a CPU and the CPU time of its process, both without the tracer's own time, in ns."""
    machine, clock = run.machine, run.clock
    if machine is None:
        return 0, 0
    return max(machine.queued_ns - clock.waited_ns, 0), max(machine.cpu_ns - (clock.own_ns - clock.waited_ns), 0)


def _without_queueing(costs: ProgramCosts, on_cpu: ProgramCosts, queued: Array, used: Array) -> ProgramCosts:
    """Wall time without that which each run queued for a CPU, ns (R,); ``used`` is the CPU time of its whole process.

    The kernel tells how long a run queued in all, not where. Queueing comes with running: for each ns on a CPU a function
    queues as long as any other, and as what is no function does, such as the start of the interpreter; and at most as long
    as it was off the CPU. The rest is waiting of its own accord. How long the tracer queued is known.
    """
    off = np.maximum(costs.own - on_cpu.own, 0.0)
    context_off = np.maximum(costs.context_own - on_cpu.context_own, 0.0)
    cpu = np.maximum(on_cpu.own, 1.0)
    others = np.maximum(used - cpu.sum(axis=1), 0.0)
    rate = np.array([_queueing_rate(*run) for run in zip(off, cpu, queued, others, strict=True)])[:, None]
    left_out = np.minimum(off, rate * cpu)
    own = costs.own - left_out
    context_own = costs.context_own - np.minimum(context_off, rate * np.maximum(on_cpu.context_own, 1.0))
    match_totals(own, costs.context, costs.context_calls, context_own)
    return replace(costs, own=own, context_own=context_own, queued=left_out.sum(axis=1))


def _queueing_rate(off: Array, cpu: Array, queued: float, others: float) -> float:
    """The rate r at which the least of off (F,) and r times cpu (F,), and r times other CPU time, sum to a run's queueing.

    It is infinite if no other CPU time is known and the functions were off the CPU for less than the run queued.
    """
    order = np.argsort(off / cpu)
    # Before each function in this order: what those whose time off the CPU is queueing throughout queued, and the others' CPU.
    full = np.concatenate([[0.0], np.cumsum(off[order])[:-1]])
    rest = np.cumsum(cpu[order][::-1])[::-1] + others
    rates = (queued - full) / rest
    fits = np.flatnonzero(rates <= off[order] / cpu[order])
    return float(max(rates[fits[0]], 0.0)) if fits.size else float("inf")


def _read_costs(recordings: Sequence[Recording], *metrics: Metric) -> list[ProgramCosts]:
    """The costs in each of the metrics; every table is read once."""
    by_id = {recording.run.id: recording.run for recording in recordings}
    incomplete = {execution_of(one.run, by_id).id for one in recordings if not one.run.complete}
    executions: dict[str, Run] = {}
    readers = [ContextReader(metric) for metric in metrics]
    complete = [one for one in recordings if execution_of(one.run, by_id).id not in incomplete]
    folders = [recording.folder for recording in complete]
    columns = zip(*(read_each(folders, name, needed) for name, needed in _TABLES.items()), strict=True)
    for recording, tables in zip(complete, columns, strict=True):
        execution = execution_of(recording.run, by_id)
        executions.setdefault(execution.id, execution)
        for reader in readers:
            reader.read(recording, dict(zip(_TABLES, tables, strict=True)), execution.id)
    runs = tuple(executions.values())
    return [costs_of(reader, runs) for reader in readers]
