"""Intervals cover what they say, for runs too."""

from __future__ import annotations

import numpy as np
import pytest

from perflaw.learn.series import Series, learn
from tests.conftest import examples, first
from tests.learn.law_data import TRUTHS, at_least, at_most, covered, draw, generator


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("name", first(7, TRUTHS))
def test_coverage_at_twice_the_percentile(name: str, noise: float) -> None:
    truth, _ = TRUTHS[name]
    rng = generator(30, len(name), int(noise * 100))
    for n, count in ((10, examples(120)), (20, examples(120)), (30, examples(120)), (100, examples(60))):
        data, means = zip(*(draw(truth, noise, n, rng) for _ in range(count)), strict=True)
        at_least(covered(learn(data), means), count, 0.93, f"{name}, noise {noise}, n {n}")


def test_where_one_law_remains_coverage_is_the_nominal_one() -> None:
    rng, hits, count = generator(31), 0, 0
    for truth, _ in TRUTHS.values():
        data, means = zip(*(draw(truth, 0.05, 30, rng) for _ in range(examples(150))), strict=True)
        single = [(one, mean) for one, mean in zip(learn(data), means, strict=True) if not one.law.alternatives]
        hits += covered([one for one, _ in single], [mean for _, mean in single])
        count += len(single)
    at_least(hits, count, 0.93)
    at_most(hits, count, 0.97)


def test_a_new_run_falls_into_its_interval() -> None:
    rng, hits = generator(32), 0
    data = [
        Series("s", 2 * x * np.exp(0.2 * rng.standard_normal(20)), {"n": x}) for x in [np.geomspace(10, 1e4, 20)] * 300
    ]
    for one in learn(data):
        first = one.law.predictions[0]
        hits += first.new_low <= 2 * first.features["n"] * np.exp(0.2 * rng.standard_normal()) <= first.new_high
        assert first.new_low <= first.mean_low <= first.mean <= first.mean_high <= first.new_high
    at_least(hits, 300, 0.93)


@pytest.mark.parametrize("exponent", first(1, [0.0, 1.0]))
def test_three_runs_of_a_thousand_are_three_replicates(exponent: float) -> None:
    """A naive 95 % interval covers 31 % here."""
    rng, runs, means, data = generator(33, int(exponent)), np.repeat(np.arange(3), 1000), [], []
    for _ in range(examples(100)):
        x = rng.choice(np.geomspace(10, 1e4, 20), 3000)
        level = np.exp(0.03 * rng.standard_normal(3))[runs]
        data.append(Series("s", x**exponent * level * np.exp(0.1 * rng.standard_normal(3000)), {"n": x}, runs=runs))
        means.append((2 * np.percentile(x, 95)) ** exponent * np.exp(0.03**2 / 2 + 0.1**2 / 2))
    laws = learn(data)
    at_least(covered(laws, means), len(laws), 0.93)
    assert all(one.law.runs == 3 and one.law.n == 3000 for one in laws)


def test_sizes_that_vary_between_runs() -> None:
    rng, means, data = generator(34), [], []
    size = np.resize([100.0, 300, 1000, 3000, 10000], 15)
    for _ in range(examples(150)):
        level = size * np.exp(0.1 * rng.standard_normal(15))
        y = np.repeat(level, 40) * np.exp(0.2 * rng.standard_normal(600))
        x = np.repeat(size, 40)
        data.append(Series("s", y, {"n": x}, runs=np.repeat(np.arange(15), 40)))
        means.append(2 * np.percentile(x, 95) * np.exp(0.1**2 / 2 + 0.2**2 / 2))
    laws = learn(data)
    at_least(covered(laws, means), len(laws), 0.93)
    at_least(sum(one.law.family == "linear" for one in laws), len(laws), 0.9)


def test_one_run_gives_a_law_and_says_so() -> None:
    x = np.geomspace(10, 1e4, 30)
    y = 2 * x * np.exp(0.05 * generator(35).standard_normal(30))
    law = learn([Series("s", y, {"n": x}, runs=np.zeros(30))])[0].law
    assert (law.verdict, law.runs) == ("law", 1)
    assert "one run" in law.reason


def test_slope_intervals_cover() -> None:
    rng, hits = generator(36), 0
    x = np.geomspace(10, 1e4, 20)
    for one in learn([Series("s", x**1.3 * np.exp(0.1 * rng.standard_normal(20)), {"n": x}) for _ in range(200)]):
        hits += one.law.slope_low["n"] <= 1.3 <= one.law.slope_high["n"]
    at_least(hits, 200, 0.93)


def test_predictions_are_never_negative() -> None:
    x = np.linspace(1, 10, 12)
    for one in learn([Series("s", 10 - 0.9 * x, {"n": x}), Series("s", 5 - x, {"n": x})]):
        for p in one.law.predictions:
            assert 0 <= p.new_low <= p.mean_low <= p.mean <= p.mean_high <= p.new_high
