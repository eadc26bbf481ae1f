"""One trial: made with an agent, scored, and kept as a run of the experiment.

The run is one invocation of the component that has the study's name; knobs are its features. Learners therefore see trials as
they see recordings. Costs are whole numbers there: times in ns, small values in thousandths. Exact values are in the study's
journal.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from perflaw.explore.agent.client import AgentConnection, InvalidTrial
from perflaw.explore.target.scoring import RawResult, score
from perflaw.record.unfinished import mark_of
from perflaw.store.columns import Column, Table, Tables, texts
from perflaw.store.experiment import MARK, Experiment, discard, locked, save
from perflaw.store.merge import merge
from perflaw.store.schema import COLUMNS, LOCAL, table_of
from perflaw.store.tables import private_files, write_tables
from perflaw.types import CPU, EVENTS, TIME, Clock, Component, Losses, Metric, Run
from perflaw.types.studies import Conditions, Reading, Study, Trial
from perflaw.wire.channel import Message

_NS: Final = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}
"""Nanoseconds in each unit of time."""
_FINE_STEPS: Final = 1000.0
"""Steps in which small values are kept."""
_COARSE: Final = 10_000.0
"""Value from which on a metric is kept in whole units."""
_BUILT_IN: Final = ("time", "cpu", "events", "memory")
"""Metrics that every run has."""


class ReadingJudge(Protocol):
    """Follows the readings of a trial."""

    def take(self, reading: Reading) -> str:
        """Take a reading; return why the trial is to be ended, empty if it is to go on."""


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """A trial that has ended."""

    trial: Trial
    """The trial, with its values."""
    raw: Mapping[str, Any]
    """What it printed and used; empty where it is no data point."""
    readings: tuple[Reading, ...] = ()
    """Its readings."""


# ---- A trial made with an agent.


def make_trial(
    agent: AgentConnection, study: Study, planned: Trial, judge: ReadingJudge, show: Callable[[Reading], None]
) -> FinishedTrial:
    """Make a planned trial; ``show`` is given each reading. WireError if the agent is lost: the trial has to be made again."""
    began = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    readings: list[Reading] = []
    stopping = False

    def take(message: Message) -> None:
        """Take a message of the trial that runs; tell the agent once when the trial is to be ended."""
        nonlocal stopping
        if message.kind != "reading":
            return
        reading = Reading(**message.document)
        readings.append(reading)
        show(reading)
        why = judge.take(reading)
        if why and not stopping:
            stopping = True
            agent.channel.send("enough", {"why": why})

    trial = Trial(
        planned.number, planned.configuration, repetition=planned.repetition, why=planned.why, started=started
    )
    target, settings = study.target, dict(trial.configuration)
    load = {kind: float(settings[size] if isinstance(size, str) else size) for kind, size in study.load.items()}
    try:
        agent.ask("apply", {"configuration": settings}, target.timeout_s)
        agent.ask("start", timeout_s=target.ready_s)
        agent.ask("verify", timeout_s=target.timeout_s)
        answer = agent.ask("measure", {"load": load}, target.timeout_s, take)
    except InvalidTrial as error:
        agent.ask("stop", timeout_s=target.ready_s)
        ended = replace(trial, reason=str(error), seconds=time.monotonic() - began)
        return FinishedTrial(ended, {}, tuple(readings))
    lengths = answer.document["texts"]
    ends = accumulate(lengths)
    parts = [answer.payload[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    printed = zip_longest(("stdout", "stderr", "result"), (part.decode("utf-8", "replace") for part in parts))
    raw = {**answer.document, **dict(printed)}
    agent.ask("stop", timeout_s=target.ready_s)
    if "trial" in study.restore.get("on", ()):
        agent.ask("restore", timeout_s=target.timeout_s)
    has = {**settings, **raw["verified"]}  # a target may round
    ended = replace(
        trial,
        configuration=has,
        requested=settings if has != settings else {},
        stopped=raw["stopped"],
        seconds=time.monotonic() - began,
        measured_s=raw["wall_s"],
        verified=raw["verified"],
        conditions=Conditions(**raw["conditions"]),
    )
    return FinishedTrial(scored(study, ended, raw, tuple(readings)), raw, tuple(readings))


def scored(study: Study, trial: Trial, raw: Mapping[str, Any], readings: tuple[Reading, ...]) -> Trial:
    """Return a trial with the values of the study's metrics; invalid where one has no value, unless it was ended early."""
    conditions = raw["conditions"]
    found = score(
        study.metrics,
        study.target.result,
        RawResult(
            stdout=raw["stdout"],
            stderr=raw["stderr"],
            result=raw["stdout"] if raw.get("result") is None else raw["result"],
            wall_s=raw["wall_s"],
            cpu_s=conditions["cpu_s"],
            memory_bytes=conditions["memory_bytes"],
            readings=readings,
            missing=raw.get("missing", {}),
        ),
    )
    valid = not found.missing or bool(trial.stopped and found.metrics)
    return replace(
        trial,
        metrics=found.metrics if valid else {},
        scatter=found.scatter if valid else {},
        n=found.n if valid else 0,
        valid=valid,
        reason=found.remark if valid else found.missing,
    )


