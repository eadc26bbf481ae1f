"""The trend learner at scale, one core, synthetic data of known truth: trend_scale.py [--quick].

The shape of elsa (trend-prof, Figures 3 and 4): 33,647 locations, 22,382 of them varying, in about 1,500 clusters, 785
runs, two features; the paper's post-processing took 7.4 hours. And 10,000 series of 30 runs, each a cluster of its own.
Each case runs in a process of its own with one thread; CPU time and largest memory are that process's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from shared import Bars

from perflaw.learn.trend import trend
from perflaw.types import Trends

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Case:
    """A matrix to make, and what learning it may cost."""

    locations: int
    varying: int
    clusters: int
    runs: int
    seconds: float
    gigabytes: float = 4.0


CASES = {
    "elsa": Case(locations=33_647, varying=22_382, clusters=1_489, runs=785, seconds=60.0),
    "series": Case(locations=10_000, varying=10_000, clusters=10_000, runs=30, seconds=10.0),
}


@dataclass(frozen=True)
class Made:
    """A program's counts and what is true of them."""

    counts: np.ndarray
    features: dict[str, np.ndarray]
    cluster: np.ndarray  # of every varying row
    exponents: np.ndarray  # of every cluster


def make(case: Case, seed: int) -> Made:
    """Clusters grow as bytes^b times noise of their own; members follow theirs closely; the rest is constant or zero."""
    rng = np.random.default_rng(seed)
    size = np.sort(10 ** rng.normal(5.0, 0.5, case.runs))
    nodes = np.rint(0.4 * size**0.97 * np.exp(0.1 * rng.standard_normal(case.runs)))
    exponents = rng.normal(1.0, 0.2, case.clusters)
    noise = rng.uniform(0.25, 0.8, case.clusters)
    scatter = np.exp(noise[:, None] * rng.standard_normal((case.clusters, case.runs)))
    drivers = 10 ** rng.normal(4.0, 0.7, case.clusters)[:, None] * (size / 1e5) ** exponents[:, None] * scatter
    # A fifth of the code does not run on every input.
    sometimes = rng.random(case.clusters) < 0.2
    idle = rng.random((case.clusters, case.runs)) < rng.uniform(0.1, 0.7, case.clusters)[:, None]
    drivers[sometimes[:, None] & idle] = 0.0
    spare = case.varying - case.clusters
    extra = rng.choice(case.clusters, spare, p=_shares(case.clusters)) if spare else np.empty(0, int)
    cluster = np.concatenate([np.arange(case.clusters), extra])
    counts = np.zeros((case.locations, case.runs))
    for row, home in enumerate(cluster):
        # The first of a cluster varies most, so that it is the representative.
        follows = drivers[home] * (1.0 if row < case.clusters else rng.uniform(0.2, 0.9))
        counts[row] = follows * (1.0 if row < case.clusters else 1.0 + 0.02 * rng.standard_normal(case.runs))
    np.rint(np.maximum(counts, 0.0), out=counts)
    rest = case.locations - case.varying
    counts[case.varying :] = np.where(rng.random(rest) < 0.6, 0, rng.integers(1, 50, rest))[:, None]
    return Made(counts, {"bytes": np.rint(size), "nodes": nodes}, cluster, exponents)


def _shares(clusters: int) -> np.ndarray:
    """A few large clusters, many small ones."""
    weight = 1.0 / np.arange(1, clusters + 1) ** 0.8
    return weight / weight.sum()


def measure(name: str, seed: int) -> dict[str, float]:
    """What a case cost this process, and how true the answers are."""
    case = CASES[name]
    made = make(case, seed)
    features = made.features if name == "elsa" else {"bytes": made.features["bytes"]}
    names = [f"elsa/file{row // 500}.cc:{row % 500}" for row in range(case.locations)]
    start = time.process_time()
    found = trend(made.counts, names, features)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"seconds": seconds, "gigabytes": memory, **truth(made, found)}


def truth(made: Made, found: Trends) -> dict[str, float]:
    """How much of what was planted was found: shares of clusters, and of exponents inside their intervals."""
    planted = {int(row): made.exponents[home] for row, home in enumerate(made.cluster[: len(made.exponents)])}
    own = [one for one in found.clusters if one.row in planted]
    laws = [(one.laws["bytes"], planted[one.row or 0]) for one in own if one.laws]
    inside = [law.slope_low["bytes"] <= b <= law.slope_high["bytes"] for law, b in laws if law.features]
    powers = [(one.powers["bytes"], planted[one.row or 0]) for one in own if one.powers]
    covered = [law.exponent_low <= b <= law.exponent_high for law, b in powers]
    return {
        "clusters": len(found.clusters),
        "planted": len(planted),
        "costly": sum(one.costly for one in found.clusters),
        "represented": len(own) / len(planted),
        "a law": float(np.mean([law.verdict == "law" for law, _ in laws])),
        "exponent inside": float(np.mean(inside)),
        "power inside": float(np.mean(covered)),
        "r2": float(np.median([law.r2 for law, _ in laws if law.r2 is not None])),
        "overtakes": sum(len(one.overtakes) for one in found.clusters),
    }


def main() -> None:
    """Measure every case in a process of its own and hold it against its bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(measure(asked.case, asked.seed)))
        return
    bars = Bars()
    for name in [asked.case] if asked.case else CASES:
        command = [sys.executable, __file__, "--child", "--case", name, "--seed", str(asked.seed)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **ONE_THREAD})
        tell(name, json.loads(shown.stdout), bars)
    bars.leave()


def tell(name: str, figures: dict[str, float], bars: Bars) -> None:
    """One case's line, and what was found in a second one."""
    case = CASES[name]
    seconds = bars.check(f"{name}, CPU s", figures["seconds"], case.seconds)
    memory = bars.check(f"{name}, GB", figures["gigabytes"], case.gigabytes)
    print(
        f"{name:7} {case.locations:,} locations x {case.runs} runs: {figures['seconds']:.1f} s CPU {seconds}, ", end=""
    )
    print(f"{figures['gigabytes']:.2f} GB {memory}")
    rest = (f"{key} {value:.4g}" for key, value in figures.items() if key not in ("seconds", "gigabytes"))
    print(f"        {', '.join(rest)}")


if __name__ == "__main__":
    main()
