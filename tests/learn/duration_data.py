"""Durations of known truth for the learner of performance specifications: mixtures whose density says where borders are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from perflaw.learn.paths.durations import histogram_of, merged
from perflaw.types import Observed, Platform
from tests.learn.observing import observe

GRID = 4000
DEEP, SHALLOW = 0.4, 0.95
"""A valley that is to be found is at most so high, relative to the lower peak beside it; one higher than the second is none."""
HEAVY, LIGHT = 0.1, 0.03
"""The share of the mass on each side of a border that is to be found, and of one that may be."""


@dataclass(frozen=True)
class Mixture:
    """Two to four components on the axis of durations, ns."""

    parts: tuple
    """Frozen distributions of scipy."""
    shares: np.ndarray
    """Of each, sums to 1."""
    tick: float
    """The clock's step."""

    def exact(self, rng, n):
        """n durations by a perfect clock."""
        of = rng.choice(len(self.parts), n, p=self.shares)
        y = np.empty(n)
        for i, part in enumerate(self.parts):
            y[of == i] = part.rvs((of == i).sum(), random_state=rng)
        return y

    def drawn(self, rng, n):
        """n durations by the clock."""
        return clocked(rng, self.exact(rng, n), self.tick)

    def cdf(self, x):
        """Share of the mass below places."""
        return sum(share * part.cdf(x) for share, part in zip(self.shares, self.parts, strict=True))

    def quantile(self, q):
        """Durations that shares of the mass do not exceed."""
        grid = self._grid(8 * GRID)
        return np.interp(q, self.cdf(grid), grid)

    def borders(self, deepest, lightest):
        """Minima of the density of the logarithm that are deep and have mass on both sides."""
        x = self._grid(GRID)
        height = sum(share * part.pdf(x) * x for share, part in zip(self.shares, self.parts, strict=True))
        below = self.cdf(x)
        found = [i for i in range(1, x.size - 1) if height[i] < height[i - 1] and height[i] <= height[i + 1]]
        while found:
            ends = [0, *found, x.size - 1]
            peaks = [height[a : b + 1].max() for a, b in pairwise(ends)]
            ratios = [height[i] / min(peaks[k], peaks[k + 1]) for k, i in enumerate(found)]
            masses = np.diff(below[ends])
            light = [min(masses[k], masses[k + 1]) < lightest for k in range(len(found))]
            worst = int(np.argmax(ratios + 10.0 * np.array(light)))
            if ratios[worst] <= deepest and not light[worst]:
                break
            del found[worst]
        return x[found]

    @cached_property
    def sure(self):
        """Borders that are to be found."""
        return self.borders(DEEP, HEAVY)

    @cached_property
    def possible(self):
        """Borders that may be found."""
        return self.borders(SHALLOW, LIGHT)

    def _grid(self, size):
        low = min(part.ppf(1e-5) for part in self.parts)
        return np.geomspace(max(low, 1e-2), max(part.ppf(1 - 1e-5) for part in self.parts), size)


def clocked(rng, y, tick):
    """What a clock of that step says of durations that begin at any time: its reading at the end less that at the start."""
    return tick * np.floor(rng.random(y.size) + y / tick) if tick > 0 else y


def mixture(rng, most=4):
    """A random one; the components are near each other or far apart."""
    count = int(rng.integers(2, most + 1))
    shares = rng.dirichlet(np.full(count, 3.0))
    while shares.min() < 0.1:
        shares = rng.dirichlet(np.full(count, 3.0))
    centre = float(np.exp(rng.uniform(np.log(200), np.log(1e5))))
    parts = []
    for _ in range(count):
        parts.append(component(rng, centre))
        centre *= float(np.exp(rng.uniform(0.0, 2.5)))
    low = min(part.ppf(0.01) for part in parts)
    tick = float(rng.choice([1.0, 10.0, 41.7]))
    return Mixture(tuple(parts), shares, tick if low > 0 else 1.0)


def component(rng, centre):
    """Lognormal, gamma or normal about a centre; sometimes after what takes a fixed time."""
    offset = centre * float(rng.choice([0.0, 0.0, rng.uniform(0, 0.7)]))
    scale, kind = centre - offset, rng.integers(3)
    if kind == 0:
        return stats.lognorm(float(rng.uniform(0.05, 0.6)), loc=offset, scale=scale)
    if kind == 1:
        shape = float(np.exp(rng.uniform(np.log(2), np.log(200))))
        return stats.gamma(shape, loc=offset, scale=scale / shape)
    return stats.norm(offset + scale, scale * float(rng.uniform(0.03, 0.25)))


def correlated(rng, n, phi, quantile):
    """Durations (n,) whose ranks follow an autoregressive process of coefficient φ; ``quantile``: shares -> durations."""
    noise = rng.normal(size=n) * np.sqrt(1 - phi * phi)
    noise[0] = rng.normal()
    return quantile(stats.norm.cdf(lfilter([1.0], [1.0, -phi], noise)))


