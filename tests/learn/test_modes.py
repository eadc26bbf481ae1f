"""Borders between modes: planted ones are found, and unimodal data have none (specs/mining.md, "Borders")."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perflaw.learn.modes import cluster_labels, distinct_borders, find_borders
from tests.conftest import examples

UNIMODAL = {
    "lognormal": (lambda rng, n: rng.lognormal(0, 1.5, n), 0.0),
    "pareto": (lambda rng, n: rng.pareto(1.5, n) + 1, 0.0),
    "exponential": (lambda rng, n: rng.exponential(1, n), 0.0),
    "poisson of 1": (lambda rng, n: rng.poisson(1, n).astype(float), 1.0),
    "poisson of 5": (lambda rng, n: rng.poisson(5, n).astype(float), 1.0),
    "poisson of 200": (lambda rng, n: rng.poisson(200, n).astype(float), 0.0),
    "coarse clock": (lambda rng, n: np.round(rng.lognormal(3, 0.5, n) / 10) * 10, 10.0),
    "coarse clock of unknown tick": (lambda rng, n: np.round(rng.lognormal(3, 0.5, n) / 10) * 10, 0.0),
    "normal": (lambda rng, n: rng.normal(100, 5, n), 0.0),
    "uniform": (lambda rng, n: rng.uniform(0, 1500, n), 0.0),
    "negative as well": (lambda rng, n: rng.normal(0, 5, n), 0.0),
}


@pytest.mark.parametrize("name", UNIMODAL)
@pytest.mark.parametrize(("n", "seeds"), [(1000, 20), (10_000, 5), (100_000, 2)])
def test_unimodal_data_have_no_border(name, n, seeds):
    make, tick = UNIMODAL[name]
    found = [find_borders(make(np.random.default_rng([n, seed]), n), tick).size for seed in range(seeds)]
    assert found == [0] * seeds


@pytest.mark.parametrize("name", ["lognormal", "pareto", "exponential", "poisson of 5"])
def test_a_million_points_of_unimodal_data_have_no_border(name):
    make, tick = UNIMODAL[name]
    assert find_borders(make(np.random.default_rng(0), 1_000_000), tick).size == 0


def planted(rng, n):
    """Two to four lognormal modes far enough apart, each with a tenth of the mass; points, modes, tick."""
    modes = int(rng.integers(2, 5))
    share = rng.dirichlet(np.full(modes, 3.0))
    while share.min() < 0.1:
        share = rng.dirichlet(np.full(modes, 3.0))
    width = rng.uniform(0.05, 0.3, modes)
    gap = rng.uniform(5, 9, modes) * np.maximum(width, np.roll(width, 1))
    centre = np.cumsum(np.r_[0.0, gap[1:]])
    of = rng.choice(modes, n, p=share)
    tick = float(rng.choice([0.0, 1.0, 20.0]))
    y = 1000 * np.exp(centre[of] + width[of] * rng.normal(size=n))
    return (np.maximum(np.round(y / tick) * tick, tick) if tick else y), 1000 * np.exp(centre), tick


@pytest.mark.parametrize("n", [1000, 10_000])
def test_planted_modes_are_found(n):
    hits = misses = false = 0
    for seed in range(150):
        y, centre, tick = planted(np.random.default_rng([n, seed]), n)
        found = find_borders(y, tick)
        between = np.histogram(found, bins=centre)[0]
        hits += np.count_nonzero(between)
        misses += np.count_nonzero(between == 0)
        false += found.size - np.count_nonzero(between)
    assert hits / (hits + false) >= 0.98
    assert hits / (hits + misses) >= 0.98


def test_atoms_are_modes():
    y = np.repeat([300.0, 600.0, 900.0], [300, 400, 300])
    found = find_borders(y, 1.0)
    assert np.bincount(cluster_labels(y, found)).tolist() == [300, 400, 300]


def test_weights_count_like_copies():
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.lognormal(0, 0.2, 500), rng.lognormal(2, 0.2, 500)])
    weight = np.where(y < 3, 2.0, 1.0)
    assert find_borders(y, weights=weight) == pytest.approx(find_borders(np.repeat(y, weight.astype(int))), rel=0.3)


def test_few_independent_points_are_no_evidence():
    y = np.concatenate([np.full(500, 1.0), np.full(500, 2.0)]) * np.random.default_rng(0).lognormal(0, 0.2, 1000)
    assert find_borders(y).size == 1
    assert find_borders(y, worth=12.0).size == 0


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), max_size=60), st.floats(1e-3, 1e3))
@example([1.0, 1.1125369292536007e-308, 2.225073858507e-311], 0.25)
@example([1.1125369292536007e-308, 2.225073858507e-311, -2.0], 1.0)
def test_any_numbers_will_do(values, unit):
    y = np.array(values)
    found = find_borders(y)
    assert (np.diff(found) > 0).all()
    assert ((found > y.min(initial=0)) & (found < y.max(initial=0))).all()
    assert find_borders(np.abs(y) * unit).size == find_borders(np.abs(y)).size


def combed(rng, n, step=10.0):
    """Times of a call of 40 to 200 ns by a clock that moves in steps and reads a few ns off."""
    return np.round(rng.lognormal(np.log(90), 0.4, n) / step) * step + rng.integers(-2, 3, n)


@pytest.mark.parametrize("n", [500, 3000, 20_000])
def test_what_the_measurement_cannot_tell_apart_is_one_mode(n):
    for seed in range(10):
        rng = np.random.default_rng([n, seed])
        assert find_borders(combed(rng, n), 1.0, resolution=50.0).size == 0
        near = rng.choice([100.0, 130.0, 145.0], n) + rng.normal(0, 3, n)
        assert find_borders(near, 1.0).size > 0
        assert find_borders(near, 1.0, resolution=50.0).size == 0


def test_modes_further_apart_than_the_resolution_stay():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(3000) < 0.7, combed(rng, 3000), rng.lognormal(np.log(2000), 0.3, 3000))
        [border] = find_borders(y, 1.0, resolution=50.0)
        assert 250 < border < 1000


@given(st.lists(st.floats(0, 1e12), min_size=2, max_size=200), st.floats(0.1, 1e4))
@settings(deadline=None)
def test_any_clusters_are_told_apart_by_more_than_the_resolution(values, resolution):
    y = np.array(values)
    found = find_borders(y, 1.0, resolution=resolution)
    label = cluster_labels(y, found)
    middle = [np.median(y[label == i]) for i in np.unique(label)]
    assert (np.diff(middle) >= resolution).all()
    assert distinct_borders(y, found, resolution).tolist() == found.tolist()
