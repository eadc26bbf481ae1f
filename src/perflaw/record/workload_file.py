"""Reads a workload file (TOML) and refuses what it cannot mean; docs/workloads.md describes it."""

from __future__ import annotations

import difflib
import math
import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn

from perflaw.errors import StoreError, UsageError
from perflaw.record.plan import OutputPattern, Plan, PlannedRun, one_round, stands_in
from perflaw.types import FEATURE_NAME

# ---- Where the keys of a TOML file stand: ``tomllib`` tells values alone, and an error has to name a line.

Key = tuple[str | int, ...]
"""Names of tables and keys from the top, numbers of tables in arrays of them (from 0)."""
_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?")
_ASSIGNMENT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def lines_of(text: str) -> dict[Key, int]:
    r"""Line of each table and key, from 1, as they are written; keys of inline tables are not told.

    >>> lines_of("repeat = 2\n[[workload]]\nname = 'a'\n[[workload]]\nname = 'b'")[("workload", 1, "name")]
    5
    """
    found: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _table(header[2], header[1] == "[[", counts)
            found.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            found.setdefault((*table, *_parts(assignment[1])), number)
    return found


def line_of(lines: dict[Key, int], key: Key) -> int | None:
    """Line of a key, or of the nearest table around it; None where none was found."""
    return next((lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in lines), None)


def _parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(text)]


def _table(text: str, array: bool, counts: dict[Key, int]) -> Key:
    """The table that a header opens; within arrays it belongs to their newest element."""
    key: Key = ()
    parts = _parts(text)
    for place, part in enumerate(parts):
        key = (*key, part)
        if array and place == len(parts) - 1:
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            key = (*key, counts[key])
    return key


# ---- Values of a TOML file read as what they have to be; a wrong one is told with its file, line, key and what is
# allowed.

EXACT: Final = 2**53
"""Whole numbers below this are told apart by floating point."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the file and where it stands. Its readers raise UsageError where it is not what they read."""

    file: str
    """Name of the file."""
    lines: Mapping[Key, int]
    """Lines of its keys."""
    key: Key
    """Where the value stands in it."""
    value: Any
    """As ``tomllib`` gives it."""

    def wrong(self, why: str, example: str) -> NoReturn:
        """Refuse it: ``why`` says what is allowed."""
        line = line_of(dict(self.lines), self.key)
        where = f"{self.file}, line {line}" if line else self.file
        shown = "" if isinstance(self.value, dict | list) else f" = {_shown(self.value)}"
        shown = " is missing" if self.value is None else shown
        raise UsageError(f"{where}: {_path(self.key)}{shown}", why, example)

    def at(self, name: str | int) -> Value:
        """The value below, None's where there is none."""
        below = self.value[name] if isinstance(name, int) else self.value.get(name)
        return Value(self.file, self.lines, (*self.key, name), below)

    def table(self, allowed: Collection[str] = ()) -> Value:
        """Itself, a table with no other keys than these (any, where none are given)."""
        if not isinstance(self.value, dict):
            self.wrong("a table is wanted", f"[{_path(self.key)}]")
        for name in self.value if allowed else ():
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, 1)
                meant = f"did you mean {near[0]}? " if near else ""
                self.at(name).wrong(f"no such key; {meant}allowed: {', '.join(allowed)}", (near or list(allowed))[0])
        return self

    def items(self) -> Iterator[tuple[str, Value]]:
        """Names and values of a table of features."""
        for name in self.table().value:
            if not FEATURE_NAME.fullmatch(name):
                self.at(name).wrong("a name begins with a letter and has letters, digits, . - _ [ ] alone", "n = 100")
            yield name, self.at(name)

    def elements(self, what: str, example: str) -> list[Value]:
        """The elements of an array that is not empty."""
        if not isinstance(self.value, list) or not self.value:
            self.wrong(f"{what} is wanted", example)
        return [self.at(place) for place in range(len(self.value))]

    def text(self, example: str) -> str:
        """A text that is not empty."""
        if not isinstance(self.value, str) or not self.value or "\0" in self.value:
            self.wrong("a text is wanted", example)
        return str(self.value)

    def word(self, example: str) -> str:
        """A text or a finite number, as it is put into a command: ``1e6`` as ``1000000``, for programs read whole numbers."""
        if isinstance(self.value, str) and "\0" not in self.value:
            return self.value
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            self.wrong("texts and numbers are allowed here", example)
        return str(int(self.value) if self.value == int(self.value) and abs(self.value) < EXACT else self.value)

    def words(self, example: str) -> tuple[str, ...]:
        """A command: a text as a shell splits it, or an array of words."""
        if not isinstance(self.value, str):
            return tuple(
                one.word(example) for one in self.elements("a command line, or an array of its words,", example)
            )
        try:
            return tuple(shlex.split(self.value))
        except ValueError as error:
            self.wrong(f"it cannot be split into words ({error})", example)

    def number(self, example: str) -> float:
        """A finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            self.wrong("a finite number is wanted", example)
        return float(self.value)

    def seconds(self) -> float:
        """A positive number of seconds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not 0 < self.value < math.inf:
            self.wrong("a number of seconds above 0 is wanted", "timeout = 60")
        return float(self.value)

    def count(self) -> int:
        """A whole number from 1 on."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 1:
            self.wrong("a whole number from 1 on is wanted", "repeat = 3")
        return int(self.value)

    def pattern(self) -> str:
        """A regular expression."""
        text = self.text(example := r"pattern = 'compares: (\d+)'")
        try:
            re.compile(text)
        except re.error as error:
            self.wrong(f"no regular expression: {error}", example)
        return text


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _path(key: Key) -> str:
    """The key as a person writes it; elements of arrays are counted from 1.

    >>> _path(("workload", 1, "repeat"))
    'workload 2, repeat'
    """
    parts: list[str] = []
    for part in key:
        if isinstance(part, int):
            parts[-1:] = [f"{parts[-1]} {part + 1}"]
        else:
            parts.append(part)
    return ", ".join(parts)


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


# ---- From a workload file and the command line to the planned runs. What the command line says comes before the
# file.


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    command: tuple[str, ...] = ()
    """What stands after ``--``: in place of the file's ``command``, not of a workload's own."""
    vary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """``--vary``: in place of the file's values of the same name."""
    repeat: int | None = None
    """``--repeat``: for all workloads."""
    features: Mapping[str, float] = field(default_factory=dict)
    """``--feature``: of all workloads, in place of the file's of the same name."""
    timeout: float | None = None
    """``--timeout``: for all workloads."""


