"""What cannot be learnt from: clear refusals and notes; and overtaking points at the edge of what laws say."""

import numpy as np
import pytest

from perflaw.errors import DataError
from perflaw.laws.printing import show
from perflaw.learn.trend import TrendOptions, trend
from tests.learn.trend_data import by_name, cluster

N = np.array([100.0, 200, 400, 800, 1600, 3200, 6400, 12800])
COUNTS = np.array([10 * N, N**2 / 50, np.full(8, 7.0), np.zeros(8), 3 * N + 5])
NAMES = [f"a.c:{row}" for row in range(5)]


@pytest.mark.parametrize(
    ("counts", "names", "features", "words"),
    [
        (COUNTS[:, :1], NAMES, {"n": N[:1]}, "one run tells no trend"),
        (COUNTS[:, :2], NAMES, {"n": N[:2]}, "2 runs tell no trend"),
        (-COUNTS, NAMES, {"n": N}, "a.c:0"),
        (COUNTS * np.nan, NAMES, {"n": N}, "a.c:0"),
        (COUNTS * 1e100, NAMES, {"n": N}, "squares"),
        (COUNTS, NAMES[:3], {"n": N}, "expected 3 rows"),
        (COUNTS[0], NAMES, {"n": N}, "shape"),
        (COUNTS, NAMES, {"n": N[:3]}, "feature n has shape"),
        (COUNTS, NAMES, {"n": N * np.inf}, "feature n is infinite"),
    ],
)
def test_what_is_no_matrix_is_refused(counts, names, features, words):
    with pytest.raises(DataError, match=words):
        trend(counts, names, features)


@pytest.mark.parametrize("at", [[{"q": 1e6}], [{"n": np.nan}], [{}], [{"n": 1.0, "q": 2.0}]])
def test_points_of_no_feature_are_refused(at):
    with pytest.raises(DataError):
        trend(COUNTS, NAMES, {"n": N}, at)


@pytest.mark.parametrize(
    "options", [{"alpha": 0.0}, {"alpha": 0.5}, {"alpha": np.nan}, {"sigma": -1.0}, {"sigma": np.nan}]
)
def test_options_the_theorem_does_not_hold_for_are_refused(options):
    with pytest.raises(DataError):
        TrendOptions(**options)


def test_a_designated_location_has_to_be_one():
    with pytest.raises(DataError, match="no location 99"):
        trend(COUNTS, NAMES, {"n": N}, options=TrendOptions(representatives=(99,)))
    with pytest.raises(DataError, match="a feature and a location"):
        trend(COUNTS, NAMES, {"a.c:0": N}, options=TrendOptions(representatives=(0,)))
    still = trend(COUNTS, NAMES, {"n": N}, options=TrendOptions(representatives=(2,)))
    assert "location a.c:2 is left out as a feature: it is 7 in all runs" in still.notes


@pytest.mark.parametrize(("runs", "words"), [(3, "only 3 runs differ"), (4, "only 4 runs differ")])
def test_few_runs_are_told_and_claim_nothing(runs, words):
    found = trend(COUNTS[:, :runs], NAMES, {"n": N[:runs]}, options=TrendOptions(nonzero=3))
    assert any(words in note for note in found.notes)
    assert all(one.laws["n"].verdict == "inconclusive" for one in found.clusters)


def test_two_workloads_repeated_make_clusters_that_mean_nothing():
    found = trend(COUNTS[:, [0, 1, 0, 1]], NAMES, {"n": N[[0, 1, 0, 1]]}, options=TrendOptions(nonzero=3))
    assert any("mean nothing" in note for note in found.notes)
    assert all(one.laws["n"].verdict != "law" for one in found.clusters)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"n": np.full(8, 4.0)}, "feature n is left out: it is 4 in all runs"),
        ({"n": np.full(8, np.nan)}, "feature n is left out: no run has it"),
        ({"n": np.where(np.arange(8) < 2, N, np.nan)}, "feature n is left out: only 2 runs have it"),
        ({}, "no feature varies"),
    ],
)
def test_features_that_explain_nothing_leave_clusters_without_laws(features, words):
    found = trend(COUNTS, NAMES, features)
    assert by_name(found) == {"a.c:1": ("a.c:1",), "a.c:0": ("a.c:0", "a.c:4")}
    assert any(words in note for note in found.notes)
    assert found.features == ()
    assert all(one.law is None and not one.laws and one.predicted is None for one in found.clusters)
    assert found.by_prediction == (1, 2)


def test_runs_that_do_not_say_a_feature_are_left_out_of_its_laws():
    late = np.where(np.arange(8) == 3, np.nan, 2 * N)
    found = trend(COUNTS, NAMES, {"n": N, "late": late})
    first = found.clusters[0]
    assert (first.laws["n"].n, first.laws["late"].n) == (8, 7)
    assert show(first.laws["late"].mean) == "0.005*late^2"
    assert found.values["late"][3] is None
    assert first.residuals["late"][3] is None
    assert any("late is missing in 1 of 8 runs" in note for note in found.notes)
    # It cannot represent: correlations with it are of other runs than all others.
    assert by_name(found) == {"a.c:1": ("a.c:1",), "n": ("a.c:0", "a.c:4")}
    alone = trend(COUNTS, NAMES, {"late": late})
    assert set(by_name(alone)) == {"a.c:1", "a.c:0"}
    assert alone.clusters[0].law.family == "quadratic"


