"""The runs that one ``perflaw record`` makes: each combination of ``--vary`` values, of each workload, repeated."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perflaw.errors import UsageError


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run to make."""

    command: tuple[str, ...]
    """The command, each ``{name}`` replaced by its value."""
    varied: Mapping[str, str]
    """Name → value that replaced it."""
    template: tuple[str, ...] = ()
    """The command as the person gave it."""
    declared: Mapping[str, float] = field(default_factory=dict)
    """Features declared by ``--feature`` or a workload file."""
    workload: str = ""
    """Name of its workload; empty without a workload file."""
    timeout: float | None = None
    """Seconds after which it is ended; None: never."""
    stdin: Path | None = None
    """File on its standard input; None: that of the recorder."""

    @property
    def label(self) -> str:
        """Workload and values in words: ``sort n=100``; empty if nothing distinguishes the runs."""
        return " ".join(filter(None, [self.workload, *(f"{name}={value}" for name, value in self.varied.items())]))


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """A feature to be read from the output of a program."""

    name: str
    """Name of the feature."""
    pattern: str
    """Regular expression; its first group, or the whole match, is the number."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of one ``perflaw record``."""

    runs: tuple[PlannedRun, ...]
    """In order. Repetitions are rounds over all values, so that a drift of the machine affects all values equally."""
    outputs: tuple[OutputPattern, ...] = ()
    """Features to be read from the output of the runs."""


def make_plan(
    command: Sequence[str],
    varied: Mapping[str, Sequence[str]],
    repeat: int,
    declared: Mapping[str, float],
    timeout: float | None = None,
) -> Plan:
    """The plan of a command line; UsageError if ``{name}`` of a varied name occurs nowhere in the command."""
    for name in varied:
        if not stands_in(name, command):
            why = f"{{{name}}} stands nowhere in the command"
            raise UsageError(f"--vary {name}=… has no effect", why, f"… -- app.py {{{name}}}")
    planned = PlannedRun((), {}, tuple(command), declared, timeout=timeout)
    return Plan(tuple(one_round(planned, varied) * repeat))


def one_round(planned: PlannedRun, varied: Mapping[str, Sequence[str]]) -> list[PlannedRun]:
    """A run for each combination of values; UsageError if a varied name is also a declared feature."""
    for name in varied:
        if name in planned.declared:
            remedy = f"--feature other={planned.declared[name]:g}"
            raise UsageError(f"--vary {name} and --feature {name}", "the feature would have two values", remedy)
    runs = []
    for combination in itertools.product(*varied.values()):
        values = dict(zip(varied, combination, strict=True))
        command = tuple(_fill(word, values) for word in planned.template)
        stdin = planned.stdin and Path(_fill(str(planned.stdin), values))
        runs.append(replace(planned, command=command, varied=values, stdin=stdin))
    return runs


def stands_in(name: str, words: Sequence[str]) -> bool:
    """Whether ``{name}`` occurs in one of the words."""
    return any("{" + name + "}" in word for word in words)


def _fill(text: str, values: Mapping[str, str]) -> str:
    """A text with each ``{name}`` of these values replaced."""
    return re.sub(r"\{([^{}]+)\}", lambda match: values.get(match[1], match[0]), text)
