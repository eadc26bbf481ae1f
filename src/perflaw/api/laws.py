"""Laws as a person names them: a ``.law`` file, its JSON twin, or an experiment; and the files that ``-o`` writes.

A twin has the laws with intervals, their runs, and how these differ from the laws.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perflaw.bounds import read_json
from perflaw.errors import DataError, StoreError, UsageError
from perflaw.notices import progress

if TYPE_CHECKING:
    from perflaw.check.claims import Claim
    from perflaw.check.program_summary import ProgramSummary
    from perflaw.store.evidence import EvidenceByKey
    from perflaw.store.experiment import Experiment, Recording
    from perflaw.types import Annotation, Evidence, GrowthSource, Metric, Prediction, ProgramCosts, ProgramForecast
    from perflaw.types.programs import Outlook

Document = Mapping[str, Any]
DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""Exceptions that reading a damaged document raises."""
WRITE_LAWS = "perflaw annotate -o perf.law"
MODEL, READ = 0.6, 0.05
"""Parts of the work: the cost model of the program, and reading the evidence for the laws."""
COSTS_READ, COSTS_LEARNT = 0.12, 0.5
"""Parts of the first of them that are done when the costs are read, and when what they follow is learnt; the laws of runs are
left."""
LEARNT: Final = 0.95
"""Part of the work that is done when all laws are learnt: what they say of whole runs is left."""
BESIDE_CALLS: Final = 0.37
"""What these parts shrink to where laws of single calls are learnt, which take most of the time."""


@dataclass(frozen=True, slots=True)
class LearntExperiment:
    """The laws of an experiment, with the recordings and the evidence behind them."""

    recordings: Sequence[Recording]
    """The recordings that were read."""
    metric: Metric
    """The metric of the laws."""
    evidence: Sequence[Evidence]
    """What the recordings hold of each component."""
    annotations: list[Annotation]
    """The laws, ranked."""
    program: ProgramForecast | None
    """The cost of whole runs; None without a complete one."""
    costs: ProgramCosts
    """Calls and own costs of the executions, by function and calling context."""
    sources: tuple[GrowthSource, ...] = ()
    """Call sites at which growth enters a run of the size asked for."""
    outlook: Outlook | None = None
    """A run at the point asked for, or at ten times the sizes recorded; None where runs have no sizes."""

    def document(self, at: Mapping[str, float] | None, calls: bool = False) -> dict[str, Any]:
        """The document of ``annotate --json``, with ``calls`` that of ``--calls``."""
        from perflaw.report.documents import annotate_document

        runs = [one.run for one in self.recordings]
        return annotate_document(self.annotations, runs, at, self.program, self.sources, calls)


@dataclass(frozen=True, slots=True)
class LoadedLaws:
    """Laws with their source."""

    source: str
    """File or experiment, as the person named it."""
    claims: tuple[Claim, ...]
    """One claim for each component and metric."""
    learnt_from: frozenset[tuple[str, str]] = frozenset()
    """Id and start of every run that the laws were learnt from; empty for text alone."""
    evidence: EvidenceByKey | None = None
    """Evidence that the laws of an experiment were learnt from; None for laws of a file."""
    note: str = ""
    """A note to the person: the twin differs from the text."""
    program: ProgramSummary | None = None
    """Calls and unit costs of the program's runs; None for text alone and for twins without them."""
    per: str = ""
    """The function of which each call takes the place of a run (``--per``); empty: laws are those of runs."""
    whole: Prediction | None = None
    """Cost of a whole run at the point asked for; None for laws of a file."""
    learning_s: float = 0.0
    """Seconds that learning them from an experiment took; little where they were kept."""


def learn_experiment(
    experiment: str,
    runs: Sequence[str],
    at: Mapping[str, float] | None,
    metric_name: str,
    paper: bool = False,
    without: Sequence[str] = (),
    calls: bool = True,
    least_share: float = 0.0,
) -> LearntExperiment:
    """Learn the laws of an experiment's recordings except those in ``without``, or of the runs named, in the metric named.

    What was learnt before from the same recordings in the same way is read from the cache.
    Without ``calls`` only the laws of runs are learnt where a table shows these alone. Laws of a call are learnt of
    functions with the ``least_share`` of the cost. UsageError if no run is left.
    """
    from perflaw.api.kept import MIN_LEARNING_S, Kept
    from perflaw.api.reading import read_recordings

    recordings = read_recordings(experiment, runs, without)
    if not recordings:
        why = "every run of it is to be checked"
        raise UsageError(f"{experiment}: no run is left to learn from", why, "perflaw record -- python app.py")
    kept = Kept(recordings, (metric_name, list(at.items()) if at else None, paper, calls, least_share))
    if known := kept.read():
        return LearntExperiment(recordings, *known)
    begun = time.monotonic()
    learnt = _learn(recordings, at, metric_name, paper, calls, least_share)
    if time.monotonic() - begun >= MIN_LEARNING_S:
        with progress("keeping what was learnt"):
            kept.keep([getattr(learnt, field.name) for field in fields(learnt)[1:]])
    return learnt


