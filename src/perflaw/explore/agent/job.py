"""What an agent needs of a study, as a message and back; and the settings of one trial in the hands of the injectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from perflaw.explore.injectors.applying import Phase, apply_all, remember_all, restore_all, verify_all
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.registry import name_of
from perflaw.store.files import write_whole
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Target, Value

_REMEMBERED: Final = "remembered.json"
_OF_SERVERS: Final = ("http", "command")
"""Injectors that need a running server, unless the study says ``when: before``."""


@dataclass(frozen=True, slots=True)
class AgentJob:
    """The part of a study that an agent needs."""

    target: Target
    """The system under study."""
    knobs: tuple[Knob, ...]
    """Parameters that are varied."""
    metrics: tuple[StudyMetric, ...]
    """Metrics that are measured."""
    load: Mapping[str, Any]
    """Load beside the target: numbers, or names of knobs."""
    snapshot: tuple[str, ...]
    """Files that are restored."""
    folder: str
    """Working directory of the target, absolute."""
    state: Path
    """Folder in which the agent keeps the snapshot."""
    mark: str
    """Mark in the environment of all processes of this study's target."""

    def context(self) -> Context:
        """Return the context of a new trial."""
        loads = frozenset(size for size in self.load.values() if isinstance(size, str))
        return Context(self.folder, sql=self.target.sql, trusted=loads)

    def probes(self) -> tuple[str, ...]:
        """Return where probes write and which ones are enabled; empty where no metric comes from a probe."""
        wanted = sorted({str(metric.source["probe"]) for metric in self.metrics if "probe" in metric.source})
        return (str(self.state / "probes"), ",".join(wanted)) if wanted else ()


def document_of(study: Study, state: Path) -> dict[str, Any]:
    """Return the message that gives an agent a study."""
    files = study.restore.get("snapshot", ())
    return {
        "target": asdict(study.target),
        "knobs": [
            {**asdict(knob), "apply": [dict(how) for how in knob.apply], "verify": knob.verify and dict(knob.verify)}
            for knob in study.knobs
        ],
        "metrics": [asdict(metric) for metric in study.metrics],
        "load": dict(study.load),
        "snapshot": [files] if isinstance(files, str) else list(files),
        "folder": str(Path(study.folder).resolve()),
        "state": str(state.resolve()),
        "name": state.parent.name,
    }


def job_of(document: Mapping[str, Any], root: Path | None) -> AgentJob:
    """Return the job of such a message; a remote agent works in its own folder ``root``."""
    target = Target(**document["target"])
    folder = (root or Path(document["folder"])) / target.folder
    state = root / ".perflaw" / Path(document["name"]).name / "agent" if root else Path(document["state"])
    knobs = [
        Knob(**{**knob, "values": tuple(knob["values"]), "apply": tuple(knob["apply"])}) for knob in document["knobs"]
    ]
    return AgentJob(
        target=replace(target, folder=str(folder.resolve())),
        knobs=tuple(knobs),
        metrics=tuple(StudyMetric(**metric) for metric in document["metrics"]),
        load=document["load"],
        snapshot=tuple(document["snapshot"]),
        folder=str(folder.resolve()),
        state=state,
        mark=hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:24],
    )


# ---- What injections overwrite, remembered once before the first trial.


def remember(job: AgentJob) -> None:
    """Keep what injections will overwrite, if it is not kept already."""
    path = job.state / _REMEMBERED
    if not path.exists():
        write_whole(path, json.dumps(remember_all(job.knobs, job.context())))


def restore_remembered(job: AgentJob) -> None:
    """Restore what injections overwrote, as far as that is possible."""
    path = job.state / _REMEMBERED
    if path.exists():
        restore_all(job.knobs, json.loads(path.read_text()), job.context())


def forget(job: AgentJob) -> None:
    """Forget what was remembered, at the end of the study."""
    (job.state / _REMEMBERED).unlink(missing_ok=True)


# ---- One trial's settings.


class TrialSettings:
    """The settings of a trial, applied by injectors and read back."""

    def __init__(self, job: AgentJob, configuration: Configuration) -> None:
        self._job, self._configuration = job, configuration
        self.context = job.context()

    def apply(self, when: Literal["before", "running"]) -> None:
        """Apply what is applied before the target starts, or while its server runs. TargetError names what failed."""
        server_runs = bool(self._job.target.start)
        in_server = {*_OF_SERVERS, *(("sql", "pragma") if "{}" in self._job.target.sql else ())}

        def is_due(how: Mapping[str, Any]) -> bool:
            usual = "running" if server_runs and name_of(how) in in_server else "before"
            return bool(how.get("when", usual) == when)

        chosen = [replace(knob, apply=tuple(filter(is_due, knob.apply))) for knob in self._job.knobs]
        apply_all(chosen, self._configuration, self.context)

    def verify(self, phase: Phase) -> str:
        """Read back what can be read in this phase; return why the trial is no data point."""
        return verify_all(self._job.knobs, self._configuration, self.context, phase)

    @property
    def verified(self) -> Mapping[str, Value]:
        """Settings that were read back, by knob."""
        return self.context.verified

    @property
    def values(self) -> dict[str, Value]:
        """What commands may name: knobs, and files that were written."""
        return {**self.context.variables, **self.context.files}
