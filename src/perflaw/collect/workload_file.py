"""Reads a workload file (TOML) and refuses what it cannot mean; docs/workloads.md describes it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perflaw.collect.plan import OutputPattern
from perflaw.collect.toml_lines import lines_of
from perflaw.collect.toml_values import Value
from perflaw.errors import StoreError, UsageError

_COMMON: Final = ("command", "repeat", "timeout", "stdin", "features", "vary")
TOP: Final = (*_COMMON, "workload", "outputs")
"""Keys of the file."""
WORKLOAD: Final = ("name", *_COMMON[:1], "args", *_COMMON[1:])
"""Keys of a workload."""
_COMMAND: Final = 'command = "app.py {n}"'
_VARY: Final = "n = [100, 1000, 10000]"


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, or what the file says of all; what it does not say is None or empty."""

    where: Value
    """Its place in the file."""
    name: str = ""
    """What it is called."""
    command: tuple[str, ...] = ()
    """Its own command."""
    args: tuple[str, ...] = ()
    """Arguments behind the command of all."""
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
    """A workload file understood."""

    file: str
    """Its name."""
    common: Workload
    """What it says of all workloads."""
    workloads: tuple[Workload, ...]
    """In order; empty: the common part alone is the one workload."""
    outputs: tuple[OutputPattern, ...]
    """Features to be read from what programs print."""


def read_workloads(path: Path) -> WorkloadFile:
    """Read and check a file; StoreError where it cannot be read, UsageError with line and key where it is wrong."""
    text = _text(path)
    try:
        document = tomllib.loads(text + "\n")  # else an error at the end has no line
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML", str(error), "mend that line") from None
    top = Value(str(path), lines_of(text), (), document).table(TOP)
    tables = top.at("workload")
    found = tables.elements("an array of tables", "[[workload]]") if tables.value is not None else []
    workloads = tuple(_workload(one.table(WORKLOAD)) for one in found)
    _distinct(workloads)
    return WorkloadFile(str(path), _common(top), workloads, _outputs(top.at("outputs")))


def _text(path: Path) -> str:
    example = "perflaw record --workloads FILE.toml"
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text", f"byte {error.start} is not", example) from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read", (error.strerror or str(error)).lower(), example) from error


def _common(table: Value) -> Workload:
    """What stands in the file's top and in workloads alike."""
    there = {name: table.at(name) for name in _COMMON if name in table.value}
    return Workload(
        table,
        command=there["command"].words(_COMMAND) if "command" in there else (),
        features=_features(there["features"]) if "features" in there else {},
        vary=_vary(there["vary"]) if "vary" in there else {},
        repeat=there["repeat"].count() if "repeat" in there else None,
        timeout=there["timeout"].seconds() if "timeout" in there else None,
        stdin=Path(there["stdin"].text('stdin = "input.txt"')) if "stdin" in there else None,
    )


def _workload(table: Value) -> Workload:
    common = _common(table)
    name, args = table.at("name"), table.at("args")
    if common.command and args.value is not None:
        args.wrong("args stand behind the command of all, and this workload has its own", 'command = "app.py 5 fast"')
    return Workload(
        table,
        name.text('name = "small"') if name.value is not None else f"workload {int(table.key[-1]) + 1}",
        common.command,
        args.words('args = "5 fast"') if args.value is not None else (),
        *(common.features, common.vary, common.repeat, common.timeout, common.stdin),
    )


def _distinct(workloads: tuple[Workload, ...]) -> None:
    names: set[str] = set()
    for one in workloads:
        if one.name in names:
            one.where.at("name").wrong("an earlier workload has this name", 'name = "another"')
        names.add(one.name)


def _features(table: Value) -> dict[str, float]:
    return {name: value.number("features = { bytes = 1000 }") for name, value in table.items()}


def _vary(table: Value) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(one.word(_VARY) for one in value.elements("an array of values", _VARY))
        for name, value in table.items()
    }


def _outputs(table: Value) -> tuple[OutputPattern, ...]:
    if table.value is None:
        return ()
    found = []
    for name, value in table.items():
        value.table(("pattern",))
        found.append(OutputPattern(name, value.at("pattern").pattern()))
    return tuple(found)
