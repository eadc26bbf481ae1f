"""The JSON documents of the verbs (``docs/json.md``): each joins the documents of its nouns under the name of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perflaw.report.mine.text import assertions
from perflaw.report.trend.view import TrendView, places_of
from perflaw.specs.call_paths import expression_text
from perflaw.types import (
    Annotation,
    CheckVerdict,
    Consistency,
    DiffVerdict,
    Forecast,
    ProgramForecast,
    Run,
    SpecVerdict,
)
from perflaw.types.documents import Document, document, encoded
from perflaw.types.explored import StudyResult
from perflaw.types.specifications import MinedSpec, PathSpec, SpecFile
from perflaw.types.variance import PatternChange, Variance


def annotate_document(
    annotations: Sequence[Annotation],
    runs: Sequence[Run],
    at: Mapping[str, float] | None,
    program: ProgramForecast | None = None,
) -> Document:
    """``perflaw.annotate/1``: every component with its laws, in the order of their ranking, and the whole program."""
    return {
        "schema": "perflaw.annotate/1",
        "at": dict(at) if at else None,
        "runs": _runs(runs),
        "program": document(program) if program else None,
        "annotations": encoded(annotations),
    }


def check_document(
    verdicts: Sequence[CheckVerdict | SpecVerdict], runs: Sequence[str], left_out: Sequence[str]
) -> Document:
    """``perflaw.check/1``: verdicts on laws, or on groups of call paths."""
    return {"schema": "perflaw.check/1", "verdicts": encoded(verdicts), "runs": list(runs), "left_out": list(left_out)}


def diff_document(verdicts: Sequence[DiffVerdict]) -> Document:
    """``perflaw.diff/1``."""
    return {"schema": "perflaw.diff/1", "verdicts": encoded(verdicts)}


def predict_document(forecasts: Sequence[Forecast]) -> Document:
    """``perflaw.predict/1``."""
    return {"schema": "perflaw.predict/1", "predictions": encoded(forecasts)}


def trend_document(view: TrendView) -> Document:
    """``perflaw.trend/1``: every cluster, the costliest first."""
    places, locations, peak = places_of(view.matrix.locations), view.matrix.locations, view.peak
    clusters = [
        {
            **document(cluster),
            "locations": [locations[row].name for row in cluster.members],
            "places": places.texts(cluster.members, peak),
        }
        for cluster in view.trends.clusters
    ]
    return {
        "schema": "perflaw.trend/1",
        **document(view.trends),
        "runs": list(view.matrix.runs),
        "left_out": list(view.left_out),
        "clusters": clusters,
    }


def variance_document(
    variance: Variance, runs: Sequence[Run], changes: Sequence[PatternChange] | None = None
) -> Document:
    """``perflaw.variance/1``; ``changes`` are those since the recordings of another experiment."""
    compared = {} if changes is None else {"changes": encoded(changes)}
    return {"schema": "perflaw.variance/1", "runs": _runs(runs), **document(variance), **compared}


def mine_document(file: SpecFile, merges: Sequence[Sequence[Consistency]] = ()) -> Document:
    """``perflaw.mine/1``; ``merges`` holds the consistency of every function at each step of ``--merge``."""
    return {
        "schema": "perflaw.mine/1",
        "runs": encoded(file.runs),
        "specs": [spec_document(mined) for mined in file.specs],
        "merges": encoded(merges),
    }


def spec_document(mined: MinedSpec) -> Document:
    """A specification; its groups hold their call paths and, where single runs are known, their calls in each run."""
    spec, tallies = mined.spec, mined.tallies or [()] * len(mined.spec.groups)
    return {
        **document(spec),
        "groups": [
            {
                **document(group),
                "expression": expression_text(group.expression),
                "terms": [[{"edge": list(edge), "on_path": on} for edge, on in term] for term in group.expression],
                "paths": _paths(spec, group.paths),
                "behaviours": _by_platform(group.behaviours),
                "runs": encoded(runs),
            }
            for group, runs in zip(spec.groups, tallies, strict=True)
        ],
        "assertions": assertions(spec),
        "unknown": _paths(spec, spec.unknown),
        "platform_borders": _by_platform(spec.platform_borders),
    }


def explore_document(result: StudyResult, seed: int = 0) -> Document:
    """``perflaw.explore/1``; ``seed`` is the one that the study was begun with."""
    return {
        "schema": "perflaw.explore/1",
        "seed": seed,
        **document(result),
        "interactions": [
            {"metric": importance.metric, **document(share)}
            for importance in result.importance
            for share in importance.shares
            if len(share.knobs) > 1 and share.sure
        ],
        "laws": {learnt.metric.name: document(learnt.law) for learnt in result.laws},
    }


def _runs(runs: Iterable[Run]) -> list[Document]:
    return [{"id": run.id, "features": dict(run.features), "complete": run.complete} for run in runs]


def _paths(spec: PathSpec, places: Iterable[int]) -> list[Document]:
    return [{"path": list(spec.paths[place]), "counts": list(spec.path_counts[place])} for place in places]


def _by_platform(values: Mapping[int, Sequence[float]] | None) -> list[Document] | None:
    if values is None:
        return None
    return [{"platform": place, "values": list(some)} for place, some in sorted(values.items())]
