"""A trial as a run of the experiment: one invocation of the component that has the study's name, knobs its features.

So every learner sees trials as it sees recordings. Costs are whole numbers there: times in ns, others in steps of a
thousandth where they are small. Exact values are in the study's journal.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from perflaw.record.claim import MARK, alone, marked
from perflaw.store.columns import Column, Table, Tables, texts
from perflaw.store.experiment import Experiment, discard, save
from perflaw.store.merge import merge
from perflaw.store.schema import COLUMNS, LOCAL, REAL, TEXT, table_of
from perflaw.store.tables import write_tables
from perflaw.types import CPU, EVENTS, TIME, Clock, Component, Losses, Metric, Run
from perflaw.types.studies import Knob, Reading, Study, Trial

RECORDS: Final = {"records": {"metric": TEXT, "at_s": REAL, "value": REAL, "n": "BIGINT"}}
"""The table of a trial's readings, in the order they came."""
_NS: Final = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}
_FINE: Final = 1000.0
_WHOLE: Final = 10_000.0
_TAKEN: Final = ("time", "cpu", "events", "memory")


def key_of(study: Study, trial: Trial) -> str:
    """By what the run of a trial is known again."""
    return f"explore {study.digest[:16]} {trial.number}"


def begin_run(experiment: Experiment, key: str) -> Path:
    """A folder for the run, marked as unfinished: what is killed from now on is found and removed."""
    experiment.make()
    with alone(experiment):
        folder = experiment.new_run()
        (folder / MARK).write_text(key)
    return folder


def mark_run(experiment: Experiment, run: str, key: str) -> Path:
    """Mark the run of an earlier attempt: it goes as soon as the journal knows the later one."""
    folder = experiment.runs_folder / run
    (folder / MARK).write_text(key)
    return folder


def finish_run(folder: Path) -> None:
    """The journal knows the run: it is whole."""
    (folder / MARK).unlink(missing_ok=True)


def discard_lost(experiment: Experiment, known: Mapping[str, str]) -> int:
    """Remove runs of trials that were not over when perflaw was killed; ``known``: key → run that the journal has."""
    removed = 0
    for folder in sorted(experiment.runs_folder.glob("[0-9]*")) if experiment.runs_folder.is_dir() else ():
        key = marked(folder)
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
    """Keep a trial that is a data point. ``scales`` is what each metric is multiplied by, found at the first trial."""
    metrics, costs = _costs(study, trial, raw, scales)
    features = features_of(study.knobs, trial)
    tables = _tables(folder.name, study, costs, features)
    for name in [name for name, table in tables.items() if not len(table)]:
        (folder / f"{name}.parquet").write_bytes(_empty(name, tables.pop(name)))
    save(folder, _manifest(folder.name, study, trial, metrics, features, raw), tables)
    previous = os.umask(0o077)
    try:
        if readings:
            rows = [(one.metric, one.at_s, one.value, one.n) for one in readings]
            write_tables(folder, {"records": _records(rows)}, RECORDS)
        for name in ("stdout", "stderr", "result"):
            if raw.get(name):
                (folder / f"{name}.txt").write_text(str(raw[name]))
    finally:
        os.umask(previous)


_EMPTY: Final[dict[str, bytes]] = {}


def _empty(name: str, table: Table) -> bytes:
    """The file of a table without rows, which is the same in every run: made once, for it is a third of the work."""
    if name not in _EMPTY:
        with tempfile.TemporaryDirectory(prefix="perflaw-") as folder:
            write_tables(Path(folder), {name: table})
            _EMPTY[name] = (Path(folder) / f"{name}.parquet").read_bytes()
    return _EMPTY[name]


def features_of(knobs: tuple[Knob, ...], trial: Trial) -> dict[str, float]:
    """Settings as laws have them: numbers; of a categorical knob a column ``knob=option`` of 0 or 1 for each option."""
    settings = {knob.name: trial.configuration[knob.name] for knob in knobs}
    numbers = {name: float(value) for name, value in settings.items() if not isinstance(value, str)}
    texts = [knob for knob in knobs if knob.kind == "categorical"]
    options = {f"{knob.name}={one}": float(settings[knob.name] == one) for knob in texts for one in knob.values}
    return {**numbers, **options}


def _costs(
    study: Study, trial: Trial, raw: Mapping[str, Any], scales: dict[str, float]
) -> tuple[tuple[Metric, ...], dict[str, int]]:
    """Metrics of the run, and the cost of its invocation in each."""
    costs = {"time": round(1e9 * raw["wall_s"]), "cpu": round(1e9 * trial.conditions.cpu_s), "events": 1}
    costs["memory"] = trial.conditions.memory_bytes
    metrics = [TIME, CPU, EVENTS, Metric("memory", "bytes")]
    for metric in study.metrics:
        value = trial.metrics.get(metric.name)
        if value is None or metric.name in _TAKEN:
            continue
        scale = scales.setdefault(metric.name, _scale(metric.unit, value))
        metrics.append(Metric(metric.name, _unit(metric.unit, scale)))
        costs[metric.name] = round(value * scale)
    return tuple(metrics), costs


def _scale(unit: str, value: float) -> float:
    if unit in _NS:
        return _NS[unit]
    return 1.0 if abs(value) >= _WHOLE or unit in ("B", "bytes") else _FINE


def _unit(unit: str, scale: float) -> str:
    if unit in _NS:
        return "ns"
    return {"B": "bytes"}.get(unit, unit) if scale == 1 else f"×10⁻³ {unit}".strip()


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
    """A call tree of one call."""
    what = Component(study.name, language="target")
    time, cpu = costs["time"], costs["cpu"]
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    rows["components"] = [(1, what.name, what.file, what.line, what.language, what.origin, "", 1, 0)]
    rows["component_costs"] = [(1, name, cost, cost) for name, cost in costs.items()]
    rows["calltree"] = [(0, -1, -1, -1, 0, 0), (1, 0, 1, 0, 0, 1)]
    rows["moments"] = [(1, name, 1, cost, cost * cost, cost, cost, 0) for name, cost in costs.items()]
    rows["pairs"] = [(1, name, LOCAL, LOCAL, cost * cost) for name, cost in costs.items()]
    rows["histograms"] = [(1, 4 * time.bit_length(), 1)]
    rows["strata"] = [(1, time.bit_length(), 1)]
    rows["invocations"] = [(run, 1, 1, 1, 0, time, cpu, 1, time.bit_length(), 0, 0, 1.0)]
    rows["features"] = [(run, 1, name, value, "") for name, value in features.items()]
    others = {name: cost for name, cost in costs.items() if name not in ("time", "cpu", "events") and cost}
    rows["invocation_costs"] = [(run, 1, name, cost) for name, cost in others.items()]
    return merge([{name: table_of(name, some) for name, some in rows.items()}])


def _records(rows: list[tuple[str, float, float, int]]) -> Table:
    names, ats, values, counts = zip(*rows, strict=True)
    return Table(
        {
            "metric": texts(list(names)),
            "at_s": Column(np.array(ats, np.float64)),
            "value": Column(np.array(values, np.float64)),
            "n": Column(np.array(counts, np.int64)),
        }
    )
