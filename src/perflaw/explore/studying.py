"""A study opened under an experiment: who may go on with it, its plan, and its metrics computed anew."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from perflaw.errors import UsageError
from perflaw.explore.journal import Journal
from perflaw.explore.judging import planned_trials, trials_left
from perflaw.explore.policy import Steering
from perflaw.explore.space import Space
from perflaw.explore.trials import scored, write_run
from perflaw.record.build import Tell
from perflaw.store.experiment import Experiment
from perflaw.store.tables import has_table, read_table
from perflaw.store.watching import STUDY_LOCK, is_held
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
def opened(
    experiment: Experiment, study: Study, wish: Wish, tell: Tell = lambda words: None
) -> Iterator[tuple[Journal, int]]:
    """Give the journal and the seed. UsageError where its trials would not be comparable, or another perflaw explores it.

    Where the study file changed and its trials are still comparable, they are kept, and ``tell`` is told how many.
    """
    experiment.make()
    descriptor = os.open(experiment.folder / STUDY_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another perflaw explores it now"
            raise UsageError(f"experiment {experiment.name}", why, "perflaw explore … -e ANOTHER_NAME") from None
        journal = Journal(experiment.folder / "study.db")
        try:
            seed = _agreed_seed(journal, study, wish, experiment.name)
            changed = journal.get("digest") != study.digest
            if changed or wish.rescore:
                ended, aside = rescore(experiment, journal, study)
                if changed:
                    outside = f"; {aside} others are no longer a part of it" if aside else ""
                    tell(f"the study file changed since the last trial: {ended - aside} trials are kept{outside}")
            journal.put(frame=_frame_of(study))
            yield journal, seed
        finally:
            journal.close()
    finally:
        os.close(descriptor)


def is_explored(folder: Path) -> bool:
    """Whether a perflaw makes trials of the study in this folder now."""
    return is_held(folder / STUDY_LOCK)


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
    """Return the seed, after checking that the trials of the study are comparable with those that it began with.

    As long as no trial was made, anything may change: only what was planned is forgotten then.
    """
    seed, frame = journal.get("seed"), _frame_of(study)
    if not journal.made():
        seed = wish.seed if wish.seed is not None else journal.get("seed", 0)
        began = {"digest": study.digest, "policy": study.policy, "seed": seed}
        with journal.step():
            if any(journal.get(word) != value for word, value in began.items()):
                journal.clear()
            journal.put(**began, frame=frame)
        return int(seed)
    for word, before, now in (("policy", journal.get("policy"), study.policy), ("seed", seed, wish.seed)):
        if now is not None and before != now:
            why = f"it began with {before} and this is {now}"
            raise UsageError(f"experiment {name}: the {word} changed in the middle of the study", why, _anew(name))
    before = journal.get("frame")
    if isinstance(before, dict):
        parts = sorted(part for part in {*before, *frame} if before.get(part) != frame.get(part))
    else:  # journals of earlier versions tell only whether the file is the same
        parts = ["the study file"] if journal.get("digest") != study.digest else []
    if parts:
        why = "trials made before and after that are not comparable. Restore it to go on"
        raise UsageError(f"experiment {name}: {', '.join(parts)} changed in the middle of the study", why, _anew(name))
    return int(seed)


def _anew(name: str) -> str:
    return f"perflaw explore … -e {name}-2 (begins anew)"


# ---- Metrics of finished trials computed anew, from what the trials printed and from their readings.


def _frame_of(study: Study) -> dict[str, object]:
    """Return what makes trials comparable, by part: how the target runs, and how each knob gets there and is read back.

    Ranges, listed values, constraints, time limits, metrics and budget may change in the middle of a study.
    """
    target = replace(study.target, timeout_s=0.0, ready_s=0.0, disk_bytes=0)
    knobs = {f"knob {knob.name}": (knob.unit, knob.apply, knob.verify, knob.workload) for knob in study.knobs}
    parts = {"target": target, "restore": study.restore, "load": study.load, **knobs}
    return {part: hashlib.sha256(repr(content).encode()).hexdigest()[:16] for part, content in parts.items()}


def rescore(experiment: Experiment, journal: Journal, study: Study) -> tuple[int, int]:
    """Score every finished trial by the present metrics, and set those aside whose configuration is none of the study any more.

    Returns the number of trials that came to their end, and how many of them are set aside.
    """
    space = Space(study.knobs, study.constraints)
    scales: dict[str, float] = {}
    trials, aside = [], []
    ended = 0
    for trial in journal.trials():
        ended += bool(trial.started)
        if outside := space.valid(trial.wanted):
            reason = f"no longer a part of the study: {outside}"
            aside.append(replace(trial, valid=False, metrics={}, scatter={}, n=0, reason=reason))
            continue
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
        for trial in aside:
            journal.set_aside(trial)
        journal.put(digest=study.digest, scales=scales)
    return ended, sum(bool(trial.started) for trial in aside)


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
