"""Laws of several features: known truths are found on random workloads, useless features are not, classes are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.laws.evaluation import evaluate
from perflaw.laws.printing import show
from perflaw.learn.series import Learnt, Options, Series, learn
from perflaw.learn.series.collinear import reduce_collinear, unexplained_variation
from perflaw.learn.series.term_search import Candidate, search_sums
from perflaw.learn.series.terms import Sample
from tests.conftest import examples, first
from tests.learn.law_data import at_least, at_most, generator

TRUTHS: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], str]] = {
    "3xz + 5x": (lambda x, z: 3 * x * z + 5 * x, "sum"),
    "5x + 3z": (lambda x, z: 5 * x + 3 * z, "sum"),
    "2xz": (lambda x, z: 2 * x * z, "product"),
    "x z^2": (lambda x, z: x * z**2, "product"),
}


def workload(rng: np.random.Generator, features: int, n: int) -> dict[str, np.ndarray]:
    """Random sizes over three decades, no grid: features x, z, a, b, …"""
    return {"xzabcdefgh"[i]: 10 ** rng.uniform(0, 3, n) for i in range(features)}


def series(name: str, noise: float, n: int, rng: np.random.Generator, features: int = 2) -> Series:
    x = workload(rng, features, n)
    return Series("s", TRUTHS[name][0](x["x"], x["z"]) * np.exp(noise * rng.standard_normal(n)), x)


def errors(name: str, noise: float, laws: list[Learnt], place: int) -> list[float]:
    """Relative errors of the mean at one of the predictions."""
    asked = [one.law.predictions[place] for one in laws]
    truth = TRUTHS[name][0]
    means = [float(truth(np.array(p.features["x"]), np.array(p.features["z"]))) * np.exp(noise**2 / 2) for p in asked]
    return [abs(p.mean / mean - 1) for p, mean in zip(asked, means, strict=True)]


@pytest.mark.parametrize("name", TRUTHS)
def test_truth_is_found_without_noise(name: str) -> None:
    rng = np.random.default_rng([41, len(name)])
    laws = learn([series(name, 0.0, n, rng) for n in (10, 20, 40)])
    for one in laws:
        assert (one.law.family, set(one.law.features), one.law.verdict) == (TRUTHS[name][1], {"x", "z"}, "law")
    assert max(errors(name, 0.0, laws, 1)) < 1e-6


def test_predictions_say_every_feature_also_of_a_law_of_one() -> None:
    rng = generator(40)
    x = workload(rng, 6, 30)
    law = learn([Series("s", 3 * x["z"], x)])[0].law
    assert law.features == ("z",)
    tops = {name: np.percentile(values, 95) for name, values in x.items()}
    for factor, one in zip((2, 10), law.predictions, strict=True):
        assert one.features == pytest.approx({name: factor * top for name, top in tops.items()})
        assert one.mean == pytest.approx(3 * one.features["z"])


@pytest.mark.parametrize("n", first(1, [10, 30, 100]))
def test_interaction_is_predicted_within_three_percent(n: int) -> None:
    rng = generator(42, n)
    laws = learn([series("3xz + 5x", 0.05, n, rng) for _ in range(30)])
    at_least(sum(error <= 0.03 for error in errors("3xz + 5x", 0.05, laws, 1)), 30, 0.5, f"n = {n}")
    at_least(sum(set(one.law.features) == {"x", "z"} for one in laws), 30, 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("name", first(1, TRUTHS))
def test_intervals_cover_the_mean(name: str) -> None:
    rng = generator(43, len(name))
    laws = learn([series(name, 0.05, 20, rng) for _ in range(40)])
    inside = 0
    for one in laws:
        near = one.law.predictions[0]
        mean = TRUTHS[name][0](np.array(near.features["x"]), np.array(near.features["z"])) * np.exp(0.05**2 / 2)
        inside += near.mean_low <= mean <= near.mean_high
        assert 0 <= near.new_low <= near.mean_low <= near.mean <= near.mean_high <= near.new_high
    at_least(inside, 40, 0.93, name)


def test_the_expression_is_one_a_person_would_write() -> None:
    x = np.array([1.0, 3, 10, 40, 100, 300, 700, 20, 60, 5])
    z = np.array([50.0, 2, 700, 9, 30, 400, 5, 100, 1, 250])
    law = learn([Series("f", 3 * x * z + 5 * x, {"x": x, "z": z})])[0].law
    assert show(law.mean) == "3*x*z + 5*x"
    assert show(law.expression).startswith("LogNorm(3*x*z + 5*x, ")
    assert (law.family, law.features, law.verdict, law.intercept) == ("sum", ("x", "z"), "law", None)
    assert law.slope["x"] == pytest.approx(1.0)
    assert law.slope["z"] == pytest.approx(3 * 700 / (3 * 700 + 5), rel=1e-6)
    assert law.range == {"x": (1.0, 700.0), "z": (1.0, 700.0)}


def test_a_power_product_has_the_slopes_of_the_truth() -> None:
    rng = np.random.default_rng(44)
    x = workload(rng, 2, 60)
    law = learn([Series("f", 2 * x["x"] ** 1.3 * x["z"] ** 0.7 * np.exp(0.02 * rng.standard_normal(60)), x)])[0].law
    assert law.family == "product"
    assert law.slope["x"] == pytest.approx(1.3, abs=0.05)
    assert law.slope_low["z"] < 0.7 < law.slope_high["z"]


def test_sizes_over_threads_fall() -> None:
    rng = np.random.default_rng(45)
    x = {"n": 10 ** rng.uniform(2, 5, 40), "threads": rng.integers(1, 33, 40).astype(float)}
    law = learn([Series("f", 7 * x["n"] / x["threads"] * np.exp(0.05 * rng.standard_normal(40)), x)])[0].law
    assert law.slope["n"] == pytest.approx(1.0, abs=0.1)
    assert law.slope["threads"] == pytest.approx(-1.0, abs=0.15)


def test_flags_and_counts_of_calls_are_features() -> None:
    rng = np.random.default_rng(60)
    n, calls, flag = 10 ** rng.uniform(1, 4, 120), rng.integers(0, 4, 120) * 1.0, rng.integers(0, 2, 120) * 1.0
    noise = np.exp(0.05 * rng.standard_normal(120))
    counted, flagged = (
        one.law
        for one in learn(
            [
                Series("f", (5000 + 3000 * calls + 2 * n) * noise, {"calls.db": calls, "n": n}),
                Series("f", (100 * flag * n + 50 * n) * noise, {"flag": flag, "n": n}),
            ]
        )
    )
    assert (counted.family, counted.verdict) == ("sum", "law")
    assert counted.intercept == pytest.approx(5000, rel=0.1)
    assert (set(flagged.features), flagged.verdict) == ({"flag", "n"}, "law")


def test_additive_noise_is_seen() -> None:
    rng = np.random.default_rng(46)
    x = {"x": rng.uniform(100, 1000, 80), "z": rng.uniform(100, 1000, 80)}
    law = learn([Series("f", 50 * x["x"] + 80 * x["z"] + 1500 * rng.standard_normal(80), x)])[0].law
    assert (law.family, law.noise.distribution) == ("sum", "normal")
    assert law.noise.scale == pytest.approx(1500, rel=0.4)


def test_negative_responses_are_no_trouble() -> None:
    rng = np.random.default_rng(47)
    x = {"x": rng.uniform(0, 100, 50), "z": rng.uniform(0, 100, 50)}
    law = learn([Series("f", 5 * x["x"] - 4 * x["z"] + rng.standard_normal(50), x)])[0].law
    assert set(law.features) == {"x", "z"}
    assert all(p.mean >= 0 for p in law.predictions)


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_useless_features_stay_out(noise: float, n: int) -> None:
    rng = generator(48, n, int(100 * noise))
    data = []
    for _ in range(30):
        x = workload(rng, 10, n)
        data.append(Series("s", (100 + x["x"]) * np.exp(noise * rng.standard_normal(n)), x))
    at_most(sum(bool(set(one.law.features) - {"x"}) for one in learn(data)), 30, 0.05)


@pytest.mark.parametrize("n", [10, 20, 100])
def test_noise_of_many_features_is_constant(n: int) -> None:
    rng = generator(49, n)
    laws = learn([Series("s", np.exp(0.2 * rng.standard_normal(n)), workload(rng, 10, n)) for _ in range(15)])
    at_most(sum(one.law.family != "constant" for one in laws), 15, 0.05)
    assert all(set(one.law.slope) == set("xzabcdefgh") for one in laws if one.law.family == "constant")


def test_collinear_features_are_a_class_told_by_the_shallowest() -> None:
    rng = np.random.default_rng(50)
    n, z = 10 ** rng.uniform(0, 3, 30), 10 ** rng.uniform(0, 3, 30)
    x = {"docs.items.count": 8 * n, "docs.items.len": n, "docs.n": 2 * n + 1, "z": z}
    law = learn([Series("f", (4 * n * z) * np.exp(0.05 * rng.standard_normal(30)), x)])[0].law
    assert law.features == ("docs.n", "z")
    assert dict(law.collinear) == {"docs.n": ("docs.items.len", "docs.items.count")}
    assert set(law.range) == set(x)


@pytest.mark.slow
def test_a_feature_that_adds_too_little_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 series of one feature, with one beside it that explains nothing, few are searched for a law of both."""
    searched = []

    def recorded(sample: Sample, positive: bool, keep: int) -> list[Candidate]:
        searched.append(len(sample.x))
        return search_sums(sample, positive, keep)

    monkeypatch.setattr("perflaw.learn.series.several_features.search_sums", recorded)
    rng = generator(77)
    noise = [np.exp(0.1 * rng.standard_normal(100)) for _ in range(40)]
    inputs = [workload(rng, 2, 100) for _ in noise]
    learn([Series("s", 5 * x["x"] * scatter, x) for x, scatter in zip(inputs, noise, strict=True)])
    assert searched.count(2) <= 2
    searched.clear()
    learn([Series("s", (5 * x["x"] + 3 * x["z"]) * scatter, x) for x, scatter in zip(inputs, noise, strict=True)])
    assert searched.count(2) == 40


