"""Trials until one of the two best of 256 configurations was tried, on drawn grids of many shapes: explore_shapes.py.

Each seed draws another grid of a family: number of knobs and levels, which knobs matter, how, and how noisy trials are. Who
works on a policy uses the families of ``TUNING`` with ``--even``; the other families and the odd seeds judge it.
Usage: explore_shapes.py [--policies law,random] [--families queue,bumps] [--seeds 20] [--even]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from explore_grids import needed, tell
from explore_systems import System
from numpy.typing import NDArray
from shared import Bars

from perflaw.types.studies import Configuration, Knob

Array = NDArray[np.float64]
Random = np.random.Generator
SHAPES = (
    (4, 4, 4, 4), (8, 4, 4, 2), (8, 8, 4), (16, 16), (4, 4, 4, 2, 2), (16, 4, 2, 2), (4, 4, 2, 2, 2, 2),
    (2,) * 8, (8, 4, 2, 2, 2),
)  # fmt: skip
"""Levels of the knobs of a grid of 256."""
NOISES = (0.01, 0.03, 0.08)
"""Standard deviations of the logarithm of a trial."""


def curve(draw: Random, levels: int) -> Array:
    """One knob's effect on the logarithm: rising, saturating, with a peak inside, a step, or nothing."""
    x = np.linspace(0, 1, levels)
    kind = draw.choice(["rise", "saturate", "peak", "step", "none"], p=[0.25, 0.25, 0.25, 0.1, 0.15])
    size = draw.lognormal(np.log(0.4), 0.7)
    found = {
        "rise": x,
        "saturate": 1 - np.exp(-draw.uniform(2, 8) * x),
        "peak": -4 * (x - draw.uniform(0, 1)) ** 2,
        "step": (x > draw.uniform(0, 1)) * 1.0,
        "none": 0 * x,
    }[str(kind)]
    return np.asarray(size * found * draw.choice([-1, 1]) if kind != "peak" else size * found)


def along(values: Array, axis: int, d: int) -> Array:
    return np.asarray(values.reshape([-1 if i == axis else 1 for i in range(d)]))


def additive(draw: Random, shape: tuple[int, ...]) -> Array:
    """A curve a knob."""
    return np.asarray(sum(along(curve(draw, n), i, len(shape)) for i, n in enumerate(shape)) + np.zeros(shape))


