"""What recordings are from: machines, processes and threads, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.report.quantity import count
from perflaw.types import Run


def provenance(runs: Sequence[Run]) -> str:
    """Such as ``from 6 runs: 2 machines, 8 processes, 12 threads``; empty where they are of one thread.

    Threads that a tracer does not count (traces of other tools, killed programs) are left out, and so is their number
    where all are.
    """
    machines = len({run.host for run in runs if run.host}) or 1
    told = [int(words) for run in runs if (words := run.words.get("threads", "")).isdigit()]
    executions = sum(not run.parent for run in runs)
    if machines == 1 and len(runs) == executions and max(told, default=1) <= 1:
        return ""
    parts = [_of(machines, "machine"), _of(len(runs), "process")]
    if told:
        least = "at least " * (len(told) < len(runs))
        parts.append(least + _of(sum(told) + len(runs) - len(told), "thread"))
    return f"from {_of(executions, 'run')}: {', '.join(parts)}"


def _of(number: int, what: str) -> str:
    """A number of things, such as ``2 processes``."""
    ending = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"{count(number)} {what}{ending}"
