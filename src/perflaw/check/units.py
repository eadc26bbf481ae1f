"""Units a law file may speak in, and the metrics' own."""

from __future__ import annotations

from perflaw.errors import DataError
from perflaw.language.ast import Block
from perflaw.language.units import factor

METRICS = {
    "time": "ns",
    "cpu": "ns",
    "gc": "ns",
    "lock_wait": "ns",
    "allocated_bytes": "bytes",
    "allocated_blocks": "blocks",
    "events": "calls",
    "switches": "switches",
    "faults": "faults",
}
"""Units of the metrics that laws may speak of; a plug-in's is what the recording says."""


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
