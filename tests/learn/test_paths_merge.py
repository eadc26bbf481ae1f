"""Comparing and merging models of runs, builds and machines (RQ1, RQ2)."""

from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from perflaw.errors import DataError
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.merge import agreeing, aligned_borders, consistency, matching, merge
from perflaw.learn.paths.mine import mine
from tests.conftest import examples
from tests.learn.path_data import planted
from tests.learn.path_models import SEMOP, model, observed

NOW = 10**18


def p(*names):
    return ("m", *names, "f")


@cache
def mined(*arguments, **options):
    return mine(observed(*arguments, **options), MiningOptions(), NOW)


def calls_of(spec):
    return dict(zip(spec.paths, spec.path_counts, strict=True))


def quarantined(spec):
    return {spec.paths[place] for group in spec.groups if group.standing == "quarantined" for place in group.paths}


def test_groups_are_matched_as_by_scipy():
    """Also where several matchings weigh the same."""
    rng = np.random.default_rng(5)
    for number in range(400):
        shape = tuple(rng.integers(1, 8, 2))
        weights = rng.random(shape) * 100.0 if number % 2 else rng.integers(0, 4, shape) * 1.0
        expected = np.full(shape[0], -2)
        rows, columns = linear_sum_assignment(weights, maximize=True)
        expected[rows] = columns
        assert matching(weights).tolist() == expected.tolist()


def test_a_model_agrees_with_itself_beyond_chance():
    one = model([{p(f"a{i}"): (90, 10) for i in range(6)}, {p(f"b{i}"): (10, 90) for i in range(6)}])
    found = consistency(one, one)
    assert (found.paths, found.points, found.common) == (1.0, 1.0, 12)
    assert 0.5 < found.chance_paths < 0.75
    assert found.chance_points == pytest.approx(found.chance_paths)


def test_the_largest_consistent_set_is_told():
    groups = [{p("a"): (900, 100), p("b"): (9, 1)}, {p("c"): (10, 90), p("d"): (10, 90)}]
    other = [{p("a"): (900, 100)}, {p("b"): (1, 9), p("c"): (10, 90), p("d"): (10, 90)}]
    found = consistency(model(groups), model(other))
    assert found.paths == 0.75
    assert found.points == pytest.approx(1 - 20 / 2420)


def test_random_groups_agree_by_chance_only():
    rng = np.random.default_rng(0)
    paths = [p(f"x{i}") for i in range(60)]
    shares = []
    for _ in range(10):
        labels = rng.integers(0, 3, (2, 60))
        models = [
            model([{q: (1, 1) for q, g in zip(paths, some, strict=True) if g == k} for k in range(3)])
            for some in labels
        ]
        found = consistency(*models)
        shares.append(found.paths - found.chance_paths)
    assert abs(np.mean(shares)) < 0.05


@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_the_matching_is_the_best_one(data):
    n = data.draw(st.integers(1, 8))
    one, other = (np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))) for _ in range(2))
    calls = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), dtype=float)
    found = calls[agreeing(one, other, calls)].sum()
    best = max(calls[(one >= 0) & (np.array(match)[one] == other)].sum() for match in permutations(range(3)))
    assert found == best


def test_nothing_in_common_is_no_disagreement():
    found = consistency(model([{p("a"): (1, 1)}]), model([{p("b"): (1, 1)}]))
    assert (found.common, found.paths, found.points) == (0, 1.0, 1.0)


def test_different_functions_neither_compare_nor_merge():
    one, other = model([{p("a"): (1, 1)}]), model([{p("a"): (1, 1)}], component="g")
    with pytest.raises(DataError):
        consistency(one, other)
    with pytest.raises(DataError):
        merge([one, other])
    with pytest.raises(DataError):
        merge([])


def test_runs_of_one_program_agree_and_merge():
    runs = [mined(seed) for seed in range(30, 33)]
    assert min(consistency(runs[0], other).points for other in runs[1:]) == 1.0
    whole = merge(runs)
    assert whole.points == 60_000
    assert len(whole.groups) == 3
    assert len(whole.atoms) == 2
    assert not quarantined(whole)
    for path, counts in calls_of(whole).items():
        assert counts == tuple(sum(column) for column in zip(*(calls_of(run)[path] for run in runs), strict=True))


def test_a_path_on_which_runs_contradict_each_other_is_quarantined():
    usual = (0.5, 0.2, 0.5, 0.2, 0.99, 0.99)
    first, odd, third = mined(33, quick=usual), mined(34, quick=(0.99, *usual[1:])), mined(35, quick=usual)
    whole = merge([first, odd])
    assert quarantined(whole) == {SEMOP[0]}
    assert whole.points == 40_000
    again = merge([whole, third])
    assert quarantined(again) == {SEMOP[0]}
    assert consistency(whole, third).paths == pytest.approx(5 / 6)


def test_a_run_of_few_calls_quarantines_nothing():
    """It cannot tell 41 % from 35 %; that is no contradiction."""
    whole = merge([mined(30), mined(37, n=1200)])
    assert not quarantined(whole)
    assert len(whole.groups) == 3


def test_platforms_keep_their_own_borders_and_behaviours():
    slower = mined(38, host="there", scale=5.0)
    whole = merge([mined(31), slower])
    assert [one.host for one in whole.platforms] == ["here", "there"]
    assert whole.platform_borders[1] == pytest.approx(slower.borders)
    assert len(whole.groups) == 3
    assert all(set(group.behaviours) == {0, 1} for group in whole.groups)
    assert np.array(whole.platform_counts[1]).sum() == 20_000