# ---- A trial kept as a run.


def key_of(study: Study, trial: Trial) -> str:
    """Return the text by which the run of a trial is recognised."""
    return f"explore {study.digest[:16]} {trial.number}"


def begin_run(experiment: Experiment, key: str) -> Path:
    """Make a folder for the run, marked as unfinished: if perflaw is killed, the folder is found and removed."""
    experiment.make()
    with locked(experiment.runs_folder):
        folder = experiment.new_run()
        (folder / MARK).write_text(key)
    return folder


def mark_run(experiment: Experiment, run: str, key: str) -> Path:
    """Mark the run of an earlier attempt as unfinished; it is removed once the journal has the later one."""
    folder = experiment.runs_folder / run
    (folder / MARK).write_text(key)
    return folder


def finish_run(folder: Path) -> None:
    """Mark a run as complete, once the journal has it."""
    (folder / MARK).unlink(missing_ok=True)


def discard_lost(experiment: Experiment, known: Mapping[str, str]) -> int:
    """Remove the runs of trials that were unfinished when perflaw was killed, and return their number.

    ``known`` is the run of each key that the journal has.
    """
    removed = 0
    for folder in sorted(experiment.runs_folder.glob("[0-9]*")) if experiment.runs_folder.is_dir() else ():
        key = mark_of(folder)
        if key is None or not key.startswith("explore "):
            continue
        if known.get(key) == folder.name:
            finish_run(folder)
        else:
            discard(folder)
            removed += 1
    return removed