def test_more_features_than_runs():
    rng = np.random.default_rng(1)
    features = {f"f{i}": np.exp(rng.standard_normal(8)) for i in range(20)}
    found = trend(COUNTS, NAMES, {**features, "n": N})
    quadratic = cluster(found, "a.c:1")
    assert len(quadratic.laws) == 21
    assert quadratic.laws["n"].family == "quadratic"
    assert quadratic.law.features == ("n",)


def test_nothing_runs_or_nothing_varies():
    for counts, zero, constant in ((0 * COUNTS, 5, 0), (0 * COUNTS + 3, 0, 5), (np.zeros((0, 8)), 0, 0)):
        found = trend(counts, NAMES[: len(counts)], {"n": N})
        assert (found.clusters, found.by_prediction) == ((), ())
        assert (found.zero, found.constant) == (zero, constant)
        assert "all runs have the same counts: nothing varies" in found.notes


def test_a_quadratic_cluster_overtakes_a_line_above_it_and_says_when():
    # 100 n against n²/300: they meet at n = 30,000, beyond the data.
    noise = np.exp(0.03 * np.random.default_rng(1).standard_normal((2, 30)))
    size = np.geomspace(100, 12_800, 30)
    found = trend(np.rint([100 * size, size**2 / 300] * noise), ["line", "square"], {"n": size})
    first, second = found.clusters
    assert [one.representative for one in found.clusters] in (["line", "square"], ["n", "square"])
    (passed,) = second.overtakes
    assert passed.at == pytest.approx(30_000, rel=0.1)
    assert 12_800 < passed.low < 30_000 < passed.high < 60_000
    assert not first.overtakes
    paper = trend(
        np.rint([100 * size, size**2 / 300] * noise), ["line", "square"], {"n": size}, options=TrendOptions(paper=True)
    )
    assert paper.clusters[1].overtakes[0].at == pytest.approx(30_000, rel=0.1)


def test_a_crossing_beyond_any_sane_size_is_none():
    size = np.geomspace(100, 12_800, 30)
    never = trend(np.rint([1e6 * size, size**1.5]), ["line", "more"], {"n": size})
    assert [one.overtakes for one in never.clusters] == [(), ()]
    asked = trend(np.rint([1e6 * size, size**1.5]), ["line", "more"], {"n": size}, [{"n": 1e13}])
    assert asked.by_prediction == (2, 1)
    (passed,) = asked.clusters[1].overtakes  # who asks that far is told what is there
    assert passed.at == pytest.approx(1e12, rel=0.01)


def test_a_law_needs_six_runs_with_a_count_above_zero():
    size = np.geomspace(100, 12_800, 12)
    rare = np.where(np.arange(12) < 8, 0.0, np.exp(np.arange(12) * 2.0))  # four runs above 0: any curve fits them
    found = trend([50 * size, rare], ["line", "rare"], {"n": size})
    line, four = cluster(found, "n"), cluster(found, "rare")
    assert line.laws["n"].verdict == "law"
    assert (four.law, dict(four.laws), dict(four.powers), four.predicted, four.overtakes) == (None, {}, {}, None, ())
    fewer = trend([50 * size, rare], ["line", "rare"], {"n": size}, options=TrendOptions(nonzero=4))
    assert cluster(fewer, "rare").laws["n"].features
    assert any("5 runs are fewer than the 6" in note for note in trend(COUNTS[:, :5], NAMES, {"n": N[:5]}).notes)


def test_only_laws_that_rank_and_are_established_overtake():
    rng = np.random.default_rng(4)
    size = np.geomspace(1e4, 1e6, 12)
    wild = size**1.5 * np.exp(1.2 * rng.standard_normal(12))
    found = trend(np.rint([2e5 * size, wild]), ["line", "wild"], {"n": size}, at=[{"n": 1e12}])
    one = cluster(found, "wild")
    assert one.law.verdict == "inconclusive"
    assert (one.predicted_rank, one.overtakes) == (1, ())  # ranked by the power law, which claims no crossing


def test_a_law_in_several_features_overtakes_where_the_others_stay():
    n, mixed = (values.ravel() for values in np.meshgrid(np.geomspace(50, 2000, 6), [10.0, 30, 60]))
    counts = np.rint([200 * n, 1e-3 * n**2 * mixed])
    found = trend(counts, ["line", "both"], {"n": n, "mixed": mixed}, at=[{"n": 1e5, "mixed": 50}])
    both = cluster(found, "both")
    assert set(both.law.features) == {"n", "mixed"}
    passed = {one.feature: one.at for one in both.overtakes}
    assert passed["n"] == pytest.approx(200 / 1e-3 / 50, rel=0.02)  # at mixed = 50, where clusters are ranked
    assert both.predicted_rank == 1


@pytest.mark.parametrize("full", [2, 100])
def test_progress_grows_to_the_whole(full):
    n, m = np.array([10.0, 20, 40, 80, 160, 320, 640, 1280]), np.array([7.0, 3, 9, 4, 8, 1, 2, 6])
    told: list[float] = []
    counts = np.array([np.round(n**power + (power * 100) * m**2) for power in (1.0, 1.4, 1.8, 2.2)])
    trend(counts, list("abcd"), {"n": n, "m": m}, None, TrendOptions(full=full, progress=told.append))
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    assert len(told) >= 3
