"""Durations by call path, read back from any number of runs: an ``Observed`` a function for the learners."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.errors import StoreError
from perflaw.store.columns import Array, Column, Table, Tables, texts
from perflaw.store.experiment import Recording
from perflaw.store.schema import INT, REAL, SUM, TEXT
from perflaw.store.tables import read_table, write_tables
from perflaw.types import CPU, TIME, Batches, Histogram, Observation, Observed, Platform
from perflaw.types.specifications import CallPath

# ---- Durations by call path on disk: tables that only runs recorded with ``--collect paths`` have.
#
# They stand beside the tables of ``schema.py``, which all runs have.

WHOLE: Final = -1
"""In place of a path: the function's calls, whatever their path."""

PATHS: Final[dict[str, dict[str, str]]] = {
    # One row. tick: calibrated step of the clock; probe: what recording a call adds to its callers' time; both ns.
    # dropped: functions that there was no room for.
    "path_about": {"build": TEXT, "tick": REAL, "probe": REAL, "dropped": INT},
    # One row a function that was chosen or is hot. share: part of the time of all that was recorded.
    "path_functions": {"function": INT, "name": TEXT, "share": REAL},
    # One row a function on a call path, from the program's start to the function itself.
    "call_paths": {"path": INT, "place": INT, "name": TEXT},
    # begin, end: ns since 1970. nested: calls of recorded functions within the calls.
    "path_observations": {"function": INT, "observation": INT, "begin": INT, "end": INT, "calls": INT, "nested": INT},
    # One row a function, observation, path and metric. No row of cpu: it is equal to time there.
    "path_histograms": {
        "function": INT,
        "observation": INT,
        "path": INT,
        "metric": TEXT,
        "scale": INT,
        "zeros": INT,
    },
    # histogram: number of the row above, from 0.
    "path_buckets": {"histogram": INT, "bucket": INT, "count": INT},
    # Sums over complete batches of 2^level calls; path WHOLE: of the function's calls.
    "path_batches": {
        "function": INT,
        "observation": INT,
        "path": INT,
        "metric": TEXT,
        "level": INT,
        "batches": INT,
        "sum_b": SUM,
        "sum_bb": SUM,
    },
}


@dataclass(frozen=True, slots=True)
class PathsAbout:
    """What holds for all of a run's durations by call path."""

    build: str
    """Build id of the program, or a digest of its sources; empty where unknown."""
    tick: float
    """Calibrated step of the clock, ns; 0 where unknown."""
    probe_ns: float
    """What recording a call adds to the time of its callers."""
    dropped: int = 0
    """Functions whose durations there was no room for."""


def about_table(about: PathsAbout) -> Table:
    """The row of a run."""
    numbers = {name: Column(np.array([value])) for name, value in (("tick", about.tick), ("probe", about.probe_ns))}
    return Table({"build": texts([about.build]), **numbers, "dropped": Column(np.array([about.dropped], np.int64))})


def write_paths(folder: Path, tables: Tables) -> None:
    """Write them into the run of ``folder``; OSError if the disk refuses."""
    previous = os.umask(0o077)
    try:
        write_tables(folder, tables, PATHS)
    finally:
        os.umask(previous)


def has_paths(folder: Path) -> bool:
    """Whether the run of ``folder`` has them."""
    return (folder / "path_about.parquet").exists()


def read_paths(folder: Path) -> Tables:
    """All of them; StoreError where one is missing or damaged."""
    return {name: read_table(folder, name, schema=PATHS) for name in PATHS}


def read_about(tables: Mapping[str, Table]) -> PathsAbout:
    """The row of a run."""
    (row,) = tables["path_about"]
    build, tick, probe, dropped = row
    return PathsAbout(str(build), float(tick), float(probe), int(dropped))


Key = tuple[int, int]
"""Observation and path."""
_NONE = Batches((), (), ())


def read_observed(
    recordings: Sequence[Recording], components: Collection[str] | None = None, metric: str = TIME.name
) -> list[Observed]:
    """What was observed of every function that was chosen or is hot, or of these ``components`` alone.

    Runs, processes and hosts are put together; functions of most time first. StoreError where no run collected it, where
    none has the metric, and where a table is missing or damaged.
    """
    having = [recording for recording in recordings if has_paths(recording.folder)]
    if not having:
        raise StoreError("no durations by call path", "no run collected them", "perflaw record --collect paths -- …")
    able = [one for one in having if metric == TIME.name or metric in {each.name for each in one.run.metrics}]
    if not able or metric not in (TIME.name, CPU.name):
        known = "durations by call path are of time, and of cpu where it is measured"
        raise StoreError(
            f"no durations of {metric} by call path", known, "perflaw record --metric cpu --collect paths -- …"
        )
    found: dict[str, _Gathered] = {}
    for recording in able:
        _add_run(found, recording, components, metric)
    observed = [one.observed(name, metric) for name, one in found.items()]
    return sorted(observed, key=lambda one: (-(one.share or 0.0), one.component))


