"""Durations by call path on disk: tables that only runs recorded with ``--collect paths`` have.

They stand beside the tables of ``schema.py``, which all runs have.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.store.columns import Column, Table, Tables, texts
from perflaw.store.schema import INT, REAL, SUM, TEXT
from perflaw.store.tables import read_table, write_tables

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