def plan_workloads(file: WorkloadFile, asked: Asked) -> Plan:
    """Every workload with every combination of the values of the names in it, in rounds, as often as each is repeated.

    UsageError where a workload has no command or a varied name stands in none.
    """
    workloads = file.workloads or (file.common,)
    rounds = [_round(file, one, asked) for one in workloads]
    _all_stand(file, asked, [_words(one, file, asked) for one in workloads])
    repeats = [asked.repeat or one.repeat or file.common.repeat or 1 for one in workloads]
    runs = chain.from_iterable(
        runs for turn in range(max(repeats)) for runs, times in zip(rounds, repeats, strict=True) if turn < times
    )
    return Plan(tuple(runs), file.outputs)


def _round(file: WorkloadFile, one: Workload, asked: Asked) -> list[PlannedRun]:
    words = _words(one, file, asked)
    for name in one.vary if one is not file.common else ():
        if not stands_in(name, words):
            _nowhere(one, name)
    varied = {**file.common.vary, **one.vary, **asked.vary}
    declared = {**file.common.features, **one.features, **asked.features}
    stdin = one.stdin or file.common.stdin
    timeout = asked.timeout or one.timeout or file.common.timeout
    command = words[:-1] if stdin else words
    planned = PlannedRun((), {}, command, declared, one.name, timeout, stdin)
    return one_round(planned, {name: values for name, values in varied.items() if stands_in(name, words)})


def _words(one: Workload, file: WorkloadFile, asked: Asked) -> tuple[str, ...]:
    """All words in which ``{name}`` may stand: the command, and behind it the file on standard input if there is one."""
    own = one.command if one is not file.common else ()
    command = own or (*(asked.command or file.common.command), *one.args)
    if not own and not (asked.command or file.common.command):
        why = "neither it nor the file has one, and nothing stands after --"
        raise UsageError(
            f"{file.file}: {one.name or 'it'}: no command", why, f"perflaw record --workloads {file.file} -- app.py"
        )
    stdin = one.stdin or file.common.stdin
    return (*command, str(stdin)) if stdin else command


def _all_stand(file: WorkloadFile, asked: Asked, words: list[tuple[str, ...]]) -> None:
    """Every name that is varied for all workloads stands in one of them."""
    for name in asked.vary:
        if not any(stands_in(name, some) for some in words):
            why = f"{{{name}}} stands nowhere in the commands of {file.file}"
            raise UsageError(f"--vary {name}=… has no effect", why, f"… -- app.py {{{name}}}")
    for name in file.common.vary:
        if not any(stands_in(name, some) for some in words):
            _nowhere(file.common, name)


def _nowhere(one: Workload, name: str) -> None:
    value = one.where.at("vary").at(name)
    value.wrong(f"no effect: {{{name}}} stands nowhere in the command or stdin", f'command = "app.py {{{name}}}"')
