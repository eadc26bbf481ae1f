"""Series whose truth is known, and bars with binomial slack."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binom

from perflaw.learn.series import Learnt, Series

FRESH = os.environ.get("PERFLAW_TEST_EXAMPLES") == "full"
SEED = int(os.environ.get("PERFLAW_TEST_SEED", secrets.randbits(32) if FRESH else 1))
"""Seed of all draws: always the same in `make test`, a fresh one in `make test-all`; a failing test names it."""

CHANCE = 1e-5
"""How often a bar that holds may fail by bad luck."""

Truth = Callable[[np.ndarray], np.ndarray]
TRUTHS: dict[str, tuple[Truth, set[str]]] = {
    "sqrt": (lambda x: 3 * x**0.5, {"sqrt", "power"}),
    "linear": (lambda x: 2 * x, {"linear"}),
    "x^1.2": (lambda x: 2 * x**1.2, {"power"}),
    "quadratic": (lambda x: 0.1 * x**2, {"quadratic"}),
    "cubic": (lambda x: 1e-3 * x**3, {"cubic", "power"}),
    "nlogn": (lambda x: 5 * x * np.log(x), {"nlogn"}),
    "a + bx": (lambda x: 20 * x.min() + x, {"linear"}),
}


def generator(*salt: int) -> np.random.Generator:
    """Random numbers of this session, different for each salt."""
    return np.random.default_rng([SEED, *salt])


def draw(truth: Truth, noise: float, n: int, rng: np.random.Generator) -> tuple[Series, float]:
    """A series over three decades and its true mean at 2 × p95; f(1 + εN) and f·exp(εN) alike often."""
    low = 10 ** rng.uniform(0.5, 3)
    x = np.geomspace(low, 1000 * low, n)
    scatter, multiplicative = noise * rng.standard_normal(n), rng.random() < 0.5
    y = truth(x) * (np.exp(scatter) if multiplicative else np.maximum(1 + scatter, 0.01))
    mean = truth(np.array([*x, 2 * np.percentile(x, 95)]))[-1]
    return Series("s", y, {"n": x}), float(mean * (np.exp(noise**2 / 2) if multiplicative else 1.0))


def covered(laws: Sequence[Learnt], means: Sequence[float]) -> int:
    """How many first predictions have the truth in the interval for their mean."""
    first = [one.law.predictions[0] for one in laws]
    return sum(one.mean_low <= mean <= one.mean_high for one, mean in zip(first, means, strict=True))


def at_least(hits: int, n: int, bar: float, what: str = "") -> None:
    """Fail where ``hits`` of ``n`` refute a rate of at least ``bar``."""
    assert binom.cdf(hits, n, bar) > CHANCE, f"{what}: {hits} of {n}, bar {bar:.0%} (seed {SEED})"


def at_most(hits: int, n: int, bar: float, what: str = "") -> None:
    """Fail where ``hits`` of ``n`` refute a rate of at most ``bar``."""
    assert binom.sf(hits - 1, n, bar) > CHANCE, f"{what}: {hits} of {n}, bar {bar:.0%} (seed {SEED})"
