"""Durations by call path: their tables, and how runs are put together for the learners.

Only runs recorded with ``--collect paths`` have these tables, beside those of ``schema.py``, which all runs have.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.parts import untold
from perflaw.store.columns import Array, Column, Table, Tables, texts
from perflaw.store.experiment import Recording, replace_table
from perflaw.store.schema import PATHS, WHOLE
from perflaw.store.tables import bytes_of, has_table, read_each, read_table, write_tables
from perflaw.types import CPU, TIME, Batches, Histogram, Observation, Observed, Platform, Run
from perflaw.types.specifications import CallPath

_NO_BATCHES: Final = Batches((), (), ())


@dataclass(frozen=True, slots=True)
class PathsAbout:
    """Facts about all of a run's durations by call path."""

    build: str
    """Build id of the program, or a digest of its sources; empty where unknown."""
    tick: float
    """Calibrated step of the clock, ns; 0 where unknown."""
    probe_ns: float
    """What recording a call adds to the time of its callers."""
    dropped: int = 0
    """Functions whose durations there was no room for."""


def about_table(about: PathsAbout) -> Table:
    """The table ``path_about`` of a run."""
    numbers = {name: Column(np.array([value])) for name, value in (("tick", about.tick), ("probe", about.probe_ns))}
    return Table({"build": texts([about.build]), **numbers, "dropped": Column(np.array([about.dropped], np.int64))})


def read_observed(
    recordings: Sequence[Recording],
    components: Collection[str] | None = None,
    metric: str = TIME.name,
    tell: Callable[[float], None] = untold,
) -> list[Observed]:
    """The observations of every function that was chosen or is hot, or of these ``components`` alone.

    Runs, processes and hosts are put together; functions with most time come first. StoreError where no run collected
    durations by call path, where none has the metric, and where a table is missing or damaged. ``tell`` is told the part
    that is read.
    """
    able = with_durations(recordings, metric)
    # The largest runs, whose tables take longest to read, often come last.
    sizes = np.cumsum([bytes_of(recording.folder, PATHS) for recording in able])
    folders = [recording.folder for recording in able]
    columns = zip(*(read_each(folders, name) for name in PATHS), strict=True)

    def runs() -> Iterator[tuple[Run, Tables]]:
        for size, recording, of_run in zip(sizes.tolist(), able, columns, strict=True):
            tables = dict(zip(PATHS, of_run, strict=True))
            if _has_own_sources(recording.run, tables):
                tables["components"] = read_table(recording.folder, "components")
            yield recording.run, tables
            tell(size / sizes[-1])

    return observed_in(runs(), components, metric)


def with_durations(recordings: Sequence[Recording], metric: str) -> list[Recording]:
    """The recordings that have durations of the metric by call path; StoreError if none has."""
    having = [recording for recording in recordings if has_table(recording.folder, "path_about")]
    if not having:
        raise StoreError("no durations by call path", "no run collected them", "perflaw record --collect paths -- …")
    able = [one for one in having if metric == TIME.name or metric in {known.name for known in one.run.metrics}]
    if not able or metric not in (TIME.name, CPU.name):
        what, why = f"no durations of {metric} by call path", "they are of time, and of cpu where it is measured"
        raise StoreError(what, why, "perflaw record --metric cpu --collect paths -- …")
    return able


def observed_in(
    runs: Iterable[tuple[Run, Tables]], components: Collection[str] | None = None, metric: str = TIME.name
) -> list[Observed]:
    """:func:`read_observed` of runs whose tables are in memory, those of ``PATHS`` and ``components`` among them."""
    return put_together((paths_in_run(run, tables, components, metric) for run, tables in runs), metric)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionInRun:
    """Durations of one function by call path in one run."""

    share: float
    """Its share of the run's time."""
    build: str
    """Its build: the digest of its file, or that of the run."""
    paths: tuple[CallPath, ...]
    """Its call paths."""
    observations: tuple[Observation, ...]
    """Its observations."""


@dataclass(frozen=True, slots=True, eq=False)
class PathsInRun:
    """Durations by call path in one run."""

    run: Run
    """The run."""
    about: PathsAbout
    """Facts about all of them."""
    functions: Mapping[str, FunctionInRun]
    """By function."""


