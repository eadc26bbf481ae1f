"""Study files, read and checked: YAML, a Python file with ``study = …``, or the paper's XML (docs/study-files.md)."""

from __future__ import annotations

import hashlib
import re
import runpy
import signal
import sys
import traceback
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perflaw.documents import DocumentNode, DocumentSource, python_document, yaml_document
from perflaw.errors import UsageError, did_you_mean
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.context import Injector
from perflaw.explore.injectors.registry import COMMON_OPTIONS, find, name_of
from perflaw.explore.knobs import read_knob
from perflaw.explore.space import Space
from perflaw.explore.spex_xml import spex_document
from perflaw.explore.values import UNITS, read_number, read_quantity, read_whole
from perflaw.types.recordings import FEATURE_NAME
from perflaw.types.studies import Budget, Goal, Knob, Study, StudyMetric, Target

# ---- Policy, budget, restore and load of a study file.

_WHEN = ("trial", "exit", "crash")
_LOADS = {"cpu": "", "memory": "B", "disk": "B/s"}


def read_policy(node: DocumentNode | None) -> tuple[str, dict[str, Any]]:
    """Name and options: ``law``, or ``{name: racing, option: …}``."""
    if node is None:
        return "law", {}
    if not isinstance(node.value, dict):
        return node.text(), {}
    keys = node.mapping()
    if "name" not in keys:
        node.refuse("its name is missing", "policy: {name: law, …}")
    options = {name: one.value for name, one in keys.items() if name not in ("name", "options")}
    more = keys["options"].mapping() if "options" in keys else {}
    return keys["name"].text(), {**options, **{name: one.value for name, one in more.items()}}


def read_budget(keys: dict[str, DocumentNode]) -> Budget:
    """Budget from the study's own keys."""
    minutes = None
    if "minutes" in keys:
        node = keys["minutes"]
        seconds = read_quantity(node).unit == "s"
        minutes = read_number(node, 1e-3, 1e9, "s") / 60 if seconds else read_number(node, 1e-4, 1e7)
    margin = None
    if "margin" in keys:
        node = keys["margin"]
        margin = read_number(node, 0, unit="share")
        if not 0 < margin < 1:
            node.refuse(f"{node.text()} is no share between 0 and 1", "margin: 5 %")
    return Budget(
        trials=read_whole(keys["trials"], 1, 10_000_000) if "trials" in keys else None, minutes=minutes, margin=margin
    )


def read_restore(node: DocumentNode | None) -> dict[str, Any]:
    """``{"snapshot": [paths], "on": [when]}``; a list alone is the snapshot."""
    if node is None:
        return {}
    if not isinstance(node.value, dict):
        return {"snapshot": [one.text() for one in node.one_or_more()], "on": ["exit", "crash"]}
    keys = node.mapping(("snapshot", "on"))
    if "snapshot" not in keys:
        node.refuse("snapshot is missing: the files and folders that are put back", "snapshot: [db]")
    when = [one.text() for one in keys["on"].one_or_more()] if "on" in keys else ["exit", "crash"]
    for word in when:
        if word not in _WHEN:
            keys["on"].refuse(f"unknown time {word!r}{did_you_mean(word, _WHEN)}")
    return {"snapshot": [one.text() for one in keys["snapshot"].one_or_more()], "on": when}


def read_load(node: DocumentNode | None, knobs: Collection[str]) -> dict[str, Any]:
    """Load beside the target: numbers in base units (CPUs, B, B/s), or names of knobs."""
    if node is None:
        return {}
    found: dict[str, Any] = {}
    for name, one in node.mapping(tuple(_LOADS)).items():
        found[name] = one.text() if one.text() in knobs else read_number(one, 0, unit=_LOADS[name])
    return found


# ---- The target of a study file.

READING_TARGET_KEYS = (
    "run", "start", "workload", "ready", "stop", "result", "prepare", "folder", "environment", "timeout", "ready_timeout",
    "disk", "remote", "sql",
)  # fmt: skip
READY = ("tcp", "http", "file", "output")
RESULTS = ("json", "lines")


