"""How much quicker two workers of a Dask cluster learn than one process, with the same result: cluster.py [VERB...].

Each verb learns from data of this script, which one process takes some 30 s for where ``--scale`` is 1 (trend, annotate and
mine: many functions; variance: many recordings). One process and the cluster learn the same data in turn, in pairs, each
time with one thread of BLAS a process; the workers are started before and have imported what they need. Told are

- the speed-up in wall time, which is worth something only on two cores that nothing else wants: the load stands beside it;
- the speed-up in CPU time, CPU time of one process ÷ (of the client + of the busiest worker), which the work allows also where
  the machine is busy; it is least where the client and the workers take turns;
- the speed-up that the client's share allows (Amdahl), where workers take no longer than one process for the same work:
  CPU time of one process ÷ (of the client + half of what is left);
- what the machine allows: two further processes that learn the same at once, without a cluster, take so many times the CPU
  time of one alone. Two cores that share a unit of execution or a cache take up to twice as long for the same work;
- whether the results are identical to the last bit.

The bar for both speed-ups is 1.7, for a median of the pairs, and 1.8 for what the client's share allows. Status 1 where one is
missed or a result differs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import trend_scale
from shared import Bars, recorded
from tests.check.spec_data import observed

from perflaw.api.mining import specs_of_observed
from perflaw.cluster import on_cluster
from perflaw.learn.annotations import annotate
from perflaw.learn.paths import MiningOptions
from perflaw.learn.trend import trend
from perflaw.learn.variance.analyse import variance
from perflaw.store.call_trees import read_call_tree
from perflaw.store.columns import Column, Table
from perflaw.store.experiment import Recording, open_experiment, read_manifest, write_manifest
from perflaw.store.tables import connect, write_tables
from perflaw.types import TIME, Component, Evidence

BAR = 1.7
ALLOWED_BAR = 1.8
WORKERS = 2
Learn = Callable[[], object]


def of_trend(scale: float, _: Path) -> Learn:
    """Locations, clusters and runs of the paper's largest program (`trend_scale.py`), the runs 785 at every scale."""
    whole = trend_scale.CASES["elsa"]
    sizes = (round(size * scale) for size in (whole.locations, whole.varying, whole.clusters))
    made = trend_scale.make(trend_scale.Case(*sizes, runs=whole.runs, seconds=0.0), 1)
    names = [f"file{row // 500}.cc:{row % 500}" for row in range(len(made.counts))]
    return lambda: trend(made.counts, names, made.features)


def of_annotate(scale: float, _: Path) -> Learn:
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


def of_mine(scale: float, _: Path) -> Learn:
    """Functions of four kinds, with call paths that are told apart."""
    functions = [one for seed in range(round(400 * scale)) for one in observed(seed).values()]
    return lambda: specs_of_observed(functions, MiningOptions(), 2_000_000_000).file


def of_variance(scale: float, folder: Path) -> Learn:
    """Recordings of a program of 300 functions, read from the disk; and the patterns of their variance."""
    if not any(folder.iterdir()):
        make_recordings(folder, scale)
    recordings = [Recording(read_manifest(place), place) for place in sorted(folder.iterdir())]
    return lambda: variance(read_call_tree(recordings, TIME))


PROGRAM = """
import sys
from random import Random
chance = Random(int(sys.argv[1]))
def work(n):
    for _ in range(n):
        pass
"""
FUNCTION = """
def f{i}(n):
    work(n if chance.random() < {often} else 20 * n)
    {calls}
"""


def make_recordings(place: Path, scale: float) -> None:
    """Copies of four recordings in a folder of their own, each with the id of a run of its own."""
    functions = [
        FUNCTION.format(
            i=i,
            often=(0.97, 1)[i % 3 > 0],
            calls="; ".join(f"f{k}(n)" for k in (2 * i + 1, 2 * i + 2, 2 * i + 7) if k < 300) or "pass",
        )
        for i in range(300)
    ]
    with tempfile.TemporaryDirectory(prefix="perflaw-cluster-") as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM + "".join(functions) + "for _ in range(10): f0(5)\n")
        subprocess.run(recorded("--vary", "seed=1,2,3,4", "--", "program.py", "{seed}"), cwd=folder, check=True)
        made = open_experiment("default", folder).recordings()
        for number in range(round(200 * scale)):
            one = made[number % len(made)]
            run = replace(one.run, id=f"{number + 1:06d}")
            tables = {name: _renamed(table, one.run.id, run.id) for name, table in one.tables().items()}
            copy = place / run.id
            copy.mkdir()
            write_tables(copy, tables)
            write_manifest(copy, run)


