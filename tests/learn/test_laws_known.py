"""Laws of data whose truth is known: the right family, slope and verdict, whatever the units."""

from __future__ import annotations

import numpy as np
import pytest

from perflaw.errors import DataError
from perflaw.learn.series import Learnt, Series, learn
from tests.conftest import first
from tests.learn.law_data import TRUTHS, at_least, at_most, draw, generator

SIZES = np.array([10.0, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000])


def one(y: np.ndarray, **features: np.ndarray) -> Learnt:
    return learn([Series("s", y, features or {"n": SIZES})])[0]


@pytest.mark.parametrize(("noise", "bar"), first(1, [(0.05, 0.98), (0.0, 1.0), (0.2, 0.85)]))
def test_right_family(noise: float, bar: float) -> None:
    rng, hits, count = generator(1, int(noise * 100)), 0, 0
    for truth, right in TRUTHS.values():
        for n in (10, 20, 30):
            laws = learn([draw(truth, noise, n, rng)[0] for _ in range(40)])
            hits += sum(learnt.law.family in right for learnt in laws)
            count += len(laws)
    if bar == 1.0:
        assert hits == count
    at_least(hits, count, bar, f"right family at noise {noise}")


@pytest.mark.parametrize("name", TRUTHS)
def test_slope_of_cost_functions(name: str) -> None:
    """Within 0.05 at 5 % noise, at the upper end of the data."""
    truth, _ = TRUTHS[name]
    rng, near = generator(2, len(name)), 0
    data = [draw(truth, 0.05, 20, rng)[0] for _ in range(60)]
    for series, learnt in zip(data, learn(data), strict=True):
        top = series.features["n"].max() * np.array([1 - 1e-6, 1 + 1e-6])
        ends = truth(np.array([series.features["n"].min(), *top]))[1:]
        near += abs(learnt.law.slope["n"] - np.log(ends[1] / ends[0]) / np.log(top[1] / top[0])) < 0.05
    at_least(near, 60, 0.97, name)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
def test_unit_of_the_response_does_not_matter(scale: float) -> None:
    rng = generator(3)
    data = [
        draw(truth, noise, n, rng)[0] for truth, _ in TRUTHS.values() for noise in (0, 0.05, 0.2) for n in (5, 10, 30)
    ]
    other = [Series("s", one.y * scale, one.features) for one in data]
    for a, b in zip(learn(data), learn(other), strict=True):
        assert (a.law.family, a.law.verdict) == (b.law.family, b.law.verdict)
        for name in ("slope", "slope_low", "slope_high"):
            assert getattr(a.law, name)["n"] == pytest.approx(getattr(b.law, name)["n"], abs=1e-5)
        assert a.law.noise.distribution == b.law.noise.distribution
        assert a.law.predictions[1].mean_high * scale == pytest.approx(b.law.predictions[1].mean_high, rel=1e-5)


def test_quantum_scales_with_the_unit() -> None:
    y = np.round(3.0 * SIZES + generator(4).normal(0, 2, SIZES.size))
    a, b = learn([Series("s", y, {"n": SIZES}, quantum=1.0), Series("s", y * 1e-9, {"n": SIZES}, quantum=1e-9)])
    assert a.law.family == b.law.family
    assert a.law.noise.scale >= 1 / np.sqrt(12) or a.law.noise.distribution == "lognormal"


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.2, 2.0, 3.0])
def test_unit_of_the_feature_does_not_matter_to_powers(exponent: float) -> None:
    y = SIZES**exponent * np.exp(0.01 * generator(5).standard_normal(SIZES.size))
    a, b = one(y).law, one(y, n=SIZES * 1000).law
    assert a.slope["n"] == pytest.approx(b.slope["n"], abs=0.05)
    assert a.features == b.features == ("n",)


def test_the_same_input_gives_the_same_output_alone_and_in_a_batch() -> None:
    rng = generator(6)
    data = [draw(truth, 0.2, n, rng)[0] for truth, _ in TRUTHS.values() for n in (5, 10, 17, 30)]
    together = [learnt.law for learnt in learn(data)]
    assert together == [learnt.law for learnt in learn(data)]
    assert together == [learn([series])[0].law for series in data]


def test_five_points_of_a_perfect_square_are_a_law() -> None:
    learnt = one(3.0 * SIZES[:5] ** 2, n=SIZES[:5]).law
    assert (learnt.family, learnt.verdict, learnt.alternatives) == ("quadratic", "law", ())
    assert (learnt.exponent, learnt.log_exponent, learnt.intercept) == (2.0, 0.0, None)
    assert learnt.coefficient == pytest.approx(3.0)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fewer_are_inconclusive_and_say_what_to_do(n: int) -> None:
    law = one(3.0 * SIZES[:n] ** 2, n=SIZES[:n]).law
    assert law.verdict == "inconclusive"
    assert "--vary n=" in law.reason
    assert law.family == ("quadratic" if n > 1 else "constant")


def test_two_sizes_however_often_are_too_few() -> None:
    x = np.repeat([100.0, 1000.0], 10)
    law = one(x * np.exp(0.05 * generator(7).standard_normal(20)), n=x).law
    assert law.verdict == "inconclusive"
    assert "too few sizes (2)" in law.reason


