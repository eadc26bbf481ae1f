"""What the law learner is worth on data whose truth is known: right families, coverage, null control, CPU.

    python benchmarks/learner.py [--seed 1] [--quick]

Coverage is that of the nominal 95 % interval for the mean at 2 × the 95th percentile of n. "single" is the coverage
where only one law remains. Bars: right family ≥ 100/98/85 % at 0/5/20 % noise; coverage ≥ 93 %; null ≤ 5 %; ≤ 1 ms;
more than 25 % wrong at 10 × the 95th percentile in ≤ 0/2/20 %; mode switch found ≥ 85/80/65 % (learner_regimes.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import learner_regimes
import numpy as np

from perflaw.learn.series import Learnt, Series, learn

Truth = Callable[[np.ndarray], np.ndarray]
TRUTHS: dict[str, tuple[Truth, set[str]]] = {
    "sqrt x": (lambda x: 3 * x**0.5, {"sqrt", "power"}),
    "x": (lambda x: 2 * x, {"linear"}),
    "x^1.2": (lambda x: 2 * x**1.2, {"power"}),
    "x^2": (lambda x: 0.1 * x**2, {"quadratic"}),
    "x^3": (lambda x: 1e-3 * x**3, {"cubic", "power"}),
    "x log x": (lambda x: 5 * x * np.log(x), {"nlogn"}),
    "a + bx": (lambda x: 20 * x.min() + x, {"linear"}),
}
NOISES = (0.0, 0.05, 0.2)
SIZES = (10, 20, 30, 100)


@dataclass(frozen=True)
class Cell:
    """Measured on one family × noise × n."""

    right: float
    covered: float
    covered_new: float
    single: float
    singles: int
    slope: float
    law: float
    width: float
    milliseconds: float
    far: float


def series(truth: Truth, noise: float, n: int, rng: np.random.Generator) -> tuple[Series, float]:
    """One series over three decades with its true mean at 2 × p95; half additive-relative, half lognormal noise."""
    low = 10 ** rng.uniform(0.5, 3)
    x = np.geomspace(low, low * 1000, n) if rng.random() < 0.5 else low * 1000 ** np.sort(rng.random(n))
    scatter = rng.standard_normal(n) * noise
    multiplicative = rng.random() < 0.5
    y = truth(x) * (np.exp(scatter) if multiplicative else np.maximum(1 + scatter, 0.01))
    at = 2 * np.percentile(x, 95)
    # The truth of "a + bx" is in terms of the smallest x, which therefore stays among the points.
    mean = truth(np.array([*x, at]))[-1]
    return Series("s", y, {"n": x}), float(mean * (np.exp(noise**2 / 2) if multiplicative else 1.0))


def measure(name: str, noise: float, n: int, count: int, rng: np.random.Generator) -> Cell:
    """Learn ``count`` series of one cell."""
    truth, right = TRUTHS[name]
    data, means = zip(*(series(truth, noise, n, rng) for _ in range(count)), strict=True)
    start = time.process_time()
    laws = learn(data)
    spent = time.process_time() - start
    inside = np.array([_inside(one, mean) for one, mean in zip(laws, means, strict=True)])
    alone = np.array([not one.law.alternatives for one in laws])
    new = [
        one.law.predictions[0].new_low <= mean * _draw(noise, rng) <= one.law.predictions[0].new_high
        for one, mean in zip(laws, means, strict=True)
    ]
    width = [(p.mean_high - p.mean_low) / p.mean for p in (one.law.predictions[0] for one in laws) if p.mean > 0]
    return Cell(
        right=float(np.mean([one.law.family in right for one in laws])),
        covered=float(inside.mean()),
        covered_new=float(np.mean(new)),
        single=float(inside[alone].mean()) if alone.any() else float("nan"),
        singles=int(alone.sum()),
        slope=float(np.median([abs(_slope(one) - _true_slope(truth, s)) for one, s in zip(laws, data, strict=True)])),
        law=float(np.mean([one.law.verdict == "law" for one in laws])),
        width=float(np.median(width)),
        milliseconds=spent / count * 1e3,
        far=float(np.mean([_far_off(truth, one, s) for one, s in zip(laws, data, strict=True)])),
    )


def _far_off(truth: Truth, one: Learnt, data: Series) -> bool:
    """More than 25 % wrong at 10 × p95."""
    at = one.law.predictions[1].features["n"]
    mean = truth(np.array([*data.features["n"], at]))[-1]
    return bool(abs(one.law.predictions[1].mean / mean - 1) > 0.25)


def _inside(one: Learnt, mean: float) -> bool:
    prediction = one.law.predictions[0]
    return bool(prediction.mean_low <= mean <= prediction.mean_high)


def _draw(noise: float, rng: np.random.Generator) -> float:
    return float(np.exp(noise * rng.standard_normal() - noise**2 / 2))


def _slope(one: Learnt) -> float:
    return next(iter(one.law.slope.values()), 0.0)


def _true_slope(truth: Truth, one: Series) -> float:
    x = one.features["n"]
    top = x.max()
    near = truth(np.array([x.min(), top * (1 - 1e-6), top * (1 + 1e-6)]))
    return float(np.log(near[2] / near[1]) / np.log((1 + 1e-6) / (1 - 1e-6)))


def null(count: int, rng: np.random.Generator) -> Iterator[tuple[str, int, float]]:
    """Share of pure noise that gets anything but a constant."""
    draws: dict[str, Callable[[int], np.ndarray]] = {
        "0 %": lambda n: np.full(n, 5.0),
        "5 % normal": lambda n: 5 * (1 + 0.05 * rng.standard_normal(n)),
        "20 % normal": lambda n: 5 * (1 + 0.2 * rng.standard_normal(n)),
        "lognormal 1": lambda n: np.exp(rng.standard_normal(n)),
        "exponential": lambda n: rng.exponential(1.0, n),
        "Student t2": lambda n: rng.standard_t(2, n),
        "Pareto 1.5": lambda n: 1 + rng.pareto(1.5, n),
    }
    designs: tuple[Callable[[int], np.ndarray], ...] = (
        lambda n: np.geomspace(10, 1e4, n),
        lambda n: rng.uniform(1, 1000, n),
        lambda n: np.resize([100.0, 1000, 10000], n),
        lambda n: np.arange(1.0, n + 1),
    )
    for name, draw in draws.items():
        for n in (5, 10, 20, 30, 100):
            data = [Series("s", draw(n), {"n": designs[i % 4](n)}) for i in range(count)]
            yield name, n, float(np.mean([one.law.family != "constant" for one in learn(data)]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="fewer series a cell")
    parser.add_argument("--count", type=int, default=0, help="series a cell")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    count = options.count or (100 if options.quick else 400)
    print(
        f"{'truth':9}{'noise':>6}{'n':>5}{'right':>7}{'cover':>7}{'new':>6}{'single':>12}{'slope':>7}{'law':>6}{'width':>8}{'ms':>6}"
    )
    cells: dict[tuple[str, float, int], Cell] = {}
    for noise in NOISES:
        for name in TRUTHS:
            for n in SIZES:
                cell = cells[name, noise, n] = measure(name, noise, n, count, rng)
                flag = " <- cover" if cell.covered < 0.93 else ""
                print(
                    f"{name:9}{noise:6.0%}{n:5}{cell.right:7.1%}{cell.covered:7.1%}{cell.covered_new:6.0%}"
                    f"{cell.single:7.1%}/{cell.singles:<4}{cell.slope:7.3f}{cell.law:6.0%}{cell.width:8.2g}"
                    f"{cell.milliseconds:6.2f}{flag}"
                )
    for noise in NOISES:
        some = [cell for (_, other, n), cell in cells.items() if other == noise and n <= 30]
        right, far = np.mean([c.right for c in some]), np.mean([c.far for c in some])
        print(f"noise {noise:.0%}: right family {right:.1%}, more than 25 % wrong at 10 x p95 {far:.1%} (n = 10–30)")
    learner_regimes.report(count, rng)
    print("null: share that is not constant at n = 5, 10, 20, 30, 100 (bar 5 %)")
    rates: dict[str, list[float]] = {}
    for name, _, rate in null(count, rng):
        rates.setdefault(name, []).append(rate)
    for name, values in rates.items():
        print(f"  {name:12}" + "".join(f"{value:7.1%}" for value in values))


if __name__ == "__main__":
    main()
