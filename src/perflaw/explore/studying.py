"""A study opened under an experiment: its journal, who may go on with it, and with what."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perflaw.errors import UsageError
from perflaw.explore.journal import Journal
from perflaw.explore.rescoring import frame_of, rescore
from perflaw.store.experiment import Experiment
from perflaw.types.studies import Budget, Study, Trial

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
