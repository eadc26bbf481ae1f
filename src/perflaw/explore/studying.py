"""A study opened under an experiment: who may go on with it, its plan, and its metrics computed anew."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from perflaw.errors import UsageError
from perflaw.explore.journal import Journal
from perflaw.explore.judging import planned_trials, trials_left
from perflaw.explore.policy import Steering
from perflaw.explore.space import Space
from perflaw.explore.trials import scored, write_run
from perflaw.store.experiment import Experiment
from perflaw.store.tables import has_table, read_table
from perflaw.types.studies import Budget, Configuration, Reading, Study, Trial

DEFAULT_TRIALS = 60
"""Number of trials of a study that names no budget."""
FIRST_CONFIGURATIONS = 8
"""Number of configurations that a plan shows."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line requests beside the study file."""

    seed: int | None = None
    """Seed; None: the one that the study began with, else 0."""
    policy: str | None = None
    """Another policy than the study names."""
    trials: int | None = None
    """Another number of trials."""
    rescore: bool = False
    """Whether metrics may have been added or changed: finished trials are scored anew."""


def wished(study: Study, wish: Wish) -> Study:
    """Return the study with what the command line requests."""
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
    """Give the journal and the seed. UsageError where the study changed since it began, or another perflaw explores it."""
    experiment.make()
    descriptor = os.open(experiment.folder / "study.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another perflaw explores it now"
            raise UsageError(f"experiment {experiment.name}", why, "perflaw explore … -e ANOTHER_NAME") from None
        journal = Journal(experiment.folder / "study.db")
        try:
            if wish.rescore and journal.get("seed") is not None:
                rescore(experiment, journal, study)
            yield journal, _agreed_seed(journal, study, wish, experiment.name)
        finally:
            journal.close()
    finally:
        os.close(descriptor)


def looked_at(experiment: Experiment, study: Study, wish: Wish) -> tuple[list[Trial], int]:
    """Return the trials so far and the seed, without changing anything. UsageError as :func:`opened`."""
    path = experiment.folder / "study.db"
    if not path.exists():
        return [], wish.seed or 0
    journal = Journal(path)
    try:
        if not journal.made():
            return [], wish.seed or 0
        return journal.trials(), _agreed_seed(journal, study, wish, experiment.name)
    finally:
        journal.close()


def _agreed_seed(journal: Journal, study: Study, wish: Wish, name: str) -> int:
    """Return the seed, after checking that the study is the one that was begun.

    As long as no trial was made, the study may change: only what was planned is forgotten then.
    """
    seed = journal.get("seed")
    kept: dict[str, tuple[object, object]] = {
        "study file": (journal.get("digest"), study.digest),
        "policy": (journal.get("policy"), study.policy),
    }
    if wish.seed is not None:
        kept["seed"] = (seed, wish.seed)
    changed = {what: values for what, values in kept.items() if values[0] != values[1]}
    if not journal.made():
        seed = wish.seed if wish.seed is not None else journal.get("seed", 0)
        with journal.step():
            if changed:
                journal.clear()
            journal.put(seed=seed, digest=study.digest, policy=study.policy, frame=_frame_of(study))
        return int(seed)
    for what, (before, now) in changed.items():
        raise UsageError(
            f"experiment {name}: the {what} changed in the middle of the study",
            f"it began with {before!s:.12} and this is {now!s:.12}; the trials would not be comparable. "
            "Restore it to go on",
            f"perflaw explore … -e {name}-2 (begins anew)",
        )
    return int(seed)


# ---- Metrics of finished trials computed anew, from what the trials printed and from their readings.


def _frame_of(study: Study) -> str:
    """Return a digest of a study without its metrics and budget; trials are comparable as long as it stays the same."""
    frame = replace(study, metrics=(), digest="", budget=Budget(), folder="")
    return hashlib.sha256(repr(frame).encode()).hexdigest()


def rescore(experiment: Experiment, journal: Journal, study: Study) -> int:
    """Score every finished trial by the present metrics, and return their number; UsageError if more of the study changed."""
    if journal.get("frame") != _frame_of(study):
        why = "more than its metrics changed, so its finished trials are not of this study"
        raise UsageError(f"experiment {experiment.name}: --rescore", why, "perflaw explore … -e ANOTHER_NAME")
    scales: dict[str, float] = {}
    trials = []
    for trial in journal.trials():
        if not trial.run:
            continue
        folder = experiment.runs_folder / trial.run
        raw: dict[str, Any] = {"wall_s": trial.measured_s, "conditions": asdict(trial.conditions)}
        for name, default in (("stdout", ""), ("stderr", ""), ("result", None)):
            path = folder / f"{name}.txt"
            raw[name] = path.read_text() if path.is_file() else default
        readings: tuple[Reading, ...] = ()
        if has_table(folder, "records"):
            readings = tuple(Reading(*row) for row in read_table(folder, "records"))
        trials.append(scored(study, trial, raw, readings))
        if trials[-1].valid:
            write_run(folder, study, trials[-1], raw, readings, scales)
    with journal.step():
        for trial in trials:
            journal.change(trial)
        journal.put(digest=study.digest, scales=scales)
    return len(trials)


# ---- What a study would do, and what that takes; nothing is changed.


@dataclass(frozen=True, slots=True)
class Plan:
    """A study as it would begin, or go on."""

    study: Study
    """The study with what the command line requests."""
    size: int | None
    """Number of valid configurations; None where they are endless, or too many to count."""
    made: int
    """Number of trials that are done."""
    trials: int | None
    """Number of trials that are left; None where only time or margin ends the study."""
    first: tuple[tuple[Configuration, str], ...]
    """Configurations that come first, each with its reason; a policy that learns chooses the others later."""
    seconds: float | None
    """Expected duration of the trials, from earlier ones; None where there are none."""
    most_s: float | None
    """Longest duration of the trials that the study's limits allow."""
    warning: str
    """What a person should know about the policy."""


def plan_of(study: Study, seed: int, trials: Sequence[Trial]) -> Plan:
    """Return the plan after these trials. UsageError where the policy cannot propose."""
    space = Space(study.knobs, study.constraints)
    steering = Steering(space, study, seed)
    planned = list(trials)
    first: list[tuple[Configuration, str]] = []
    while len(first) < FIRST_CONFIGURATIONS:
        count = trials_left(study.budget.trials, len(planned), study.repetitions)
        proposal = steering.next(planned) if count else None
        if proposal is None:
            break
        first.append((proposal.configuration, proposal.why))
        planned += planned_trials(len(planned) + 1, proposal.configuration, proposal.why, count, 0)
    budget, made = study.budget, sum(bool(trial.started) for trial in trials)
    left = None if budget.trials is None else max(0, budget.trials - made)
    if space.size is not None and left is not None and len(first) < FIRST_CONFIGURATIONS:
        left = min(left, len(trials) - made + len(first) * study.repetitions)
    target = study.target
    limit_s = target.timeout_s + (target.ready_s if target.start else 0.0)
    limits = [limit_s * left] if left is not None else []
    limits += [60 * budget.minutes] if budget.minutes is not None else []
    durations = [trial.seconds for trial in trials if trial.started]
    return Plan(
        study=study,
        size=space.size,
        made=made,
        trials=left,
        first=tuple(first),
        seconds=median(durations) * left if durations and left is not None else None,
        most_s=min(limits, default=None),
        warning=steering.warning,
    )