def scored(found, mixed, epsilon=0.05):
    """(right, wrong, missed, sure): borders found that match a possible one or none; sure ones not found, of how many."""
    share, may, must = mixed.cdf(found), mixed.cdf(mixed.possible), mixed.cdf(mixed.sure)
    near = [bool(np.abs(may - one).min(initial=1.0) < epsilon) for one in share]
    missed = sum(bool(np.abs(share - one).min(initial=1.0) >= epsilon) for one in must)
    return np.array([sum(near), len(near) - sum(near), missed, must.size])


NULLS = {
    "lognormal σ 1.5": (lambda rng, n: 1000 * rng.lognormal(0, 1.5, n), 1.0),
    "lognormal σ 1.5, clock of 41.7": (lambda rng, n: clocked(rng, 100 * rng.lognormal(0, 1.5, n), 41.7), 41.7),
    "Pareto 1.5": (lambda rng, n: 1000 * (rng.pareto(1.5, n) + 1), 1.0),
    "Pareto 1.5, clock of 30": (lambda rng, n: clocked(rng, 100 * (rng.pareto(1.5, n) + 1), 30.0), 30.0),
    "exponential": (lambda rng, n: clocked(rng, rng.exponential(1000, n), 1.0), 1.0),
    "exponential, clock of 20": (lambda rng, n: clocked(rng, rng.exponential(100, n), 20.0), 20.0),
    "Poisson 1": (lambda rng, n: rng.poisson(1, n).astype(float), 1.0),
    "Poisson 5": (lambda rng, n: rng.poisson(5, n).astype(float), 1.0),
    "Poisson 200": (lambda rng, n: rng.poisson(200, n).astype(float), 1.0),
    "Poisson 200, tick unknown": (lambda rng, n: rng.poisson(200, n).astype(float), 0.0),
    "coarse clock": (lambda rng, n: np.round(rng.lognormal(3, 0.5, n) / 10) * 10, 10.0),
    "coarse clock, tick unknown": (lambda rng, n: np.round(rng.lognormal(3, 0.5, n) / 10) * 10, 0.0),
    "24 MHz clock in whole ns": (lambda rng, n: np.round(clocked(rng, rng.lognormal(6, 0.5, n), 1000 / 24)), 1000 / 24),
    "normal": (lambda rng, n: rng.normal(100, 5, n), 1.0),
    "uniform": (lambda rng, n: rng.uniform(0, 1500, n), 1.0),
}
"""One mode each: (rng, n) -> durations, and the tick that is told."""

SHAPES = {
    "lognormal σ 0.5": lambda share: np.exp(7 + 0.5 * stats.norm.ppf(share)),
    "lognormal σ 1.5": lambda share: np.exp(7 + 1.5 * stats.norm.ppf(share)),
    "gamma": lambda share: 1000 * stats.gamma(3).ppf(share),
}
"""One mode each: shares -> durations."""


def several(rng, y, parts=8, scales=(3, 11)):
    """A histogram of y (n,) merged from as many observations, each of a scale of its own."""
    return merged([histogram_of(some, int(rng.integers(*scales))) for some in np.array_split(y, parts)])


SCENARIOS = ("nothing changes", "drift", "regime change", "host speed", "changing mix")
OBSERVATIONS, EACH, HOSTS = 20, 1000, 4


def two_modes(rng):
    """A mixture of two components with one sure border and no doubtful one."""
    while True:
        mixed = mixture(rng, 2)
        if mixed.sure.size == mixed.possible.size == 1:
            return mixed


def observed_changing(rng, mixed, scenario):
    """(observed, share): what is observed of two modes while they change, and the share of calls in the quicker one."""
    speeds, below, each = np.exp(rng.uniform(np.log(0.4), np.log(2.5), HOSTS)), [], []
    for i in range(OBSERVATIONS):
        factor, platform, now = 1.0, 0, mixed
        if scenario == "drift":
            factor = 1.5 ** (i / (OBSERVATIONS - 1))
        elif scenario == "regime change":
            factor = 1.0 + (i >= OBSERVATIONS // 2)
        elif scenario == "host speed":
            platform = i % HOSTS
            factor = speeds[platform]
        elif scenario == "changing mix":
            share = 0.25 + 0.5 * i / (OBSERVATIONS - 1)
            now = replace(mixed, shares=np.array([share, 1 - share]))
        y = now.exact(rng, EACH)
        below.append(np.mean(y <= mixed.sure[0]))
        each.append((clocked(rng, factor * y, mixed.tick), platform))
    return observed_of(each, mixed.tick), float(np.mean(below))


def observed_of(each, tick, run="1"):
    """One observation or more for each of (durations, platform), one after the other, by a single call path."""
    now, observations = 1_000_000, []
    for y, platform in each:
        ends = now + np.cumsum(np.maximum(y, 1)).astype(np.int64)
        observations += observe(y, np.zeros(y.size, int), ends, EACH, platform=platform, run=run)
        now = int(ends[-1]) + 1
    platforms = tuple(
        Platform(f"host{i}", "", tick) for i in range(1 + max((one.platform for one in observations), default=0))
    )
    return Observed("work", "time", "ns", (("main", "work"),), tuple(observations), platforms)