@dataclass
class _Gathered:
    """What is known of a function so far."""

    paths: dict[CallPath, int] = field(default_factory=dict)
    platforms: dict[Platform, int] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    shares: list[tuple[float, float]] = field(default_factory=list)
    """(share, weight) of each run."""
    notes: dict[str, None] = field(default_factory=dict)

    def observed(self, component: str, metric: str) -> Observed:
        """All of it."""
        in_order = sorted(self.observations, key=lambda one: (one.start_ns, one.run))
        weight = sum(weight for _, weight in self.shares)
        share = sum(share * weight for share, weight in self.shares) / weight if weight else None
        probe = max(self.probes, default=0.0)
        return Observed(
            component,
            metric,
            "ns",
            tuple(self.paths),
            tuple(in_order),
            tuple(self.platforms),
            probe,
            share,
            tuple(self.notes),
        )


def _add_run(
    found: dict[str, _Gathered], recording: Recording, components: Collection[str] | None, metric: str
) -> None:
    """Add what one run observed."""
    tables, run = read_paths(recording.folder), recording.run
    about = read_about(tables)
    paths, platform = _call_paths(tables["call_paths"]), Platform(run.host, about.build, about.tick)
    for number, name, share in tables["path_functions"]:
        if components is not None and name not in components:
            continue
        one = found.setdefault(name, _Gathered())
        one.probes.append(about.probe_ns)
        one.shares.append((share, float(max(run.span_ns, 1))))
        if about.dropped:
            one.notes[f"{about.dropped} functions of little time of their own were dropped for want of room"] = None
        same = (known for known in one.platforms if (known.host, known.build) == (platform.host, platform.build))
        # The tick is calibrated anew in each run: it makes no other platform.
        place = one.platforms.setdefault(next(same, platform), len(one.platforms))
        one.observations += _observations(tables, number, metric, _Places(one.paths, paths), place, run.id)


def _call_paths(table: Table) -> dict[int, CallPath]:
    """Number of a path → names of its functions; rows stand in their order."""
    found: dict[int, list[str]] = {}
    for path, _, name in table:
        found.setdefault(path, []).append(name)
    return {path: tuple(names) for path, names in found.items()}


@dataclass(frozen=True, slots=True)
class _Places:
    """Numbers of a run's paths to places among a function's, made as they are asked for."""

    known: dict[CallPath, int]
    paths: Mapping[int, CallPath]

    def place(self, path: int) -> int:
        """Place of a path."""
        return self.known.setdefault(self.paths[path], len(self.known))


def _observations(
    tables: Tables, function: int, metric: str, places: _Places, platform: int, run: str
) -> Iterator[Observation]:
    histograms, batches = _histograms(tables, function, metric), _batches(tables, function, metric)
    rows = tables["path_observations"]
    for _, number, begin, end, _, nested in rows.take(np.flatnonzero(rows["function"] == function)):
        spread, sums = histograms.get(number, {}), batches.get(number, {})
        yield Observation(
            begin,
            end,
            {places.place(path): one for path, one in spread.items()},
            sums.get(WHOLE, _NONE),
            {places.place(path): one for path, one in sums.items() if path != WHOLE},
            platform,
            run,
            nested,
        )


def _measured(table: Table, function: int, metric: str) -> Array:
    """Rows of a function in a metric, in order; where CPU time has none, it is equal to the time."""
    words = table.columns["metric"].words or ()
    code = {word: number for number, word in enumerate(words)}
    kinds, mine = table["metric"], table["function"] == function
    rows = np.flatnonzero(mine & (kinds == code.get(TIME.name, -2)))
    if metric == TIME.name or CPU.name not in code:
        return rows
    apart = np.flatnonzero(mine & (kinds == code[CPU.name]))
    keys = table["observation"] << 32 | (table["path"] + 1)
    return np.sort(np.concatenate([rows[~np.isin(keys[rows], keys[apart])], apart]))


def _histograms(tables: Tables, function: int, metric: str) -> dict[int, dict[int, Histogram]]:
    """Observation → path → its histogram."""
    table, buckets = tables["path_histograms"], tables["path_buckets"]
    owner, index, count = (buckets[name] for name in ("histogram", "bucket", "count"))
    rows = _measured(table, function, metric)
    begins, ends = (np.searchsorted(owner, rows, side) for side in ("left", "right"))
    found: dict[int, dict[int, Histogram]] = {}
    some = zip(table.take(rows), begins.tolist(), ends.tolist(), strict=True)
    for (_, observation, path, _, scale, zeros), begin, end in some:
        counts = _dense(index[begin:end], count[begin:end])
        low = int(index[begin]) if end > begin else 0
        found.setdefault(observation, {})[path] = Histogram(scale, low, counts, zeros)
    return found


def _dense(index: Array, count: Array) -> Array:
    """Counts of all buckets between the first and the last that are used; increasing indices."""
    if not len(index):
        return np.zeros(0, np.int64)
    counts = np.zeros(int(index[-1] - index[0]) + 1, np.int64)
    counts[index - index[0]] = count
    return counts


def _batches(tables: Tables, function: int, metric: str) -> dict[int, dict[int, Batches]]:
    """Observation → path, or ``WHOLE`` → its batches."""
    table = tables["path_batches"]
    levels: dict[Key, list[tuple[int, int, int]]] = {}
    for _, observation, path, _, _, *sums in table.take(_measured(table, function, metric)):
        levels.setdefault((observation, path), []).append((sums[0], sums[1], sums[2]))
    found: dict[int, dict[int, Batches]] = {}
    for (observation, path), rows in levels.items():
        found.setdefault(observation, {})[path] = Batches(*(tuple(column) for column in zip(*rows, strict=True)))
    return found
