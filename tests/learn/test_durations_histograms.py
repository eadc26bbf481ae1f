"""Exponential histograms: nothing is lost in merging, in whatever order, and shares and quantiles never go back."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perflaw.errors import DataError
from perflaw.learn.paths.durations import (
    MAX_HALVINGS,
    cdf,
    clusters,
    downscaled,
    edges,
    histogram_of,
    merged,
    quantile,
    total,
)
from perflaw.types import Histogram
from perflaw.types.specifications import MOST_BUCKETS

DURATIONS = st.lists(st.floats(1e-90, 1e90) | st.floats(0, 1e9) | st.integers(0, 10**7).map(float), max_size=40)
SCALES = st.integers(-3, 10)
HISTOGRAMS = st.builds(histogram_of, DURATIONS, SCALES)


def same(one, other):
    """Whether two histograms are equal to the last count."""
    return (one.scale, one.offset, one.zeros, one.counts.tolist()) == (
        other.scale,
        other.offset,
        other.zeros,
        other.counts.tolist(),
    )


@given(DURATIONS, SCALES, st.integers(2, MOST_BUCKETS))
@example([1e-90, 1e90], 10, 2)
def test_every_call_lies_in_its_bucket(values, scale, most):
    h = histogram_of(values, scale, most)
    y = np.array(values)
    assert total(h) == y.size
    assert h.counts.size <= most
    assert h.scale <= scale
    if h.counts.size:
        bounds = edges(h)
        assert h.counts[0] > 0
        assert h.counts[-1] > 0
        assert (np.diff(bounds) >= 0).all()
        assert bounds[0] <= max(y[y > 0].min(), 1e-90) * (1 + 1e-9)
        assert bounds[-1] >= y.max() * (1 - 1e-9)


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=30))
def test_counts_are_those_of_numpy(values):
    h = histogram_of(values, 3)
    assert h.counts.tolist() == np.histogram(np.nextafter(np.array(values, float), 0), edges(h))[0].tolist()


@given(HISTOGRAMS, HISTOGRAMS, HISTOGRAMS)
@settings(deadline=None)
def test_merging_knows_no_order(a, b, c):
    whole = merged([a, b, c])
    assert total(whole) == total(a) + total(b) + total(c)
    assert same(merged([c, a, b]), whole)
    assert same(merged([merged([a, b]), c]), whole)
    assert same(merged([a, merged([b, c])]), whole)


@given(DURATIONS, DURATIONS, SCALES)
def test_merging_is_as_if_all_had_been_put_into_one(some, others, scale):
    assert same(merged([histogram_of(some, scale), histogram_of(others, scale)]), histogram_of(some + others, scale))


@given(HISTOGRAMS, HISTOGRAMS, st.integers(0, 6))
def test_downscaling_and_merging_commute(a, b, by):
    whole = merged([a, b])
    scale = whole.scale - by
    assert same(downscaled(whole, scale), merged([downscaled(a, scale), downscaled(b, scale)]))
    assert total(downscaled(a, a.scale - by)) == total(a)


@given(HISTOGRAMS, st.integers(0, 70))
def test_a_coarser_bucket_has_the_calls_of_all_that_it_consists_of(h, by):
    calls = Counter()
    for place, count in enumerate(h.counts.tolist(), h.offset):
        calls[place >> min(by, MAX_HALVINGS)] += count
    coarse = downscaled(h, h.scale - by)
    assert dict(enumerate(coarse.counts.tolist(), coarse.offset)) == calls
    assert (coarse.scale, coarse.zeros, coarse.counts.dtype) == (h.scale - by, h.zeros, np.int64)


@given(HISTOGRAMS, st.lists(st.floats(0, 1.7e308), max_size=12), st.lists(st.floats(0, 1), max_size=12))
def test_shares_and_quantiles_rise(h, places, shares):
    below = cdf(h, np.sort(places))
    assert (np.diff(below) >= 0).all()
    assert ((below >= 0) & (below <= 1)).all()
    if total(h):
        durations = quantile(h, np.sort(shares))
        assert (np.diff(durations) >= 0).all()
        assert ((durations >= 0) & (durations <= max(edges(h)[-1], 0))).all()


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_a_quantile_has_that_share_below(values, share):
    h = histogram_of(values)
    assert float(cdf(h, quantile(h, share))) == pytest.approx(share, abs=1e-6)


@given(HISTOGRAMS, st.lists(st.floats(0, 1e12), max_size=6).map(sorted))
def test_clusters_hold_all_calls(h, borders):
    counts = clusters(h, borders)
    assert counts.size == len(borders) + 1
    assert (counts >= -1e-9).all()
    assert counts.sum() == pytest.approx(total(h))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_told(bad):
    with pytest.raises(DataError, match="no finite number"):
        histogram_of([1.0, bad])


def test_nothing_can_be_made_finer():
    with pytest.raises(DataError, match="finer"):
        downscaled(histogram_of([1.0, 3.0], 2), 3)


def test_no_calls_and_clocks_that_stand_still():
    nothing, still = histogram_of([]), histogram_of(np.zeros(9))
    assert (total(nothing), total(still)) == (0, 9)
    assert cdf(nothing, [0, 1]).tolist() == [0, 0]
    assert cdf(still, [-1, 0, 1]).tolist() == [0, 1, 1]
    assert np.isnan(quantile(nothing, 0.5))
    assert quantile(still, [0.1, 1]).tolist() == [0, 0]
    assert clusters(still, [5.0]).tolist() == [9, 0]
    assert same(merged([]), nothing)


@pytest.mark.parametrize(("scale", "offset"), [(10, 10**15), (10, -(10**15)), (-60, 5), (-2000, -1), (300, 7)])
def test_places_beyond_all_numbers_do_no_harm(scale, offset):
    h = Histogram(scale, offset, np.array([3, 4]))
    assert np.isfinite(edges(h)).all()
    assert np.isfinite(quantile(h, [0, 0.5, 1])).all()
    assert total(merged([h, histogram_of([1.0, 1e6])])) == 9
