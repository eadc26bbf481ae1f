"""Study files, read and checked: YAML, a Python file with ``study = …``, or the paper's XML (docs/study-files.md)."""

from __future__ import annotations

import hashlib
import re
import runpy
import signal
import sys
import traceback
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from perflaw.errors import UsageError
from perflaw.explore.checks import check_study
from perflaw.explore.knobs import read_knob
from perflaw.explore.parts import NEXT, Part, did_you_mean, from_python, from_yaml
from perflaw.explore.spex_xml import from_xml
from perflaw.types.recordings import FEATURE_NAME
from perflaw.types.studies import Budget, Goal, Study, StudyMetric, Target

# ---- Policy, budget, restore and load of a study file.

_WHEN = ("trial", "exit", "crash")
_LOADS = {"cpu": "", "memory": "B", "disk": "B/s"}


def read_policy(part: Part | None) -> tuple[str, dict[str, Any]]:
    """Name and options: ``law``, or ``{name: racing, option: …}``."""
    if part is None:
        return "law", {}
    if not isinstance(part.value, dict):
        return part.word(), {}
    keys = part.keys()
    if "name" not in keys:
        part.wrong("its name is missing", "policy: {name: law, …}")
    options = {name: one.plain() for name, one in keys.items() if name not in ("name", "options")}
    more = keys["options"].keys() if "options" in keys else {}
    return keys["name"].word(), {**options, **{name: one.plain() for name, one in more.items()}}


def read_budget(keys: dict[str, Part]) -> Budget:
    """Budget from the study's own keys."""
    minutes = keys.get("minutes")
    return Budget(
        trials=keys["trials"].whole(1, 10_000_000) if "trials" in keys else None,
        minutes=None if minutes is None else _minutes(minutes),
        margin=_margin(keys["margin"]) if "margin" in keys else None,
    )


def _minutes(part: Part) -> float:
    found = part.quantity()
    if found.unit == "s":
        return part.number(1e-3, 1e9, "s") / 60
    return part.number(1e-4, 1e7)


def _margin(part: Part) -> float:
    margin = part.number(0, unit="share")
    if not 0 < margin < 1:
        part.wrong(f"{part.text} is no share between 0 and 1", "margin: 5 %")
    return margin


def read_restore(part: Part | None) -> dict[str, Any]:
    """``{"snapshot": [paths], "on": [when]}``; a list alone is the snapshot."""
    if part is None:
        return {}
    if not isinstance(part.value, dict):
        return {"snapshot": [one.word() for one in part.items()], "on": ["exit", "crash"]}
    keys = part.keys(("snapshot", "on"))
    if "snapshot" not in keys:
        part.wrong("snapshot is missing: the files and folders that are put back", "snapshot: [db]")
    when = [one.word() for one in keys["on"].items()] if "on" in keys else ["exit", "crash"]
    for word in when:
        if word not in _WHEN:
            keys["on"].wrong(f"unknown time {word!r}{did_you_mean(word, _WHEN)}")
    return {"snapshot": [one.word() for one in keys["snapshot"].items()], "on": when}


def read_load(part: Part | None, knobs: Collection[str]) -> dict[str, Any]:
    """Load beside the target: numbers in base units (CPUs, B, B/s), or names of knobs."""
    if part is None:
        return {}
    found: dict[str, Any] = {}
    for name, one in part.keys(tuple(_LOADS)).items():
        found[name] = one.word() if one.word() in knobs else one.number(0, unit=_LOADS[name])
    return found


# ---- The target of a study file.

READING_TARGET_KEYS = (
    "run", "start", "workload", "ready", "stop", "result", "prepare", "folder", "environment", "timeout", "ready_timeout",
    "disk", "remote", "sql",
)  # fmt: skip
READY = ("tcp", "http", "file", "output")
RESULTS = ("json", "lines")


def read_target(part: Part) -> Target:
    """A target from its keys; a text alone is a one-shot command."""
    if not isinstance(part.value, dict):
        return Target(run=_command(part))
    keys = part.keys((*READING_TARGET_KEYS, "timeout_s", "ready_s", "disk_bytes"))
    if ("run" in keys) == ("start" in keys):
        part.wrong("it needs either run (a command that ends by itself) or start (a server)", 'run: "./prog {args}"')
    if "workload" in keys and "start" not in keys:
        keys["workload"].wrong("only a server (start) has a workload beside it", "start: …")
    texts = {
        name: _command(keys[name]) for name in ("run", "start", "workload", "prepare", "folder", "sql") if name in keys
    }
    return Target(
        **texts,
        ready=_ready(keys["ready"]) if "ready" in keys else {},
        stop=_stop(keys["stop"]) if "stop" in keys else "SIGTERM",
        result=_result(keys["result"]) if "result" in keys else {},
        environment={name: one.word() for name, one in keys["environment"].keys().items()}
        if "environment" in keys
        else {},
        timeout_s=_seconds(keys, ("timeout", "timeout_s"), 60.0),
        ready_s=_seconds(keys, ("ready_timeout", "ready_s"), 20.0),
        disk_bytes=_bytes(keys),
        remote=_remote(keys["remote"]) if "remote" in keys else "",
    )


def _command(part: Part) -> str:
    text = part.word()
    if not text.strip():
        part.wrong("it is empty")
    if "\0" in text:
        part.wrong("it holds a NUL character")
    return text


def _ready(part: Part) -> dict[str, Any]:
    keys = part.keys(READY)
    if len(keys) != 1:
        part.wrong(f"one of {', '.join(READY)} was expected", "ready: {tcp: 7000}")
    (name, value), *_ = keys.items()
    if name == "tcp":
        _address(value, value.word())
    if name == "output":
        check_regex(value)
    return {name: value.value if name == "tcp" else value.word()}