def write_run(
    folder: Path,
    study: Study,
    trial: Trial,
    raw: Mapping[str, Any],
    readings: tuple[Reading, ...],
    scales: dict[str, float],
) -> None:
    """Write the run of a trial that is a data point.

    ``scales`` is the factor of each metric, which the first trial sets.
    """
    costs = {"time": round(1e9 * raw["wall_s"]), "cpu": round(1e9 * trial.conditions.cpu_s), "events": 1}
    costs["memory"] = trial.conditions.memory_bytes
    metrics = [TIME, CPU, EVENTS, Metric("memory", "bytes")]
    for metric in study.metrics:
        value, unit = trial.metrics.get(metric.name), metric.unit
        if value is None or metric.name in _BUILT_IN:
            continue
        whole = abs(value) >= _COARSE or unit in ("B", "bytes")
        scale = scales.setdefault(metric.name, _NS.get(unit, 1.0 if whole else _FINE_STEPS))
        stored = {"B": "bytes"}.get(unit, unit) if scale == 1 else f"×10⁻³ {unit}".strip()
        metrics.append(Metric(metric.name, "ns" if unit in _NS else stored))
        costs[metric.name] = round(value * scale)
    settings = {knob.name: trial.configuration[knob.name] for knob in study.knobs}
    features = {name: float(value) for name, value in settings.items() if not isinstance(value, str)}
    for knob in study.knobs:
        if knob.kind == "categorical":
            features |= {f"{knob.name}={option}": float(settings[knob.name] == option) for option in knob.values}
    tables = _tables(folder.name, study, costs, features)
    for name in [name for name, table in tables.items() if not len(table)]:
        # Files of tables without rows are the same in every run, and making them is a third of the work.
        if name not in _EMPTY:
            with tempfile.TemporaryDirectory(prefix="perflaw-") as scratch:
                write_tables(Path(scratch), {name: tables.pop(name)})
                _EMPTY[name] = (Path(scratch) / f"{name}.parquet").read_bytes()
        (folder / f"{name}.parquet").write_bytes(_EMPTY[name])
    with private_files():
        if readings:
            write_tables(
                folder,
                {
                    "records": Table(
                        {
                            "metric": texts([reading.metric for reading in readings]),
                            "at_s": Column(np.array([reading.at_s for reading in readings], np.float64)),
                            "value": Column(np.array([reading.value for reading in readings], np.float64)),
                            "n": Column(np.array([reading.n for reading in readings], np.int64)),
                        }
                    )
                },
            )
        for name in ("stdout", "stderr", "result"):
            if raw.get(name):
                (folder / f"{name}.txt").write_text(str(raw[name]))
    save(folder, _manifest(folder.name, study, trial, tuple(metrics), features, raw), tables)


_EMPTY: Final[dict[str, bytes]] = {}


def _manifest(
    run: str,
    study: Study,
    trial: Trial,
    metrics: tuple[Metric, ...],
    features: Mapping[str, float],
    raw: Mapping[str, Any],
) -> Run:
    wall = round(1e9 * raw["wall_s"])
    configuration = {name: str(value) for name, value in trial.configuration.items()}
    return Run(
        id=run, command=(study.target.run or study.target.workload,), target=study.name, features=features,
        started=trial.started, wall_ns=wall, span_ns=wall, status=0, complete=True,
        ended=trial.stopped or "normally", tracer="explore: a trial of a study", python="",
        clock=Clock("monotonic", 1, 0, 0), lost=Losses(), host=socket.gethostname(), environment={},
        configuration={**configuration, "trial": str(trial.number)}, calls=1, functions=1, nodes=1, metrics=metrics,
        planned=key_of(study, trial),
    )  # fmt: skip


def _tables(run: str, study: Study, costs: Mapping[str, int], features: Mapping[str, float]) -> Tables:
    """Return the tables of a call tree with one call."""
    target = Component(study.name, language="target")
    time_ns, cpu_ns = costs["time"], costs["cpu"]
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    rows["components"] = [(1, target.name, target.file, target.line, target.language, target.origin, "", 1, 0)]
    rows["component_costs"] = [(1, name, cost, cost) for name, cost in costs.items()]
    rows["calltree"] = [(0, -1, -1, -1, 0, 0), (1, 0, 1, 0, 0, 1)]
    rows["moments"] = [(1, name, 1, cost, cost * cost, cost, cost, 0) for name, cost in costs.items()]
    rows["pairs"] = [(1, name, LOCAL, LOCAL, cost * cost) for name, cost in costs.items()]
    rows["histograms"] = [(1, 4 * time_ns.bit_length(), 1)]
    rows["strata"] = [(1, time_ns.bit_length(), 1)]
    rows["invocations"] = [(run, 1, 1, 1, 0, time_ns, cpu_ns, 1, time_ns.bit_length(), 0, 0, 1.0)]
    rows["features"] = [(run, 1, name, value, "") for name, value in features.items()]
    others = {name: cost for name, cost in costs.items() if name not in ("time", "cpu", "events") and cost}
    rows["invocation_costs"] = [(run, 1, name, cost) for name, cost in others.items()]
    return merge([{name: table_of(name, some) for name, some in rows.items()}])