def _learn(
    recordings: Sequence[Recording],
    at: Mapping[str, float] | None,
    metric_name: str,
    paper: bool,
    calls: bool,
    least_share: float,
) -> LearntExperiment:
    from perflaw.learn.annotations import AnnotationOptions, annotate
    from perflaw.learn.program import RunLaws, forecast_program, growth_sources, learn_program, outlook
    from perflaw.learn.series.series import without_garbage_collection
    from perflaw.store.evidence import find_metric, gather
    from perflaw.store.program import read_program

    metric = find_metric(recordings, metric_name)
    clocks = [one.run.clock for one in recordings] if metric.unit == "ns" else []
    quantum = max([1.0, *(float(one.tick_ns) for one in clocks)])
    # Calibrations that differ between runs shift all calls of a run.
    events = [one.event_ns for one in clocks] or [0]
    resolution = max([quantum, float(max(events) - min(events)), *(one.exact_ns for one in clocks)])
    with progress("learning") as show, without_garbage_collection():

        def learning(part: float) -> None:
            show((MODEL + READ) * share + (LEARNT - (MODEL + READ) * share) * part)

        share = BESIDE_CALLS if calls else 1.0
        costs = read_program(recordings, metric)
        show(COSTS_READ * MODEL * share)
        # None of the recordings may be complete.
        model = learn_program(costs, tuple(at or ())) if costs.runs else None
        show(COSTS_LEARNT * MODEL * share)
        run_laws = RunLaws(model, at) if model else None
        if not calls:
            calls = run_laws is None or not run_laws.are_shown(at)
        share = BESIDE_CALLS if calls else 1.0
        options = AnnotationOptions(
            metric, quantum, resolution, calls=calls, least_share=least_share, paper=paper, progress=learning
        )
        evidence = gather(recordings, metric, lambda part: show((MODEL + READ * part) * share), features=calls)
        annotations = annotate(evidence, options, at, run_laws)
        sources = growth_sources(model, at) if model and at else ()
        program = forecast_program(model, at, run_laws) if model else None
        far = outlook(run_laws) if run_laws else None
    return LearntExperiment(recordings, metric, evidence, annotations, program, costs, sources, far)


def check_point(at: Mapping[str, float] | None, annotations: Sequence[Annotation]) -> None:
    """Refuse a point with a feature that was never recorded: its name is mistyped."""
    known = {name for one in annotations for name in one.features}
    for name in at or {}:
        if name not in known:
            first = ", ".join(sorted(known)[:8]) or "none"
            raise UsageError(f"--at {name}=…: no such feature", f"recorded features are {first}", "perflaw runs")


def load_laws(
    source: str, metric: str = "time", without: Sequence[str] = (), at: Mapping[str, float] | None = None
) -> LoadedLaws:
    """Laws of a file, or of an experiment's recordings except those in ``without``, with predictions ``at`` a point.

    Raises a PerflawError that says what is wrong.
    """
    from perflaw.store.experiment import open_experiment

    path = Path(source)
    if path.is_file():
        return _from_document(source, read_document(path)) if path.suffix == ".json" else _from_text(path)
    if not path.suffix:
        try:
            is_experiment = bool(open_experiment(source).ids())
        except UsageError:  # no experiment can have this name
            is_experiment = False
        if is_experiment:
            of_study = kept_laws(open_experiment(source))
            if of_study.is_file() and not without:
                laws = _from_text(of_study)
                named = tuple(claim for claim in laws.claims if claim.metric.name == metric)
                return replace(laws, source=source, claims=named or laws.claims)
            return _from_experiment(source, metric, without, at)
    if path.is_dir():
        raise StoreError(f"{source} is a folder", "laws are in a file or an experiment", WRITE_LAWS)
    why = "laws are in a .law file, its .json twin, or an experiment"
    raise StoreError(f"{source}: no such law file, and no experiment of that name", why, WRITE_LAWS)


def _from_text(path: Path) -> LoadedLaws:
    """Laws of a law file; its twin adds what it knows about the laws that are the same in both."""
    from perflaw.check.claims import claims_of_text
    from perflaw.check.program_summary import summary_from
    from perflaw.laws.reading import parse

    file = parse(_read(path), where=str(path))
    if not file.blocks:
        raise DataError(f"{path}: no laws in it", "the file is empty or has only comments", WRITE_LAWS)
    beside = twin_path(path)
    twin = read_document(beside) if beside.is_file() else None
    try:
        claims = tuple(claims_of_text(file, twin))
        program = summary_from(twin.get("program")) if twin else None
        runs, per = (_runs(twin), str(twin.get("per", ""))) if twin else (frozenset[tuple[str, str]](), "")
    except DataError as error:
        raise DataError(f"{path}: {error.what}", error.why, error.next_command) from error
    except DAMAGE as error:
        raise _damaged(str(beside), error) from error
    differing = sum(claim.document is None for claim in claims) if twin else 0
    note = f"{differing} of {len(claims)} laws differ from {beside.name}: their text counts" if differing else ""
    return LoadedLaws(str(path), claims, runs, note=note, program=program, per=per)


