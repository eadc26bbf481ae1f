"""The laws of a study as a ``.law`` file with its JSON twin, as ``perflaw annotate -o`` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.errors import DataError, StoreError

if TYPE_CHECKING:
    from perflaw.store.experiment import Experiment, Recording
    from perflaw.types import Annotation, Evidence
    from perflaw.types.explored import Explored


def write_laws(path: Path, found: Explored, experiment: Experiment) -> None:
    """Write the laws of all metrics over the runs of the study's trials; StoreError where that cannot be.

    They are learnt from what the runs hold, in the runs' own units, so that later runs can be held against them.
    """
    from perflaw.learn.exploring.tried import usable
    from perflaw.report.lawfile import law_file

    runs = tuple(one.run for one in usable(found.trials) if one.run)
    if not runs:
        raise DataError(f"{path}: no laws to write", "no trial is valid", "perflaw explore STUDY")
    recordings = experiment.recordings(runs)
    evidence = _evidence(found, recordings)
    annotations = [_annotation(found, recordings, one) for one in evidence.items()]
    try:
        path.write_text(law_file(annotations), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "-o another/file.law") from error
    _write_twin(path, annotations, recordings, evidence)
    click.echo(f"wrote {path}: {len(annotations)} law{'s' * (len(annotations) != 1)}", err=True)


def _evidence(found: Explored, recordings: list[Recording]) -> dict[tuple[str, str], Evidence]:
    """What the runs hold of every metric that has a law, by component and metric."""
    from perflaw.cli.twin import evidence_of
    from perflaw.store.evidence import measured

    everywhere = set.intersection(*({metric.name for metric in one.run.metrics} for one in recordings))
    names = [one.metric.name for one in found.laws if one.metric.name in everywhere]
    return {key: one for name in names for key, one in evidence_of(recordings, measured(recordings, name)).items()}


def _annotation(found: Explored, recordings: list[Recording], entry: tuple[tuple[str, str], Evidence]) -> Annotation:
    """The law of a metric as an annotation of the study's component."""
    import numpy as np

    from perflaw.learn.exploring.laws import metric_law
    from perflaw.store.evidence import measured
    from perflaw.types import Annotation, Scope

    (_, name), evidence = entry
    settings = {one.run: repr(sorted(one.configuration.items())) for one in found.trials}
    groups = np.array([settings[run] for run in evidence.run.tolist()])
    features = {feature: values for feature, values in evidence.features.items() if np.isfinite(values).all()}
    depends = any(one.shares for one in found.importance if one.metric == name)
    at = next((one.law.predictions[:1] for one in found.laws if one.metric.name == name), ())
    points = [dict(one.features) for one in at if features.keys() <= one.features.keys()]
    law = metric_law(name, evidence.cost, features, groups, depends, points)
    return Annotation(
        component=evidence.component,
        metric=measured(recordings, name),
        features=tuple(features),
        scopes=(Scope("", 1.0, law),),
        calls=sum(cost.calls for cost in evidence.runs),
        total=sum(cost.total for cost in evidence.runs),
        share=1.0,
        self_share=1.0,
    )


def _write_twin(
    path: Path,
    annotations: list[Annotation],
    recordings: list[Recording],
    evidence: dict[tuple[str, str], Evidence],
) -> None:
    from perflaw.cli.twin import twin_document, twin_path
    from perflaw.report.encode import dumps

    twin = twin_path(path)
    try:
        twin.write_text(dumps(twin_document(annotations, recordings, evidence)) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{twin}: cannot be written", error.strerror or str(error), "-o another/file.law") from error
