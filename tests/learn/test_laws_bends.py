"""Curves that are no power of n: sums of what a program does, thresholds, two sizes; predicted ten times beyond the data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from perflaw.learn.annotations import AnnotationOptions, annotate
from perflaw.learn.series import Learnt, Series, learn
from perflaw.types import Prediction
from tests.learn.annotation_data import evidence

Array = np.ndarray
N = np.repeat([100.0, 200, 400, 800, 1500, 3000], 2)
DENSE = np.repeat(np.round(np.geomspace(100, 3000, 12)), 2)
A, B = (np.repeat(one.ravel(), 2) for one in np.meshgrid([100.0, 300, 1000, 2000, 3000], [100.0, 200, 500, 1500, 3000]))
MAX_RATIO = 1.5


def doubling(n: Array) -> Array:
    """Items copied and appended by an array that doubles."""
    return 3 * n + 2.0 ** np.ceil(np.log2(n))


OF_ONE: dict[str, Callable[[Array], Array]] = {
    "amortised growth": doubling,
    "a small buffer": lambda n: np.where(n <= 512, 3000 + 5 * n, 23000 + 5 * n + 40 * (n - 512)),
    "insort": lambda n: 60 * n * np.log2(n) + 0.12 * n**2,
    "s = l + s": lambda n: 90 * n + 0.15 * n**2,
    "s = l + s, mostly linear": lambda n: 90 * n + 0.02 * n**2,
    "n log n": lambda n: 30 * n * np.log2(n),
    "log n": lambda n: 200 * np.log2(n),
    "square and cube": lambda n: 700 + 0.03 * n**2 + 2e-5 * n**3,
}
OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "max": lambda a, b: 2500 + 83 * np.maximum(a, b),
    "a + 5b": lambda a, b: 28 * a + 140 * b,
    "n log k": lambda a, b: 40 * a * np.log2(b),
}


def is_right(law: Prediction, truth: float) -> bool:
    return 1 / MAX_RATIO <= law.mean / truth <= MAX_RATIO


def by_rows(y: Array, features: dict[str, Array], at: dict[str, float]) -> Prediction:
    return learn([Series("f", y, features)], [at])[0].law.predictions[0]


def by_calls(y: Array, features: dict[str, Array], at: dict[str, float]) -> Prediction:
    [found] = annotate([evidence(y, features)], AnnotationOptions(), at)
    [scope] = found.scopes
    return scope.law.predictions[0]


@pytest.mark.parametrize("route", [by_rows, by_calls])
@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("name", OF_ONE)
def test_curves_of_one_size(name: str, noise: float, route: Callable[..., Prediction]) -> None:
    cost, rng = OF_ONE[name], np.random.default_rng(3)
    y = cost(DENSE) * np.exp(noise * rng.normal(size=DENSE.size))
    assert is_right(route(y, {"n": DENSE}, {"n": 30000.0}), float(cost(np.array(30000.0))))


@pytest.mark.parametrize("route", [by_rows, by_calls])
@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("name", OF_TWO)
def test_curves_of_two_sizes(name: str, noise: float, route: Callable[..., Prediction]) -> None:
    cost, rng = OF_TWO[name], np.random.default_rng(3)
    y = cost(A, B) * np.exp(noise * rng.normal(size=A.size))
    truth = float(cost(np.array(30000.0), np.array(10000.0)))
    assert is_right(route(y, {"a": A, "b": B}, {"a": 30000.0, "b": 10000.0}), truth)


def exponentials(cost: Callable[[Array], Array], noise: float) -> float:
    """Share of series that are told as an exponential."""
    rng = np.random.default_rng(5)
    made = [Series("f", cost(N) * np.exp(noise * rng.normal(size=N.size)), {"n": N}) for _ in range(40)]
    return float(np.mean([one.law.family == "exponential" for one in learn(made)]))


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
def test_an_exponential_needs_evidence_against_every_polynomial(noise: float) -> None:
    for power in (1.5, 2, 3, 4):
        assert exponentials(lambda n, power=power: 1e6 + 300 * n + 1e-3 * n**power, noise) <= 0.1
    assert exponentials(lambda n: 5 * 1.004**n, noise) >= 0.975


def test_a_sum_that_is_not_excluded_widens_the_interval() -> None:
    """The data hardly tell the square from a power between; far beyond them the difference is large."""
    rng = np.random.default_rng(7)
    made = [Series("f", (90 * N + 0.15 * N**2) * np.exp(0.05 * rng.normal(size=N.size)), {"n": N}) for _ in range(40)]
    truth = 90 * 30000.0 + 0.15 * 30000.0**2

    def misses(one: Learnt) -> bool:
        answer = one.law.predictions[0]
        return not answer.new_low <= truth <= answer.new_high

    assert np.mean([misses(one) for one in learn(made, [{"n": 30000.0}])]) <= 0.15
