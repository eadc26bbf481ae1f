"""Families named where the data support them, and the test of their shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from perflaw.laws.printing import show
from perflaw.learn.series import Series, learn
from perflaw.learn.series.regimes import p_of_rank_ratio, p_of_replicates
from tests.learn.law_data import TRUTHS, at_least, at_most, draw, generator

SIZES = np.geomspace(10, 1e4, 20)
NAMED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": lambda x: 3 * x**0.5,
    "cubic": lambda x: 1e-3 * x**3,
    "log": lambda x: 5 + 20 * np.log(x),
    "n2logn": lambda x: 0.1 * x**2 * np.log(x),
    "quadratic": lambda x: 7 + 0.1 * x**2,
}


@pytest.mark.parametrize("family", NAMED)
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_families_are_named(family: str, noise: float) -> None:
    rng = generator(50, len(family), int(noise * 100))
    data = [
        Series("s", NAMED[family](SIZES) * np.exp(noise * rng.standard_normal(20)), {"n": SIZES}) for _ in range(40)
    ]
    at_least(sum(one.law.family == family for one in learn(data)), 40, 0.9, family)


@pytest.mark.parametrize("rate", [0.7, 0.1, -0.2])
def test_exponential_growth_is_recognised(rate: float) -> None:
    rng = generator(51, int(10 + 10 * rate))
    x = np.arange(1.0, 25.0)
    data = [Series("s", 3 * np.exp(rate * x) * np.exp(0.05 * rng.standard_normal(24)), {"n": x}) for _ in range(40)]
    laws = [one.law for one in learn(data, at=[{"n": 30.0}])]
    at_least(sum(law.family == "exponential" for law in laws), 40, 0.9)
    some = next(law for law in laws if law.family == "exponential")
    assert (some.exponent, some.log_exponent) == (None, None)
    assert some.slope["n"] == pytest.approx(24 * rate, rel=0.1)
    assert some.predictions[0].mean == pytest.approx(3 * np.exp(rate * 30), rel=0.3)
    assert "exp(" in show(some.mean)


def test_powers_of_two() -> None:
    x = np.arange(1.0, 21.0)
    law = learn([Series("s", 2.0**x, {"n": x})])[0].law
    assert (law.family, show(law.mean)) == ("exponential", "1*exp(0.693147*n)")


def test_a_right_shape_is_rarely_called_wrong() -> None:
    rng = generator(52)
    laws = [one.law for truth, _ in TRUTHS.values() for one in learn([draw(truth, 0.2, 30, rng)[0] for _ in range(40)])]
    p = [law.lack_of_fit for law in laws if law.lack_of_fit is not None]
    at_most(sum(one < 0.05 for one in p), len(p), 0.05)


def test_a_wrong_shape_is_told_and_nothing_is_extrapolated() -> None:
    rng = generator(53)
    x = np.geomspace(10, 1e4, 60)
    wave = x * (1 + 0.5 * np.sin(2.0 * np.log(x))) * np.exp(0.02 * rng.standard_normal(60))
    law = learn([Series("s", wave, {"n": x})])[0].law
    assert law.family == "piecewise" or (law.verdict == "inconclusive" and "misses the shape" in law.reason)


def test_replicates_are_used_where_there_are_some() -> None:
    rng = generator(54)
    x = np.repeat(np.geomspace(10, 1e4, 5), 4)
    bent = np.exp(0.3 * (np.log(x) - 5) ** 2) * np.exp(0.02 * rng.standard_normal(20))
    straight = [x * np.exp(0.02 * rng.standard_normal(20)) for _ in range(40)]
    worse, *fine = (one.law for one in learn([Series("s", y, {"n": x}) for y in (bent, *straight)]))
    assert all(law.lack_of_fit is not None for law in fine)
    at_most(sum(law.lack_of_fit < 0.01 for law in fine), 40, 0.02)
    assert worse.verdict == "inconclusive"
    assert worse.lack_of_fit is None or worse.lack_of_fit < 0.01


def test_perfect_laws_have_no_test() -> None:
    assert learn([Series("s", 3 * SIZES, {"n": SIZES})])[0].law.lack_of_fit is None


def test_rank_ratio_is_a_test() -> None:
    rng = generator(55)
    at_most(sum(p_of_rank_ratio(rng.standard_normal(15)) < 0.05 for _ in range(400)), 400, 0.06)


def test_replicate_test_is_a_test() -> None:
    rng = generator(56)
    size = np.repeat(np.arange(6), 4)
    columns = np.column_stack([np.ones(24), size])
    hits = 0
    for _ in range(400):
        y = rng.standard_normal(24)
        residual = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        hits += p_of_replicates(residual, np.ones(24), size, 2) < 0.05
    at_most(hits, 400, 0.05)
