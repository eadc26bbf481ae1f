"""Variance in words that the terminal and the page share: shares, intervals, calls, verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perflaw.report.quantity import percent, quantity, significant
from perflaw.types.variance import Block, BudgetRow, Explanation, Part, PatternNode, Step

RELATIONS = {"cancel": "cancel each other", "in step": "vary in step", "mixed": "vary together"}
"""What parts that vary together do."""


def share_text(share: float | None) -> str:
    """A share; one that rounds to nothing has no sign.

    >>> share_text(0.61), share_text(-0.001), share_text(-0.2), share_text(None)
    ('61 %', '0 %', '-20 %', 'unknown')
    """
    if share is None or not math.isfinite(share):
        return "unknown"
    return percent(share).replace("-0 %", "0 %") if abs(share) < 0.005 else percent(share)


def ends_text(low: float | None, high: float | None) -> str:
    """Both ends of an interval of a share, in percent.

    >>> ends_text(0.33, 0.61), ends_text(-0.0001, 0.0), ends_text(None, 1.0)
    ('33–61', '0–0', 'unknown')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "unknown"
    return f"{round(low * 100):d}–{round(high * 100):d}"


def last_name(name: str) -> str:
    """The part of a name after its last dot."""
    return name.rpartition(".")[2] or name


def call_path(path: Sequence[Step]) -> str:
    """Calls by last names and lines.

    >>> call_path([Step("app.f", 3, 0, "app.g"), Step("app.g", 0, 0, "app.h")])
    'g:3 > h'
    """
    return " > ".join(_at_line(step.callee, step.line) for step in path)


def part_name(part: Part) -> str:
    """A call site by callee and line, or ``own code``."""
    return "own code" if part.component is None else _at_line(part.component.name, part.line)


def _at_line(name: str, line: int) -> str:
    return f"{last_name(name)}:{line}" if line else last_name(name)


def row_name(row: BudgetRow, explanation: Explanation) -> str:
    """The call path of a row of the budget; ``*`` marks shares that are estimated."""
    if not row.path:
        return "own code" if row.component == explanation.component else row.component.name
    return call_path(row.path) + (" (remaining paths)" if row.rest else "") + (" *" if row.estimated else "")


def verdict_text(explanation: Explanation) -> str:
    """Whether a function's cost varies."""
    return "varies highly" if explanation.high else "steady" if explanation.n >= 30 else "too few calls to say"


def cause_text(explanation: Explanation) -> str:
    """Work or interference with its interval, or why the cause is not known."""
    if explanation.cause == "steady":
        return "steady"
    if explanation.off_cpu is None:
        metric = explanation.metric.name
        reason = "CPU time was not measured" if metric == "time" else f"{metric} is work"
        return f"{explanation.cause}, {reason}"
    ends = ends_text(explanation.off_cpu_low, explanation.off_cpu_high)
    interval = "" if ends == "unknown" else f" ({ends})"
    return f"{explanation.cause}, {share_text(explanation.off_cpu)}{interval} of the variance is off the CPU"


def together(explanation: Explanation) -> list[tuple[Block, list[str]]]:
    """Blocks of several parts that do not vary independently, with the names of their parts."""
    return [
        (block, [part_name(explanation.parts[place]) for place in block.parts])
        for block in explanation.blocks
        if len(block.parts) > 1 and block.relation in RELATIONS
    ]


def root_text(root: PatternNode | None, unit: str) -> str:
    """The figures of a pattern's root in one of two recordings."""
    return f"CoV {significant(root.cov)} of {quantity(root.mean, unit)}" if root else "none"
