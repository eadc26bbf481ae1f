"""What an agent is told of a study, as a document and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from perflaw.types.studies import Knob, Study, StudyMetric, Target


@dataclass(frozen=True, slots=True)
class Job:
    """A study as far as an agent needs to know it."""

    target: Target
    """What is run."""
    knobs: tuple[Knob, ...]
    """What is varied."""
    metrics: tuple[StudyMetric, ...]
    """What is measured."""
    load: Mapping[str, Any]
    """Load beside it: numbers, or names of knobs."""
    snapshot: tuple[str, ...]
    """Files to put back."""
    folder: str
    """Working directory of the target, absolute."""
    state: Path
    """Folder where the agent keeps the snapshot."""
    mark: str
    """What all processes of this study's target have in their environment."""

    def loads(self) -> set[str]:
        """Knobs that the load beside the target is made of."""
        return {size for size in self.load.values() if isinstance(size, str)}

    def probes(self) -> tuple[str, ...]:
        """Where probes write and which are enabled; empty where no metric is of one."""
        wanted = sorted({str(metric.source["probe"]) for metric in self.metrics if "probe" in metric.source})
        return (str(self.state / "probes"), ",".join(wanted)) if wanted else ()


def document_of(study: Study, state: Path) -> dict[str, Any]:
    """The message that tells an agent of a study."""
    told = {"target": asdict(study.target), "knobs": [_knob(knob) for knob in study.knobs]}
    told |= {"metrics": [asdict(metric) for metric in study.metrics], "load": dict(study.load)}
    files = study.restore.get("snapshot", ())
    told |= {"snapshot": [files] if isinstance(files, str) else list(files)}
    return {
        **told,
        "folder": str(Path(study.folder).resolve()),
        "state": str(state.resolve()),
        "name": state.parent.name,
    }


def _knob(knob: Knob) -> dict[str, Any]:
    return {**asdict(knob), "apply": [dict(how) for how in knob.apply], "verify": knob.verify and dict(knob.verify)}


def job_of(document: Mapping[str, Any], root: Path | None) -> Job:
    """The study of such a message; a remote agent works in its own ``root``."""
    target = Target(**document["target"])
    folder = (root or Path(document["folder"])) / target.folder
    state = root / ".perflaw" / Path(document["name"]).name / "agent" if root else Path(document["state"])
    return Job(
        replace(target, folder=str(folder.resolve())),
        tuple(_read_knob(knob) for knob in document["knobs"]),
        tuple(StudyMetric(**metric) for metric in document["metrics"]),
        document["load"],
        tuple(document["snapshot"]),
        str(folder.resolve()),
        state,
        hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:24],
    )


def _read_knob(knob: Mapping[str, Any]) -> Knob:
    return Knob(**{**knob, "values": tuple(knob["values"]), "apply": tuple(knob["apply"])})
