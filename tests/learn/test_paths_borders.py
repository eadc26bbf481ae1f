"""Borders in histograms: what is asked for again and again is searched once."""

from __future__ import annotations

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
