"""The runs that one ``record`` makes: every combination of ``--vary`` values, each repeated."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perflaw.errors import UsageError


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run to make."""

    command: tuple[str, ...]
    """The command with ``{name}`` replaced."""
    varied: Mapping[str, str]
    """The values it was replaced by."""

    @property
    def label(self) -> str:
        """The values in words: ``n=100``; empty where nothing is varied."""
        return " ".join(f"{name}={value}" for name, value in self.varied.items())


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of one ``record``, in order."""

    template: tuple[str, ...]
    """The command as given."""
    declared: Mapping[str, float]
    """Features declared by ``--feature``."""
    runs: tuple[PlannedRun, ...]
    """Repetitions are rounds over all values, so that a drift of the machine meets every value alike."""


def make_plan(
    command: Sequence[str], varied: Mapping[str, Sequence[str]], repeat: int, declared: Mapping[str, float]
) -> Plan:
    """The plan of a recording; UsageError where ``{name}`` of a varied name stands nowhere in the command."""
    for name in varied:
        if not any("{" + name + "}" in argument for argument in command):
            raise UsageError(
                f"--vary {name}=… has no effect", f"{{{name}}} stands nowhere in the command", f"… -- app.py {{{name}}}"
            )
        if name in declared:
            raise UsageError(
                f"--vary {name} and --feature {name}",
                "the feature has two values then",
                f"--feature other={declared[name]:g}",
            )
    combinations = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    one_round = [PlannedRun(_filled(command, values), values) for values in combinations]
    return Plan(tuple(command), declared, tuple(one_round * repeat))


def _filled(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    def replace(match: re.Match[str]) -> str:
        return values.get(match[1], match[0])

    return tuple(re.sub(r"\{([^{}]+)\}", replace, argument) for argument in command)
