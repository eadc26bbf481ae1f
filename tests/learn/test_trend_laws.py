"""Laws of clusters: the paper's power law against references, truths inside intervals, null data, repeats, zeros."""

import numpy as np
import pytest
from scipy.stats import linregress, t

from perflaw.learn.trend import TrendOptions, trend
from perflaw.learn.trend.power_laws import power_laws
from tests.learn.law_data import at_least, at_most, generator
from tests.learn.trend_data import bubble, cluster, planted

EACH = TrendOptions()
PAPER = TrendOptions(paper=True)


def one_power(costs, x, points=(), options=EACH, workload=None):
    """Power law of a single cost."""
    workload = np.arange(len(x)) if workload is None else workload
    return power_laws(np.array([costs]), np.asarray(x, float), "n", workload, points, options)[0]


def test_the_power_law_is_the_least_squares_line_on_logarithms():
    rng = np.random.default_rng(1)
    x = 10 ** rng.uniform(1, 5, 40)
    y = 3.0 * x**1.3 * np.exp(0.3 * rng.standard_normal(40))
    law, line = one_power(y, x, [1e6]), linregress(np.log(x), np.log(y))
    half = t.ppf(0.975, 38)
    assert law.exponent == pytest.approx(line.slope)
    assert law.coefficient == pytest.approx(np.exp(line.intercept))
    assert law.r2 == pytest.approx(line.rvalue**2)
    assert law.exponent_low == pytest.approx(line.slope - half * line.stderr)
    assert law.exponent_high == pytest.approx(line.slope + half * line.stderr)
    assert law.coefficient_low == pytest.approx(np.exp(line.intercept - half * line.intercept_stderr))
    assert law.residuals == pytest.approx(np.log(y) - line.intercept - line.slope * np.log(x))
    (answer,) = law.predictions
    assert answer.features == {"n": 1e6}
    assert answer.mean == pytest.approx(np.exp(line.intercept + line.slope * np.log(1e6)))
    assert answer.new_low < answer.mean_low < answer.mean < answer.mean_high < answer.new_high


def test_zero_counts_are_left_out_of_the_power_law_and_counted():
    x = np.array([0.0, 10, 20, 40, 80, 160, np.nan])
    y = np.array([5.0, 100, 0, 1600, 6400, 25600, 7])
    law = one_power(y, x)
    assert (law.n, law.zeros) == (4, 2)
    assert law.exponent == pytest.approx(2.0)
    assert [residual is None for residual in law.residuals] == [True, False, True, False, False, False, True]


@pytest.mark.parametrize("x", [[5.0] * 4, [0.0, 0, 0, 7], [-1.0, -2, -3, 4], [0.0, 1, 2, np.nan]])
def test_there_is_no_power_law_of_one_size_or_two_workloads(x):
    assert one_power([1.0, 2, 3, 4], x) is None
    assert one_power([1.0, 2, 3, 4], [1.0, 1, 2, 2], workload=np.array([0, 0, 1, 1])) is None


