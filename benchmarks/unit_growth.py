"""Own costs that grow by known laws, predicted at four to ten times the data: unit_growth.py [SEEDS].

The functions of a generated program are called once a run, so the cost model has to learn how the cost of a call grows.
Each law is recorded at six sizes twice, over a narrow and a wide range, with noise in every run, or with
noise and a deviation of each size that its runs share, as the content of an input causes. "held" is how often the 95 %
interval holds the truth, "width" the median ratio of its ends, "near" how often the prediction is within a factor of 1.5.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from shared import Bars

from perflaw.learn.program import forecast, learn_program

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.learn.program_data import Node, Program

Array = NDArray[np.float64]
Law = Callable[[Array], Array]
"""Cost over the size, relative to the largest size recorded."""

PLAIN: Mapping[str, Law] = {
    "constant": np.ones_like,
    "n": lambda s: s,
    "n^1.5": lambda s: s**1.5,
    "n^2": lambda s: s**2,
    "n^3": lambda s: s**3,
}
BEGUN: Mapping[str, Law] = {
    "1 + n": lambda s: 1 + s,
    "1 + n^2": lambda s: 1 + s**2,
    "n + n^2": lambda s: s + s**2,
    "n^2 + n^3": lambda s: s**2 + s**3,
}
BEHIND: Mapping[str, Law] = {
    "1 + n": lambda s: 1 + s / 3,
    "n + n^2": lambda s: s + s**2 / 3,
    "n^2 + n^3": lambda s: s**2 + s**3 / 3,
}
OTHERWISE: Mapping[str, Law] = {
    "1 + n^3, less when small": lambda s: 0.07 * np.minimum(1.0, (s / 0.3) ** 1.5) + s**3,
    "n, a fifth when small": lambda s: s * np.where(s < 0.3, 0.2, 1.0),
    "n, five times when small": lambda s: s * np.where(s < 0.3, 5.0, 1.0),
}
GROUPS = {
    "constants and plain powers": PLAIN,
    "sums, the higher term half of the largest size": BEGUN,
    "sums, the higher term a quarter of it": BEHIND,
    "another law at small sizes": OTHERWISE,
}
SIZES: Sequence[tuple[tuple[float, ...], float]] = (
    ((4, 6, 8, 11, 16, 23), 100.0),
    ((100, 200, 400, 800, 1500, 3000), 30000.0),
)
NOISES = ((0.05, 0.0), (0.2, 0.0), (0.03, 0.08))
MIN_HELD, MAX_WIDTH = 0.95, 3.0


@dataclass(frozen=True)
class Answer:
    """A prediction relative to the truth."""

    mean: float
    low: float
    high: float


def answers(laws: Mapping[str, Law], seed: int, noise: float, by_size: float) -> list[Answer]:
    """The predictions of one program for each law at each range of sizes."""
    out = []
    for sizes, far in SIZES:
        rng = np.random.default_rng(seed)
        nodes = [Node("main", -1, np.ones_like, lambda n: np.full_like(n, 1e6))]
        nodes += [Node(f"constant{k}", 0, np.ones_like, lambda n: np.full_like(n, 1e6)) for k in range(10)]
        for name, law in laws.items():
            shared = dict(zip(sizes, np.exp(rng.normal(0.0, by_size, len(sizes))), strict=True))
            nodes.append(Node(name, 0, np.ones_like, deviating(law, sizes[-1], shared)))
        model = learn_program(Program(nodes).record([*sizes, *sizes], rng, noise=noise, speeds=0.03))
        told = forecast(model, {"n": far}).of_functions({"n": far})
        for component, prediction in zip(model.components, told, strict=True):
            if component.name in laws:
                truth = 1e6 * float(laws[component.name](np.array([far / sizes[-1]]))[0])
                ends = prediction.mean, prediction.mean_low, prediction.mean_high
                out.append(Answer(*(end / truth for end in ends)))
    return out


def deviating(law: Law, top: float, shared: Mapping[float, float]) -> Law:
    """The cost in ns over the size, where all runs of a size share a deviation."""
    return lambda n: 1e6 * law(n / top) * np.array([shared.get(float(one), 1.0) for one in n])


def main(seeds: int = 20) -> None:
    """Print the table."""
    bars = Bars()
    for group, laws in GROUPS.items():
        for noise, by_size in NOISES:
            each = [one for seed in range(seeds) for one in answers(laws, seed, noise, by_size)]
            held = float(np.mean([one.low <= 1.0 <= one.high for one in each]))
            width = float(np.median([one.high / one.low for one in each]))
            near = float(np.mean([1 / 1.5 <= one.mean <= 1.5 for one in each]))
            note = ""
            if laws is PLAIN:
                note = bars.check(f"{group}: held", held, MIN_HELD, least=True)
                note += " " + bars.check(f"{group}: width", width, MAX_WIDTH)
            print(
                f"{group}, noise {noise:.0%}, by size {by_size:.0%}: held {held:.0%} width {width:.1f} near {near:.0%} {note}"
            )
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
