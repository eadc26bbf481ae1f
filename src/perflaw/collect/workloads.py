"""From a workload file and the command line to the planned runs. What the command line says comes before the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from perflaw.collect.plan import Plan, PlannedRun, one_round, stands_in
from perflaw.collect.workload_file import Workload, WorkloadFile
from perflaw.errors import UsageError


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
