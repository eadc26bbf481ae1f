"""Metrics of finished trials computed anew, from what the trials printed and from their records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from perflaw.errors import UsageError
from perflaw.explore.journal import Journal
from perflaw.explore.making import raw_of
from perflaw.explore.target.scoring import score
from perflaw.explore.trial_runs import RECORDS, write_run
from perflaw.store.experiment import Experiment
from perflaw.store.tables import read_table
from perflaw.types.studies import Budget, Reading, Study, Trial


def frame_of(study: Study) -> str:
    """A digest of all of a study but its metrics and its budget: trials compare as long as it stays."""
    frame = replace(study, metrics=(), digest="", budget=Budget(), folder="")
    return hashlib.sha256(repr(frame).encode()).hexdigest()


def rescore(experiment: Experiment, journal: Journal, study: Study) -> int:
    """Score every valid trial by the study's metrics as they are now; how many. UsageError where more than them changed."""
    if journal.get("frame") != frame_of(study):
        why = "more than its metrics changed: what was run then is not what it says now"
        raise UsageError(f"experiment {experiment.name}: --rescore", why, "perflaw explore … -e ANOTHER_NAME")
    scales: dict[str, float] = {}
    scored = [_scored(experiment, study, trial, scales) for trial in journal.trials() if trial.run]
    with journal.step():
        for trial in scored:
            journal.change(trial)
        journal.put(digest=study.digest, scales=scales)
    return len(scored)


def _scored(experiment: Experiment, study: Study, trial: Trial, scales: dict[str, float]) -> Trial:
    folder = experiment.runs_folder / trial.run
    raw, readings = _raw(folder, trial), _readings(folder)
    scored = score(study.metrics, study.target.result, raw_of(raw, readings))
    valid = not scored.missing or bool(trial.stopped and scored.metrics)
    trial = replace(trial, valid=valid, n=scored.n, reason=scored.said if valid else scored.missing)
    trial = replace(trial, metrics=scored.metrics if valid else {}, scatter=scored.scatter if valid else {})
    if valid:
        write_run(folder, study, trial, raw, readings, scales)
    return trial


def _raw(folder: Path, trial: Trial) -> Mapping[str, Any]:
    """What the trial gave, as its agent told it."""
    texts = {name: _text(folder / f"{name}.txt") for name in ("stdout", "stderr", "result")}
    raw: dict[str, Any] = {**texts, "wall_s": trial.measured_s, "conditions": asdict(trial.conditions)}
    raw["stdout"], raw["stderr"] = raw["stdout"] or "", raw["stderr"] or ""
    return raw


def _text(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def _readings(folder: Path) -> tuple[Reading, ...]:
    if not (folder / "records.parquet").is_file():
        return ()
    return tuple(Reading(*row) for row in read_table(folder, "records", schema=RECORDS))
