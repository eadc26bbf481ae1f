"""Law files and their JSON twins: a twin has the laws with intervals, their runs, and how these differ from the laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perflaw.store.evidence import EvidenceByKey
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation, ProgramCosts

SCHEMA = "perflaw.annotate/1"


def twin_path(path: Path) -> Path:
    """The path of a law file's twin: ``perf.law.json`` beside ``perf.law``."""
    return path.with_name(path.name + ".json")


def write_laws(
    path: Path,
    annotations: Sequence[Annotation],
    recordings: Sequence[Recording],
    evidence: EvidenceByKey,
    at: Mapping[str, float] | None = None,
    costs: ProgramCosts | None = None,
) -> None:
    """Write a law file and its twin; StoreError if that is impossible."""
    from perflaw.cli.options import write_text
    from perflaw.report.annotations.lawfile import law_file
    from perflaw.types.documents import dumps

    twin = dumps(twin_document(annotations, recordings, evidence, at, costs)) + "\n"
    write_text(str(path), law_file(annotations), "-o another/file.law")
    write_text(str(twin_path(path)), twin, "-o another/file.law")


def twin_document(
    annotations: Sequence[Annotation],
    recordings: Sequence[Recording],
    evidence: EvidenceByKey,
    at: Mapping[str, float] | None = None,
    costs: ProgramCosts | None = None,
) -> dict[str, Any]:
    """The twin's content: the laws with their intervals, and what a check needs of the evidence and costs behind them."""
    from perflaw.check.program_summary import summarize, summary_document
    from perflaw.check.twin import support
    from perflaw.report.documents import annotate_document

    # Of several components of one name that of the largest share, as in the law file.
    first: dict[tuple[str, str], Annotation] = {}
    for annotation in annotations:
        first.setdefault((annotation.component.name, annotation.metric.name), annotation)
    document = annotate_document(list(first.values()), [one.run for one in recordings], at)
    for annotation, content in zip(first.values(), document["annotations"], strict=True):
        content.update(support(annotation, evidence))
    for run, recording in zip(document["runs"], recordings, strict=True):
        run["started"] = recording.run.started
    summary = summarize(costs) if costs is not None else None
    if summary is not None:
        document["program"] = summary_document(summary)
    return document
