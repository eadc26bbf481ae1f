"""Null control: where nothing depends on anything, nothing is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from perflaw.learn.series import Series, learn
from tests.conftest import examples, first
from tests.learn.law_data import at_least, at_most, generator

Draw = Callable[[np.random.Generator, int], np.ndarray]
NOISES: dict[str, Draw] = {
    "five": lambda rng, n: 5 * (1 + 0.05 * rng.standard_normal(n)),
    "twenty": lambda rng, n: 5 * (1 + 0.2 * rng.standard_normal(n)),
    "lognormal": lambda rng, n: np.exp(rng.standard_normal(n)),
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "student": lambda rng, n: rng.standard_t(2, n),
    "pareto": lambda rng, n: 1 + rng.pareto(1.5, n),
}
DESIGNS: dict[str, Draw] = {
    "geometric": lambda rng, n: np.geomspace(10, 1e4, n),
    "uniform": lambda rng, n: rng.uniform(1, 1000, n),
    "repeated": lambda rng, n: np.resize([100.0, 1000.0, 10000.0], n),
    "linear": lambda rng, n: np.arange(1.0, n + 1),
}


@pytest.mark.parametrize("design", first(3, DESIGNS))
@pytest.mark.parametrize("noise", NOISES)
def test_noise_is_constant(noise: str, design: str) -> None:
    rng = generator(20, len(noise), len(design))
    sizes = np.repeat((5, 10, 30), examples(80))
    data = [Series("s", NOISES[noise](rng, n), {"n": DESIGNS[design](rng, n)}) for n in sizes]
    found = sum(one.law.family != "constant" for one in learn(data))
    at_most(found, len(data), 0.05, f"{noise}, {design}")


def test_many_features_do_not_help_noise() -> None:
    rng = generator(21)
    data = [
        Series("s", rng.exponential(1.0, 15), {name: rng.uniform(1, 100, 15) for name in "abcdefgh"})
        for _ in range(examples(300))
    ]
    at_most(sum(one.law.family != "constant" for one in learn(data)), len(data), 0.05)


def test_no_noise_at_all_is_constant_and_none() -> None:
    for n in (5, 10, 30):
        law = learn([Series("s", np.full(n, 0.1), {"n": np.geomspace(1, 1000, n)})])[0].law
        assert (law.family, law.verdict, law.r2) == ("constant", "none", None)
        assert law.slope == {"n": 0.0}
        assert law.predictions[0].mean == pytest.approx(0.1)


def test_a_constant_of_little_noise_is_a_finding() -> None:
    rng = generator(22)
    x = np.geomspace(10, 1e4, 10)
    laws = learn([Series("s", 5 * (1 + 0.2 * rng.standard_normal(10)), {"n": x}) for _ in range(200)])
    at_least(sum(one.law.verdict == "none" for one in laws), 200, 0.92)


def test_a_constant_that_might_grow_is_not() -> None:
    rng = generator(23)
    x = np.array([100.0, 120, 140, 160, 180, 200])
    laws = [one.law for one in learn([Series("s", np.exp(rng.standard_normal(6)), {"n": x}) for _ in range(100)])]
    constant = [law for law in laws if law.family == "constant"]
    at_least(sum(law.verdict == "inconclusive" for law in constant), len(constant), 0.95)
    assert all("--vary n=" in law.reason for law in constant if law.verdict == "inconclusive")


def test_what_never_varies_says_so() -> None:
    y = np.array([1.0, 2.0, 1.5, 1.7, 1.1, 1.3])
    assert learn([Series("s", y, {"n": np.full(6, 3.0)})])[0].law.verdict == "none"
    assert learn([Series("s", y, {})])[0].law.reason == "there is no feature: add --vary n=…"
    assert learn([Series("s", y[:1], {"n": y[:1]})])[0].law.verdict == "inconclusive"


def test_run_effects_do_not_pass_for_a_dependence() -> None:
    """Few runs of many rows, the size varying between runs only."""
    rng = generator(24)
    size = np.array([100.0, 200, 500, 1000, 2000, 5000])
    data = []
    for _ in range(examples(150)):
        level = np.exp(0.1 * rng.standard_normal(6))
        y = np.repeat(level, 50) * np.exp(0.02 * rng.standard_normal(300))
        data.append(Series("s", y, {"n": np.repeat(size, 50)}, runs=np.repeat(np.arange(6), 50)))
    at_most(sum(one.law.family != "constant" for one in learn(data)), len(data), 0.05)


def test_noise_within_runs_is_constant() -> None:
    rng = generator(25)
    data = []
    for _ in range(examples(150)):
        level = np.repeat(np.exp(0.1 * rng.standard_normal(6)), 20)
        x = rng.uniform(1, 100, 120)
        runs = np.repeat(np.arange(6), 20)
        data.append(Series("s", level * np.exp(0.1 * rng.standard_normal(120)), {"n": x}, runs=runs))
    at_most(sum(one.law.family != "constant" for one in learn(data)), len(data), 0.05)
