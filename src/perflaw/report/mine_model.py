"""What a page of specifications is made from."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.types.spec_files import MergeStep, SpecFile


@dataclass(frozen=True, slots=True)
class MineView:
    """Specifications, and what merging them found."""

    file: SpecFile
    """The specifications, the first shown first."""
    steps: tuple[MergeStep, ...] = ()
    """Merged one after the other; empty where nothing was merged."""
