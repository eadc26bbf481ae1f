"""Changes of unit costs found in generated runs, and false alarms, at noise of known kind: unit_costs.py [SEEDS].

Forty functions in runs of five sizes. One of them is changed by +10 % in ten new runs against twenty old ones, or by
+30 % in five new runs against fifteen old ones; found at a rate of false alarms of 0.5 % for all functions together.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import stdtr
from shared import Bars

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.check.test_unit_costs import FUNCTIONS, compared, power, runs

QUIET = {
    "2 % noise": {"noise": 0.02, "speeds": 0.05},
    "3 % noise, tracer off by 5 ns": {"noise": 0.03, "speeds": 0.05, "tracer": 5.0},
    "3 % noise, 10 % by phase": {"noise": 0.03, "speeds": 0.05, "phase": 0.1},
    "4 % noise": {"noise": 0.04, "speeds": 0.05},
    "5 % noise": {"noise": 0.05, "speeds": 0.05},
}
BUSY = {
    "6 % noise, 30 % by phase": {"noise": 0.06, "speeds": 0.3, "phase": 0.3, "tracer": 10.0},
    "8 % noise, 30 % by phase": {"noise": 0.08, "speeds": 0.3, "phase": 0.3, "tracer": 10.0},
    "6 % noise, 2 % lumps": {"noise": 0.06, "speeds": 0.3, "lumps": 0.02},
    "10 % noise, 2 % lumps": {"noise": 0.1, "speeds": 0.3, "lumps": 0.02},
}
MUST = ("2 % noise", "3 % noise, 10 % by phase", "6 % noise, 30 % by phase", "6 % noise, 2 % lumps")
"""Kinds of noise with a bar."""


def alarms(seeds: int, old: int, new: int, kind: dict[str, float]) -> int:
    """Number of unchanged programs in which a unit cost seems changed."""
    number = 0
    for seed in range(seeds):
        found = compared(runs(np.random.default_rng(10_000 + seed), old, new, **kind))
        number += (2 * stdtr(found.freedom, -np.abs(found.change) / found.error)).min() < 0.005 / FUNCTIONS
    return number


def main(seeds: int = 200) -> None:
    """Print power and false alarms for every kind of noise."""
    bars, false, checks = Bars(), 0, 0
    for factor, old, new, kinds in ((1.1, 4, 2, QUIET), (1.3, 3, 1, BUSY)):
        for name, kind in kinds.items():
            share = power(factor, seeds, old, new, **kind)
            wrong = alarms(seeds, old, new, kind)
            false, checks = false + wrong, checks + seeds
            note = bars.check(f"{name}: found", share, 0.9, least=True) if name in MUST else ""
            print(f"{factor - 1:+.0%}, {5 * old} and {5 * new} runs, {name}: found {share:.0%} {note}; false {wrong}")
    print(f"unchanged: {false} of {checks}", bars.check("false alarms", false / checks, 0.01))
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