def read_target(node: DocumentNode) -> Target:
    """A target from its keys; a text alone is a one-shot command."""
    if not isinstance(node.value, dict):
        return Target(run=_command(node))
    keys = node.mapping((*READING_TARGET_KEYS, "timeout_s", "ready_s", "disk_bytes"))
    if ("run" in keys) == ("start" in keys):
        node.refuse("it needs either run (a command that ends by itself) or start (a server)", 'run: "./prog {args}"')
    if "workload" in keys and "start" not in keys:
        keys["workload"].refuse("only a server (start) has a workload beside it", "start: …")
    texts = {
        name: _command(keys[name]) for name in ("run", "start", "workload", "prepare", "folder", "sql") if name in keys
    }
    found = keys.get("disk", keys.get("disk_bytes"))
    disk_bytes = 0 if found is None else int(read_number(found, 0, 2**60, "B"))
    if "remote" in keys:
        node = keys["remote"]
        remote = node.text()
        if ":" not in remote:
            node.refuse(f"{remote!r} is no host:port", "remote: db1.example.org:7700")
        _address(node, remote)
    else:
        remote = ""
    if "stop" in keys:
        node = keys["stop"]
        stop = _command(node)
        if re.fullmatch(r"SIG[A-Z0-9]+", stop) and stop not in signal.Signals.__members__:
            node.refuse(f"unknown signal {stop}{did_you_mean(stop, list(signal.Signals.__members__))}")
    else:
        stop = "SIGTERM"
    if "ready" in keys:
        node = keys["ready"]
        ready_keys = node.mapping(READY)
        if len(ready_keys) != 1:
            node.refuse(f"one of {', '.join(READY)} was expected", "ready: {tcp: 7000}")
        (name, value), *_ = ready_keys.items()
        if name == "tcp":
            _address(value, value.text())
        if name == "output":
            value.regex()
        ready = {name: value.value if name == "tcp" else value.text()}
    else:
        ready = {}
    return Target(
        **texts,
        ready=ready,
        stop=stop,
        result=_result(keys["result"]) if "result" in keys else {},
        environment={name: one.text() for name, one in keys["environment"].mapping().items()}
        if "environment" in keys
        else {},
        timeout_s=_seconds(keys, ("timeout", "timeout_s"), 60.0),
        ready_s=_seconds(keys, ("ready_timeout", "ready_s"), 20.0),
        disk_bytes=disk_bytes,
        remote=remote,
    )


def _command(node: DocumentNode) -> str:
    text = node.text()
    if not text.strip():
        node.refuse("it is empty")
    if "\0" in text:
        node.refuse("it holds a NUL character")
    return text


def _address(node: DocumentNode, text: str) -> None:
    port = text.rpartition(":")[2]
    if not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        node.refuse(f"{text!r} is no port (7000) or host:port")


def _result(node: DocumentNode) -> dict[str, Any]:
    if not isinstance(node.value, dict):
        if node.text() not in RESULTS:
            node.refuse(f"unknown kind of result {node.text()!r}{did_you_mean(node.text(), RESULTS)}")
        return {node.text(): "stdout"}
    keys = node.mapping(RESULTS)
    if len(keys) != 1:
        node.refuse(f"one of {', '.join(RESULTS)} was expected", "result: {json: stdout}")
    return {name: value.text() for name, value in keys.items()}


def _seconds(keys: dict[str, DocumentNode], names: tuple[str, ...], default: float) -> float:
    found = next((keys[name] for name in names if name in keys), None)
    return default if found is None else read_number(found, 0.001, 30 * 86400, "s")


# ---- Metrics of a study file: each with one source.

SOURCES = ("probe", "path", "regex", "wall", "cpu", "memory")
"""Where a metric can come from: probes, the JSON result, the output, and what the machine says of the processes."""
RATES = ("count", "sum")
FIELDS = ("mean", "p50", "p90", "p99", "max", "min", "sum")
_KEYS = (*SOURCES, "rate", *FIELDS, "goal", "unit", "source")
_UNITS = {"wall": "s", "cpu": "s", "memory": "B"}