def test_responses_single_a_member_out_where_they_clearly_do() -> None:
    rng = np.random.default_rng(51)
    cause = np.geomspace(1, 1e4, 60)
    proxy = cause * np.exp(0.8 * rng.standard_normal(60))
    found = reduce_collinear(Series("f", 3 * cause, {"deep.down.cause": cause, "n": proxy}))
    assert dict(found.others) == {"deep.down.cause": ("n",)}


def test_independent_features_are_no_class() -> None:
    rng = generator(52)
    told = sum(bool(reduce_collinear(Series("f", np.ones(10), workload(rng, 4, 10))).others) for _ in range(300))
    at_most(told, 300, 0.03)


def test_runs_are_the_replicates() -> None:
    rng = np.random.default_rng(53)
    run = np.repeat(np.arange(8), 25)
    x = workload(rng, 2, 200)
    y = (3 * x["x"] * x["z"] + 5 * x["x"]) * np.exp(0.2 * rng.standard_normal(8)[run] + 0.02 * rng.standard_normal(200))
    shared, alone = (one.law for one in learn([Series("f", y, x, run), Series("f", y, x)]))
    assert (shared.runs, set(shared.features)) == (8, {"x", "z"})

    def width(law: object) -> float:
        near = law.predictions[0]
        return float((near.mean_high - near.mean_low) / near.mean)

    assert width(shared) > 1.5 * width(alone)


