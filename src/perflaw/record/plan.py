"""The runs that one ``record`` makes: every combination of ``--vary`` values, of every workload, each repeated."""

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
    """The command with ``{name}`` replaced."""
    varied: Mapping[str, str]
    """The values it was replaced by."""
    template: tuple[str, ...] = ()
    """The command as given."""
    declared: Mapping[str, float] = field(default_factory=dict)
    """Features declared by ``--feature`` or a workload file."""
    workload: str = ""
    """Name of its workload, empty without a workload file."""
    timeout: float | None = None
    """Seconds after which it is ended; None: never."""
    stdin: Path | None = None
    """File on its standard input; None: that of the recorder."""

    @property
    def label(self) -> str:
        """Workload and values in words: ``sort n=100``; empty where there is nothing to tell runs apart by."""
        return " ".join(filter(None, [self.workload, *(f"{name}={value}" for name, value in self.varied.items())]))


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """A feature to be read from what a program prints."""

    name: str
    """The feature."""
    pattern: str
    """Regular expression; its first group, or all of it, is the number."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of one ``record``."""

    runs: tuple[PlannedRun, ...]
    """In order. Repetitions are rounds over all values, so that a drift of the machine meets every value alike."""
    outputs: tuple[OutputPattern, ...] = ()
    """Features to be read from what the runs print."""


def make_plan(
    command: Sequence[str],
    varied: Mapping[str, Sequence[str]],
    repeat: int,
    declared: Mapping[str, float],
    timeout: float | None = None,
) -> Plan:
    """The plan of a recording; UsageError where ``{name}`` of a varied name stands nowhere in the command."""
    for name in varied:
        if not stands_in(name, command):
            raise UsageError(
                f"--vary {name}=… has no effect", f"{{{name}}} stands nowhere in the command", f"… -- app.py {{{name}}}"
            )
    planned = PlannedRun((), {}, tuple(command), declared, timeout=timeout)
    return Plan(tuple(one_round(planned, varied) * repeat))


def one_round(planned: PlannedRun, varied: Mapping[str, Sequence[str]]) -> list[PlannedRun]:
    """A run for every combination of values; UsageError where a varied name is a declared feature as well."""
    for name in varied:
        if name in planned.declared:
            raise UsageError(
                f"--vary {name} and --feature {name}",
                "the feature has two values then",
                f"--feature other={planned.declared[name]:g}",
            )
    combinations = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    return [_filled(planned, values) for values in combinations]


def stands_in(name: str, words: Sequence[str]) -> bool:
    """Whether ``{name}`` stands in one of the words."""
    return any("{" + name + "}" in word for word in words)


def _filled(planned: PlannedRun, values: Mapping[str, str]) -> PlannedRun:
    def fill(text: str) -> str:
        return re.sub(r"\{([^{}]+)\}", lambda match: values.get(match[1], match[0]), text)

    stdin = planned.stdin and Path(fill(str(planned.stdin)))
    return replace(planned, command=tuple(map(fill, planned.template)), varied=values, stdin=stdin)
