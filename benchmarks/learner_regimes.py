"""Mode switches: how often a threshold at which the law changes is found, and where; exponentials; zeros.

    python benchmarks/learner_regimes.py [--seed 1] [--count 200]

The threshold lies between 30 and 70 % of three decades. Bars: found in ≥ 85/80/65 % at 0/5/20 % noise, n = 10 to 30.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from perflaw.learn.series import Series, learn

Switch = Callable[[np.ndarray, float], np.ndarray]
SWITCHES: dict[str, Switch] = {
    "2x | 10x": lambda x, t: np.where(x <= t, 2 * x, 10 * x),
    "10x | 2x": lambda x, t: np.where(x <= t, 10 * x, 2 * x),
    "x | x^2": lambda x, t: np.where(x <= t, x, x * x / t),
    "c | x": lambda x, t: np.maximum(x, t),
    "c | 4x": lambda x, t: np.where(x <= t, t, 4 * x),
    "x^2 | x log x": lambda x, t: np.where(x <= t, x * x, t * x * np.log(x) / np.log(t)),
    "x log x | x^2": lambda x, t: np.where(x <= t, x * np.log(x), 3 * x * x / t),
    "c | 8c": lambda x, t: np.where(x <= t, 10.0, 80.0),
    "x | a + 3x": lambda x, t: np.where(x <= t, x, 5 * t + 3 * x),
}


def draw(switch: Switch, noise: float, n: int, rng: np.random.Generator) -> tuple[Series, float]:
    """A series over three decades and its threshold."""
    low = 10 ** rng.uniform(0.5, 3)
    x = np.geomspace(low, low * 1000, n) if rng.random() < 0.5 else low * 1000 ** np.sort(rng.random(n))
    threshold = float(x[0] * (x[-1] / x[0]) ** rng.uniform(0.3, 0.7))
    scatter = noise * rng.standard_normal(n)
    factor = np.exp(scatter) if rng.random() < 0.5 else np.maximum(1 + scatter, 0.01)
    return Series("s", switch(x, threshold) * factor, {"n": x}), threshold


def report(count: int, rng: np.random.Generator) -> None:
    """Print the table."""
    print("mode switch: found / threshold in its interval where found / mean covered at 2 x p95, at n = 10, 20, 30")
    for noise in (0.0, 0.05, 0.2):
        shares, spent = [], 0.0
        for name, switch in SWITCHES.items():
            line = f"{name:14}{noise:6.0%}"
            for n in (10, 20, 30):
                data, thresholds = zip(*(draw(switch, noise, n, rng) for _ in range(count)), strict=True)
                start = time.process_time()
                laws = [one.law for one in learn(data)]
                spent += time.process_time() - start
                found = np.array([law.family == "piecewise" for law in laws])
                inside = [
                    any(b.low <= t <= b.high for b in law.breakpoints) for law, t in zip(laws, thresholds, strict=True)
                ]
                truths = [
                    float(switch(np.array([law.predictions[0].features["n"]]), t)[0])
                    for law, t in zip(laws, thresholds, strict=True)
                ]
                covered = [
                    law.predictions[0].mean_low <= mean <= law.predictions[0].mean_high
                    for law, mean in zip(laws, truths, strict=True)
                ]
                held = float(np.mean(np.array(inside)[found])) if found.any() else float("nan")
                line += f"   {found.mean():4.0%} / {held:4.0%} / {np.mean(covered):4.0%}"
                shares.append(found.mean())
            print(line)
        each = spent / (count * len(shares)) * 1e3
        print(f"noise {noise:.0%}: mode switch found {np.mean(shares):.1%} (n = 10–30), {each:.2f} ms a series")


def main() -> None:
    """Print the table alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="series a cell")
    options = parser.parse_args()
    report(options.count, np.random.default_rng(options.seed))


if __name__ == "__main__":
    main()
