"""perflaw's own work on made-up data, a function for each size that grows: ourselves.py FACTOR...

Each function works on data of FACTOR times its base size, which are made before it is called, one factor after the other.
Each has a process of its own, which has done the same on data of the base size before. A row for each call goes to the file
$PEAKS: function, size, and the megabytes by which the process grew, at its largest, while the function worked.
"""

from __future__ import annotations

import csv
import ctypes
import gc
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
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


WORK: list[Callable[[], object]] = []
"""What the function that is called shall do; it is no argument, so that the law is one over n."""


def trends_by_locations(n: int) -> None:
    WORK[0]()


def trends_by_runs(n: int) -> None:
    WORK[0]()


def variance_by_contexts(n: int) -> None:
    WORK[0]()


def annotate_by_calls(n: int) -> None:
    WORK[0]()


def annotate_by_functions(n: int) -> None:
    WORK[0]()


def tree_by_events(n: int) -> None:
    WORK[0]()


def tree_by_contexts(n: int) -> None:
    WORK[0]()


def merge_by_runs(n: int) -> None:
    WORK[0]()


def build_tree(process: Any) -> None:
    process.tree(core_file(len), 1)


FUNCTIONS: dict[Callable[[int], None], tuple[int, Callable[[int], Any], Callable[[Any], object]]] = {
    trends_by_locations: (1000, lambda n: counts(n, 40), lambda made: trend(*made)),
    trends_by_runs: (40, lambda n: counts(300, n), lambda made: trend(*made)),
    variance_by_contexts: (150, random_tree, variance),
    annotate_by_calls: (2000, lambda n: [evidence("m.f", n)], annotate),
    annotate_by_functions: (8, lambda n: [evidence(f"m.f{i}", 200) for i in range(n)], annotate),
    tree_by_events: (10_000, lambda n: trace(n, 20), build_tree),
    tree_by_contexts: (2000, lambda n: trace(2 * n, n), build_tree),
    merge_by_runs: (50, recordings, merge),
}
"""Function → base size, what makes data of a size, and what is done with them."""


def memory(kind: str) -> float:
    """Megabytes in memory now (VmRSS), or at most since `forget_peak` (VmHWM)."""
    [kilobytes] = re.findall(rf"{kind}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) / 1024


def forget_peak() -> None:
    """Give unused memory back, which the next work would take instead of new one, and begin a new peak (proc(5))."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def main(factors: list[int]) -> None:
    for function, (base, make, work) in FUNCTIONS.items():
        child = os.fork()
        if child == 0:
            work(make(base))  # what is done once in a process is no part of any size
            for n in (base * factor for factor in factors):
                made = make(n)
                WORK[:] = [partial(work, made)]
                forget_peak()
                before = memory("VmRSS")
                function(n)
                with open(os.environ["PEAKS"], "a", newline="") as file:
                    csv.writer(file).writerow([function.__name__, n, round(memory("VmHWM") - before, 3)])
            sys.exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{function.__name__} failed")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