def _address(part: Part, text: str) -> None:
    port = text.rpartition(":")[2]
    if not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        part.wrong(f"{text!r} is no port (7000) or host:port")


def _remote(part: Part) -> str:
    text = part.word()
    if ":" not in text:
        part.wrong(f"{text!r} is no host:port", "remote: db1.example.org:7700")
    _address(part, text)
    return text


def _stop(part: Part) -> str:
    text = _command(part)
    if re.fullmatch(r"SIG[A-Z0-9]+", text) and text not in signal.Signals.__members__:
        part.wrong(f"unknown signal {text}{did_you_mean(text, list(signal.Signals.__members__))}")
    return text


def _result(part: Part) -> dict[str, Any]:
    if not isinstance(part.value, dict):
        part = Part({part.word(): Part("stdout", part.where, part.what, "stdout")}, part.where, part.what)
    keys = part.keys(RESULTS)
    if len(keys) != 1:
        part.wrong(f"one of {', '.join(RESULTS)} was expected", "result: {json: stdout}")
    return {name: value.word() for name, value in keys.items()}


def _seconds(keys: dict[str, Part], names: tuple[str, ...], default: float) -> float:
    found = next((keys[name] for name in names if name in keys), None)
    return default if found is None else found.number(0.001, 30 * 86400, "s")


def _bytes(keys: dict[str, Part]) -> int:
    found = keys.get("disk", keys.get("disk_bytes"))
    return 0 if found is None else int(found.number(0, 2**60, "B"))


def check_regex(part: Part) -> str:
    """A regular expression that compiles."""
    text = part.word()
    try:
        re.compile(text)
    except re.error as error:
        part.wrong(f"{text!r} is no regular expression: {error}")
    return text


# ---- Metrics of a study file: each with one source.

SOURCES = ("probe", "path", "regex", "wall", "cpu", "memory")
"""Where a metric can come from: probes, the JSON result, the output, and what the machine says of the processes."""
RATES = ("count", "sum")
FIELDS = ("mean", "p50", "p90", "p99", "max", "min", "sum")
_KEYS = (*SOURCES, "rate", *FIELDS, "goal", "unit", "source")
_UNITS = {"wall": "s", "cpu": "s", "memory": "B"}


def read_metrics(part: Part) -> tuple[StudyMetric, ...]:
    """All metrics, in the file's order; UsageError where none has a goal."""
    found = tuple(_metric(one) for one in part.keys().values())
    if not any(metric.goal for metric in found):
        part.wrong(
            "no metric has a goal: nothing tells which configuration is better", "goal: max (or min) at one of them"
        )
    return found


def _metric(part: Part) -> StudyMetric:
    if not FEATURE_NAME.fullmatch(part.what):
        part.wrong(f"{part.what!r} cannot be a metric's name: letters, digits, _ . - alone")
    if not isinstance(part.value, dict):
        return _short(part)
    keys = part.keys(_KEYS)
    if "source" in keys:
        word = keys.pop("source").word()
        keys[_known(part, word)] = Part(True, part.where, word, "true")
    named = [name for name in SOURCES if name in keys]
    if len(named) != 1:
        part.wrong(
            f"one source was expected of {', '.join(SOURCES)}, there {'is none' if not named else 'are several'}"
        )
    return StudyMetric(part.what, _source(part, named[0], keys), _unit(keys, named[0]), _goal(keys.get("goal")))


def _short(part: Part) -> StudyMetric:
    """``seconds: wall``: the source's name alone."""
    word = part.word()
    name = _known(part, word)
    if name not in _UNITS:
        part.wrong(f"{name} needs to be told what to read", f"{{{name}: …}}")
    return StudyMetric(part.what, {name: True}, _UNITS[name])


def _known(part: Part, word: str) -> str:
    if word not in SOURCES:
        part.wrong(f"unknown metric source {word!r}{did_you_mean(word, SOURCES)}")
    return word


def _source(part: Part, name: str, keys: dict[str, Part]) -> dict[str, Any]:
    value = keys[name]
    if name == "probe":
        return _probe(part, keys)
    extra = [one for one in ("rate", *FIELDS) if one in keys]
    if extra:
        keys[extra[0]].wrong(f"only metrics of probes have {extra[0]}")
    if name in _UNITS:
        if value.value not in (None, True):
            value.wrong(f"{name} stands alone, or with true", f"{{{name}: true}}")
        return {name: True}
    if name == "path":
        return {"path": value.word()}
    if re.compile(check_regex(value)).groups > 1:
        value.wrong("it has several groups: one holds the number")
    return {"regex": value.word()}


def _probe(part: Part, keys: dict[str, Part]) -> dict[str, Any]:
    asked = [one for one in ("rate", *FIELDS) if one in keys]
    if len(asked) != 1:
        part.wrong(f"a metric of a probe needs one of rate, {', '.join(FIELDS)}", "{probe: query, rate: count}")
    value = keys[asked[0]]
    if asked[0] == "rate" and value.word() not in RATES:
        value.wrong(f"unknown rate {value.text!r}{did_you_mean(value.text, RATES)}")
    return {
        "probe": keys["probe"].value if isinstance(keys["probe"].value, int) else keys["probe"].word(),
        asked[0]: value.word(),
    }


def _unit(keys: dict[str, Part], source: str) -> str:
    return keys["unit"].word() if "unit" in keys else _UNITS.get(source, "")


def _goal(part: Part | None) -> Goal | None:
    if part is None:
        return None
    goals: dict[str, Goal] = {"max": "max", "min": "min"}
    word = part.word()
    if word not in goals:
        part.wrong(f"unknown goal {word!r}: max or min", "goal: max")
    return goals[word]


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
