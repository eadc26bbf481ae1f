"""``run.json``: the manifest of a run, written last and whole; an unknown version is refused, never guessed."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from perflaw.errors import StoreError
from perflaw.store.schema import RUN_SCHEMA
from perflaw.types import Clock, Losses, Metric, Run

LATER: Final = ("workload", "planned")
"""Fields that manifests of this version did not have from its beginning: where one is not there, its default holds."""


def write_manifest(folder: Path, run: Run) -> None:
    """Write ``run.json``, visible only when it is whole; OSError if the disk refuses."""
    text = json.dumps({"schema": RUN_SCHEMA, **asdict(run)}, indent=1, allow_nan=False)
    temporary = folder / "run.json.part"
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.chmod(0o600)
    temporary.replace(folder / "run.json")


def read_manifest(folder: Path) -> Run:
    """The manifest of the run in ``folder``; StoreError where it is missing, damaged or of another version."""
    path = folder / "run.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{folder}: no run.json", "the recording did not finish", "perflaw runs") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read", f"truncated or damaged ({error})", "perflaw runs") from error
    _check_version(path, document)
    try:
        return _run(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path}: a field is missing or wrong", f"damaged ({error})", "perflaw runs") from error


def _check_version(path: Path, document: Any) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == RUN_SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith("perflaw.run/"):
        its, ours = schema.split("/")[1], RUN_SCHEMA.split("/")[1]
        older = its.isdigit() and int(its) < int(ours)
        remedy = "perflaw record -e NAME -- … (records anew)" if older else "pip install --upgrade perflaw"
        why = f"it is of version {its}, this perflaw reads {ours}"
        raise StoreError(f"{path}: recorded by another version of perflaw", why, remedy)
    raise StoreError(f"{path}: not a manifest of perflaw's", "its schema is missing or unknown", "perflaw runs")


def _run(document: dict[str, Any]) -> Run:
    written = {field.name for field in fields(Run)} - {name for name in LATER if name not in document}
    values = {name: document[name] for name in written}
    values["command"] = tuple(values["command"])
    values["features"] = {str(name): float(number) for name, number in values["features"].items()}
    values["configuration"] = {str(name): str(text) for name, text in values["configuration"].items()}
    for name in ("wall_ns", "span_ns", "status", "calls", "functions", "nodes", "pid"):
        values[name] = int(values[name])
    values["metrics"] = tuple(Metric(**metric) for metric in values["metrics"])
    values["words"] = {str(topic): str(text) for topic, text in values["words"].items()}
    for name in {"parent", *LATER} & values.keys():
        values[name] = str(values[name])
    values["clock"] = Clock(**values["clock"])
    values["lost"] = Losses(**values["lost"])
    return Run(**values)
