"""assert_scales on a simulated machine: false failures, and growth that is found: scales.py [SEEDS].

A call's time is its function's cost times lognormal noise; a tenth of the calls are interrupted and take ten times as
long. Null: a function held against its own growth. Planted: one that grows by n^0.5 or more above its bound.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
from shared import Bars

from perflaw.pytest_plugin.scales import ScalingError, ScalingWarning, assert_scales

SIZES = (100, 300, 1000, 3000, 10_000)
COSTS: dict[str, Callable[[int], float]] = {
    "1": lambda n: 70e3,
    "log n": lambda n: 9e3 * math.log(n),
    "n": lambda n: 800.0 * n,
    "n log n": lambda n: 90.0 * n * math.log(n),
    "n**1.5": lambda n: 80.0 * n**1.5,
    "n^2": lambda n: 9.0 * n**2,
}
PLANTED = (("n", "1"), ("n**1.5", "n"), ("n^2", "n log n"), ("n^2", "n**1.5"))
NOISE = (0.0, 0.05, 0.2, 0.4)


def verdict(cost: Callable[[int], float], bound: str, noise: float, seed: int) -> str:
    """Of one assertion: what the person sees."""
    random, now = np.random.default_rng(seed), 0.0

    def function(n: int) -> None:
        nonlocal now
        burst = 10.0 if noise and random.random() < 0.1 else 1.0
        now += cost(n) * burst * math.exp(noise * random.standard_normal())

    with warnings.catch_warnings():
        warnings.simplefilter("error", ScalingWarning)
        try:
            assert_scales(function, SIZES, bound, clock=lambda: int(now))
        except ScalingError:
            return "violated"
        except ScalingWarning:
            return "inconclusive"
    return "holds"


def main(seeds: int) -> None:
    """Print shares and hold them against the bars."""
    bars = Bars()
    for noise in NOISE:
        null = Counter(verdict(COSTS[name], name, noise, seed) for name in COSTS for seed in range(seeds))
        wrong = null["violated"] / null.total()
        told = bars.check(f"false failures at {noise:.0%}", wrong, 0.0)
        open_ = null["inconclusive"] / null.total()
        print(
            f"noise {noise:4.0%}  within their bound: {null.total()}, failed {wrong:.1%} {told}, inconclusive {open_:.1%}"
        )
        found = Counter(verdict(COSTS[name], bound, noise, seed) for name, bound in PLANTED for seed in range(seeds))
        share = found["violated"] / found.total()
        bar = 0.95 if noise <= 0.2 else 0.0
        told = bars.check(f"found at {noise:.0%}", share, bar, least=True)
        print(f"noise {noise:4.0%}  above their bound:  {found.total()}, failed {share:.1%} {told}")
    bars.leave()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