def paths_in_run(run: Run, tables: Tables, components: Collection[str] | None, metric: str) -> PathsInRun:
    """The durations of the functions that were chosen or are hot, or of these ``components`` alone."""
    ((build, tick, probe_ns, dropped),) = tables["path_about"]
    names: dict[int, list[str]] = {}  # of each path; rows stand in their order
    for path, _, name in tables["call_paths"]:
        names.setdefault(path, []).append(name)
    paths = {path: tuple(parts) for path, parts in names.items()}
    builds, selected = _builds(run, tables), run.configuration.get("select", "")
    functions = {}
    for number, name, share in tables["path_functions"]:
        if components is None or name in components:
            places: dict[CallPath, int] = {}
            found = tuple(_observations(tables, number, metric, paths, places, run.id, selected))
            functions[name] = FunctionInRun(share, str(builds.get(name, build)), tuple(places), found)
    return PathsInRun(run, PathsAbout(build, tick, probe_ns, dropped), functions)


def put_together(runs: Iterable[PathsInRun], metric: str) -> list[Observed]:
    """The observations of each function in all runs; functions with most time come first."""
    functions: dict[str, _FunctionPaths] = {}
    for one in runs:
        for name, of_run in one.functions.items():
            functions.setdefault(name, _FunctionPaths()).add(one, of_run)
    observed = [function.observed(name, metric) for name, function in functions.items()]
    return sorted(observed, key=lambda one: (-(one.share or 0.0), one.component))


def forget_function(folder: Path, component: str) -> bool:
    """Leave the durations of a function out of a recording from now on; gives whether there are those of others in it."""
    table = read_table(folder, "path_functions")
    rows = np.array([place for place, (_, name, _) in enumerate(table) if name != component], np.int32)
    with tempfile.TemporaryDirectory(dir=folder) as changed:  # whoever reads meanwhile finds the one or the other
        write_tables(Path(changed), {"path_functions": table.take(rows)})
        replace_table(folder, Path(changed) / "path_functions.parquet")
    return rows.size > 0


def _has_own_sources(run: Run, tables: Tables) -> bool:
    """Whether the build of a function is the digest of its file. In a compiled program it is that of the program."""
    ((build, *_),) = tables["path_about"]
    return bool(run.sources) and build not in run.sources.values()


def _builds(run: Run, tables: Tables) -> dict[str, str]:
    """Function of a Python program → digest of its file, which does not depend on what else was recorded.

    Empty for a function of a library. Functions of compiled programs are not in it.
    """
    if not _has_own_sources(run, tables):
        return {}
    rows = tables["components"]
    return {name: run.sources.get(file, "") for _, name, file, _, language, *_ in rows if language == "python"}


@dataclass
class _FunctionPaths:
    """What the runs read so far say of a function."""

    paths: dict[CallPath, int] = field(default_factory=dict)
    """Call path → its place."""
    platforms: list[Platform] = field(default_factory=list)
    """Platforms."""
    sources: list[dict[str, str]] = field(default_factory=list)
    """What is known of each one's files."""
    observations: list[Observation] = field(default_factory=list)
    """Observations of all runs."""
    probes: list[float] = field(default_factory=list)
    """What recording a call adds to the time of its callers, in each run."""
    shares: list[tuple[float, float]] = field(default_factory=list)
    """(share, weight) of each run."""
    notes: dict[str, None] = field(default_factory=dict)
    """Notes, each once."""
    queued_ns: dict[str, int] = field(default_factory=dict)
    """Run → time that it queued for a CPU."""

    def add(self, run: PathsInRun, function: FunctionInRun) -> None:
        """Add what one run says of it."""
        about = run.about
        self.probes.append(about.probe_ns)
        self.shares.append((function.share, float(max(run.run.span_ns, 1))))
        if about.dropped:
            self.notes[f"{about.dropped} functions with little time of their own were dropped for lack of room"] = None
        new = Platform(run.run.host, function.build, about.tick)
        platform = self.platform(new, run.run.sources, about.build)
        places = [self.paths.setdefault(path, len(self.paths)) for path in function.paths]
        is_same = not platform and places == list(range(len(places)))
        self.observations += (
            function.observations if is_same else [_moved(one, places, platform) for one in function.observations]
        )
        if run.run.machine:
            self.queued_ns[run.run.id] = run.run.machine.queued_ns

    def platform(self, new: Platform, sources: Mapping[str, str], whole: str) -> int:
        """The place of a run's platform: that of earlier runs if none of the files that both know has changed.

        A run knows the files of which it recorded a function, so digests of all of them differ by what was selected. The
        tick is calibrated anew in each run: a different tick is not a different platform.
        """
        for place, one in enumerate(self.platforms):
            known = self.sources[place]
            if one.host != new.host or any(known.get(file, digest) != digest for file, digest in sources.items()):
                continue
            if one.build == new.build or known.keys() & sources.keys():
                known.update(sources)
                return place
        taken = {(one.host, one.build) for one in self.platforms}
        self.platforms.append(replace(new, build=whole) if (new.host, new.build) in taken else new)
        self.sources.append(dict(sources))
        return len(self.platforms) - 1

    def observed(self, component: str, metric: str) -> Observed:
        """All observations of the function."""
        in_order = sorted(self.observations, key=lambda one: (one.start_ns, one.run))
        weight = sum(weight for _, weight in self.shares)
        share = sum(share * weight for share, weight in self.shares) / weight if weight else None
        probe = max(self.probes, default=0.0)
        paths, platforms = tuple(self.paths), tuple(self.platforms)
        return Observed(
            component, metric, "ns", paths, tuple(in_order), platforms, probe, share, tuple(self.notes), self.queued_ns
        )


