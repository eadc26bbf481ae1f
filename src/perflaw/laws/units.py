"""Units of time and size, within a law and behind its numbers. Sizes are decimal: a kB is 1,000 bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from perflaw.errors import DataError
from perflaw.laws.errors import suggestion

if TYPE_CHECKING:
    from perflaw.laws.tree import Block

TIME = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
"""Units of time in ns (µ has two code points)."""
SIZE = {"B": 1.0, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
"""Units of size in bytes."""
METRICS = {
    "time": "ns",
    "cpu": "ns",
    "allocated_bytes": "bytes",
    "allocated_blocks": "blocks",
    "gc": "ns",
    "lock_wait": "ns",
    "lock_hold": "ns",
    "events": "calls",
    "switches": "switches",
    "faults": "faults",
}
"""Every metric that perflaw measures itself, and its unit; recordings say the unit of a plug-in's."""


def units_of(metric: str) -> Mapping[str, float] | None:
    """The units that a law of the metric may be written in; None where any unit may stand (counts, plug-ins).

    >>> list(units_of("allocated_bytes"))[:3], units_of("faults")
    (['B', 'bytes', 'kB'], None)
    """
    own = METRICS.get(metric, "")
    return next((table for table in (TIME, SIZE) if own in table), None)


def dimension(unit: str) -> str:
    """``time`` or ``size``; a unit of neither is a dimension of its own."""
    return "time" if unit in TIME else "size" if unit in SIZE else unit


def size_of(unit: str) -> float:
    """How many ns or bytes it is; 1 for units of another dimension.

    >>> size_of("us"), size_of("MB"), size_of("calls")
    (1000.0, 1000000.0, 1.0)
    """
    return TIME.get(unit, SIZE.get(unit, 1.0))


def factor(unit: str, own: str) -> float:
    """What costs in ``unit`` (of a block; empty for the metric's own) are multiplied with to be in ``own``.

    DataError where the two measure different things.

    >>> factor("us", "ns"), factor("", "ns"), factor("kB", "bytes")
    (1000.0, 1.0, 1000.0)
    """
    if not unit or unit == own:
        return 1.0
    if dimension(unit) != dimension(own):
        known = next((list(table) for table in (TIME, SIZE) if own in table), [own])
        why = f"the metric is measured in {own}{suggestion(unit, known)}"
        raise DataError(f"the unit [{unit}] of a law", why, f"[{own}]")
    return size_of(unit) / size_of(own)


def factor_of(block: Block) -> tuple[float, str]:
    """How many of the metric's units one unit of the block is, and the metric's unit.

    DataError where the metric cannot be had in that unit.
    """
    own = METRICS.get(block.metric, block.unit)
    try:
        return factor(block.unit, own), own
    except DataError as error:
        raise DataError(
            f"line {block.line}: {block.component}.{block.metric}: wrong unit [{block.unit}]", error.why, f"[{own}]"
        ) from error
