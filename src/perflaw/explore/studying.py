"""A study opened under an experiment: its journal, who may go on with it, and with what."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from perflaw.errors import UsageError
from perflaw.explore.journal import Journal
from perflaw.explore.judging import repetitions_of, room
from perflaw.explore.making import raw_of
from perflaw.explore.policy import Steering
from perflaw.explore.space import Space
from perflaw.explore.target.scoring import score
from perflaw.explore.trial_runs import RECORDS, write_run
from perflaw.store.experiment import Experiment
from perflaw.store.tables import read_table
from perflaw.types.studies import Budget, Configuration, Reading, Study, Trial

# ---- Metrics of finished trials computed anew, from what the trials printed and from their records.


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


DEFAULT_TRIALS = 60
"""Trials of a study that names no budget."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for beside the study file."""

    seed: int | None = None
    """Seed; None: the one that the study began with, else 0."""
    policy: str | None = None
    """Another policy than the study names."""
    trials: int | None = None
    """Another number of trials."""
    rescore: bool = False
    """Whether metrics may have been added or changed: finished trials are scored anew."""


def wished(study: Study, wish: Wish) -> Study:
    """The study with what the command line asks for."""
    budget = study.budget
    if wish.trials is not None:
        budget = replace(budget, trials=wish.trials)
    if budget == Budget():
        budget = Budget(trials=DEFAULT_TRIALS)
    elif budget.trials is None and budget.minutes is None:
        budget = replace(budget, trials=10 * DEFAULT_TRIALS)
    return replace(study, policy=wish.policy or study.policy, budget=budget)


@contextmanager
def opened(experiment: Experiment, study: Study, wish: Wish) -> Iterator[tuple[Journal, int]]:
    """The journal and the seed. UsageError where the study changed since it began, or another perflaw explores it."""
    experiment.make()
    with _alone(experiment):
        journal = Journal(experiment.folder / "study.db")
        try:
            if wish.rescore and journal.get("seed") is not None:
                rescore(experiment, journal, study)
            yield journal, agreed(journal, study, wish, experiment.name)
        finally:
            journal.close()


def looked_at(experiment: Experiment, study: Study, wish: Wish) -> tuple[list[Trial], int]:
    """The trials so far and the seed, without touching anything. UsageError as :func:`opened`."""
    path = experiment.folder / "study.db"
    if not path.exists():
        return [], wish.seed or 0
    journal = Journal(path)
    try:
        if not journal.made():
            return [], wish.seed or 0
        return journal.trials(), agreed(journal, study, wish, experiment.name)
    finally:
        journal.close()


def agreed(journal: Journal, study: Study, wish: Wish, name: str) -> int:
    """The seed, after checking that the study is the one that was begun; the first time it is written down."""
    seed = journal.get("seed")
    digests, policies = (journal.get("digest"), study.digest), (journal.get("policy"), study.policy)
    differs: dict[str, tuple[object, object]] = {"study file": digests, "policy": policies}
    if wish.seed is not None:
        differs["seed"] = (seed, wish.seed)
    if not journal.made():
        return _begun(journal, study, wish, any(before != now for before, now in differs.values()))
    for what, (before, now) in differs.items():
        if before != now:
            began = f"it began with {before!s:.12} and this is {now!s:.12}"
            raise UsageError(
                f"experiment {name}: the {what} changed in the middle of the study",
                f"{began}; its trials would not compare. Put it back to go on",
                f"perflaw explore … -e {name}-2 (begins anew)",
            )
    return int(seed)


def _begun(journal: Journal, study: Study, wish: Wish, anew: bool) -> int:
    """Write down what is begun; no trial was made yet, so whatever changed only what was planned is forgotten."""
    seed: int = wish.seed if wish.seed is not None else journal.get("seed", 0)
    with journal.step():
        if anew:
            journal.clear()
        journal.put(seed=seed, digest=study.digest, policy=study.policy, frame=frame_of(study))
    return seed


@contextmanager
def _alone(experiment: Experiment) -> Iterator[None]:
    path: Path = experiment.folder / "study.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another perflaw explores it now"
            raise UsageError(f"experiment {experiment.name}", why, "perflaw explore … -e ANOTHER_NAME") from None
        yield
    finally:
        os.close(descriptor)


# ---- What a study would do, and what that costs: read and computed, nothing touched.

SHOWN = 8
"""Configurations that are asked for ahead."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A study as it would begin, or go on."""

    study: Study
    """The study with what the command line asks for."""
    size: int | None
    """Valid configurations of the space; None: endless, or too many to count."""
    made: int
    """Trials that are made already."""
    trials: int | None
    """Trials that are still to be made; None where only time or margin ends it."""
    first: tuple[tuple[Configuration, str], ...]
    """Configurations that come first, and why; a policy that learns decides on the others when it knows more."""
    seconds: float | None
    """How long the trials will take as earlier ones did; None where there are none."""
    most_s: float | None
    """How long they can take at most, by the study's own bounds."""
    warning: str
    """What the policy says of itself."""


def plan_of(study: Study, seed: int, trials: Sequence[Trial]) -> Plan:
    """The plan after these trials. UsageError where the policy cannot propose."""
    space = Space(study.knobs, study.constraints)
    steering = Steering(space, study, seed)
    budget, made = study.budget, sum(bool(trial.started) for trial in trials)
    left = None if budget.trials is None else max(0, budget.trials - made)
    ahead = _ahead(study, steering, trials)
    if space.size is not None and left is not None and len(ahead) < SHOWN:
        left = min(left, len(trials) - made + len(ahead) * study.repetitions)
    target = study.target
    bound = target.timeout_s + (target.ready_s if target.start else 0.0)
    usual = [trial.seconds for trial in trials if trial.started]
    most = bound * left if left is not None else None
    if budget.minutes is not None:
        most = min(60 * budget.minutes, most if most is not None else 60 * budget.minutes)
    seconds = median(usual) * left if usual and left is not None else None
    return Plan(study, space.size, made, left, ahead, seconds, most, steering.warning)


def _ahead(study: Study, steering: Steering, trials: Sequence[Trial]) -> tuple[tuple[Configuration, str], ...]:
    """What the policy proposes as long as it learns nothing new."""
    planned = list(trials)
    found: list[tuple[Configuration, str]] = []
    while len(found) < SHOWN and (count := room(study.budget.trials, len(planned), study.repetitions)):
        proposal = steering.next(planned)
        if proposal is None:
            break
        found.append((proposal.configuration, proposal.why))
        more = repetitions_of(len(planned) + 1, proposal.configuration, proposal.why, count, 0)
        planned += [replace(trial, run="") for trial in more]
    return tuple(found)
