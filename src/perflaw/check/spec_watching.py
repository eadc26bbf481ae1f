"""Specifications of a program that is watched: which groups of call paths can be judged, and which violations were told.

A watched program is judged again and again. A violation is told once, and again only after its groups held in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from perflaw.types import SpecVerdict
from perflaw.types.specifications import SpecFile

LEAST_MINED_RUNS: Final = 3
"""Recordings that a group has to be mined from to be watched; with fewer, it is not known how much it varies."""
UNKNOWN_SPREAD: Final = f"mined from fewer than {LEAST_MINED_RUNS} recordings, so it is not known how much it varies"
"""Why a group is not watched."""


def unknown_groups(file: SpecFile) -> set[str]:
    """Ids of the groups that were mined from too few recordings; what a person wrote is taken at its word."""
    groups = [group for mined in file.specs for group in mined.spec.groups]
    return {group.id for group in groups if 0 < group.runs < LEAST_MINED_RUNS}


def watched_functions(file: SpecFile) -> set[str]:
    """Functions with a group of call paths that can be violated."""
    unknown = unknown_groups(file)
    return {
        mined.spec.component
        for mined in file.specs
        if any(
            group.id not in unknown and group.standing != "quarantined" and (mined.spec.borders or group.durations)
            for group in mined.spec.groups
        )
    }


def without_doubt(verdict: SpecVerdict, unknown: Collection[str]) -> SpecVerdict:
    """The verdict; inconclusive where a violated group was mined from too few recordings to know how much it varies."""
    if verdict.verdict != "violated" or verdict.group not in unknown:
        return verdict
    return replace(verdict, verdict="inconclusive", message=UNKNOWN_SPREAD)


class OpenViolations:
    """Violations that were told and that last."""

    def __init__(self, unknown: Collection[str] = ()) -> None:
        """``unknown``: ids of groups that are not watched."""
        self.unknown = unknown
        self.groups: dict[str, set[str]] = {}
        """Function → its groups of call paths of which a violation was told."""

    def new(self, verdicts: Iterable[SpecVerdict]) -> list[SpecVerdict]:
        """Violations of functions of which none is open. Calls that are quicker than specified need no alarm."""
        return [one for one in verdicts if self._is_new(one)]

    def _is_new(self, verdict: SpecVerdict) -> bool:
        no_change = 0.0 if verdict.border is not None else 1.0
        is_slower = verdict.effect is not None and verdict.effect > no_change
        is_watched = verdict.group not in self.unknown and verdict.component.name not in self.groups
        return is_watched and is_slower and verdict.verdict == "violated"

    def add(self, violations: Iterable[SpecVerdict]) -> None:
        """Note that these were told."""
        for one in violations:
            self.groups.setdefault(one.component.name, set()).add(one.group)

    def close(self, verdicts: Sequence[SpecVerdict]) -> None:
        """Close the violations of functions of which all violated groups hold; other groups may have held all the time."""
        holding = {one.group for one in verdicts if one.verdict == "holds"}
        self.groups = {name: groups for name, groups in self.groups.items() if not groups <= holding}
