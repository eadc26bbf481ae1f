"""The policy, untouched, on a second, third and fourth system: redis, PostgreSQL and gcc's flags (examples/).

Each grid is a study by itself: ``perflaw explore`` with the policy ``grid`` over the knobs' settings below, repetitions
interleaved and no early stop; its best are measured again by a second study. Then 20 seeds of law, Optuna's TPE and random on
the same trials: trials until a configuration within 5 % of the best was tried. Bars: the law's median is at most 30 and its p90
at most 60, and it needs no more than random does. About 25 minutes.
Usage: explore_servers.py [--systems redis,postgresql,compiler] [--repetitions 2] [--seconds 0.7] [--seeds 20] [--most N]
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from explore_live import copied, explored
from explore_policies import WITHIN, explore
from explore_systems import System
from optuna_here import optuna_here
from shared import ROOT, Bars

from perflaw.explore.space import Space
from perflaw.explore.study_file import read_study
from perflaw.types.studies import StudyMetric

SETTINGS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "redis": {"io_threads": [1, 2, 4], "hz": [10, 500], "list_entries": [8, 128]},
    "postgresql": {
        "shared_buffers": ["1MiB", "8MiB", "64MiB", "256MiB"], "work_mem": ["64KiB", "512KiB", "4MiB"],
        "parallel_workers": [0, 2], "synchronous_commit": ["off", "on"], "io_concurrency": [0, 1],
    },
    "compiler": {},
}  # fmt: skip
"""Of each study's knobs, those that have fewer settings in the grid."""
POLICIES = ("law", "optuna", "random")
MOST, BEST = 96, 10


def smaller(folder: Path, system: str, seconds: float, **keys: object) -> Path:
    """The example's study with the grid's settings and other keys; workloads of so many seconds."""
    told = yaml.safe_load((folder / f"{system}.yaml").read_text())
    for knob, values in SETTINGS[system].items():
        told["knobs"][knob] |= {"values": list(values), "default": values[0]}
    if "workload" in told["target"]:
        command = told["target"]["workload"].rsplit(" ", 1)[0]
        told["target"]["workload"] = f"{command} {seconds}"
    told = {key: value for key, value in told.items() if key not in ("trials", "margin")}
    path = folder / f"{keys['name']}.yaml"
    path.write_text(yaml.safe_dump(told | {"early_stop": False} | keys, sort_keys=False))
    return path


def values_of(trials: Sequence[Mapping[str, Any]], space: Space, metric: str) -> dict[str, list[float]]:
    """Valid trials' values by configuration."""
    found: dict[str, list[float]] = {}
    for one in trials:
        if one["valid"]:
            found.setdefault(space.key(one["configuration"]), []).append(float(one["metrics"][metric]))
    return found


def _best(values: Mapping[str, list[float]], fresh: set[str], sign: float) -> set[str]:
    """What is to be measured again: the best few, then whatever seems within 5 % of the best of those that were."""
    means = {key: sign * statistics.mean(each) for key, each in values.items()}
    order = sorted(means, key=means.__getitem__, reverse=True)
    if not fresh:
        return set(order[:BEST])
    best = max(means[key] for key in fresh)
    return {key for key in order if means[key] >= best - 0.05 * abs(best)} - fresh


def grid(name: str, asked: argparse.Namespace) -> System:
    """The grid of a system, measured now."""
    start, folder = time.monotonic(), copied(ROOT / "examples" / name)
    path = smaller(folder, name, asked.seconds, name="grid", policy="grid", repetitions=asked.repetitions)
    study = read_study(path)
    space, goal = Space(study.knobs, study.constraints), next(one for one in study.metrics if one.goal)
    most = min(asked.most or math.inf, asked.repetitions * len(space.all()))
    found = explored(folder, path.name, "--trials", str(most))["trials"]
    values = _again(folder, name, asked, space, goal, found)
    means = {key: statistics.mean(each) for key, each in values.items()}
    bad, took = sum(not one["valid"] for one in found), time.monotonic() - start
    print(f"\n{name}: {len(found)} trials of {len(means)} configurations in {took:.0f} s, {bad} invalid")
    return System(
        name, study.knobs, lambda one: means.get(space.key(one), math.nan), goal=goal.goal or "max",
        constraints=study.constraints, measured=values,
    )  # fmt: skip


def _again(
    folder: Path,
    name: str,
    asked: argparse.Namespace,
    space: Space,
    goal: StudyMetric,
    found: Sequence[Mapping[str, Any]],
) -> dict[str, list[float]]:
    """Values by configuration, those of the best from studies of these alone."""
    shutil.copy(Path(__file__).with_name("explore_again.py"), folder / "again.py")
    values = values_of(found, space, goal.name)
    settings = {space.key(one["configuration"]): one["configuration"] for one in found}
    fresh: set[str] = set()
    while best := _best(values, fresh, -1.0 if goal.goal == "min" else 1.0):
        policy = {"name": "again.py:Again", "configurations": [settings[key] for key in sorted(best)]}
        keys = {"name": f"again{len(fresh)}", "policy": policy, "repetitions": 2 + asked.repetitions}
        path = smaller(folder, name, asked.seconds, **keys)
        values |= values_of(explored(folder, path.name)["trials"], space, goal.name)
        fresh |= best
    return values


def side_by_side(system: System, seeds: int, bars: Bars) -> None:
    """Trials until within the margin, by policy."""
    needed = {}
    for name in POLICIES:
        needed[name] = [explore(system, name, seed, MOST)[0] for seed in range(seeds)]
        median, high = np.quantile(needed[name], [0.5, 0.9], method="higher")
        print(f"  {name:8} median {median:4.0f}, p90 {high:4.0f} trials until within {100 * WITHIN:.0f} %", flush=True)
    law, random = (np.quantile(needed[name], 0.5, method="higher") for name in ("law", "random"))
    high = np.quantile(needed["law"], 0.9, method="higher")
    print("  median", bars.check(f"{system.name}: law's median", law, 30), end=", p90 ")
    print(bars.check(f"{system.name}: law's p90", high, 60), end=", beside random ")
    print(bars.check(f"{system.name}: law's median over random's", law / random, 1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="redis,postgresql,compiler")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.7, help="of a workload")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--most", type=int, help="trials of a grid, for trying this out")
    asked = parser.parse_args()
    subprocess.run(["sh", "scripts/servers.sh"], cwd=ROOT, check=True)
    optuna_here()
    bars = Bars()
    for name in asked.systems.split(","):
        side_by_side(grid(name, asked), asked.seeds, bars)
    bars.leave()


if __name__ == "__main__":
    main()