def read_metrics(node: DocumentNode) -> tuple[StudyMetric, ...]:
    """All metrics, in the file's order; UsageError where none has a goal."""
    metrics = []
    goals: dict[str, Goal] = {"max": "max", "min": "min"}
    for one in node.mapping().values():
        if not FEATURE_NAME.fullmatch(one.name):
            one.refuse(f"{one.name!r} cannot be a metric's name: letters, digits, _ . - alone")
        if not isinstance(one.value, dict):
            # The short form, ``seconds: wall``: the source's name alone.
            word = one.text()
            name = _known(one, word)
            if name not in _UNITS:
                one.refuse(f"{name} needs to be told what to read", f"{{{name}: …}}")
            metrics.append(StudyMetric(one.name, {name: True}, _UNITS[name]))
        else:
            keys = one.mapping(_KEYS)
            if "source" in keys:
                told = keys.pop("source")
                keys[_known(told, told.text())] = replace(told, value=True)
            named = [name for name in SOURCES if name in keys]
            if len(named) != 1:
                one.refuse(
                    f"one source was expected of {', '.join(SOURCES)}, there {'is none' if not named else 'are several'}"
                )
            goal = goals.get(keys["goal"].text()) if "goal" in keys else None
            if "goal" in keys and goal is None:
                keys["goal"].refuse(f"unknown goal {keys['goal'].text()!r}: max or min", "goal: max")
            source = _source(one, named[0], keys)
            unit = keys["unit"].text() if "unit" in keys else _UNITS.get(named[0], "")
            metrics.append(StudyMetric(one.name, source, unit, goal))
    found = tuple(metrics)
    if not any(metric.goal for metric in found):
        why = "no metric has a goal: nothing tells which configuration is better"
        node.refuse(why, "goal: max (or min) at one of them")
    return found


def _known(node: DocumentNode, word: str) -> str:
    if word not in SOURCES:
        node.refuse(f"unknown metric source {word!r}{did_you_mean(word, SOURCES)}")
    return word


def _source(node: DocumentNode, name: str, keys: dict[str, DocumentNode]) -> dict[str, Any]:
    value = keys[name]
    if name == "probe":
        asked = [one for one in ("rate", *FIELDS) if one in keys]
        if len(asked) != 1:
            node.refuse(f"a metric of a probe needs one of rate, {', '.join(FIELDS)}", "{probe: query, rate: count}")
        value = keys[asked[0]]
        if asked[0] == "rate" and value.text() not in RATES:
            value.refuse(f"unknown rate {value.text()!r}{did_you_mean(value.text(), RATES)}")
        return {
            "probe": keys["probe"].value if isinstance(keys["probe"].value, int) else keys["probe"].text(),
            asked[0]: value.text(),
        }
    extra = [one for one in ("rate", *FIELDS) if one in keys]
    if extra:
        keys[extra[0]].refuse(f"only metrics of probes have {extra[0]}")
    if name in _UNITS:
        if value.value not in (None, True):
            value.refuse(f"{name} stands alone, or with true", f"{{{name}: true}}")
        return {name: True}
    if name == "path":
        return {"path": value.text()}
    if re.compile(value.regex()).groups > 1:
        value.refuse("it has several groups: one holds the number")
    return {"regex": value.text()}


KEYS = (
    "name", "target", "knobs", "constraints", "metrics", "restore", "policy", "trials", "minutes", "margin",
    "repetitions", "early_stop", "load",
)  # fmt: skip
NEXT = "docs/study-files.md says what a study file may hold"
LARGEST = 4 * 2**20
"""Bytes of a study file."""


def study_source(file: str) -> DocumentSource:
    """What all values of a study file share: where they come from and what their errors advise."""
    return DocumentSource(file, UsageError, NEXT)


