"""perflaw's own work on made-up data, a function for each size that grows: ourselves.py FACTOR.

Each function works on data of FACTOR times its base size, which are made before it is called. A row for each goes to
the file $PEAKS: function, size, megabytes that the function added to the largest memory of its process (each has its own).
"""

from __future__ import annotations

import csv
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.record.test_tree_builder import Stream
from variance_speed import random_tree

from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file
from perflaw.learn.annotations import annotate
from perflaw.learn.trend import trend
from perflaw.learn.variance.analyse import variance
from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.records import Definitions
from perflaw.record.tree.tables import tabulate
from perflaw.store.merge import merge
from perflaw.types import Component, Evidence


def counts(locations: int, runs: int) -> tuple[np.ndarray, list[str], dict[str, np.ndarray]]:
    """Counts of a program whose locations grow by powers of their own, a thirtieth as many clusters as locations."""
    rng = np.random.default_rng(locations + runs)
    size = np.sort(10 ** rng.uniform(2, 5, runs))
    homes = max(locations // 30, 1)
    drivers = size ** rng.uniform(0.5, 1.5, homes)[:, None] * np.exp(0.2 * rng.standard_normal((homes, runs)))
    rows = drivers[np.arange(locations) % homes] * (1 + 0.01 * rng.standard_normal((locations, runs)))
    return np.rint(rows), [f"file.py:{row}" for row in range(locations)], {"bytes": np.rint(size)}


def evidence(name: str, calls: int) -> Evidence:
    """Calls of a function whose time is linear in one of four numbers."""
    rng = np.random.default_rng(calls)
    numbers = {f"x{i}": np.round(np.exp(rng.uniform(0, 7, calls))) for i in range(4)}
    cost = 50 * numbers["x0"] * np.exp(0.05 * rng.standard_normal(calls))
    run = np.repeat([f"{i:04d}" for i in range(4)], calls // 4)
    ones = np.ones(calls)
    return Evidence(Component(name), cost, ones, ones > 0, run, numbers, (), {}, {}, {})


def trace(calls: int, functions: int) -> Any:
    """A trace of calls two deep; each pair of functions is a context of its own."""
    events = []
    for call in range(calls // 2):
        names = [f"f{call % functions}", f"g{call % functions}"]
        events += [
            {"ph": "X", "name": names[k], "ts": 10 * call + k, "dur": 8 - 4 * k, "pid": 1, "tid": 1} for k in (0, 1)
        ]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"traceEvents": events}, file)
        file.flush()
        (process,) = read_trace(Path(file.name)).processes
    return process


def recordings(runs: int) -> list[Any]:
    """Small recordings of a program, each a run."""
    made = []
    for run in range(runs):
        stream, builder = Stream(), TreeBuilder(run)
        for code in range(1, 5):
            stream.call((code, 0, 10 + run % 7, (), 3))
        builder.feed(1, stream.events)
        definitions = Definitions({code: Component(f"f{code}") for code in range(1, 5)})
        made.append(tabulate(f"{run:06d}", builder.finish(), definitions))
    return made


MADE: list[Any] = []
"""The data of the function that is called; it is no argument, so that the law is one over n."""


def trends_by_locations(n: int) -> None:
    trend(*MADE[0])


def trends_by_runs(n: int) -> None:
    trend(*MADE[0])


def variance_by_contexts(n: int) -> None:
    variance(MADE[0])


def annotate_by_calls(n: int) -> None:
    annotate(MADE[0])


def annotate_by_functions(n: int) -> None:
    annotate(MADE[0])


def tree_by_events(n: int) -> None:
    MADE[0].tree(core_file(len), 1)


def tree_by_contexts(n: int) -> None:
    MADE[0].tree(core_file(len), 1)


def merge_by_runs(n: int) -> None:
    merge(MADE[0])


WORK: dict[Callable[[int], None], tuple[int, Callable[[int], Any]]] = {
    trends_by_locations: (1000, lambda n: counts(n, 40)),
    trends_by_runs: (40, lambda n: counts(300, n)),
    variance_by_contexts: (150, random_tree),
    annotate_by_calls: (2000, lambda n: [evidence("m.f", n)]),
    annotate_by_functions: (8, lambda n: [evidence(f"m.f{i}", 200) for i in range(n)]),
    tree_by_events: (10_000, lambda n: trace(n, 20)),
    tree_by_contexts: (2000, lambda n: trace(2 * n, n)),
    merge_by_runs: (50, recordings),
}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(factor: int) -> None:
    for work, (base, make) in WORK.items():
        child = os.fork()
        if child == 0:
            n = base * factor
            MADE.append(make(n))
            before = peak()
            work(n)
            with open(os.environ["PEAKS"], "a", newline="") as file:
                csv.writer(file).writerow([work.__name__, n, round(peak() - before, 3)])
            sys.exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{work.__name__} failed at {factor}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
