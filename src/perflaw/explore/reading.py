"""Study files, read and checked: YAML, a Python file with ``study = …``, or the paper's XML (docs/study-files.md)."""

from __future__ import annotations

import hashlib
import runpy
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from perflaw.errors import UsageError
from perflaw.explore.checks import check_study
from perflaw.explore.parts import NEXT, Part, from_python, from_yaml
from perflaw.explore.reading_knobs import read_knob
from perflaw.explore.reading_metrics import read_metrics
from perflaw.explore.reading_rest import read_budget, read_load, read_policy, read_restore
from perflaw.explore.reading_target import read_target
from perflaw.explore.spex_xml import from_xml
from perflaw.types.studies import Study

KEYS = (
    "name", "target", "knobs", "constraints", "metrics", "restore", "policy", "trials", "minutes", "margin",
    "repetitions", "early_stop", "load",
)  # fmt: skip
LARGEST = 4 * 2**20
"""Bytes of a study file."""


def read_study(path: str | Path) -> Study:
    """The study of a file; UsageError says what is wrong where.

    A Python file is executed, as importing it would: read only those you would run.
    """
    path = Path(path)
    text = _text(path)
    found = _python(path, text) if path.suffix == ".py" else _parts(path, text)
    folder = str(path.resolve().parent)
    study = found if isinstance(found, Study) else study_of(found, path.stem, folder)
    return replace(study, digest=hashlib.sha256(text.encode()).hexdigest(), folder=folder)


def study_of(part: Part, name: str, folder: str = ".") -> Study:
    """A study from its parts; ``name`` where they say none."""
    keys = part.keys(KEYS)
    for needed in ("target", "knobs", "metrics"):
        if needed not in keys:
            part.wrong(f"key {needed!r} is missing")
    knobs = tuple(read_knob(one) for one in keys["knobs"].keys().values())
    if not knobs:
        keys["knobs"].wrong("a study needs a knob")
    policy, options = read_policy(keys.get("policy"))
    study = Study(
        name=_name(keys, name),
        target=read_target(keys["target"]),
        knobs=knobs,
        metrics=read_metrics(keys["metrics"]),
        constraints=tuple(one.word() for one in keys["constraints"].items()) if "constraints" in keys else (),
        restore=read_restore(keys.get("restore")),
        policy=policy,
        options=options,
        budget=read_budget(keys),
        repetitions=keys["repetitions"].whole(1, 10_000) if "repetitions" in keys else 1,
        early_stop=keys["early_stop"].boolean() if "early_stop" in keys else True,
        load=read_load(keys.get("load"), [knob.name for knob in knobs]),
        folder=folder,
    )
    check_study(study, keys)
    return study


def _name(keys: dict[str, Part], name: str) -> str:
    if "name" not in keys:
        return name
    word = keys["name"].word()
    if not word or "/" in word or word.startswith(".") or len(word) > 100:
        keys["name"].wrong(f"{word!r} cannot name a folder")
    return word


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise UsageError(f"study {path}", "it is a folder", "perflaw explore STUDY.yaml")
        if path.stat().st_size > LARGEST:
            raise UsageError(f"study {path}", f"it is larger than {LARGEST // 2**20} MiB")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"study {path}", error.strerror or str(error), "perflaw explore STUDY.yaml") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"study {path}", f"byte {error.start} is no UTF-8: it is no text file") from error


def _parts(path: Path, text: str) -> Part:
    if path.suffix == ".xml" or text.lstrip().startswith("<"):
        return from_xml(text, str(path))
    return from_yaml(text, str(path))


def _run(path: Path) -> dict[str, Any]:
    """The names that a file makes; it may import what lies beside it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path.remove(folder)


def _python(path: Path, text: str) -> Part | Study:
    try:
        found = _run(path).get("study")
    except (Exception, SystemExit) as error:
        at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = f":{at[-1]}" if at else f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UsageError(f"{path}{line}: it raised", f"{type(error).__name__}: {error}") from error
    if found is None:
        raise UsageError(f"{path}: no study in it", "a Python study file says study = {…}", NEXT)
    if isinstance(found, Study):
        check_study(replace(found, folder=str(path.resolve().parent)), {})
        return found
    return from_python(found, str(path))