def read_study(path: str | Path) -> Study:
    """The study of a file; UsageError says what is wrong where.

    A Python file is executed, as importing it would: read only those you would run.
    """
    path = Path(path)
    text = _text(path)
    if path.suffix == ".py":
        try:
            found = _run(path).get("study")
        except (Exception, SystemExit) as error:
            at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = f":{at[-1]}" if at else f":{error.lineno}" if isinstance(error, SyntaxError) else ""
            raise UsageError(
                f"{path}{line}: it raised", f"{type(error).__name__}: {error}", f"python {path}"
            ) from error
        if found is None:
            raise UsageError(f"{path}: no study in it", "a Python study file says study = {…}", NEXT)
        if isinstance(found, Study):
            check_study(replace(found, folder=str(path.resolve().parent)), python_document({}, study_source(str(path))))
        else:
            found = python_document(found, study_source(str(path)))
    else:
        source = study_source(str(path))
        if path.suffix == ".xml" or text.lstrip().startswith("<"):
            found = spex_document(text, source)
        else:
            found = yaml_document(text, source)
    folder = str(path.resolve().parent)
    study = found if isinstance(found, Study) else study_of(found, path.stem, folder)
    return replace(study, digest=hashlib.sha256(text.encode()).hexdigest(), folder=folder)


def study_of(node: DocumentNode, name: str, folder: str = ".") -> Study:
    """A study from its parts; ``name`` where they say none."""
    keys = node.mapping(KEYS)
    for needed in ("target", "knobs", "metrics"):
        if needed not in keys:
            node.refuse(f"key {needed!r} is missing")
    knobs = tuple(read_knob(one) for one in keys["knobs"].mapping().values())
    if not knobs:
        keys["knobs"].refuse("a study needs a knob")
    policy, options = read_policy(keys.get("policy"))
    if "name" in keys:
        name = keys["name"].text()
        if not name or "/" in name or name.startswith(".") or len(name) > 100:
            keys["name"].refuse(f"{name!r} cannot name a folder")
    study = Study(
        name=name,
        target=read_target(keys["target"]),
        knobs=knobs,
        metrics=read_metrics(keys["metrics"]),
        constraints=tuple(one.text() for one in keys["constraints"].one_or_more()) if "constraints" in keys else (),
        restore=read_restore(keys.get("restore")),
        policy=policy,
        options=options,
        budget=read_budget(keys),
        repetitions=read_whole(keys["repetitions"], 1, 10_000) if "repetitions" in keys else 1,
        early_stop=keys["early_stop"].boolean() if "early_stop" in keys else True,
        load=read_load(keys.get("load"), [knob.name for knob in knobs]),
        folder=folder,
    )
    check_study(study, node)
    return study


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise UsageError(f"study {path}", "it is a folder", "perflaw explore STUDY.yaml")
        if path.stat().st_size > LARGEST:
            raise UsageError(f"study {path}", f"it is larger than {LARGEST // 2**20} MiB", NEXT)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"study {path}", error.strerror or str(error), "perflaw explore STUDY.yaml") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"study {path}", f"byte {error.start} is no UTF-8: it is no text file", NEXT) from error


def _run(path: Path) -> dict[str, Any]:
    """The names that a file makes; it may import what lies beside it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path.remove(folder)


# ---- Checks of a study as a whole: constraints that nothing satisfies, knobs that nothing applies, unknown injectors.

HOST = ("host.mem", "host.cpus")
"""Names of the machine's values in expressions."""


def check_study(study: Study, document: DocumentNode) -> None:
    """Refuse a study that cannot be run; UsageError with the place in its document.

    The document of a study that was made in Python is an empty mapping.
    """
    constraints = document.child("constraints")
    listed = constraints.one_or_more() if constraints.value is not None else []
    for at, text in enumerate(study.constraints):
        check_expression(text, study.knobs, listed[at] if at < len(listed) else constraints)
    knobs = document.child("knobs")
    for knob in study.knobs:
        place = knobs if knobs.value is not None else DocumentNode(document.source, ("knobs",), {})
        check_injections(study, knob, place.child(knob.name))
    metrics = document.child("metrics")
    if study.objective is None:
        metrics.refuse("no metric has a goal", "goal: max (or min) at one of them")
    if {metric.name for metric in study.metrics} & {knob.name for knob in study.knobs}:
        metrics.refuse("a metric and a knob have the same name", "another name")
    # Refuse constraints that nothing satisfies, and defaults that break them.
    space = Space(study.knobs, study.constraints)
    if study.constraints and not len(space.search.pool):
        alone = [text for text in study.constraints if not len(Space(study.knobs, [text]).search.pool)]
        which = repr(alone[0]) if alone else f"all {len(study.constraints)} constraints together"
        why = f"nothing satisfies {which} {space.search.description()}"
        constraints.refuse(why, "a weaker constraint, or wider ranges")
    given = {knob.name: knob.default for knob in study.knobs if knob.default is not None}
    broken = space.broken(given) if len(given) == len(study.knobs) else ""
    if broken:
        constraints.refuse(f"the defaults are invalid: {broken}", "other defaults, or a weaker constraint")


