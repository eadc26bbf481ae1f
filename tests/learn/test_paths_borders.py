"""Borders in histograms: what is asked for again and again is searched once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from perflaw.learn import modes
from perflaw.learn.modes import DensitySearch, borders_of_mass, mass_of_cells
from perflaw.learn.paths import borders as module
from perflaw.learn.paths.borders import borders_of
from perflaw.learn.paths.durations import histogram_of


def durations(seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.lognormal(9, 0.2, 3000), rng.lognormal(10, 0.2, 2000), rng.lognormal(13, 0.3, 900)])


@pytest.fixture
def searches(monkeypatch):
    made, real = [], module._search_by_depth
    monkeypatch.setattr(module, "_search_by_depth", lambda *some: made.append(some) or real(*some))
    monkeypatch.setattr(module, "_found", {})
    return made


def test_the_same_durations_are_searched_once(searches):
    first, again = (borders_of(histogram_of(durations(1)), 1.0) for _ in range(2))
    assert first.size == 2 and first.tolist() == again.tolist()
    assert len(searches) == 1
    again[0] = 0.0  # whoever changes what it got changes nothing for others
    assert borders_of(histogram_of(durations(1)), 1.0).tolist() == first.tolist()


def test_whatever_the_search_depends_on_makes_another_one(searches):
    h = histogram_of(durations(1))
    for about in ((1.0,), (0.0,), (1.0, 500.0), (1.0, 500.0, 2.0)):
        borders_of(h, *about)
    borders_of(histogram_of(durations(2)), 1.0)
    assert len(searches) == 5


def test_no_more_than_a_bounded_number_is_kept(searches, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    for seed in (1, 2, 1, 3, 1, 2):
        borders_of(histogram_of(durations(seed)), 1.0)
    assert len(searches) == 4  # the one that was asked for last is kept
    assert len(module._found) == 2


def test_a_density_is_smoothed_once_for_all_depths_of_valleys(monkeypatch):
    made, real = [], modes.smoothed
    monkeypatch.setattr(modes, "smoothed", lambda *some: made.append(some) or real(*some))
    counts, edges = np.histogram(durations(1), np.geomspace(1e3, 1e7, 600))
    mass = mass_of_cells(edges[:-1], edges[1:], counts.astype(float), float(counts.sum()))
    alone = [borders_of_mass(mass, None, min_z).tolist() for min_z in (0.5, 4.0, 60.0)]
    number = len(made)
    search = DensitySearch(mass)
    assert [search.borders(min_z).tolist() for min_z in (0.5, 4.0, 60.0)] == alone
    assert len(made) - number < number


def test_durations_that_are_worth_another_number_of_calls_are_laid_out_once(monkeypatch):
    made, real = [], module._mass
    monkeypatch.setattr(module, "_mass", lambda *some: made.append(some) or real(*some))
    h, worths = histogram_of(durations(1)), (6000.0, 3000.0, 500.0)
    for kept, times in ((128, 1), (0, 3)):
        monkeypatch.setattr(module, "MOST_MASSES", kept)
        monkeypatch.setattr(module, "_masses", {})
        monkeypatch.setattr(module, "_found", {})
        made.clear()
        found = [borders_of(h, 1.0, worth).tolist() for worth in worths]
        assert len(made) == times
        assert found == [borders_of_mass(real(h, 1.0), worth).tolist() for worth in worths]


@pytest.mark.parametrize("scale", [0.3, 7.0, 101.0, 300.0])
def test_a_density_is_smoothed_as_if_nothing_lay_beyond_its_ends(scale):
    counts = np.random.default_rng(3).poisson(2.0, 2048).astype(float)
    reach = int(5 * scale + 0.5)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    whole = np.convolve(counts, kernel / kernel.sum())
    assert modes.smoothed(counts, scale).tolist() == whole[reach : reach + counts.size].tolist()


def strong_valleys(height, cumulated, effective, min_z):
    """The rule, from the beginning after each minimum that is dropped."""
    valleys = modes.local_minima(height)
    peaks = [a + int(np.argmax(height[a:b])) for a, b in pairwise([0, *valleys, height.size])]
    while valleys:
        strength = []
        for i, at in enumerate(valleys):
            valley, peak = height[at], min(height[peaks[i]], height[peaks[i + 1]])
            z = (peak - valley) * effective / np.sqrt((valley + peak) * effective + 1e-9)
            left = cumulated[at] - (cumulated[valleys[i - 1]] if i else 0.0)
            right = (cumulated[valleys[i + 1]] if i + 1 < len(valleys) else cumulated[-1]) - cumulated[at]
            heavy = min(left, right) >= modes.MIN_MASS
            if z >= min_z and valley <= modes.MAX_VALLEY * peak:
                strength.append(np.inf if heavy else 0.01 * min_z * (1 + (peaks[i + 1] - peaks[i]) / height.size))
            else:
                strength.append(z if heavy else 0.01 * min(z, min_z))
        if min(strength) == np.inf:
            break
        place = int(np.argmin(strength))
        lower = place if height[peaks[place]] < height[peaks[place + 1]] else place + 1
        del valleys[place], peaks[lower]
    return valleys


@pytest.mark.parametrize("seed", range(20))
def test_the_valleys_that_stay_are_those_of_the_rule(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(centre, rng.uniform(2, 60), 800) for centre in rng.uniform(100, 900, 5)])
    counts = np.histogram(values, np.arange(1001))[0].astype(float)
    height, cumulated = modes.smoothed(counts, 6.0), np.r_[0.0, np.cumsum(counts) / counts.sum()]
    extrema = modes.Extrema.of(height, cumulated)
    for min_z in (0.5, 4.0):
        density = modes.SmoothedDensity(1000, 1.0, 21.0, min_z)
        assert modes._strong_valleys(density, extrema.copy()) == strong_valleys(height, cumulated, 21.0, min_z)
