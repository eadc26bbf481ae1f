"""The JSON twin of a law file: its laws with intervals, the runs they were learnt from, and how these lie about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflaw.errors import StoreError

if TYPE_CHECKING:
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation, Evidence, Metric

SCHEMA = "perflaw.annotate/1"


def twin_path(path: Path) -> Path:
    """Where the twin of a law file stands: ``perf.law.json`` beside ``perf.law``."""
    return path.with_name(path.name + ".json")


def write_twin(
    path: Path,
    annotations: Sequence[Annotation],
    recordings: Sequence[Recording],
    metric: str,
    at: Mapping[str, float] | None,
) -> None:
    """Write the twin of the law file at ``path``; StoreError where that cannot be."""
    from perflaw.store.evidence import measured
    from perflaw.types.documents import dumps

    found = evidence_of(recordings, measured(recordings, metric))
    twin = twin_path(path)
    try:
        twin.write_text(dumps(twin_document(annotations, recordings, found, at)) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{twin}: cannot be written", error.strerror or str(error), "-o another/file.law") from error


def twin_document(
    annotations: Sequence[Annotation],
    recordings: Sequence[Recording],
    found: Mapping[tuple[str, str], Evidence],
    at: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The JSON twin of a law file: the laws with their intervals, and what a check needs of the runs behind them.

    ``found`` is the evidence the laws were learnt from.
    """
    from perflaw.check.twin import support
    from perflaw.report.documents import annotate_document

    dearest: dict[tuple[str, str], Annotation] = {}  # of components of one name, as in the law file and the evidence
    for one in annotations:
        dearest.setdefault((one.component.name, one.metric.name), one)
    document = annotate_document(list(dearest.values()), [one.run for one in recordings], at)
    for one, stated in zip(dearest.values(), document["annotations"], strict=True):
        stated.update(support(one, found))
    for run, recording in zip(document["runs"], recordings, strict=True):
        run["started"] = recording.run.started
    return document


def evidence_of(recordings: Sequence[Recording], metric: Metric) -> dict[tuple[str, str], Evidence]:
    """Evidence by component and metric; of several components of one name the dearest."""
    from perflaw.store.evidence import gather

    found: dict[tuple[str, str], Evidence] = {}
    for one in sorted(gather(recordings, metric), key=lambda each: sum(cost.total for cost in each.runs)):
        found[one.component.name, metric.name] = one
    return found
