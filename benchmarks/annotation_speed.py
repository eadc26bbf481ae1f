"""What annotating costs: one component of 10 features and 1,000 records, and laws of one feature in batch.

    python benchmarks/annotation_speed.py [--rounds 20]

The component has eight numbers and two categories, its records are of four runs. "one law" is linear in a number,
"two laws" are chosen between by a category, "no law" is lognormal noise. Figures are CPU time of one process, the least
of the rounds, so that other processes disturb little; OMP_NUM_THREADS=1 keeps BLAS from counting twice.
Bars: 50 ms an annotation (the paper: about 1 s), 1 ms a law in batch. Status 1 where one is missed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from shared import Bars

from perflaw.laws.printing import show
from perflaw.learn.annotations import annotate
from perflaw.learn.series import Series, learn
from perflaw.types import Component, Evidence

RECORDS, NUMBERS, RUNS = 1000, 8, 4
BAR, BAR_BATCH = 50.0, 1.0
"""Milliseconds an annotation and a law in batch."""
BATCH, POINTS = 500, 30
"""Series of the batch and their points."""


def components(rng: np.random.Generator) -> dict[str, Evidence]:
    """Evidence of each kind."""
    numbers = {f"x{i}": np.round(np.exp(rng.uniform(0, 7, RECORDS))) for i in range(NUMBERS)}
    categories = {"a.type": rng.choice(["int", "str"], RECORDS), "b.type": rng.choice(["A", "B", "C"], RECORDS)}
    noise, x = np.exp(0.05 * rng.standard_normal(RECORDS)), numbers["x0"]
    costs = {
        "one law": 50 * x * noise,
        "two laws": np.where(categories["a.type"] == "int", 100 * x, 5000) * noise,
        "no law": 1e4 * np.exp(0.2 * rng.standard_normal(RECORDS)),
    }
    ones, run = np.ones(RECORDS), np.repeat([f"{i:04d}" for i in range(RUNS)], RECORDS // RUNS)
    return {
        name: Evidence(Component("m.f"), cost, ones, ones > 0, run, numbers, (), categories, {}, {})
        for name, cost in costs.items()
    }


def batch(rng: np.random.Generator) -> list[Series]:
    """Series of one feature with laws of several families under 5 % noise."""
    out = []
    for i in range(BATCH):
        x = 10 ** rng.uniform(0, 3, POINTS)
        y = (3 * x, 40 * np.sqrt(x), x * np.log(x), 0.1 * x**2, 100 + 2 * x)[i % 5]
        out.append(Series("s", y * np.exp(0.05 * rng.standard_normal(POINTS)), {"n": x}))
    return out


def least(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of CPU, the least of some rounds."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append((time.process_time() - start) * 1e3)
    return min(spent)


def main() -> None:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    rng, bars = np.random.default_rng(options.seed), Bars()
    print(f"{NUMBERS} numbers, 2 categories, {RECORDS:,} records: CPU of one annotation")
    for name, evidence in components(rng).items():
        spent = least(lambda made=evidence: annotate([made]), options.rounds)
        scopes = [
            f"{show(scope.condition) if scope.condition else 'always'}: {scope.law.family}"
            for scope in annotate([evidence])[0].scopes
        ]
        print(f"  {name:9}{spent:7.1f} ms {bars.check(name, spent, BAR):12} {'; '.join(scopes)}", flush=True)
    series = batch(rng)
    spent = least(lambda: learn(series), 3) / len(series)
    print(f"{BATCH} series of {POINTS} points at once: {spent:.2f} ms a law {bars.check('a law', spent, BAR_BATCH)}")
    bars.leave()


if __name__ == "__main__":
    main()
