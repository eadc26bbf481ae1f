"""Borders that observations have in common, and how useful more of them would be (Algorithms 1 to 3)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import distinct_shares
from perflaw.learn.paths.durations import total
from perflaw.learn.paths.stable import mean_shift, stable_borders, utility
from perflaw.types import Observed
from tests.conftest import first
from tests.learn.observing import observe

from .duration_data import NULLS, SCENARIOS, SHAPES, correlated, observed_changing, observed_of, two_modes

OURS, PAPERS = MiningOptions(), MiningOptions(paper=True)


def bimodal(rng, n=1000, slow=0.4, factor=1.0):
    """n durations of two lognormal modes about 1 and 5 µs."""
    return factor * np.where(
        rng.random(n) < slow, rng.lognormal(np.log(5000), 0.2, n), rng.lognormal(np.log(1000), 0.2, n)
    )


def one_mode(rng, n=1000):
    return rng.lognormal(np.log(2000), 0.3, n)


@pytest.mark.parametrize("scenario", first(1, SCENARIOS))
def test_planted_borders_are_found_while_durations_change(scenario):
    for seed in range(8):
        rng = np.random.default_rng([4, seed])
        observed, share = observed_changing(rng, two_modes(rng), scenario)
        stable = stable_borders(observed, OURS)
        assert stable.stable
        assert stable.observations == len(stable.matches) == 20
        [found] = stable.quantiles
        assert abs(found - share) < 0.05


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("observations", [1, 3, 20])
def test_one_mode_is_one_cluster(name, observations):
    make, tick = NULLS[name]
    rng = np.random.default_rng([5, observations])
    stable = stable_borders(observed_of([(make(rng, 1000), 0) for _ in range(observations)], tick), OURS)
    assert stable.borders == stable.quantiles == ()
    assert stable.stable == (observations > 1)


@pytest.mark.parametrize("slow", first(1, [0.1, 0.4, 0.8]))
def test_a_border_between_kinds_that_lie_far_apart_is_amid_them(slow):
    for seed in range(10):
        rng = np.random.default_rng([8, seed])
        each = []
        for _ in range(9):
            # Some quick calls are interrupted.
            quick = rng.lognormal(np.log(1100), 0.03, 1000) + np.where(
                rng.random(1000) < 0.004, rng.exponential(9000, 1000), 0
            )
            each.append((np.where(rng.random(1000) < slow, rng.lognormal(np.log(86_000), 0.05, 1000), quick), 0))
        stable = stable_borders(observed_of(each, 1.0), OURS)
        [border] = stable.borders
        # Both kinds stay on their sides where the machine is four times slower or quicker.
        assert 4 * 1200 < border < 75_000 / 4
        assert abs(stable.quantiles[0] - (1 - slow)) < 0.02


@pytest.mark.slow
def test_a_few_calls_that_are_disturbed_do_not_move_the_border_between_kinds_far_apart():
    # A twentieth is slow, and another one was disturbed: both borders are one to ε, and the kinds are what is told.
    for seed in range(10):
        rng = np.random.default_rng([11, seed])
        each = []
        for _ in range(9):
            quick = rng.lognormal(np.log(1900), 0.03, 3000) * np.where(rng.random(3000) < 0.045, 1.9, 1.0)
            each.append((np.where(rng.random(3000) < 0.06, rng.lognormal(np.log(140_000), 0.05, 3000), quick), 0))
        stable = stable_borders(observed_of(each, 1.0), OURS)
        [border] = stable.borders
        assert 4 * 1900 < border < 140_000 / 4
        assert abs(stable.quantiles[0] - 0.94) < 0.01


def test_autocorrelated_durations_have_no_stable_borders_of_their_own():
    for seed, shape in enumerate([*SHAPES.values()] * 3):
        y = correlated(np.random.default_rng([6, seed]), 8000, 0.99, shape)
        assert stable_borders(observed_of([(part, 0) for part in np.split(y, 8)], 1.0), OURS).borders == ()


def test_modes_are_found_though_calls_that_follow_each_other_are_alike():
    found = 0
    for seed in range(5):
        rng = np.random.default_rng([7, seed])
        slow = np.repeat(rng.random(500) < 0.4, 40)
        y = np.where(slow, 5000.0, 1000.0) * rng.lognormal(0, 0.2, slow.size)
        stable = stable_borders(observed_of([(part, 0) for part in np.split(y, 20)], 1.0), OURS)
        found += len(stable.borders) == 1 and 1500 < stable.borders[0] < 4000
    assert found >= 4


def beside_others(rng, kinds, observations=12, calls=1000):
    """Two busy halves of a core: stretches of calls are 1.9 times as slow, in a share that changes; a run of half a minute."""
    each = []
    for _ in range(observations):
        share, y = rng.uniform(0.2, 0.8), kinds(rng, calls)
        slow = np.concatenate([np.full(40, rng.random() < share) for _ in range(calls // 40)])
        each.append((np.where(slow, 1.9, 1.0) * y, 0))
    observed = observed_of(each, 1.0)
    wall = observed.observations[-1].end_ns - observed.observations[0].start_ns
    return replace(observed, queued_ns={"1": wall // 2})


def test_calls_that_a_busy_machine_slows_down_are_no_kind_of_their_own():
    def fetch(rng, n):
        return np.where(rng.random(n) < 0.24, rng.lognormal(np.log(140_000), 0.05, n), rng.lognormal(7.4, 0.08, n))

    for seed in range(8):
        rng = np.random.default_rng([9, seed])
        stable = stable_borders(beside_others(rng, fetch), OURS)
        assert stable.stable
        [border] = stable.borders
        assert 5000 < border < 100_000
        assert "machine" in stable.notes[0]
        [one] = stable_borders(beside_others(rng, lambda rng, n: rng.lognormal(7.4, 0.08, n)), OURS).notes
        assert "machine" in one


@pytest.mark.slow
def test_kinds_of_calls_are_told_apart_on_a_busy_machine():
    def near(rng, n):
        return np.where(rng.random(n) < 0.4, 1.9, 1.0) * rng.lognormal(7.4, 0.08, n)

    for seed in range(8):
        observed = observed_of([(near(np.random.default_rng([10, seed, i]), 1000), 0) for i in range(12)], 1.0)
        for queued in ({}, {"1": observed.observations[-1].end_ns}):
            stable = stable_borders(replace(observed, queued_ns=queued), OURS)
            assert len(stable.borders) == 1
            assert not stable.notes


def test_a_mix_that_changes_on_a_quiet_machine_shows_its_kinds():
    def kinds(rng, n):
        return rng.lognormal(7.4, 0.08, n)

    stable = stable_borders(replace(beside_others(np.random.default_rng(0), kinds), queued_ns={"1": 1000}), OURS)
    assert len(stable.borders) == 1
    assert not stable.notes


def test_every_host_has_borders_of_its_own():
    rng = np.random.default_rng(0)
    each = [(bimodal(rng, factor=1.0 + 2.0 * (i % 2)), i % 2) for i in range(12)]
    stable = stable_borders(observed_of(each, 1.0), OURS)
    assert stable.platform_borders is not None
    [here], [there] = stable.platform_borders[0], stable.platform_borders[1]
    assert there / here == pytest.approx(3.0, rel=0.2)
    assert stable.borders == stable.platform_borders[0]


def test_a_host_of_few_calls_has_borders_at_the_same_share():
    rng = np.random.default_rng(0)
    each = [*((bimodal(rng), 0) for _ in range(5)), (bimodal(rng, 200, factor=10.0), 1)]
    stable = stable_borders(observed_of(each, 1.0), OURS)
    assert stable.platform_borders is not None
    [border] = stable.platform_borders[1]
    assert 12_000 < border < 45_000
    assert stable.observations == 5


def test_one_observation_is_no_stability():
    stable = stable_borders(observed_of([(bimodal(np.random.default_rng(0)), 0)], 1.0), OURS)
    assert len(stable.borders) == 1
    assert not stable.stable


def test_too_few_calls_make_no_claim():
    stable = stable_borders(observed_of([(bimodal(np.random.default_rng(0), 400), 0)] * 2, 1.0), OURS)
    assert (stable.borders, stable.stable, stable.observations, stable.points) == ((), False, 0, 800)
    assert "too few" in stable.notes[0]
    nothing = Observed("work", "time", "ns", (), (), ())
    assert stable_borders(nothing, OURS).points == 0
    assert utility(nothing, stable_borders(nothing, OURS), 0) == 1.0


def test_small_observations_are_taken_together():
    rng = np.random.default_rng(0)
    stable = stable_borders(observed_of([(bimodal(rng, 150), 0) for _ in range(42)], 1.0), OURS)
    assert stable.observations == 6
    assert stable.stable
    assert len(stable.borders) == 1


def test_a_clock_that_stands_still_is_told():
    stable = stable_borders(observed_of([(np.zeros(1000), 0)] * 3, 1e6), OURS)
    assert stable.borders == ()
    assert "no time by this clock" in stable.notes[0]


def test_call_paths_and_scales_do_not_matter():
    rng = np.random.default_rng(3)
    y, now = bimodal(rng, 6000), np.arange(6000)
    alone = observed_of([], 1.0)
    by_path = [observe(y, number, now, scale=scale) for number, scale in ((np.zeros(6000, int), 10), (now % 7, 5))]
    one, other = (stable_borders(replace(alone, observations=some), OURS) for some in by_path)
    assert one.quantiles == pytest.approx(other.quantiles, abs=0.01)
    assert one.points == other.points == 6000


def test_the_papers_reading_finds_the_border_and_many_more():
    rng = np.random.default_rng(0)
    observed = observed_of([(bimodal(rng), 0) for _ in range(10)], 1.0)
    stable = stable_borders(observed, PAPERS)
    assert len(stable.borders) > 3
    assert min(abs(share - 0.6) for share in stable.quantiles) < 0.05
    assert (np.diff(stable.quantiles) > 0).all()


@given(st.lists(st.floats(0, 1), max_size=30).map(sorted), st.floats(0.01, 0.2))
def test_borders_that_stay_are_apart_and_the_others_have_a_match_on_the_left(shares, epsilon):
    kept = distinct_shares(shares, epsilon)
    share = np.array(shares)
    assert (np.diff(share[kept]) >= epsilon).all()
    for i in set(range(share.size)) - set(kept.tolist()):
        gap = share[i] - share[kept]
        near = ((gap >= 0) & (gap < epsilon)).any()
        assert near or share[i] < epsilon or share[i] > 1 - epsilon


@pytest.mark.parametrize("seed", range(10))
def test_mean_shift_is_that_of_scikit_learn(seed):
    from sklearn.cluster import MeanShift  # takes seconds

    rng = np.random.default_rng(seed)
    x = np.concatenate([centre + rng.normal(0, 0.01, int(rng.integers(1, 30))) for centre in np.arange(0.1, 1, 0.2)])
    x = rng.permutation(x)
    theirs = MeanShift(bandwidth=0.05).fit(x[:, None])
    order = np.argsort(np.argsort(theirs.cluster_centers_[:, 0]))
    assert mean_shift(x, 0.05).tolist() == order[theirs.labels_].tolist()


@given(st.lists(st.floats(0, 1), max_size=60), st.floats(1e-3, 0.5))
def test_mean_shift_orders_any_numbers(values, bandwidth):
    x = np.array(values)
    label = mean_shift(x, bandwidth)
    order = np.argsort(x, kind="stable")
    assert (np.diff(label[order]) >= 0).all()
    assert label.size == x.size


def history(rng, kinds):
    """Observed, one observation for each letter: b has two modes, o has one."""
    return observed_of([(bimodal(rng) if kind == "b" else one_mode(rng), 0) for kind in kinds], 1.0)


@pytest.mark.parametrize(
    ("kinds", "first"),
    [
        ("bbbbb", 0),
        ("bbbbo", None),
        ("obbbbbbbbb", 1),
        ("ooooo", 0),
        ("o" * 8 + "b" * 10, 8),
        ("b" * 12 + "o" * 10, 12),
    ],
)
def test_utility_falls_while_observations_match(kinds, first):
    observed = history(np.random.default_rng(len(kinds)), kinds)
    stable = stable_borders(observed, OURS)
    end = observed.observations[-1].end_ns
    if first is None:
        assert utility(observed, stable, end) == 1.0
        return
    length = end - observed.observations[first].start_ns
    assert utility(observed, stable, end) == 0.0
    assert utility(observed, stable, end + length // 4) == pytest.approx(0.25, abs=1e-6)
    assert utility(observed, stable, end + 5 * length) == 1.0
    assert utility(observed, stable, end - length) == 0.0


def test_what_other_hosts_showed_before_counts_as_well():
    rng = np.random.default_rng(1)
    observed = observed_of([(bimodal(rng, factor=1.0 + 2.0 * (i >= 12)), int(i >= 12)) for i in range(24)], 1.0)
    end, start = observed.observations[-1].end_ns, observed.observations[0].start_ns
    assert utility(observed, stable_borders(observed, OURS), end + (end - start) // 2) == pytest.approx(0.5, abs=0.01)


def test_observations_close_by_calls_and_by_time():
    ends = np.r_[np.arange(1000), 10_000 + np.arange(500)] * 1000
    y, path = np.full(1500, 10.0), np.arange(1500) % 3
    by_calls = observe(y, path, ends, 600)
    assert [sum(map(total, one.paths.values())) for one in by_calls] == [600, 600, 300]
    by_time = observe(y, path, ends, 10_000, longest_ns=10**6)
    assert [one.end_ns for one in by_time] == [999_000, 10_499_000]
    assert all(sorted(one.paths) == sorted(one.path_batches) == [0, 1, 2] for one in by_time)
    assert [one.batches.batches[0] for one in by_time] == [1000, 500]
    assert observe([], [], []) == ()
