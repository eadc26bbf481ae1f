"""Specifications of a real server in C: Redis of Debian under load, five runs and one at half a processor (Figure 5).

    python benchmarks/mine_redis.py [--requests 20000] [--programs FOLDER] [--keep FOLDER]

Builds Redis with hooks, records all of it once to see which functions take long enough to be measured beside what they
call, then these six times while its load generator drives it from another process, and prints how many
functions have specifications, the atoms they need, and after each merge the share of call paths and of calls that are
consistent: least, quartiles and most over functions, beside the level of chance. Exits with 1 where after all merges the
median share of calls is below 90 %, or where a specification needs more than 8 atoms.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from redis_server import build, long_enough, record

RUNS, HALF, LEAST_NS = 5, 0.5, 1000.0
LEAST_POINTS, MOST_ATOMS = 0.9, 8


def merged(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "perflaw", "mine", "-e", "redis", "--merge", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return dict(json.loads(done.stdout))


def summary(shares: list[float]) -> str:
    return " ".join(f"{100 * share:5.0f}" for share in np.quantile(shares, [0, 0.25, 0.5, 0.75, 1]))


def show(told: Mapping[str, Any]) -> bool:
    """Whether the bars are met."""
    specs, atoms = told["specs"], [len(spec["edges"]) for spec in told["specs"] if len(spec["groups"]) > 1]
    most = max(atoms, default=0)
    print(f"{len(specs)} hot functions, {sum(bool(spec['borders']) for spec in specs)} with borders,", end=" ")
    print(f"{len(atoms)} whose calls differ by path; edges of these: median {np.median(atoms or [0]):.0f}, most {most}")
    print("consistent, %; least, quartiles and most over functions; by chance the medians")
    for step, functions in enumerate(told["merges"], 2):
        for name, some in (
            ("all", functions),
            ("told apart", [each for each in functions if each["chance_points"] < 1]),
        ):
            line = [f"+ run {step}, {len(some):3} {name:10}"]
            for what in ("paths", "points"):
                chance = np.median([each[f"chance_{what}"] for each in some] or [1])
                line.append(f"{what} {summary([each[what] for each in some] or [1])}  chance {100 * chance:3.0f}")
            print("   ".join(line))
    median = float(np.median([each["points"] for each in told["merges"][-1]]))
    print(f"median share of calls after all merges: {100 * median:.0f} % (bar {100 * LEAST_POINTS:.0f});", end=" ")
    print(f"most edges {most} (bar {MOST_ATOMS})")
    return median >= LEAST_POINTS and most <= MOST_ATOMS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000, help="of each command")
    parser.add_argument(
        "--programs", type=Path, help="folder with redis-server, redis-cli and redis-benchmark, built before"
    )
    parser.add_argument("--keep", type=Path, help="folder for the recordings; else they are not kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = given.programs or build(Path(folder))
        where = given.keep or Path(folder)
        where.mkdir(exist_ok=True)
        record(programs, where, "trial", given.requests // 10)
        chosen = long_enough(where, "trial", LEAST_NS)
        for _ in range(RUNS):
            record(programs, where, "redis", given.requests, select=chosen)
        record(programs, where, "redis", given.requests // 2, HALF, chosen)
        return 0 if show(merged(where)) else 1


if __name__ == "__main__":
    sys.exit(main())