def test_a_feature_of_runs_that_explains_little_is_not_established_by_invocations() -> None:
    rng = generator(54)
    found = 0
    for _ in range(20):
        run, x = np.repeat(np.arange(6), 30), 10 ** rng.uniform(0, 3, 180)
        y = 3 * x * np.exp(0.1 * rng.standard_normal(6)[run] + 0.05 * rng.standard_normal(180))
        law = learn([Series("f", y, {"x": x, "knob": rng.uniform(1, 9, 6)[run]}, run)])[0].law
        found += "knob" in law.features
    at_most(found, 20, 0.05)


def test_a_missing_feature_is_suspected_aloud() -> None:
    rng = np.random.default_rng(55)
    run = np.repeat(np.arange(12), 5)
    n = np.repeat(np.tile([100.0, 1000.0, 10000.0], 4), 5)
    mode = np.repeat(np.array([1.0, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]), 5)
    quiet = Series("f", 3 * n * np.exp(0.02 * rng.standard_normal(60)), {"n": n}, run)
    assert "missing" in learn([replace(quiet, y=quiet.y * mode)])[0].law.reason
    assert "missing" not in learn([quiet])[0].law.reason


def test_a_few_percent_between_runs_are_no_missing_feature() -> None:
    rng = np.random.default_rng(56)
    run = np.repeat(np.arange(12), 5)
    y = np.exp(0.03 * rng.standard_normal(12)[run] + 0.002 * rng.standard_normal(60))
    assert unexplained_variation(Series("f", y, {"n": np.ones(60)}, run), lambda: y - 1.0) is None