def test_three_sizes_repeated_three_times_are_a_law() -> None:
    x = np.repeat([100.0, 1000.0, 10000.0], 3)
    rng = generator(8)
    laws = learn([Series("s", x**2 * np.exp(0.05 * rng.standard_normal(9)), {"n": x}) for _ in range(50)])
    at_least(sum(learnt.law.verdict == "law" and learnt.law.family == "quadratic" for learnt in laws), 50, 0.95)


def test_the_feature_that_matters_is_found_and_the_first_of_equals_wins() -> None:
    rng, right = generator(9), 0
    for _ in range(30):
        features = {"z": rng.uniform(1, 100, 10), "n": SIZES, "copy": 8.0 * SIZES}
        right += one(SIZES**2 * np.exp(0.05 * rng.standard_normal(10)), **features).law.features == ("n",)
    at_least(right, 30, 0.97)


def test_decreasing_costs_have_negative_exponents() -> None:
    law = one(1e5 / SIZES * np.exp(0.02 * generator(10).standard_normal(SIZES.size))).law
    assert law.slope["n"] == pytest.approx(-1, abs=0.1)
    assert all(p.mean_low >= 0 and p.new_low >= 0 for p in law.predictions)


def test_zeros_and_negatives_are_additive_data() -> None:
    law = one(np.where(SIZES < 100, 0.0, 3 * SIZES)).law
    assert law.noise.distribution == "normal"
    assert one(3 * SIZES - 500.0).law.family == "linear"


def test_n_log_n_from_one_on() -> None:
    """At x = 1 the term is 0: the law without intercept is left to additive noise, with intercept nothing changes."""
    x = np.array([1.0, *SIZES])
    assert one(x * np.log(x), n=x).law.family == "nlogn"
    law = one((50 + x * np.log(x)) * np.exp(0.005 * generator(11).standard_normal(x.size)), n=x).law
    assert (law.family, law.noise.distribution) == ("nlogn", "lognormal")
    assert law.intercept == pytest.approx(50, rel=0.2)


def test_sizes_from_zero_on() -> None:
    x = np.arange(20.0)
    law = one((5 + 3 * x) * np.exp(0.03 * generator(12).standard_normal(20)), n=x).law
    assert law.slope["n"] == pytest.approx(57 / 62, abs=0.15)


def test_a_law_of_lognormal_noise_predicts_the_mean() -> None:
    rng = generator(13)
    y = 7.0 * SIZES[:, None] * np.exp(0.5 * rng.standard_normal((10, 200)))
    law = one(y.ravel(), n=np.repeat(SIZES, 200)).law
    assert law.predictions[0].mean == pytest.approx(7 * np.exp(0.125) * law.predictions[0].features["n"], rel=0.06)


def test_points_asked_for_are_answered_in_order() -> None:
    learnt = learn([Series("s", 2 * SIZES, {"n": SIZES})], at=[{"n": 1e6}, {"n": 10.0}])[0]
    assert [p.mean for p in learnt.law.predictions] == pytest.approx([2e6, 20.0])
    assert learnt.predict([{"n": 1e6}]) == [learnt.law.predictions[0]]
    assert learnt.mean({"n": np.array([1.0, 5.0])}) == pytest.approx([2.0, 10.0])
    assert np.abs(learnt.residuals()).max() < 1e-9
    curve = learnt.curve("n", 10, 1000, 5)
    assert curve.x == pytest.approx((10, 10**1.5, 100, 10**2.5, 1000))
    assert curve.mean == pytest.approx(tuple(2 * x for x in curve.x))


def test_default_points_are_beyond_the_95th_percentile() -> None:
    learnt = one(2 * SIZES)
    assert [p.features["n"] for p in learnt.law.predictions] == pytest.approx([2 * 8000 * 0.96875, 10 * 7750])
    assert learnt.predict([p.features for p in learnt.law.predictions]) == list(learnt.law.predictions)


def test_a_point_without_the_feature_is_refused() -> None:
    with pytest.raises(DataError, match="does not say it"):
        learn([Series("s", 2 * SIZES, {"n": SIZES})], at=[{"k": 1.0}])
    with pytest.raises(DataError, match="does not depend on 'k'"):
        one(2 * SIZES).curve("k", 1, 2, 3)


@pytest.mark.parametrize("y", [[1.0, np.nan], [1.0, np.inf], []])
def test_numbers_that_are_none_are_refused(y: list[float]) -> None:
    with pytest.raises(DataError):
        Series("s", np.array(y), {})


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="expected"):
        Series("s", np.ones(3), {"n": np.ones(2)})
    with pytest.raises(DataError, match="run labels"):
        Series("s", np.ones(3), {"n": np.ones(3)}, runs=np.array(["a"]))


def test_twenty_percent_noise_on_ten_points_is_no_excuse() -> None:
    rng = generator(14)
    for name, (truth, _) in TRUTHS.items():
        laws = learn([draw(truth, 0.2, 10, rng)[0] for _ in range(60)])
        at_most(sum(learnt.law.verdict == "inconclusive" for learnt in laws), 60, 0.25, name)
