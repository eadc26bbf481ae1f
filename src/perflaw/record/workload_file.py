"""Workload files: the runs to record, in TOML (docs/workloads.md), and how the command line changes them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from perflaw.documents import DocumentNode, DocumentSource, toml_document
from perflaw.errors import StoreError, UsageError
from perflaw.record.plan import OutputPattern, Plan, PlannedRun, one_round, stands_in
from perflaw.types import FEATURE_NAME

_COMMON: Final = ("command", "repeat", "timeout", "stdin", "features", "vary")
"""Keys that both the top of the file and a workload may have."""
EXACT: Final = 2**53
"""Floating point holds every whole number below this."""
_EXAMPLES: Final = {
    "command": 'command = "app.py {n}"',
    "args": 'args = "5 fast"',
    "repeat": "repeat = 3",
    "timeout": "timeout = 60",
    "stdin": 'stdin = "input.txt"',
    "features": "features = { bytes = 1000 }",
    "vary": "n = [100, 1000, 10000]",
    "name": 'name = "small"',
    "outputs": r"pattern = 'compares: (\d+)'",
    "workload": "[[workload]]",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, or what the file says about all of them; None or empty where the file says nothing."""

    node: DocumentNode
    """Its place in the file."""
    name: str = ""
    """Name of the workload."""
    command: tuple[str, ...] = ()
    """Its own command."""
    args: tuple[str, ...] = ()
    """Arguments after the command of all workloads."""
    features: Mapping[str, float] = field(default_factory=dict)
    """Declared features."""
    vary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of each varied name."""
    repeat: int | None = None
    """Runs for each value."""
    timeout: float | None = None
    """Seconds after which a run is ended."""
    stdin: Path | None = None
    """File on its standard input; may contain ``{name}``."""


@dataclass(frozen=True, slots=True)
class WorkloadFile:
    """A workload file that was read and checked."""

    file: str
    """File as the person named it."""
    common: Workload
    """What the file says about all workloads."""
    workloads: tuple[Workload, ...]
    """In the file's order. If empty, the common part is the only workload."""
    outputs: tuple[OutputPattern, ...]
    """Features to be read from the output of the programs."""


def read_workloads(path: Path) -> WorkloadFile:
    """Read and check a file; StoreError where it cannot be read, UsageError with line and key where it is wrong."""
    command = "perflaw record --workloads FILE.toml"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text", f"byte {error.start} is not UTF-8", command) from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read", (error.strerror or str(error)).lower(), command) from error
    advice = "docs/workloads.md says what a workload file may hold"
    top = toml_document(text, DocumentSource(str(path), next_command=advice, examples=_EXAMPLES))
    keys = top.mapping((*_COMMON, "workload", "outputs"))
    workloads: list[Workload] = []
    for number, node in enumerate(_filled_list(keys["workload"]) if "workload" in keys else [], 1):
        own = node.mapping(("name", "args", *_COMMON))
        common = _common(node, own)
        if common.command and "args" in own:
            what = "args follow the common command, but this workload has its own"
            own["args"].refuse(what, 'command = "app.py 5 fast"')
        workload = Workload(
            node,
            _text(own["name"]) if "name" in own else f"workload {number}",
            common.command,
            _words(own["args"]) if "args" in own else (),
            *(common.features, common.vary, common.repeat, common.timeout, common.stdin),
        )
        if workload.name in [other.name for other in workloads]:
            node.child("name").refuse("an earlier workload has this name", 'name = "another"')
        workloads.append(workload)
    patterns = _by_name(keys["outputs"]) if "outputs" in keys else {}
    outputs = [
        OutputPattern(name, node.mapping((), ("pattern",))["pattern"].regex()) for name, node in patterns.items()
    ]
    return WorkloadFile(str(path), _common(top, keys), tuple(workloads), tuple(outputs))


def _common(node: DocumentNode, keys: Mapping[str, DocumentNode]) -> Workload:
    """The keys that both the top of the file and a workload may have."""
    features = _by_name(keys["features"]) if "features" in keys else {}
    vary = _by_name(keys["vary"]) if "vary" in keys else {}
    timeout = keys["timeout"].number() if "timeout" in keys else None
    if timeout is not None and timeout <= 0:
        keys["timeout"].expect("a number of seconds above 0")
    return Workload(
        node,
        command=_words(keys["command"]) if "command" in keys else (),
        features={name: value.number() for name, value in features.items()},
        vary={name: tuple(map(_word, _filled_list(values))) for name, values in vary.items()},
        repeat=keys["repeat"].whole(1) if "repeat" in keys else None,
        timeout=timeout,
        stdin=Path(_text(keys["stdin"])) if "stdin" in keys else None,
    )