@pytest.mark.slow
@settings(max_examples=examples(8), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(["3xz + 5x", "5x + 3z", "2xz"]),
    units=st.tuples(*(st.sampled_from([1e-9, 1e-3, 1.0, 1e6]) for _ in range(3))),
)
def test_units_change_nothing_and_the_same_input_gives_the_same_law(
    seed: int, name: str, units: tuple[float, float, float]
) -> None:
    one = series(name, 0.02, 24, np.random.default_rng(seed))
    first, second = (found.law for found in learn([one, one]))
    assert first == second
    x, z, y = units
    if "log" in show(first.mean):
        return  # x log x of another unit is x log x + c·x
    other = learn([Series("s", one.y * y, {"x": one.features["x"] * x, "z": one.features["z"] * z})])[0].law
    if "log" in show(other.mean) or x < 1 or z < 1:
        return
    assert (other.family, other.features, other.noise.distribution) == (
        first.family,
        first.features,
        first.noise.distribution,
    )


def test_extreme_features_give_finite_laws() -> None:
    rng = np.random.default_rng(57)
    x = {"x": 10 ** rng.uniform(-60, 60, 30), "z": rng.integers(0, 2, 30).astype(float), "c": np.full(30, 7.0)}
    law = learn([Series("f", np.abs(rng.standard_normal(30)) * x["x"] ** 0.1 + x["z"], x)])[0].law
    assert all(np.isfinite([p.mean, p.mean_low, p.mean_high, p.new_low, p.new_high]).all() for p in law.predictions)


def test_a_law_of_several_features_can_be_asked_and_drawn() -> None:
    learnt = learn([series("5x + 3z", 0.0, 30, np.random.default_rng(58))])[0]
    assert learnt.mean({"x": [10.0, 20.0], "z": [1.0, 2.0]}) == pytest.approx([53.0, 106.0])
    curve = learnt.curve("x", 1.0, 100.0, 5)
    middle = float(np.median(learnt.rows.series.features["z"]))
    assert curve.mean == pytest.approx([5 * x + 3 * middle for x in curve.x])
    assert np.abs(learnt.residuals()).max() < 1e-6


def test_what_is_printed_is_what_is_predicted() -> None:
    rng = np.random.default_rng(59)
    for name in TRUTHS:
        one = series(name, 0.05, 30, rng)
        x = {"argv[1]": one.features["x"], "self.items.len": one.features["z"]}
        learnt = learn([Series("f", one.y, x)])[0]
        printed = evaluate(learnt.law.mean, x)
        assert printed == pytest.approx(learnt.mean(x), rel=1e-4), show(learnt.law.mean)


def test_laws_of_several_features_can_be_left_out() -> None:
    one = series("5x + 3z", 0.0, 30, np.random.default_rng(61))
    assert len(learn([one], None, Options(several=False))[0].law.features) == 1
