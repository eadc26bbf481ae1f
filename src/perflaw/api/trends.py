"""The counts of a program's places, read and learnt from: what ``trend`` and a report show."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perflaw.api.reading import read_recordings
from perflaw.errors import UsageError
from perflaw.notices import Show, progress

if TYPE_CHECKING:
    from perflaw.report.trend.view import TrendView
    from perflaw.store.experiment import Recording
    from perflaw.types import CountMatrix

KINDS = ("line", "block", "function", "edge")
"""The kinds of locations whose executions a recording counts."""
RECORD_LINES = "perflaw record --collect lines --vary n=100,300,1000,3000,10000,30000 -- app.py {n}"


@dataclass(frozen=True, slots=True)
class TrendRequest:
    """What a person asks for on the command line."""

    experiment: str
    """Name of the experiment."""
    source: tuple[str, ...] = ()
    """Runs, or one CSV file; empty for all runs."""
    features: tuple[str, ...] = ()
    """Features to learn laws in; empty for all."""
    counts: tuple[str, ...] = ()
    """Texts ``NAME=LOCATION``: features that are the count of a location."""
    kinds: str | None = None
    """Kinds of locations, separated by commas."""
    at: Sequence[Mapping[str, float]] = ()
    """Points to predict at."""

    @property
    def file(self) -> str | None:
        """The CSV file, if the source is a file."""
        first = self.source[0] if self.source else ""
        return first if first == "-" or first.lower().endswith(".csv") or (first and Path(first).is_file()) else None


@dataclass(frozen=True, slots=True, eq=False)
class TrendInput:
    """The counts that were read."""

    matrix: CountMatrix
    """All counts, with the features that were asked for."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is (§6.2.3 of the paper)."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → text."""
    recordings: Sequence[Recording] = ()
    """The recordings that the counts come from; empty for a file."""
    left_out: tuple[str, ...] = ()
    """What was not read and why, a sentence each."""


def learn_trend(
    read: TrendInput,
    request: TrendRequest,
    alpha: float = 0.02,
    sigma: float = 10.0,
    nonzero: int = 6,
    paper: bool = False,
) -> TrendView:
    """Clusters and their laws, with what a report needs to show them."""
    from perflaw.learn.trend import TrendOptions, trend
    from perflaw.report.trend.view import TrendView

    matrix = read.matrix
    names = [location.name for location in matrix.locations]
    with progress(f"learning how {len(names):,} locations grow") as show:
        options = TrendOptions(alpha=alpha, sigma=sigma, nonzero=nonzero, paper=paper, progress=show)
        trends = trend(matrix.counts, names, matrix.features, list(request.at) or None, options)
    return TrendView(trends, matrix, read.sources, read.left_out, bool(request.at), read.counted, paper)


def read_trend_input(request: TrendRequest) -> TrendInput:
    """Read the counts and features of a request; raises a PerflawError that says what is missing or mistyped."""
    if file := request.file:
        from perflaw.store.csv_files import read_csv_matrix

        if len(request.source) > 1:
            what = f"{' '.join(request.source)}: several files"
            raise UsageError(what, "one matrix is read at a time", f"perflaw trend {file}")
        if request.kinds:
            raise UsageError(f"--kind {request.kinds}", "columns of a file have no kind", f"perflaw trend {file}")
        read = TrendInput(read_csv_matrix(file))
    else:
        with progress("reading counts") as show:
            read = _read_experiment(request, show)
    matrix = read.matrix
    known = matrix.features
    for name in request.features:
        if name not in known:
            why = f"runs have {_first(known)}"
            raise UsageError(f"--feature {name}: no run has it", why, f"--feature {next(iter(known), 'n')}")
    features = {name: x for name, x in known.items() if not request.features or name in request.features}
    # Feature → location of texts NAME=LOCATION; UsageError for an unknown location or a name in use.
    locations = [location.name for location in matrix.locations]
    counted = {}
    for text in request.counts:
        name, equals, place = text.partition("=")
        if name in matrix.features:
            why = "a name can mean only one of them"
            raise UsageError(f"--count {text}: {name} is a feature already", why, f"--count {name}s={place}")
        if not name or not equals or place not in locations:
            near = difflib.get_close_matches(place, locations[:20_000], 3, 0.3) or locations[:3]
            why = f"similar locations are {', '.join(near)}"
            raise UsageError(f"--count {text}: no such location", why, f"--count {name or 'swaps'}={near[0]}")
        counted[name] = place
    rows = {location.name: row for row, location in enumerate(matrix.locations)}
    features |= {name: matrix.counts[rows[place]] for name, place in counted.items()}
    for name in (name for point in request.at for name in point):
        if name not in features:
            raise UsageError(f"--at {name}=…: no such feature", f"runs have {_first(features)}", "perflaw runs")
    return replace(read, matrix=replace(matrix, features=features), counted=counted)


def _first(names: Iterable[str]) -> str:
    """The first names of features, for a message."""
    return ", ".join(sorted(names)[:8]) or "none"


def _read_experiment(request: TrendRequest, show: Show) -> TrendInput:
    """Counts of an experiment's lines and blocks; without counted lines those of functions and calls."""
    from perflaw.store.counts import read_matrix, read_sources
    from perflaw.store.experiment import execution_of
    from perflaw.store.tables import has_table

    kinds = tuple(dict.fromkeys(kind.strip() for kind in (request.kinds or "").split(",") if kind.strip()))
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"--kind {kind}: no such kind", f"there are {', '.join(KINDS)}", "--kind line,block")
    recordings = read_recordings(request.experiment, request.source)
    counted = [one for one in recordings if has_table(one.folder, "counts")]
    instead = not kinds and not counted
    kinds = kinds or (("line", "block") if counted else ("function", "edge"))
    used = list(recordings)
    if {"line", "block"} & set(kinds):
        # Recordings with counted lines, with all processes of the same run, whether these counted lines or not.
        runs = {one.run.id: one.run for one in recordings}
        programs = {execution_of(one.run, runs).id for one in counted}
        used = [one for one in recordings if execution_of(one.run, runs).id in programs]
    matrix = read_matrix(used or recordings, kinds, show)
    left_out = _left_out(recordings, used, matrix)
    if "edge" in kinds and (silent := sum(not one.run.metrics for one in used)):
        left_out.append(f"no calls between functions in {silent} of {len(used)} runs: coverage does not count them")
    if instead:
        left_out.insert(0, f"no run counted lines: functions and calls are clustered instead ({RECORD_LINES})")
    return TrendInput(matrix, sources=read_sources(used), recordings=recordings, left_out=tuple(left_out))


def _left_out(recordings: Sequence[Recording], used: Sequence[Recording], matrix: CountMatrix) -> list[str]:
    """What the matrix does not hold and why, a sentence each."""

    def runs(number: int) -> str:
        return f"{number} run{'s' * (number != 1)}"

    ids = {one.run.id for one in recordings}
    programs = [one.run for one in used if one.run.parent not in ids]
    failed = [run for run in programs if run.id not in matrix.runs]
    children = len(used) - len(programs)
    partial = sum(not one.run.complete for one in used if one.run.parent in ids)
    sentences = []
    if len(used) < len(recordings):
        sentences.append(f"left out: {runs(len(recordings) - len(used))} recorded without --collect lines")
    if failed:
        names = ", ".join(run.id for run in failed[:5]) + " …" * (len(failed) > 5)
        sentences.append(f"left out: {runs(len(failed))} incomplete or failed ({names}: {failed[0].ended})")
    if children:
        sentences.append(f"{runs(children)} of child processes added to the runs that started them")
    if partial:
        sentences.append(f"{runs(partial)} of child processes incomplete: their counts are too small")
    return sentences
