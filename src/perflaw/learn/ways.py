"""How a person gets more evidence, which depends on how there came to be any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflaw.types import Run


@dataclass(frozen=True, slots=True)
class Ways:
    """How a person gets more evidence, in words that follow "add"."""

    vary: str
    """Other sizes; ``{feature}`` stands for the feature to vary."""
    twice: str
    """Two runs of each size."""
    repeat: str
    """More runs of each size."""


BY_RECORD = Ways("--vary {feature}=…", "--repeat 2", "--repeat")
"""Of a program that ``perflaw record`` starts."""
BY_PYTEST = Ways('parametrize("{feature}", …)', "--perflaw-runs 2", "--perflaw-runs")
"""Of a suite of tests, which has no size: its tests have."""
BY_IMPORT = Ways("traces with --feature {feature}=…", "two of each size", "more of each size")
"""Of traces that other tools made."""


def ways_of(runs: Sequence[Run]) -> Ways:
    """How there come to be more runs like these."""
    if runs and all(run.is_suite for run in runs):
        return BY_PYTEST
    return BY_IMPORT if runs and all(run.is_imported for run in runs) else BY_RECORD