def test_one_host_and_build_is_one_platform():
    other = mined(32)
    whole = merge([mined(31), replace(other, platforms=(replace(other.platforms[0], tick=25.0),))])
    assert [(one.host, one.tick) for one in whole.platforms] == [("here", 25.0)]
    assert whole.platform_borders is None
    assert whole.groups[0].behaviours is None


def three(seed):
    """Models of three runs of one planted case; the second on another machine."""
    case = planted(np.random.default_rng(seed), most=40)
    clusters = case.counts.shape[1]
    quantiles = tuple(np.cumsum(case.counts.sum(axis=0))[:-1] / case.counts.sum())
    rng = np.random.default_rng(seed)
    for run in range(3):
        counts = rng.binomial(case.counts, 0.5) + 1
        groups = [
            {case.paths[i]: counts[i].tolist() for i in np.flatnonzero(case.labels == label)}
            for label in sorted(set(case.labels.tolist()))
        ]
        borders = tuple(100.0 * 4**k for k in range(clusters - 1))
        yield model(groups, borders=borders, quantiles=quantiles, host="there" if run == 1 else "here")


@pytest.mark.slow
@settings(max_examples=examples(5), deadline=None)
@given(seed=st.integers(0, 2**31))
@example(seed=38178)  # two borders whose shares differ by less than ε
def test_neither_the_order_nor_the_grouping_of_merges_matters(seed):
    a, b, c = three(seed)
    whole = merge([a, b, c])
    assert all(merge(some) == whole for some in ([c, b, a], [b, c, a]))
    for steps in (merge([merge([a, b]), c]), merge([a, merge([b, c])])):
        assert calls_of(steps) == calls_of(whole)
        assert steps.platform_counts == whole.platform_counts
        assert steps.quantiles == whole.quantiles
        assert np.allclose(steps.borders, whole.borders)
        assert quarantined(steps) == quarantined(whole)
    assert merge([a]) == a


def test_a_function_that_one_build_has_inlined_is_left_out():
    plain = model([{p("a"): (9000, 1000), p("b", "help"): (9000, 1000)}, {p("c"): (1000, 9000)}])
    inlined = model([{p("a"): (9000, 1000), p("b"): (9000, 1000)}, {p("c"): (1000, 9000)}], build="optimised")
    assert consistency(plain, inlined).common == 3
    whole = merge([plain, inlined])
    assert set(whole.paths) == {p("a"), p("b"), p("c")}
    assert calls_of(whole)[p("b")] == (18_000, 2000)
    assert any("help" in note for note in whole.notes)


def test_callers_that_were_not_recorded_are_left_out():
    """The loop in a running program records more levels of callers in one run than in another."""
    further = model([{p("a", "item"): (9000, 1000)}, {p("b", "item"): (1000, 9000)}])
    nearer = model([{p("item"): (10_000, 10_000)}])
    assert consistency(further, nearer).common == 1
    assert set(merge([further, nearer]).paths) == {p("item")}


def test_a_function_that_nobody_came_by_is_kept():
    """Of one build: a path that was not taken is no inlining. Of two: only where a path looks like another without it."""
    taken = model([{p("a"): (9000, 1000), p("b", "help"): (9000, 1000)}, {p("c"): (1000, 9000)}])
    for build in ("b", "other"):
        missing = model([{p("a"): (9000, 1000)}, {p("c"): (1000, 9000)}], build=build)
        assert consistency(taken, missing).common == 2
        assert p("b", "help") in merge([taken, missing]).paths


def test_borders_match_by_the_share_below_or_on_one_platform_by_durations():
    one = model([{p("a"): (5, 3, 2)}], borders=(100.0, 900.0), quantiles=(0.5, 0.8))
    moved = replace(one, quantiles=(0.52, 0.7))
    assert aligned_borders([one, moved], 0.05) == [(0, 0), (1, 1)]
    elsewhere = replace(moved, platforms=(replace(one.platforms[0], host="there"),))
    assert aligned_borders([one, elsewhere], 0.05) == [(0, 0)]
    fewer = model([{p("a"): (8, 2)}], borders=(50_000.0,), quantiles=(0.8,), host="there")
    assert aligned_borders([one, fewer], 0.05) == [(1, 0)]


def test_borders_that_one_model_lacks_are_left_out_with_a_note():
    one = model([{p("a"): (500, 300, 200)}, {p("b"): (100, 100, 800)}], borders=(100.0, 900.0), quantiles=(0.3, 0.5))
    fewer = model([{p("a"): (800, 200)}, {p("b"): (200, 800)}], borders=(900.0,), quantiles=(0.5,))
    whole = merge([one, fewer])
    assert whole.borders == pytest.approx((900.0,))
    assert calls_of(whole) == {p("a"): (1600, 400), p("b"): (400, 1600)}
    assert any("borders" in note for note in whole.notes)


def test_models_without_calls_add_their_notes():
    empty = replace(model([{p("a"): (1, 1)}]), groups=(), paths=(), path_counts=(), points=0, notes=("perturbed: …",))
    whole = merge([empty, model([{p("a"): (10, 10)}])])
    assert (whole.points, whole.notes) == (20, ("perturbed: …",))
    assert merge([empty, empty]).notes == ("perturbed: …",)


def test_a_run_that_found_no_borders_takes_nothing_from_those_that_did():
    groups = [{p("a"): (900, 100), p("b"): (900, 100)}, {p("c"): (100, 900)}]
    blurred = model([{p("a"): (1000,), p("b"): (1000,), p("c"): (1000,)}], borders=(), quantiles=())
    found = merge([model(groups), blurred, model(groups)])
    assert found.borders == pytest.approx((100.0,))
    assert calls_of(found)[p("a")] == (1800, 200)
    assert len(found.groups) == 2
    assert "1 of 3 found no borders: their calls are left out" in found.notes