def test_exponents_lie_inside_both_kinds_of_intervals():
    rng, inside, covered = generator(11), 0, 0
    exponents = rng.normal(1.1, 0.25, 120)
    counts, names, size = planted(40, exponents, 0.4, 2, seed=int(rng.integers(2**32)))
    found = trend(counts, names, {"bytes": size})
    alone = [one for one in found.clusters if len(one.members) == 2]  # outliers may bring two together
    for one in alone:
        b, power, law = exponents[one.members[0] // 2], one.powers["bytes"], one.laws["bytes"]
        inside += power.exponent_low <= b <= power.exponent_high
        covered += law.slope_low["bytes"] <= b <= law.slope_high["bytes"] if law.features else False
    assert len(alone) > 50
    at_least(inside, len(alone), 0.93, "power laws")
    # Families are fixed shapes: an exponent of 1.13 is covered because a power law stays beside the line.
    at_least(covered, len(alone), 0.93, "laws")


def test_predictions_cover_costs_of_odd_exponents():
    rng = generator(12)
    size = np.geomspace(1e3, 1e6, 40)
    a, b = 10 ** rng.uniform(1, 2, 200), rng.normal(1.0, 0.2, 200)
    counts = a[:, None] * size ** b[:, None] * np.exp(0.3 * rng.standard_normal((200, 40)))
    found = trend(np.rint(counts), [f"f:{row}" for row in range(200)], {"bytes": size})
    alone = [one for one in found.clusters if one.row is not None and len(one.members) == 1]  # outliers pair others
    rows = [one.row for one in alone]
    assert len(alone) > 50
    for place in (0, 1):  # 2 and 10 times the data's end
        laws = [one.laws["bytes"].predictions[place] for one in alone]
        powers = [one.powers["bytes"].predictions[place] for one in alone]
        median = a[rows] * laws[0].features["bytes"] ** b[rows]
        mean = median * np.exp(0.3**2 / 2)
        at_least(sum(p.mean_low <= y <= p.mean_high for p, y in zip(laws, mean, strict=True)), len(laws), 0.93)
        at_least(sum(p.mean_low <= y <= p.mean_high for p, y in zip(powers, median, strict=True)), len(laws), 0.93)


def test_noise_has_no_law():
    rng = generator(13)
    counts = rng.poisson(10_000, (400, 25)).astype(float)
    found = trend(counts, [f"f:{row}" for row in range(400)], {"n": 10 ** rng.uniform(2, 5, 25)})
    assert len(found.clusters) == 400
    at_most(sum(one.laws["n"].verdict == "law" for one in found.clusters), 400, 0.05, "laws of noise")


def test_repeats_of_a_deterministic_program_are_no_evidence():
    rng = np.random.default_rng(2)
    size = 10 ** rng.uniform(2, 5, 12)
    counts = np.rint([size**1.2 * np.exp(0.3 * rng.standard_normal(12)), 50 + rng.random(12) * 5000])
    once = trend(counts, ["a", "b"], {"n": size}).clusters
    tenfold = trend(np.repeat(counts, 10, axis=1), ["a", "b"], {"n": np.repeat(size, 10)})
    assert (tenfold.runs, tenfold.workloads) == (120, 12)
    assert any("repeat one workload" in note for note in tenfold.notes)
    for one, many in zip(once, tenfold.clusters, strict=True):
        assert many.powers["n"].exponent == pytest.approx(one.powers["n"].exponent)
        assert many.powers["n"].exponent_low == pytest.approx(one.powers["n"].exponent_low)
        assert many.laws["n"].slope_low == one.laws["n"].slope_low
        assert (many.laws["n"].mean, many.laws["n"].runs) == (one.laws["n"].mean, 12)


def test_repeats_that_differ_are_runs_of_one_workload():
    rng = np.random.default_rng(2)
    size = np.repeat(10 ** rng.uniform(2, 5, 12), 5)
    own = np.repeat(np.exp(0.3 * rng.standard_normal(12)), 5)
    found = trend(np.rint([size**1.2 * own + rng.integers(0, 3, 60)]), ["a"], {"n": size}).clusters[0]
    alone = trend(np.rint([size**1.2 * own])[:, ::5], ["a"], {"n": size[::5]}).clusters[0]
    assert (found.laws["n"].n, found.laws["n"].runs) == (60, 12)
    assert found.powers["n"].exponent_high == pytest.approx(alone.powers["n"].exponent_high, abs=0.02)


def test_zeros_make_a_two_part_law():
    rng = np.random.default_rng(3)
    size = np.geomspace(1e2, 1e5, 40)
    counts = np.rint([np.where(rng.random(40) < 0.3, 0.0, 5 * size * np.exp(0.05 * rng.standard_normal(40)))])
    (one,) = trend(counts, ["f:1"], {"n": size}).clusters
    zeros = int((counts == 0).sum())
    assert one.powers["n"].zeros == zeros > 5
    assert one.powers["n"].exponent == pytest.approx(1.0, abs=0.05)
    predicted, power = one.laws["n"].predictions[1], one.powers["n"].predictions[1]
    assert predicted.mean == pytest.approx((1 - zeros / 40) * power.mean, rel=0.1)
    assert [residual is None for residual in one.residuals["n"]] == (counts[0] == 0).tolist()


def test_the_papers_intervals_are_bootstrap_percentiles():
    rng = np.random.default_rng(5)
    x = 10 ** rng.uniform(2, 5, 60)
    y = 2 * x**1.2 * np.exp(0.4 * rng.standard_normal(60))
    law = one_power(y, x, [1e6], PAPER)
    draws = np.random.default_rng(9).integers(0, 60, (4000, 60))
    fits = np.array([np.polyfit(np.log(x[draw]), np.log(y[draw]), 1) for draw in draws])
    spread = np.ptp(np.percentile(fits[:, 0], [2.5, 97.5]))
    assert law.exponent == pytest.approx(one_power(y, x).exponent)
    low, high = np.percentile(fits[:, 0], [2.5, 97.5])
    assert (law.exponent_low, law.exponent_high) == pytest.approx((low, high), abs=0.1 * spread)
    far = np.exp(np.percentile(fits @ [np.log(1e6), 1.0], [2.5, 97.5]))
    assert (law.predictions[0].mean_low, law.predictions[0].mean_high) == pytest.approx(far, rel=0.05)
    assert law == one_power(y, x, [1e6], PAPER)


def test_the_papers_95th_percentile_is_an_order_statistic():
    counts, sizes = bubble("b", repeats=1)
    names = [f"f:{line}" for line in range(8)]
    paper = trend(counts, names, {"n": sizes}, options=PAPER)
    ours = trend(counts, names, {"n": sizes})
    assert paper.at == {"n": 4000.0}
    assert ours.at == {"n": pytest.approx(10 * np.percentile(sizes, 95))}
    first = paper.clusters[0]
    assert first.predicted == first.powers["n"].predictions[-1]
    assert [point.features["n"] for point in first.laws["n"].predictions] == [800.0, 4000.0]


def test_one_law_over_all_features_stands_beside_those_of_each():
    rng = np.random.default_rng(6)
    a, b = 10 ** rng.uniform(1, 4, 60), 10 ** rng.uniform(1, 4, 60)
    counts = np.rint([3.0 * a * b * np.exp(0.02 * rng.standard_normal(60)), a**2])
    found = trend(counts, ["f:1", "f:2"], {"a": a, "b": b}, at=[{"a": 1e5, "b": 1e5}])
    both = cluster(found, "f:1")
    assert set(both.law.features) == {"a", "b"}
    assert both.predicted.mean == pytest.approx(3e10, rel=0.1)
    assert set(both.laws) == set(both.powers) == {"a", "b"}
    # Asked about one of them only, the law of that one answers.
    some = cluster(trend(counts, ["f:1", "f:2"], {"a": a, "b": b}, at=[{"a": 1e5}]), "f:1")
    assert some.predicted.features == {"a": 1e5}
    assert some.predicted.mean == some.laws["a"].predictions[0].mean


def test_costs_are_ranked_by_the_power_law_where_no_shape_is_established():
    rng = np.random.default_rng(4)
    size = np.geomspace(1e4, 1e6, 12)
    counts = np.rint([size * np.exp(1.2 * rng.standard_normal(12)), 50 * size])
    found = trend(counts, ["wild", "tame"], {"n": size}, at=[{"n": 1e8}])
    wild, tame = cluster(found, "wild"), cluster(found, "n")
    assert (wild.law.verdict, tame.law.verdict) == ("inconclusive", "law")
    power, law = wild.powers["n"].predictions[0], wild.law.predictions[0]
    assert wild.predicted.mean == power.mean
    assert wild.predicted.mean_low == min(power.mean_low, law.mean_low)
    assert wild.predicted.mean_high == max(power.mean_high, law.mean_high)
    assert tame.predicted.mean == tame.law.predictions[0].mean == pytest.approx(5e9)


@pytest.mark.slow
def test_clusters_beyond_the_first_keep_a_law_for_every_feature():
    counts, names, size = planted(40, np.linspace(0.5, 1.5, 30), 0.4, 1, seed=8)
    features = {"bytes": size, "lines": size**0.5 * np.exp(0.3 * np.random.default_rng(1).standard_normal(40))}
    few = trend(counts, names, features, options=TrendOptions(full=2))
    lean = [one for one in few.clusters if not one.curves]
    assert lean
    assert not any(one.costly for one in lean)
    for one in lean:
        assert set(one.laws) == {"bytes", "lines"}
        assert one.law in one.laws.values()
        assert one.predicted
    full = trend(counts, names, features)
    assert [one.representative for one in full.clusters] == [one.representative for one in few.clusters]
    assert all(set(one.curves) == set(one.residuals) == {"bytes", "lines"} for one in full.clusters)


def test_same_input_same_output():
    counts, names, size = planted(30, np.linspace(0.5, 1.5, 8), 0.4, 3, seed=8)
    for options in (EACH, PAPER):
        assert trend(counts, names, {"n": size}, options=options) == trend(counts, names, {"n": size}, options=options)
