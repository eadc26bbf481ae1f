"""How much quicker two workers of a Dask cluster learn than one process, with the same result: cluster.py [VERB...].

Each verb learns from data of this script, which one process takes some 30 s for where ``--scale`` is 1 (trend, annotate and
mine: many functions; variance: a large call tree). One process and the cluster learn the same data in turn, in pairs, each
time with one thread of BLAS a process; the workers are started before and have imported what they need. Told are

- the speed-up in wall time, which is worth something only on two cores that nothing else wants: the load stands beside it;
- the speed-up in CPU time, CPU time of one process ÷ (of the client + of the busiest worker), which the work allows also where
  the machine is busy; it is least where the client and the workers take turns;
- whether the results are identical to the last bit.

The bar for both is 1.7, for a median of the pairs. Status 1 where one is missed or a result differs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import trend_scale
from shared import Bars
from tests.check.spec_data import observed
from variance_speed import random_tree

from perflaw.api.mining import specs_of_observed
from perflaw.cluster import on_cluster
from perflaw.learn.annotations import annotate
from perflaw.learn.paths import MiningOptions
from perflaw.learn.trend import trend
from perflaw.learn.variance.analyse import survey
from perflaw.types import Component, Evidence

BAR = 1.7
WORKERS = 2
Learn = Callable[[], object]


def of_trend(scale: float) -> Learn:
    """Clusters of their own, 30 runs each."""
    count = round(40_000 * scale)
    case = trend_scale.Case(locations=count, varying=count, clusters=count, runs=30, seconds=0.0)
    made = trend_scale.make(case, 1)
    names = [f"file{row // 500}.cc:{row % 500}" for row in range(count)]
    return lambda: trend(made.counts, names, {"bytes": made.features["bytes"]})


def of_annotate(scale: float) -> Learn:
    """Functions with 1,000 calls in four runs, whose cost depends on two numbers and a category."""
    functions = []
    for number in range(round(600 * scale)):
        rng = np.random.default_rng(number)
        x = {name: np.round(np.exp(rng.uniform(0, 7, 1000))) for name in ("n", "m", "k")}
        kind = rng.choice(["int", "str"], 1000)
        cost = np.where(kind == "int", 50 * x["n"], 5000 + 3 * x["m"]) * np.exp(0.05 * rng.standard_normal(1000))
        run, ones = np.repeat(["0001", "0002", "0003", "0004"], 250), np.ones(1000)
        functions.append(
            Evidence(Component(f"m.f{number}"), cost, ones, ones > 0, run, x, (), {"a.type": kind}, {}, {})
        )
    return lambda: annotate(functions)


def of_mine(scale: float) -> Learn:
    """Functions of four kinds, with call paths that are told apart."""
    functions = [one for seed in range(round(400 * scale)) for one in observed(seed).values()]
    return lambda: specs_of_observed(functions, MiningOptions(), 2_000_000_000).file


def of_variance(scale: float) -> Learn:
    """The patterns of a random call tree."""
    tree = random_tree(round(40_000 * scale), roots=20)
    return lambda: survey(tree).variance


VERBS: dict[str, Callable[[float], Learn]] = {
    "trend": of_trend,
    "annotate": of_annotate,
    "mine": of_mine,
    "variance": of_variance,
}


@dataclass(frozen=True)
class Cost:
    """What it took to learn once."""

    wall_s: float
    client_s: float
    workers_s: tuple[float, ...]
    result: str

    @property
    def bound_s(self) -> float:
        """CPU time where nothing of the client's work overlaps with that of the workers."""
        return self.client_s + max(self.workers_s, default=0.0)


def measured(learn: Learn) -> Cost:
    """Learn once, here or on the cluster that is entered."""

    def workers() -> dict[str, float]:
        found: dict[str, float] = client.run(time.process_time) if client else {}
        return found

    try:
        client: Any = import_module("distributed").default_client()
    except ValueError:  # there is none
        client = None
    before, wall, cpu = workers(), time.perf_counter(), time.process_time()
    found = learn()
    wall, cpu, after = time.perf_counter() - wall, time.process_time() - cpu, workers()
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return Cost(wall, cpu, tuple(after[name] - before[name] for name in before), repr(found))


def prepare() -> None:
    """Import what the verbs need."""
    for module in ("api.mining", "learn.annotations", "learn.trend", "learn.variance.analyse"):
        import_module(f"perflaw.{module}")


def compare(name: str, scale: float, pairs: int, bars: Bars) -> None:
    learn = VERBS[name](scale)
    walls, bounds = [], []
    for _ in range(pairs):
        one = measured(learn)
        with on_cluster(f"local:{WORKERS}"):
            import_module("distributed").default_client().run(prepare)
            several = measured(learn)
        walls.append(one.wall_s / several.wall_s)
        bounds.append(one.bound_s / several.bound_s)
        same = one.result == several.result
        bars.check(f"{name}: results that differ", int(not same), 0)
        each = ", ".join(f"{seconds:.1f}" for seconds in several.workers_s)
        print(
            f"{name}: one process {one.wall_s:.1f} s, CPU {one.client_s:.1f} s; {WORKERS} workers {several.wall_s:.1f} s, "
            f"CPU of the client {several.client_s:.1f} s, of the workers {each} s; "
            f"{'identical' if same else 'DIFFERENT'}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    for what, ratios in (("wall time", walls), ("CPU time", bounds)):
        ratio = statistics.median(ratios)
        beside = bars.check(f"{name}: speed-up in {what}", ratio, BAR, least=True)
        print(f"{name}: speed-up in {what} {ratio:.2f}  {beside}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verbs", nargs="*", metavar="VERB", help="of " + ", ".join(VERBS))
    parser.add_argument("--scale", type=float, default=1.0, help="times as many functions")
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    bars = Bars()
    for name in options.verbs or VERBS:
        compare(name, options.scale, options.pairs, bars)
    bars.leave()


if __name__ == "__main__":
    main()