def pairs(draw: Random, shape: tuple[int, ...]) -> Array:
    """Curves, and products of curves of two knobs."""
    d, law = len(shape), additive(draw, shape)
    for _ in range(d // 2 + 1):
        i, j = draw.choice(d, 2, replace=False)
        law = law + 2 * along(curve(draw, shape[i]), i, d) * along(curve(draw, shape[j]), j, d)
    return law


def plateau(draw: Random, shape: tuple[int, ...]) -> Array:
    """Curves that stop mattering above a limit: many configurations are about as good."""
    law = pairs(draw, shape)
    limit = np.quantile(law, draw.uniform(0.85, 0.97))
    return np.asarray(np.where(law > limit, limit + 0.1 * (law - limit), law))


def queue(draw: Random, shape: tuple[int, ...]) -> Array:
    """The slowest of two or three stages, each of which some knobs make faster, with costs of what they hold."""
    d = len(shape)
    stages = [draw.normal(0, 0.3) + np.zeros(shape) for _ in range(draw.integers(2, 4))]
    for i, n in enumerate(shape):
        stage = draw.integers(len(stages))
        stages[stage] = stages[stage] + along(draw.uniform(0, 2) * np.linspace(0, 1, n), i, d)
        law = along(-draw.uniform(0, 0.5) * np.linspace(0, 1, n) ** 2, i, d)
        stages[(stage + 1) % len(stages)] = stages[(stage + 1) % len(stages)] + law
    return np.asarray(-np.log(sum(np.exp(-3 * stage) for stage in stages)) / 3)


def bumps(draw: Random, shape: tuple[int, ...]) -> Array:
    """Several peaks of unequal height, over weak curves."""
    at = np.stack(np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij"))
    law = 0.3 * additive(draw, shape)
    for _ in range(draw.integers(3, 6)):
        gaps = at - draw.uniform(0, 1, len(shape)).reshape([-1] + [1] * len(shape))
        law = law + draw.uniform(0.3, 1) * np.exp(-((gaps**2).sum(axis=0)) / draw.uniform(0.1, 0.4))
    return np.asarray(law)


def refused(draw: Random, shape: tuple[int, ...]) -> Array:
    """Curves and pairs; beyond a sum of some knobs nothing starts, and before that it becomes slow at once."""
    at = np.stack(np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij"))
    load = np.tensordot(draw.uniform(0, 1, len(shape)) * (draw.uniform(size=len(shape)) < 0.6), at, 1)
    law = pairs(draw, shape) + 0.5 * load
    law = np.where(load > np.quantile(load, 0.7), law - 0.5, law)
    return np.asarray(np.where(load > np.quantile(load, 0.85), np.nan, law))


def chance(draw: Random, shape: tuple[int, ...]) -> Array:
    """Pairs, and a part of the variance that belongs to each configuration alone."""
    law = pairs(draw, shape)
    return np.asarray(law + 0.15 * law.std() * draw.normal(size=shape))


def names(draw: Random, shape: tuple[int, ...]) -> Array:
    """Knobs whose levels have no order, with pairs; declared so."""
    d, law = len(shape), np.zeros(shape)
    for i, n in enumerate(shape):
        law = law + along(draw.normal(0, 0.3, n), i, d)
    i, j = draw.choice(d, 2, replace=False)
    return np.asarray(law + draw.normal(0, 0.2, [n if k in (i, j) else 1 for k, n in enumerate(shape)]))


Family = Callable[[Random, tuple[int, ...]], Array]
TUNING: dict[str, Family] = {"additive": additive, "pairs": pairs, "plateau": plateau}
JUDGING: dict[str, Family] = {"queue": queue, "bumps": bumps, "refused": refused, "chance": chance, "names": names}
FAMILIES = TUNING | JUDGING


def drawn(family: str, seed: int) -> System:
    """The grid of a family that a seed draws."""
    draw = np.random.default_rng([seed, sorted(FAMILIES).index(family), 3])
    shape = SHAPES[draw.integers(len(SHAPES))]
    law = np.exp(FAMILIES[family](draw, shape))
    kinds = ["categorical" if family == "names" and n > 2 else "ordinal" for n in shape]
    knobs = tuple(
        Knob(f"k{i}", kind, tuple(range(n)) if kind == "ordinal" else tuple(f"v{v}" for v in range(n)))
        for i, (n, kind) in enumerate(zip(shape, kinds, strict=True))
    )
    usable = np.argwhere(np.isfinite(law))
    start = usable[draw.integers(len(usable))]
    knobs = tuple(
        Knob(knob.name, knob.kind, knob.values, default=knob.values[at]) for knob, at in zip(knobs, start, strict=True)
    )

    def value(c: Configuration) -> float:
        return float(law[tuple(knob.values.index(c[knob.name]) for knob in knobs)])

    return System(family, knobs, value, float(draw.choice(NOISES)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default="law,random")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--even", action="store_true", help="the seeds for tuning instead of those for judging")
    asked = parser.parse_args()
    bars = Bars()
    print(f"{'family':10} {'policy':10} {'median':>6} {'p90':>4}")
    for family in asked.families.split(","):
        for policy in asked.policies.split(","):
            seeds = range(0 if asked.even else 1, 2 * asked.seeds, 2)
            trials = [needed(drawn(family, seed), policy, seed) for seed in seeds]
            tell(bars, family, policy, trials)
    bars.leave()


if __name__ == "__main__":
    main()
