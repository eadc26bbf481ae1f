"""The knobs of one trial: applied when they can be, read back, and what they overwrite remembered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from perflaw.explore.agent.parts import Job
from perflaw.explore.injectors.applying import Phase, apply_all, put_back_all, remember_all, verify_all
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.registry import name_of
from perflaw.explore.target.snapshot import write_whole
from perflaw.types.studies import Configuration, Value

_FILE = "remembered.json"
_OF_SERVERS = ("http", "command")
"""Injectors that speak to a server that runs, unless the study says ``when: before``."""


class Settings:
    """The settings of a trial, in the hands of K's injectors."""

    def __init__(self, job: Job, configuration: Configuration) -> None:
        self._job, self._configuration = job, configuration
        self.context = Context(job.folder, sql=job.target.sql, trusted=frozenset(job.loads()))

    def apply(self, when: Literal["before", "running"]) -> None:
        """Apply what is applied before the target starts, or while its server runs; TargetError names what could not be."""
        chosen = [
            replace(knob, apply=tuple(how for how in knob.apply if self._when(how) == when)) for knob in self._job.knobs
        ]
        apply_all(chosen, self._configuration, self.context)

    def _when(self, how: Mapping[str, Any]) -> str:
        if "when" in how:
            return str(how["when"])
        name = name_of(how)
        asks = name in _OF_SERVERS or (name in ("sql", "pragma") and "{}" in self._job.target.sql)
        return "running" if self._job.target.start and asks else "before"

    def verify(self, phase: Phase) -> str:
        """Read back what can be now; why the trial is no data point."""
        return verify_all(self._job.knobs, self._configuration, self.context, phase)

    @property
    def verified(self) -> Mapping[str, Value]:
        """Knob → setting that was read back."""
        return self.context.verified

    @property
    def values(self) -> dict[str, Value]:
        """What commands may name: knobs, and files that were written."""
        return {**self.context.variables, **self.context.files}


def remember(job: Job) -> None:
    """Keep what injections will overwrite, once, before the first trial."""
    path = job.state / _FILE
    if not path.exists():
        write_whole(path, json.dumps(remember_all(job.knobs, Context(job.folder, sql=job.target.sql))))


def put_back(job: Job) -> list[str]:
    """Undo what injections overwrote; what could not be undone, in words."""
    path: Path = job.state / _FILE
    if not path.exists():
        return []
    return put_back_all(job.knobs, json.loads(path.read_text()), Context(job.folder, sql=job.target.sql))


def forget(job: Job) -> None:
    """The study is over."""
    (job.state / _FILE).unlink(missing_ok=True)
