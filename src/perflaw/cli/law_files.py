"""Laws as a person names them: a ``.law`` file, its JSON twin, or an experiment. Shared by check, diff and predict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflaw.cli.twin import SCHEMA, twin_path
from perflaw.errors import DataError, StoreError, UsageError

if TYPE_CHECKING:
    from perflaw.check.claims import Claim
    from perflaw.types import Annotation, Evidence

Document = Mapping[str, Any]
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading a document raises that is none of ours."""


@dataclass(frozen=True, slots=True)
class Laws:
    """Laws with where they come from."""

    source: str
    """As the person named it."""
    claims: tuple[Claim, ...]
    """One a component and metric."""
    learnt_from: frozenset[tuple[str, str]] = frozenset()
    """Id and start of every run they were learnt from; empty for text alone."""
    evidence: Mapping[tuple[str, str], Evidence] | None = None
    """What the laws of an experiment were learnt from, by component and metric."""
    note: str = ""
    """What a person should know: the twin says something else than the text."""


def load_laws(
    source: str, metric: str = "time", without: Sequence[str] = (), at: dict[str, float] | None = None
) -> Laws:
    """Laws of a file, or of an experiment's recordings but those in ``without``, with predictions ``at`` a point.

    A PerflawError says what is wrong.
    """
    path = Path(source)
    if path.is_file():
        return _of_document(source, read_document(path)) if path.suffix == ".json" else _of_text(path)
    if not path.suffix and _is_experiment(source):
        return _of_experiment(source, metric, without, at)
    if path.is_dir():
        raise StoreError(f"{source}: is a folder", "laws are a file or an experiment", "perflaw annotate -o perf.law")
    raise StoreError(
        f"{source}: no such law file, and no experiment of that name",
        "laws are a .law file, its .json twin, or the name of an experiment",
        "perflaw annotate -o perf.law",
    )


def _is_experiment(name: str) -> bool:
    from perflaw.store.experiment import open_experiment

    try:
        return bool(open_experiment(name).ids())
    except UsageError:
        return False


def _of_text(path: Path) -> Laws:
    from perflaw.check.claims import claims_of_text
    from perflaw.laws.reading import parse

    file = parse(_read(path), where=str(path))
    if not file.blocks:
        raise DataError(f"{path}: no laws in it", "the file is empty or all comment", "perflaw annotate -o perf.law")
    beside = twin_path(path)
    twin = read_document(beside) if beside.is_file() else None
    try:
        claims = tuple(claims_of_text(file, twin))
    except DataError as error:
        raise DataError(f"{path}: {error.what}", error.why, error.next_command) from error
    except _DAMAGE as error:
        raise _damaged(str(beside), error) from error
    other = sum(claim.document is None for claim in claims) if twin else 0
    note = f"{other} of {len(claims)} laws differ from {beside.name}: taken at their word" if other else ""
    return Laws(str(path), claims, _runs_of(twin) if twin else frozenset(), note=note)


def _of_document(source: str, document: Document, annotations: Sequence[Annotation] = ()) -> Laws:
    from perflaw.check.claims import claims_of_document

    try:
        claims = tuple(claims_of_document(document, annotations))
    except _DAMAGE as error:
        raise _damaged(source, error) from error
    if not claims:
        raise DataError(f"{source}: no laws in it", "nothing was learnt", "perflaw annotate -o perf.law")
    return Laws(source, claims, _runs_of(document))


def _damaged(file: str, error: Exception) -> StoreError:
    return StoreError(f"{file}: damaged", f"not what perflaw writes: {error!r}", "perflaw annotate -o perf.law")


def _of_experiment(name: str, metric: str, without: Sequence[str], at: dict[str, float] | None) -> Laws:
    from perflaw.cli.annotate import learn_experiment
    from perflaw.cli.twin import evidence_of, twin_document
    from perflaw.store.evidence import measured
    from perflaw.store.experiment import open_experiment

    left = tuple(run for run in open_experiment(name).ids() if run not in without)
    if not left:
        raise UsageError(
            f"{name}: no run left to learn from", "the runs to check are all it has", "perflaw record -- python app.py"
        )
    recordings, annotations = learn_experiment(name, left, at, metric)
    found = evidence_of(recordings, measured(recordings, metric))
    document = twin_document(annotations, recordings, found, at)
    return replace(_of_document(name, document, annotations), evidence=found)


def read_document(path: Path) -> dict[str, Any]:
    """A document of ``perflaw annotate --json``; StoreError where it is another thing or of an unknown version."""
    try:
        document: Any = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}: no JSON", str(error), "perflaw annotate -o perf.law") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise StoreError(f"{path}: schema {schema!r}", f"wanted is {SCHEMA!r}", "perflaw annotate -o perf.law")
    if not isinstance(document, dict) or not isinstance(document.get("annotations"), list):
        raise StoreError(f"{path}: damaged", "it has no list of annotations", "perflaw annotate -o perf.law")
    return document


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be read", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: is no text", f"byte {error.start} is not UTF-8") from error


def _runs_of(document: Document) -> frozenset[tuple[str, str]]:
    runs = document.get("runs") or []
    return frozenset((str(run["id"]), str(run.get("started", ""))) for run in runs)
