"""What ``perflaw trend`` reads: an experiment's counts or a CSV matrix, and which of its features are asked for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perflaw.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perflaw.store.experiment import Recording
    from perflaw.types import CountMatrix

KINDS = ("line", "block", "function", "edge")
"""What can be counted in a recording."""
_RECORD = "perflaw record --collect lines --vary n=100,1000,10000 -- app.py {n}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks for on the command line."""

    experiment: str
    """Name of the experiment."""
    source: tuple[str, ...] = ()
    """Runs, or one CSV file; empty for all runs."""
    features: tuple[str, ...] = ()
    """Features to learn in; empty for all."""
    counts: tuple[str, ...] = ()
    """``NAME=LOCATION`` each: features that are a location's count."""
    kinds: str | None = None
    """Kinds of locations, separated by commas."""
    at: Sequence[Mapping[str, float]] = ()
    """Points to predict at."""

    @property
    def file(self) -> str | None:
        """The CSV file, if it is one."""
        first = self.source[0] if self.source else ""
        return first if first == "-" or first.lower().endswith(".csv") or (first and Path(first).is_file()) else None


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Counts as they were read."""

    matrix: CountMatrix
    """All counts, with the features asked for."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is (§6.2.3 of the paper)."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → text."""
    recordings: Sequence[Recording] = ()
    """What they were read from; empty for a file."""
    left_out: tuple[str, ...] = ()
    """What was not read and why, a sentence each."""


def gathered(asked: Asked) -> Found:
    """Read what was asked for; a PerflawError says what is missing."""
    found = _of_file(asked) if asked.file else _of_experiment(asked)
    counted = _counted(found.matrix, asked.counts)
    rows = {location.name: row for row, location in enumerate(found.matrix.locations)}
    counts = {name: found.matrix.counts[rows[place]] for name, place in counted.items()}
    kept = replace(found.matrix, features={**_features(found.matrix, asked), **counts})
    _check_points(asked.at, set(kept.features))
    return replace(found, matrix=kept, counted=counted)


def _of_file(asked: Asked) -> Found:
    from perflaw.store.csv_files import read_csv_matrix

    assert asked.file is not None
    if len(asked.source) > 1:
        raise UsageError(
            f"{' '.join(asked.source)}: several files", "one matrix is read at a time", f"perflaw trend {asked.file}"
        )
    if asked.kinds:
        raise UsageError(f"--kind {asked.kinds}", "columns of a file have no kind", f"perflaw trend {asked.file}")
    return Found(read_csv_matrix(asked.file))


def _of_experiment(asked: Asked) -> Found:
    from perflaw.store.counts import has_counts, read_matrix, read_sources
    from perflaw.store.experiment import open_experiment

    recordings = open_experiment(asked.experiment).recordings(asked.source)
    kinds = _kinds(asked.kinds)
    counted = [one for one in recordings if has_counts(one.folder)]
    if not kinds:
        kinds = ("line", "block") if counted else ("function", "edge")
    used = _with_counts(recordings, counted) if {"line", "block"} & set(kinds) else list(recordings)
    matrix = read_matrix(used or recordings, kinds)
    left_out = _left_out(recordings, used, matrix, calls_instead=not asked.kinds and not counted)
    return Found(matrix, sources=read_sources(used), recordings=recordings, left_out=left_out)


def _kinds(text: str | None) -> tuple[str, ...]:
    """Kinds asked for, each known."""
    kinds = tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"--kind {kind}: no such kind", f"there are {', '.join(KINDS)}", "--kind line,block")
    return kinds


def _with_counts(recordings: Sequence[Recording], counted: Sequence[Recording]) -> list[Recording]:
    """Runs whose program counted lines, with their child processes whether these did or not."""
    by_id = {one.run.id: one for one in recordings}
    have = {one.run.id for one in counted}

    def root(one: Recording) -> str:
        while one.run.parent in by_id:
            one = by_id[one.run.parent]
        return one.run.id

    whole = {root(one) for one in counted} | have
    return [one for one in recordings if root(one) in whole]


def _left_out(
    recordings: Sequence[Recording], used: Sequence[Recording], matrix: CountMatrix, calls_instead: bool
) -> tuple[str, ...]:
    """What the matrix does not hold, and why, in words."""
    ids = {one.run.id for one in recordings}
    programs = [one.run for one in used if one.run.parent not in ids]
    cut = [run for run in programs if run.id not in matrix.runs]
    children = len(used) - len(programs)
    said = []
    if calls_instead:
        said.append(f"no run counted lines: functions and calls between them instead ({_RECORD})")
    if len(used) < len(recordings):
        said.append(f"left out: {_runs(len(recordings) - len(used))} recorded without --collect lines")
    if cut:
        which = ", ".join(run.id for run in cut[:5]) + " …" * (len(cut) > 5)
        said.append(f"left out: {_runs(len(cut))} incomplete or failed ({which}: {cut[0].ended})")
    if children:
        said.append(f"{_runs(children)} of child processes added to the runs that started them")
    partial = sum(not one.run.complete for one in used if one.run.parent in ids)
    if partial:
        said.append(f"{_runs(partial)} of child processes incomplete: their counts are too small")
    return tuple(said)


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number != 1)}"


def _features(matrix: CountMatrix, asked: Asked) -> dict[str, NDArray[np.float64]]:
    """The features asked for, or all."""
    there = matrix.features
    for name in asked.features:
        if name not in there:
            raise UsageError(
                f"--feature {name}: no run says it", f"they say {_some(there)}", f"--feature {next(iter(there), 'n')}"
            )
    return {name: values for name, values in there.items() if not asked.features or name in asked.features}


def _counted(matrix: CountMatrix, counts: Sequence[str]) -> dict[str, str]:
    """Features that are counts by ``NAME=LOCATION``; UsageError where there is no such location, or the name is taken."""
    rows = [location.name for location in matrix.locations]
    found = {}
    for text in counts:
        name, equals, place = text.partition("=")
        if name in matrix.features:
            raise UsageError(
                f"--count {text}: {name} is a feature already", "a name means one of them", f"--count {name}s={place}"
            )
        if not name or not equals or place not in rows:
            near = difflib.get_close_matches(place, rows[:20_000], 3, 0.3) or rows[:3]
            raise UsageError(
                f"--count {text}: no such location",
                f"near are {', '.join(near)}",
                f"--count {name or 'swaps'}={near[0]}",
            )
        found[name] = place
    return found


def _check_points(at: Sequence[Mapping[str, float]], names: set[str]) -> None:
    """Refuse a point with a feature that no run says: it is mistyped."""
    for name in (name for point in at for name in point):
        if name not in names:
            raise UsageError(f"--at {name}=…: no such feature", f"runs say {_some(names)}", "perflaw runs")


def _some(names: Sequence[str] | Mapping[str, object] | set[str]) -> str:
    return ", ".join(sorted(names)[:8]) or "none"