def _moved(one: Observation, places: Sequence[int], platform: int) -> Observation:
    """An observation whose call paths and platform have other places."""
    return replace(
        one,
        paths={places[path]: histogram for path, histogram in one.paths.items()},
        path_batches={places[path]: batches for path, batches in one.path_batches.items()},
        cpu_paths={places[path]: histogram for path, histogram in one.cpu_paths.items()},
        platform=platform,
    )


def _observations(
    tables: Tables,
    function: int,
    metric: str,
    paths: Mapping[int, CallPath],
    places: dict[CallPath, int],
    run: str,
    selected: str,
) -> Iterator[Observation]:
    """The observations of a function in a run. ``paths`` numbers the run's paths; ``places`` gets those that are met."""

    def place(path: int) -> int:
        return places.setdefault(paths[path], len(places))

    histograms = _histograms(tables, function, metric)
    has_cpu = CPU.name in (tables["path_histograms"].columns["metric"].words or ())
    on_cpu = _histograms(tables, function, CPU.name) if metric == TIME.name and has_cpu else {}
    # Observation → path, or WHOLE → its batches at each level.
    levels: dict[int, dict[int, list[tuple[int, int, int]]]] = {}
    table = tables["path_batches"]
    for _, number, path, _, _, count, total, squares in table.take(_rows_of(table, function, metric)):
        levels.setdefault(number, {}).setdefault(path, []).append((count, total, squares))

    rows = tables["path_observations"]
    for _, number, begin, end, _, nested in rows.take(np.flatnonzero(rows["function"] == function)):
        by_path = levels.get(number, {}).items()
        sums = {path: Batches(*map(tuple, zip(*of_path, strict=True))) for path, of_path in by_path}
        yield Observation(
            begin,
            end,
            {place(path): histogram for path, histogram in histograms.get(number, {}).items()},
            sums.get(WHOLE, _NO_BATCHES),
            {place(path): batch for path, batch in sums.items() if path != WHOLE},
            0,
            run,
            nested,
            cpu_paths={place(path): histogram for path, histogram in on_cpu.get(number, {}).items()},
            selected=selected,
        )


def _rows_of(table: Table, function: int, metric: str) -> Array:
    """Rows of a function in a metric, in order. Where CPU time has no row, that of the time stands for it."""
    codes = {word: number for number, word in enumerate(table.columns["metric"].words or ())}
    kinds, of_function = table["metric"], table["function"] == function
    rows = np.flatnonzero(of_function & (kinds == codes.get(TIME.name, -2)))
    if metric == TIME.name or CPU.name not in codes:
        return rows
    of_cpu = np.flatnonzero(of_function & (kinds == codes[CPU.name]))
    keys = table["observation"] << 32 | (table["path"] + 1)
    return np.sort(np.concatenate([rows[~np.isin(keys[rows], keys[of_cpu])], of_cpu]))


def _histograms(tables: Tables, function: int, metric: str) -> dict[int, dict[int, Histogram]]:
    """Observation → path → its histogram."""
    table, buckets = tables["path_histograms"], tables["path_buckets"]
    owner, index, count = (buckets[name] for name in ("histogram", "bucket", "count"))
    rows = _rows_of(table, function, metric)
    begins, ends = (np.searchsorted(owner, rows, side).tolist() for side in ("left", "right"))
    histograms: dict[int, dict[int, Histogram]] = {}
    for (_, observation, path, _, scale, zeros), begin, end in zip(table.take(rows), begins, ends, strict=True):
        used = index[begin:end]  # increasing
        low = int(used[0]) if len(used) else 0
        counts = np.zeros(int(used[-1]) - low + 1 if len(used) else 0, np.int64)
        counts[used - low] = count[begin:end]
        histograms.setdefault(observation, {})[path] = Histogram(scale, low, counts, zeros)
    return histograms