def _from_document(source: str, document: Document, annotations: Sequence[Annotation] = ()) -> LoadedLaws:
    from perflaw.check.claims import claims_of_document
    from perflaw.check.program_summary import summary_from

    try:
        claims = tuple(claims_of_document(document, annotations))
        program = summary_from(document.get("program"))
        runs, per = _runs(document), str(document.get("per", ""))
    except DAMAGE as error:
        raise _damaged(source, error) from error
    if not claims:
        raise DataError(f"{source}: no laws in it", "nothing was learnt", WRITE_LAWS)
    return LoadedLaws(source, claims, runs, program=program, per=per)


def _from_experiment(name: str, metric: str, without: Sequence[str], at: Mapping[str, float] | None) -> LoadedLaws:
    from perflaw.check.program_summary import summarize
    from perflaw.store.evidence import by_key

    begun = time.monotonic()
    learnt = learn_experiment(name, (), at, metric, without=without)
    learning_s = time.monotonic() - begun
    evidence = by_key(learnt.evidence, learnt.metric)
    document = twin_document(learnt.document(at), learnt.annotations, learnt.recordings, evidence)
    loaded = _from_document(name, document, learnt.annotations)
    whole = learnt.program.predicted if learnt.program else None
    return replace(loaded, evidence=evidence, program=summarize(learnt.costs), whole=whole, learning_s=learning_s)


def _runs(document: Document) -> frozenset[tuple[str, str]]:
    """Id and start of the runs behind a document's laws."""
    return frozenset((str(run["id"]), str(run.get("started", ""))) for run in document.get("runs") or [])


def _damaged(file: str, error: Exception) -> StoreError:
    return StoreError(f"{file}: damaged", f"perflaw does not write this: {error!r}", WRITE_LAWS)


def read_document(path: Path) -> dict[str, Any]:
    """A document of ``perflaw annotate --json``; StoreError for another document or an unknown version."""
    try:
        document: Any = read_json(_read(path))
    except ValueError as error:
        raise StoreError(f"{path}: no JSON", str(error), WRITE_LAWS) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise StoreError(f"{path}: schema {schema!r}", f"expected {SCHEMA!r}", WRITE_LAWS)
    if not isinstance(document, dict) or not isinstance(document.get("annotations"), list):
        raise StoreError(f"{path}: damaged", "it has no list of annotations", WRITE_LAWS)
    return document


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be read", error.strerror or str(error), f"ls -l {path}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is no text file", f"byte {error.start} is not UTF-8", WRITE_LAWS) from error


SCHEMA = "perflaw.annotate/1"


def kept_laws(experiment: Experiment) -> Path:
    """Where the laws of a study stand beside its trials: laws over knobs, which no metric of a recorded run has."""
    return experiment.folder / "study.law"


def twin_path(path: Path) -> Path:
    """The path of a law file's twin: ``perf.law.json`` beside ``perf.law``."""
    return path.with_name(path.name + ".json")


def write_laws(
    path: Path,
    document: Document,
    annotations: Sequence[Annotation],
    recordings: Sequence[Recording],
    evidence: EvidenceByKey,
    costs: ProgramCosts | None = None,
) -> None:
    """Write annotations, whose ``document`` is given, as a law file and its twin; StoreError if that is impossible."""
    from perflaw.api.reading import write_text
    from perflaw.learn.series.series import without_garbage_collection
    from perflaw.report.annotations import law_file
    from perflaw.types.documents import dumps_short

    with without_garbage_collection():
        twin = dumps_short(twin_document(document, annotations, recordings, evidence, costs)) + "\n"
    write_text(str(path), law_file(annotations), "-o another/file.law")
    write_text(str(twin_path(path)), twin, "-o another/file.law")


def twin_document(
    document: Document,
    annotations: Sequence[Annotation],
    recordings: Sequence[Recording],
    evidence: EvidenceByKey,
    costs: ProgramCosts | None = None,
) -> dict[str, Any]:
    """The twin's content: the laws with their intervals, and what a check needs of the evidence and costs behind them.

    ``document`` is that of ``annotate --json`` for the same annotations and recordings.
    """
    from perflaw.check.program_summary import summarize, summary_document
    from perflaw.check.twin import support

    # Of several components of one name that of the largest share, as in the law file.
    first: dict[tuple[str, str], Document] = {}
    with progress("summarizing what the laws were learnt from") as show:
        for number, (annotation, content) in enumerate(zip(annotations, document["annotations"], strict=True)):
            key = (annotation.component.name, annotation.metric.name)
            if key not in first:
                first[key] = {**content, **support(annotation, evidence)}
            show((number + 1) / len(annotations))
    runs = zip(document["runs"], recordings, strict=True)
    summary = summarize(costs) if costs is not None else None
    return {
        **document,
        "runs": [{**run, "started": recording.run.started} for run, recording in runs],
        "program": summary and summary_document(summary),
        "sources": [],
        "annotations": list(first.values()),
    }