def _by_name(node: DocumentNode) -> dict[str, DocumentNode]:
    """Values by the name of a feature, a varied name or an output."""
    values = node.mapping()
    for name, value in values.items():
        if not FEATURE_NAME.fullmatch(name):
            value.refuse("a name begins with a letter and holds only letters, digits, . - _ [ ]", "n = 100")
    return values


def _filled_list(node: DocumentNode) -> list[DocumentNode]:
    items = node.items()
    if not items:
        node.expect("at least one item")
    return items


def _text(node: DocumentNode) -> str:
    text = node.text()
    if not text or "\0" in text:
        node.expect("a text that is not empty")
    return text


def _word(node: DocumentNode) -> str:
    """A text or a finite number as a word of a command: ``1e6`` as ``1000000``, for many programs read only whole numbers."""
    value = node.value
    if isinstance(value, str) and "\0" not in value:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        node.expect("a text or a number")
    return str(int(value) if value == int(value) and abs(value) < EXACT else value)


def _words(node: DocumentNode) -> tuple[str, ...]:
    """A command: a text as a shell splits it, or a list of words."""
    if isinstance(node.value, list) and node.value:
        return tuple(_word(word) for word in node.items())
    if not isinstance(node.value, str):
        node.expect("a command line, or a list of its words,")
    try:
        return tuple(shlex.split(node.value))
    except ValueError as error:
        node.refuse(f"it cannot be split into words ({error})")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line says about the runs; it takes precedence over the file."""

    command: tuple[str, ...] = ()
    """Words after ``--``: replace the common ``command``, not a workload's own."""
    vary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """``--vary``: replaces the file's values of the same name."""
    repeat: int | None = None
    """``--repeat``: for all workloads."""
    features: Mapping[str, float] = field(default_factory=dict)
    """``--feature``: for all workloads, replaces the file's feature of the same name."""
    timeout: float | None = None
    """``--timeout``: for all workloads."""


def plan_workloads(file: WorkloadFile, options: RunOptions) -> Plan:
    """Plan every workload with every combination of the values of the names in its command.

    Runs come in rounds: the first has every combination of every workload once, the second those that are repeated.
    UsageError where a workload has no command or a varied name occurs in none.
    """
    workloads = file.workloads or (file.common,)
    words = []
    for workload in workloads:
        # All words that may contain {name}: the command, followed by the file on standard input if there is one.
        own = workload.command if workload is not file.common else ()
        common = options.command or file.common.command
        if not own and not common:
            name = workload.name or "the file"
            why = "neither the workload nor the file has one, and nothing follows --"
            remedy = f"perflaw record --workloads {file.file} -- app.py"
            raise UsageError(f"{file.file}: {name}: no command", why, remedy)
        stdin = workload.stdin or file.common.stdin
        command = own or (*common, *workload.args)
        words.append((*command, str(stdin)) if stdin else command)
    rounds = []
    for workload, text in zip(workloads, words, strict=True):
        for name in workload.vary if workload is not file.common else ():
            if not stands_in(name, text):
                _refuse_unused(workload, name)
        varied = {**file.common.vary, **workload.vary, **options.vary}
        features = {**file.common.features, **workload.features, **options.features}
        stdin = workload.stdin or file.common.stdin
        timeout = options.timeout or workload.timeout or file.common.timeout
        command = text[:-1] if stdin else text
        planned = PlannedRun((), {}, command, features, workload.name, timeout, stdin)
        rounds.append(one_round(planned, {name: values for name, values in varied.items() if stands_in(name, text)}))
    for name in options.vary:
        if not any(stands_in(name, some) for some in words):
            why = f"{{{name}}} occurs nowhere in the commands of {file.file}"
            raise UsageError(f"--vary {name}=… has no effect", why, f"… -- app.py {{{name}}}")
    for name in file.common.vary:
        if not any(stands_in(name, some) for some in words):
            _refuse_unused(file.common, name)
    repeats = [options.repeat or workload.repeat or file.common.repeat or 1 for workload in workloads]
    runs = chain.from_iterable(
        runs for turn in range(max(repeats)) for runs, times in zip(rounds, repeats, strict=True) if turn < times
    )
    return Plan(tuple(runs), file.outputs)


def _refuse_unused(workload: Workload, name: str) -> None:
    node = workload.node.child("vary").child(name)
    node.refuse(f"no effect: {{{name}}} occurs nowhere in the command or stdin", f'command = "app.py {{{name}}}"')
