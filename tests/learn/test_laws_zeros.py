"""Counts with zeros: whether it runs at all, times how often."""

from __future__ import annotations

import numpy as np
import pytest

from perflaw.laws.evaluation import evaluate
from perflaw.learn.series import Series, learn
from tests.learn.law_data import at_least, at_most, generator

SIZES = np.geomspace(10, 1e4, 40)


def test_a_share_of_zeros_and_a_law() -> None:
    rng, right, inside = generator(60), 0, 0
    data = []
    for _ in range(40):
        run = rng.random(40) < 0.6
        data.append(Series("s", np.where(run, 5 * SIZES * np.exp(0.1 * rng.standard_normal(40)), 0.0), {"n": SIZES}))
    for one in learn(data):
        at = one.law.predictions[0]
        right += one.law.family == "linear" and one.law.slope["n"] == pytest.approx(1.0, abs=0.1)
        inside += at.mean_low <= 0.6 * 5 * at.features["n"] * np.exp(0.005) <= at.mean_high
    at_least(right, 40, 0.8)
    at_least(inside, 40, 0.93)


def test_a_chance_that_grows() -> None:
    rng, right = generator(61), 0
    data = []
    for _ in range(30):
        run = rng.random(40) < 1 / (1 + np.exp(8 - 1.5 * np.log(SIZES)))
        data.append(Series("s", np.where(run, 100 * np.exp(0.1 * rng.standard_normal(40)), 0.0), {"n": SIZES}))
    laws = learn(data)
    right = sum(one.law.family in ("product", "piecewise") for one in laws)
    at_least(right, 30, 0.8)
    product = next(one for one in laws if one.law.family == "product")
    grid = np.geomspace(20, 1e5, 30)
    said = evaluate(product.law.mean, {"n": grid})
    assert said == pytest.approx(product.mean({"n": grid}), rel=1e-3)
    assert product.law.predictions[1].mean == pytest.approx(100, rel=0.3)


def test_zeros_by_chance_are_constant() -> None:
    rng = generator(62)
    data = []
    for _ in range(200):
        run = rng.random(40) < 0.5
        data.append(Series("s", np.where(run, 7 * np.exp(0.2 * rng.standard_normal(40)), 0.0), {"n": SIZES}))
    at_most(sum(one.law.family != "constant" for one in learn(data)), 200, 0.05)


def test_zeros_that_the_law_leads_to_need_no_second_part() -> None:
    x = np.repeat(np.arange(1.0, 13.0), 3)
    law = learn([Series("s", 3 * (x - 1), {"n": x})])[0].law
    assert (law.family, law.features) == ("linear", ("n",))
    assert law.predictions[0].mean == pytest.approx(3 * (law.predictions[0].features["n"] - 1))


def test_a_new_row_may_be_zero() -> None:
    rng, zero, lasting = generator(63), 0, 0
    data = [Series("s", np.where(rng.random(40) < 0.5, 5 * SIZES, 0.0), {"n": SIZES}) for _ in range(40)]
    for one in learn(data):
        at = one.law.predictions[0]
        zero += at.new_low == 0
        assert at.mean_low <= at.mean <= at.mean_high <= at.new_high
        assert one.residuals().shape == (40,)
        lasting += one.curve("n", 10, 1e4, 5).mean[-1] > 0
    at_least(zero, 40, 0.9)
    at_least(lasting, 40, 0.95)


def test_no_falling_power_of_a_feature_that_is_zero() -> None:
    """At 0 it would be infinite, and one that hardly differs from 0 only tells 0 from all other numbers."""
    rng = generator(5)
    x = np.repeat([0.0, 1.0, 2.0, 4.0, 7.0, 12.0], 20)
    y = np.where(x == 0, 5000.0, 100.0) * np.exp(0.05 * rng.standard_normal(x.size))
    law = learn([Series("s", y, {"x": x})])[0].law
    for told in (law, *law.alternatives):
        assert not (told.family == "power" and told.slope["x"] < 0.1), told.expression
