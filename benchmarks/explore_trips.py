"""The grid of examples/sqlite, measured: every configuration, repetitions interleaved, readings and conditions kept."""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from shared import CACHE, ROOT

from perflaw.explore.space import Space
from perflaw.explore.study_file import read_study
from perflaw.explore.target.scoring import steady_mean
from perflaw.types.studies import Study, Value

EXAMPLE = ROOT / "examples" / "sqlite"
ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a configuration."""

    configuration: Mapping[str, Value]
    """The settings."""
    repetition: int
    """0, 1, …"""
    value: float
    """Queries a second, from where it was steady."""
    readings: tuple[tuple[float, float, int], ...]
    """(at_s, queries a second, queries) fifty times a second."""
    voluntary: float
    """Voluntary context switches a second."""
    involuntary: float
    """Involuntary ones."""
    other_cpu: float
    """CPU that others used, in cores."""


class Trips:
    """The example's program, built once, over a database for each page size."""

    def __init__(self, folder: Path = CACHE / "trips", rows: int = ROWS) -> None:
        self.folder, self.rows = folder, rows
        self._warm: set[Path] = set()
        folder.mkdir(parents=True, exist_ok=True)
        include = f"-I{ROOT / 'native' / 'include'}"
        for program in ("query_trips", "make_trips"):
            source, made = EXAMPLE / f"{program}.c", folder / program
            command = ["gcc", "-O2", "-pthread", include, source, "-o", made, "-lsqlite3", "-lm"]
            subprocess.run(command, check=True)

    def database(self, page_size: int) -> Path:
        """The table with pages of that size; made at its first use."""
        path = self.folder / f"trips-{self.rows}-{page_size}.db"
        if not path.exists():
            new = path.with_suffix(".new")
            new.unlink(missing_ok=True)
            subprocess.run([self.folder / "make_trips", new, str(self.rows), "1", str(page_size)], check=True)
            new.rename(path)
        if path not in self._warm:
            path.read_bytes()  # into the kernel's cache: trials are to differ by SQLite's, not by what the disk gave last
            self._warm.add(path)
        return path

    def run(self, configuration: Mapping[str, Value], repetition: int, seconds: float) -> Measured:
        """One run; exits where a setting did not take effect."""
        options = [f"--{name}={int(value)}" for name, value in configuration.items() if name != "page_size"]
        command = [self.folder / "query_trips", self.database(int(configuration["page_size"])), *options]
        others = _others_cpu()
        done = subprocess.run([*command, f"--seconds={seconds}"], capture_output=True, text=True, check=True)
        told, *lines, last = (json.loads(line) for line in done.stdout.splitlines())
        wrong = {
            name: told["settings"][name] for name, value in configuration.items() if told["settings"][name] != value
        }
        if wrong:
            sys.exit(f"{dict(configuration)} became {wrong}")
        took, result = lines[-1]["at_s"], last["result"]
        readings = tuple((line["at_s"], line["queries_per_s"], line["n"]) for line in lines)
        value = steady_mean([one[1] for one in readings], [one[2] for one in readings]).mean
        switches = result["voluntary_switches"] / took, result["involuntary_switches"] / took
        return Measured(dict(configuration), repetition, value, readings, *switches, (_others_cpu() - others) / took)


def _others_cpu() -> float:
    """CPU seconds that everybody used, without our children."""
    busy = [float(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(busy) - busy[3] - busy[4]) / os.sysconf("SC_CLK_TCK") - ours.ru_utime - ours.ru_stime


def trips_study() -> tuple[Study, Space]:
    """The example's study and its space."""
    study = read_study(EXAMPLE / "sqlite.yaml")
    return study, Space(study.knobs, study.constraints)


def measure(
    trips: Trips, configurations: Sequence[Mapping[str, Value]], repetitions: int, seconds: float, first: int = 0
) -> list[Measured]:
    """Every configuration so often, each round in an order of its own: what happens to the machine happens to all alike."""
    orders = {
        at: np.random.default_rng(at).permutation(len(configurations)) for at in range(first, first + repetitions)
    }
    return [trips.run(configurations[int(place)], at, seconds) for at, order in orders.items() for place in order]


def remeasured(
    trips: Trips, found: list[Measured], space: Space, most: int, repetitions: int, seconds: float
) -> list[Measured]:
    """The same, where the best have fresh repetitions alone: the best of many is the luckiest as well.

    First so many, then whatever seems within 5 % of the best of these, until nothing that was not measured again does.
    """
    fresh: set[str] = set()
    while True:
        means = mean_of(found, space, lambda one: one.value)
        order = sorted(means, key=means.__getitem__, reverse=True)
        bar = 0.95 * max((means[key] for key in fresh), default=means[order[most - 1]])
        best = {key for key in order if means[key] >= bar} - fresh
        if not best:
            return found
        fresh |= best
        again = [configuration for configuration in space.all() if space.key(configuration) in best]
        kept = [one for one in found if space.key(one.configuration) not in best]
        found = kept + measure(trips, again, repetitions, seconds, first=1 + max(one.repetition for one in found))


def mean_of(found: Iterable[Measured], space: Space, figure: Callable[[Measured], float]) -> dict[str, float]:
    """Mean of a figure by configuration."""
    values: dict[str, list[float]] = {}
    for one in found:
        values.setdefault(space.key(one.configuration), []).append(figure(one))
    return {key: float(np.mean(each)) for key, each in values.items()}


def write(found: Sequence[Measured], folder: Path) -> Path:
    """The grid as CSV, beside it conditions and readings; returns the grid's path. ``trial`` is the row's number from 1."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(found[0].configuration)
    settings = [[int(one.configuration[name]) for name in names] for one in found]
    _write(folder / "grid.csv", [*names, "value", "repetition"], [
        [*row, f"{one.value:.6g}", one.repetition] for row, one in zip(settings, found, strict=True)
    ])  # fmt: skip
    _write(folder / "conditions.csv", ["trial", *names, "voluntary", "involuntary", "other_cpu"], [
        [trial, *row, f"{one.voluntary:.5g}", f"{one.involuntary:.5g}", f"{one.other_cpu:.3f}"]
        for trial, (row, one) in enumerate(zip(settings, found, strict=True), 1)
    ])  # fmt: skip
    _write(folder / "readings.csv", ["trial", "at_s", "value", "n"], [
        [trial, *reading] for trial, one in enumerate(found, 1) for reading in one.readings
    ])  # fmt: skip
    return folder / "grid.csv"


def _write(path: Path, head: list[str], rows: Iterable[Sequence[object]]) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, newline="", delete=False) as file:
        csv.writer(file).writerows([head, *rows])
    Path(file.name).replace(path)
