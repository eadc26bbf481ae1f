"""Borders of histograms of durations: planted ones are found, and unimodal or autocorrelated durations have none."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perflaw.learn.paths.borders import borders_of, paper_borders
from perflaw.learn.paths.durations import (
    autocorrelation_time,
    batches_of,
    edges,
    histogram_of,
    independent_calls,
    merged_batches,
)
from perflaw.types import Batches, Histogram
from tests.conftest import examples, first

from .duration_data import NULLS, SHAPES, clocked, correlated, mixture, scored, several


def scores(n, count, found_by):
    """Precision and recall over random mixtures of n points."""
    sums = np.zeros(4)
    for seed in range(count):
        rng = np.random.default_rng([1, n, seed])
        mixed = mixture(rng)
        sums += scored(found_by(rng, mixed.drawn(rng, n), mixed.tick), mixed)
    right, wrong, missed, sure = sums
    assert sure >= count
    return right / (right + wrong), 1 - missed / sure


@pytest.mark.parametrize(("n", "bar"), first(2, [(1000, 0.98), (10_000, 0.99)]))
def test_planted_borders_are_found(n, bar):
    precision, recall = scores(n, 100, lambda _, y, tick: borders_of(histogram_of(y), tick))
    assert precision >= bar
    assert recall >= bar


@pytest.mark.slow
def test_planted_borders_are_found_in_merged_histograms():
    precision, recall = scores(1000, 100, lambda rng, y, tick: borders_of(several(rng, y), tick))
    assert precision >= 0.98
    assert recall >= 0.97


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize(("n", "seeds"), [(1000, 8), (10_000, 4), (100_000, 2), (1_000_000, 1)])
def test_one_mode_has_no_border(name, n, seeds):
    make, tick = NULLS[name]
    for seed in range(seeds):
        rng = np.random.default_rng([2, n, seed])
        y = make(rng, n)
        assert borders_of(histogram_of(y), tick).size == 0
        assert borders_of(several(rng, y, 5), tick).size == 0


@pytest.mark.slow
def test_autocorrelated_durations_have_no_false_borders():
    right = wrong = undeflated = 0
    for seed in range(40):
        rng = np.random.default_rng([3, seed])
        mixed = mixture(rng)
        y = clocked(rng, correlated(rng, 1000, 0.9, mixed.quantile), mixed.tick)
        h = histogram_of(y)
        counts = scored(borders_of(h, mixed.tick, independent_calls(batches_of(y), 1000)), mixed)
        right, wrong = right + counts[0], wrong + counts[1]
        for shape in SHAPES.values():
            y = correlated(rng, 1000, 0.99, shape)
            h = histogram_of(y)
            wrong += borders_of(h, 1.0, independent_calls(batches_of(y), 1000)).size
            undeflated += borders_of(h, 1.0).size
    assert right >= 10
    assert right / (right + wrong) >= 0.95
    assert undeflated > 10


def test_a_clock_that_stands_still_shows_nothing():
    assert borders_of(histogram_of(np.zeros(5000)), 40.0).size == 0
    assert borders_of(histogram_of(np.full(5000, 80.0)), 40.0).size == 0
    assert borders_of(histogram_of([]), 1.0).size == 0


@pytest.mark.parametrize("told", [3.0, 10.0047, 41.7])
def test_a_step_that_is_not_the_clocks_makes_no_border(told):
    for seed, (centre, width) in enumerate([(300, 0.3), (300, 0.05), (1000, 0.5), (3000, 0.1)] * 3):
        rng = np.random.default_rng([8, seed])
        y = np.round(centre * rng.lognormal(0, width, 10_000))
        assert borders_of(histogram_of(y), told).size == 0
        assert borders_of(several(rng, y, 5), told).size == 0


def test_calls_too_short_for_the_clock_are_a_cluster_beside_long_ones():
    rng = np.random.default_rng(0)
    y = clocked(rng, np.r_[rng.lognormal(0, 0.3, 600), rng.lognormal(8, 0.3, 400)], 40.0)
    for tick in (40.0, 0.0):
        [border] = borders_of(histogram_of(y), tick)
        assert 10 < border < 1500


def test_few_independent_calls_are_no_evidence():
    y = np.r_[np.full(500, 100.0), np.full(500, 200.0)] * np.random.default_rng(0).lognormal(0, 0.1, 1000)
    assert borders_of(histogram_of(y), 1.0).size == 1
    assert borders_of(histogram_of(y), 1.0, 12.0).size == 0


def test_the_papers_borders_are_all_minima_of_the_gradient():
    h = Histogram(0, 0, np.array([4, 2, 16, 8, 64]))
    gradient = h.counts / np.diff(edges(h))
    assert gradient.tolist() == [4, 1, 4, 1, 4]
    assert paper_borders(h) == pytest.approx([2**1.5, 2**3.5])


COUNTS = st.lists(st.integers(0, 10**6), max_size=60)


@settings(max_examples=examples(80), deadline=None)
@given(COUNTS, st.integers(-70, 12), st.integers(-(10**7), 10**7), st.integers(0, 10**6), st.floats(0, 1e6))
def test_any_histogram_will_do(counts, scale, offset, zeros, tick):
    h = Histogram(scale, offset, np.array(counts, dtype=np.int64), zeros)
    found = borders_of(h, tick)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()
    assert np.isfinite(paper_borders(h)).all()


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_the_autocorrelation_time_is_that_of_the_process(phi):
    y = correlated(np.random.default_rng(0), 200_000, phi, lambda share: np.exp(7 + stats.norm.ppf(share)))
    assert autocorrelation_time([batches_of(y)]) == pytest.approx((1 + phi) / (1 - phi), rel=0.25)


def test_what_changes_between_stretches_is_no_correlation_within_them():
    rng = np.random.default_rng(0)
    stretches = [batches_of(10.0**i * rng.lognormal(5, 1, 1000)) for i in range(8)]
    assert autocorrelation_time(stretches) < 1.5
    assert autocorrelation_time([merged_batches(stretches)]) > 50


def test_long_correlation_leaves_few_independent_calls():
    y = correlated(np.random.default_rng(1), 10_000, 0.99, SHAPES["lognormal σ 0.5"])
    assert 30 < independent_calls(batches_of(y), 10_000) < 150


@given(st.lists(st.lists(st.floats(0, 1e300), max_size=70), max_size=5))
@settings(deadline=None)
def test_batches_add_up_in_any_order(stretches):
    batches = [batches_of(y) for y in stretches]
    whole = merged_batches(batches)
    for other in (merged_batches(batches[::-1]), merged_batches([merged_batches(batches[:2]), *batches[2:]])):
        assert asdict(other) == asdict(whole)
    assert whole.batches[:1] in ((), (sum(map(len, stretches)),))
    assert 0 <= independent_calls(whole, 100.0) <= 100


def test_damaged_sums_do_no_harm():
    assert independent_calls(Batches((50, 40), (10**30, 5), (3, 10**25)), 50) == 50
    assert independent_calls(Batches((), (), ()), 7) == 7


def test_two_neighbouring_steps_of_the_clock_may_be_one_duration():
    for low, high in ((0.0, 10.0), (10.0, 20.0), (40.0, 50.0)):
        assert borders_of(histogram_of([low, high] * 5000), 10.0).size == 0
    (found,) = borders_of(histogram_of([10.0, 20.0, 90.0, 100.0] * 5000), 10.0)
    assert 25 < found < 85
