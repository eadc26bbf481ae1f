"""Mode switches: how often a threshold at which the law changes is found, and where; exponentials; zeros.

    python benchmarks/learner_regimes.py [--seed 1] [--count 200]

The threshold lies between 30 and 70 % of three decades. Bars: found in ≥ 85/80/65 % at 0/5/20 % noise, n = 10 to 30.

Then laws of single calls over four decades: how often a smooth law is told in pieces (bar: never), where costs scatter
evenly, with heavy tails, and with neighbours alike; and how often one whose cost per comparison grows in steps, as where
lists leave the caches.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from shared import Bars

from perflaw.learn.annotations import AnnotationOptions, annotate
from perflaw.learn.series import Series, learn
from perflaw.types import Component, Evidence

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


def alike(s: float, rng: np.random.Generator, n: int) -> np.ndarray:
    """Scatter of which neighbours have much in common."""
    out, own = np.zeros(n), rng.standard_normal(n)
    for i in range(n):
        out[i] = own[i] + (0.7 * out[i - 1] if i else 0.0)
    return s * out / 1.4


NOISES: dict[str, Callable[[float, np.random.Generator, int], np.ndarray]] = {
    "even": lambda s, rng, n: s * rng.standard_normal(n),
    "heavy tails": lambda s, rng, n: s * rng.standard_t(3, n) / 1.7,
    "neighbours alike": alike,
}
"""Scatter of a size → logarithms of factors."""


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


SMOOTH: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "n log n": lambda a: 7 * a * np.log2(a),
    "n^1.3": lambda a: 20 * a**1.3,
    "1000 + n": lambda a: 1000 + 5 * a,
    "n": lambda a: 50 * a,
    "sqrt n": lambda a: 900 * a**0.5,
    "n + n^2": lambda a: 30 * a + 0.1 * a**2,
    "n + n^1.5": lambda a: 30 * a + 3 * a**1.5,
    "log n": lambda a: 1e4 * np.log(a),
}
STEPS = ((600, 1e3, 4e3, 1.2e4, 3e4), (9.4, 14, 16.6, 22, 36))
"""Lengths of lists, and ns of a comparison there."""


def in_steps(a: np.ndarray) -> np.ndarray:
    """Cost of sorting a list of this length."""
    return a * np.log2(a) * np.exp(np.interp(np.log(a), *np.log(STEPS)))


def in_pieces(
    laws: Sequence[Callable[[np.ndarray], np.ndarray]],
    noise: Callable[[np.random.Generator, int], np.ndarray],
    n: int,
    rng: np.random.Generator,
) -> int:
    """How many of these laws of single calls are told in pieces."""
    made = []
    for number, law in enumerate(laws):
        a = np.floor(100 * 6000 ** rng.random(n))
        cost = np.round(law(a) * np.exp(noise(rng, n)))
        whole = np.ones(n)
        made.append(Evidence(Component(f"m.f{number}"), cost, whole, whole > 0, np.repeat("0001", n), {"a": a}, ()))
    found = annotate(made, AnnotationOptions())
    return sum(len(one.scopes) > 1 or bool(one.scopes[0].law.breakpoints) for one in found)


def report_calls(count: int, rng: np.random.Generator, bars: Bars) -> None:
    """Print how often laws of single calls are told in pieces."""
    for name, noise in NOISES.items():
        for n in (60, 250):
            laws = [*SMOOTH.values()] * count
            told = [in_pieces(laws, partial(noise, s), n, rng) for s in (0.1, 0.25, 0.4)]
            print(f"smooth, {name}, {n} calls, scatter 10, 25, 40 %: {told} of {len(laws)} in pieces")
            bars.check(f"smooth laws in pieces, {name}, {n} calls", sum(told), 0)
    for s in (0.1, 0.2, 0.25, 0.3, 0.35):
        print(
            f"in steps, scatter {s:.0%}: {in_pieces([in_steps] * 40, partial(NOISES['even'], s), 250, rng)} of 40 in pieces"
        )


def main() -> None:
    """Print the table alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="series a cell")
    options = parser.parse_args()
    report(options.count, np.random.default_rng(options.seed))
    bars = Bars()
    report_calls(8, np.random.default_rng(options.seed), bars)
    bars.leave()


if __name__ == "__main__":
    main()