def check_expression(text: str, knobs: tuple[Knob, ...], node: DocumentNode) -> None:
    """Refuse an expression that cannot be read, names something unknown, or mixes units."""
    try:
        expression = Expression(text)
    except UsageError as error:
        node.refuse(error.reason, 'constraints: ["cache >= 2*page_size"]')
    known = [knob.name for knob in knobs]
    for name in sorted(expression.names):
        if name not in known and name not in HOST:
            node.refuse(f"{text!r} names {name}, which is no knob{did_you_mean(name, known)}")
    for knob in knobs:
        factor, base = UNITS.get(knob.unit, (1, knob.unit))
        if knob.name in expression.names and factor != 1 and base in expression.units:
            why = f"{text!r} mixes {knob.name}, which is in {knob.unit}, with a quantity, which is taken in {base}"
            node.refuse(why, f"the number in {knob.unit} without a unit")


def check_injections(study: Study, knob: Knob, node: DocumentNode) -> None:
    """Refuse a knob with an unknown injector, a knob that nothing applies, and a knob that nothing verifies."""
    injectors = []
    for how in knob.apply:
        injector = _checked_injector(study, how, node)
        if not hasattr(injector, "apply"):
            node.refuse(f"{injector.name} can only verify")
        if objection := getattr(injector, "objection", lambda how: "")(how):
            node.refuse(f"{injector.name}: {objection}", "apply: {file: app.conf, template: app.conf.in}")
        injectors.append(injector)
    if knob.verify is not None:
        _checked_injector(study, knob.verify, node)
    mentioned = any(f"{{{knob.name}}}" in text for text in _commands(study)) or knob.name in study.load.values()
    if not knob.apply and not mentioned:
        why = f"nothing applies it: it has no apply, and no command mentions {{{knob.name}}}"
        node.refuse(why, 'apply: {arg: "--x={}"}')
    alone = (
        any(getattr(injectors[0], name, False) for name in ("verifies_itself", "shows_launch")) if injectors else True
    )
    if knob.verify is None and not alone:
        why = "verify is missing: a setting that did not take effect must not become a data point"
        node.refuse(why, "verify: {path: …} for what the target prints, or {command: …}")


def _checked_injector(study: Study, how: Mapping[str, object], node: DocumentNode) -> Injector:
    """Return the injector of an injection, after refusing unknown ones and options that it does not have."""
    try:
        injector = find(how, str(Path(study.folder) / study.target.folder))
    except UsageError as error:
        node.refuse(error.reason)
    name = name_of(how)
    if "expr" in how:
        check_expression(str(how["expr"]), study.knobs, node)
    if not isinstance(how.get("map", {}), Mapping):
        node.refuse("map takes keys with values", "map: {true: on, false: off}")
    allowed = getattr(injector, "options", None)
    known = None if allowed is None else [name, *allowed, *COMMON_OPTIONS]
    for option in how:
        if known is not None and option not in known:
            node.refuse(f"{name} has no option {option!r}{did_you_mean(option, known[1:])}")
    if name in ("pragma", "sql") and not study.target.sql:
        node.refuse(f"{name} needs to know where SQL goes", "target: {sql: data.db}, or {sql: psql -At -c {}}")
    if name == "arg" and not any("{args}" in text for text in _commands(study)):
        node.refuse("its argument is not used: no command of the target contains {args}", 'run: "./prog {args}"')
    if how.get("when", "before") not in ("before", "running"):
        node.refuse(f"unknown when {how['when']!r}: before or running (the server)", "when: before")
    return injector


def _commands(study: Study) -> list[str]:
    target = study.target
    return [target.run, target.start, target.workload, target.prepare, target.stop]
