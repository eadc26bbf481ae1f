"""The JSON documents of the verbs (``docs/json.md``): each joins the documents of its nouns under the name of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from perflaw.report.law_words import grows_as, shown_law, shown_run_law, slope_interval
from perflaw.types.documents import Document, document, encoded

if TYPE_CHECKING:
    from perflaw.report.trend.view import TrendView
    from perflaw.types import (
        Annotation,
        CheckVerdict,
        DiffVerdict,
        Forecast,
        GrowthSource,
        Law,
        Prediction,
        ProgramForecast,
        Run,
        SpecVerdict,
    )
    from perflaw.types.explored import StudyResult
    from perflaw.types.programs import ProgramPart
    from perflaw.types.specifications import MergeStep, MinedSpec, PathSpec, SpecFile
    from perflaw.types.variance import PatternChange, Variance


def annotate_document(
    annotations: Sequence[Annotation],
    runs: Sequence[Run],
    at: Mapping[str, float] | None,
    program: ProgramForecast | None = None,
    sources: Sequence[GrowthSource] = (),
    calls: bool = False,
) -> Document:
    """``perflaw.annotate/1``: every component with its laws, in the order of their ranking, and the whole program.

    With ``calls`` those of a call are shown where there are laws of runs as well.
    """
    unit = annotations[0].metric.unit if annotations else ""
    of_runs = True if program and program.per else False if calls else None
    lost = ("counted_functions", "library_functions", "unselected_functions")
    return {
        "schema": "perflaw.annotate/1",
        "at": dict(at) if at else None,
        "per": program.per if program else "",
        "runs": _runs(runs),
        "program": program and {**document(program), "parts": [_part(one, unit, at) for one in program.parts]},
        "sources": encoded(sources),
        "lost": {name: max((getattr(run.lost, name) for run in runs), default=0) for name in lost},
        "annotations": [{**document(one), "shown": encoded(shown_law(one, at, of_runs))} for one in annotations],
    }


def fit_document(series: str | None, law: Law, dropped: int, unit: str) -> Document:
    """``perflaw.fit/1``: the law of a series, of which so many rows were dropped."""
    return {
        "schema": "perflaw.fit/1",
        "series": series,
        "law": document(law),
        "shown": {"growth": grows_as(law), "interval": slope_interval(law)},
        "dropped": dropped,
        "unit": unit,
    }


def _part(part: ProgramPart, unit: str, at: Mapping[str, float] | None) -> Document:
    """A part of whole runs as a row of the table."""
    row = {
        "component": part.component.name,
        "unit": unit,
        "share": part.share,
        "self_share": part.share,
        "predicted": encoded(part.predicted),
    }
    return {**row, "shown": shown_run_law(part.law, unit, at or {})}


def check_document(
    verdicts: Sequence[CheckVerdict | SpecVerdict], runs: Sequence[str], left_out: Sequence[str]
) -> Document:
    """``perflaw.check/1``: verdicts on laws, or on groups of call paths."""
    return {"schema": "perflaw.check/1", "verdicts": encoded(verdicts), "runs": list(runs), "left_out": list(left_out)}


def diff_document(verdicts: Sequence[DiffVerdict]) -> Document:
    """``perflaw.diff/1``."""
    return {"schema": "perflaw.diff/1", "verdicts": encoded(verdicts)}


def predict_document(forecasts: Sequence[Forecast], whole: Sequence[Prediction], per: str = "") -> Document:
    """``perflaw.predict/1``; ``whole``: cost of a whole run; ``per``: the function of which a call takes the place of a run."""
    return {"schema": "perflaw.predict/1", "per": per, "whole": encoded(whole), "predictions": encoded(forecasts)}


def trend_document(view: TrendView) -> Document:
    """``perflaw.trend/1``: every cluster, the costliest first."""
    from perflaw.report.trend.view import places_of, shown_cluster, shown_trends

    places, locations, peak = places_of(view.matrix.locations), view.matrix.locations, view.peak
    clusters = [
        {
            **document(cluster),
            "locations": [locations[row].name for row in cluster.members],
            "places": places.texts(cluster.members, peak),
            "shown": shown_cluster(cluster, view),
        }
        for cluster in view.trends.clusters
    ]
    return {
        "schema": "perflaw.trend/1",
        **document(view.trends),
        "runs": list(view.matrix.runs),
        "left_out": list(view.left_out),
        "clusters": clusters,
        "shown": shown_trends(view),
    }


def variance_document(
    variance: Variance, runs: Sequence[Run], changes: Sequence[PatternChange] | None = None
) -> Document:
    """``perflaw.variance/1``; ``changes`` are those since the recordings of another experiment."""
    from perflaw.report.variance.text import await_texts, provenance, shown_change, shown_explanation

    unit, found = variance.metric.unit, document(variance)
    for latency, one in zip(found["latencies"], variance.latencies, strict=True):
        latency["shown"] = {"sources": await_texts(one.latency)}
    if variance.explanation:
        found["function"]["shown"] = encoded(shown_explanation(variance.explanation))
    if changes is not None:
        found["changes"] = [{**document(one), "shown": shown_change(one, unit)} for one in changes]
    shown = {"runs": provenance(runs)}
    return {"schema": "perflaw.variance/1", "runs": _runs(runs), **found, "shown": shown}


def mine_document(file: SpecFile, steps: Sequence[MergeStep] = ()) -> Document:
    """``perflaw.mine/1``; its ``merges`` holds the consistency of every function at each of the steps of ``--merge``."""
    from perflaw.report.mine.text import shown_merges

    return {
        "schema": "perflaw.mine/1",
        "runs": encoded(file.runs),
        "specs": [spec_document(mined) for mined in file.specs],
        "merges": [encoded(step.found) for step in steps],
        "shown": shown_merges(steps),
    }


def spec_document(mined: MinedSpec) -> Document:
    """A specification; its groups hold their call paths and, where single runs are known, their calls in each run."""
    from perflaw.report.mine.text import assertions, shown_spec
    from perflaw.specs.call_paths import expression_text

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
        "shown": shown_spec(spec),
    }


def explore_document(result: StudyResult, seed: int = 0) -> Document:
    """``perflaw.explore/1``; ``seed`` is the one that the study was begun with."""
    return {
        "schema": "perflaw.explore/1",
        "seed": seed,
        **document(result),
        "knobs": [{"name": knob.name, "unit": knob.unit} for knob in result.study.knobs],
        "metrics": [{**document(metric), "unit": metric.unit} for metric in result.study.metrics],
        "tried": len(result.tried),
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