def _renamed(table: Table, old: str, new: str) -> Table:
    """The table of a recording with another id of its run."""
    if "run" not in table.columns:
        return table
    column = table.columns["run"]
    words = tuple(new if word == old else word for word in column.words or ())
    return table.replaced({"run": Column(column.values, column.rows, words)})


VERBS: dict[str, Callable[[float, Path], Learn]] = {
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
    workers_s: Sequence[float]
    result: str
    """Digest of what was learnt, to the last bit."""

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
        result = blake2b(repr(found).encode()).hexdigest()
    return Cost(wall, cpu, [after[name] - before[name] for name in before], result)


def alone(name: str, scale: float, folder: Path, processes: int) -> list[Cost]:
    """What it takes without a cluster, where so many processes do the same at once.

    They are new, so that nothing is known from learning before, and no forks: a fork would wait for threads of DuckDB.
    """
    command = [sys.executable, __file__, name, "--scale", str(scale), "--alone", str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return [Cost(**json.loads(process.communicate()[0])) for process in running]


def prepare() -> None:
    """Import what the verbs need, and start the engine that reads tables."""
    for module in ("api.mining", "learn.annotations", "learn.trend", "learn.variance.analyse", "store.call_trees"):
        import_module(f"perflaw.{module}")
    connect()


def compare(name: str, scale: float, pairs: int, folder: Path, bars: Bars) -> None:
    learn = VERBS[name](scale, folder)
    walls, bounds, allowed, machine = [], [], [], []
    for _ in range(pairs):
        machine.append(statistics.mean(cost.client_s for cost in alone(name, scale, folder, WORKERS)))
        (one,) = alone(name, scale, folder, 1)
        with on_cluster(f"local:{WORKERS}"):
            import_module("distributed").default_client().run(prepare)
            several = measured(learn)
        walls.append(one.wall_s / several.wall_s)
        bounds.append(one.bound_s / several.bound_s)
        left = max(one.client_s - several.client_s, 0.0)
        allowed.append(one.client_s / (several.client_s + left / WORKERS))
        machine[-1] /= one.client_s
        same = one.result == several.result
        bars.check(f"{name}: results that differ", int(not same), 0)
        each = ", ".join(f"{seconds:.1f}" for seconds in several.workers_s)
        print(
            f"{name}: one process {one.wall_s:.1f} s, CPU {one.client_s:.1f} s; {WORKERS} workers {several.wall_s:.1f} s, "
            f"CPU of the client {several.client_s:.1f} s, of the workers {each} s; "
            f"{'identical' if same else 'DIFFERENT'}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    for what, ratios, bar in (
        ("speed-up in wall time", walls, BAR),
        ("speed-up in CPU time", bounds, BAR),
        ("speed-up that the client's share allows", allowed, ALLOWED_BAR),
    ):
        ratio = statistics.median(ratios)
        beside = bars.check(f"{name}: {what}", ratio, bar, least=True)
        print(f"{name}: {what} {ratio:.2f}  {beside}", flush=True)
    print(f"{name}: two processes at once take {statistics.median(machine):.2f} times the CPU time of one", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verbs", nargs="*", metavar="VERB", help="of " + ", ".join(VERBS))
    parser.add_argument("--scale", type=float, default=1.0, help="times as many functions")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument(
        "--alone", type=Path, metavar="FOLDER", help="learn once in this process, and print what it took"
    )
    options = parser.parse_args()
    if options.alone:
        prepare()
        print(json.dumps(asdict(measured(VERBS[options.verbs[0]](options.scale, options.alone)))))
        return
    bars = Bars()
    with tempfile.TemporaryDirectory(prefix="perflaw-cluster-") as folder:
        for name in options.verbs or VERBS:
            compare(name, options.scale, options.pairs, Path(folder), bars)
    bars.leave()


if __name__ == "__main__":
    main()
