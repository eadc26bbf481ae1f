"""Unit costs of generated runs compared: what disturbs many functions is taken out, and changes of single ones are found."""

import numpy as np
import pytest
from scipy.special import stdtr

from perflaw.check.unit_costs import compare_units
from tests.conftest import examples, first

SIZES, FUNCTIONS = 5, 40


def runs(rng, old, new, *, noise=0.03, speeds=0.1, phase=0.0, tracer=0.0, lumps=0.0):
    """Logarithms of unit costs (R, F) of ``old`` and ``new`` runs of each size, their sizes, which are new, and events.

    ``phase`` slows the second half of the functions in a run, ``tracer`` is the error of an event's cost in ns.
    """
    count = SIZES * (old + new)
    size = np.tile(np.arange(SIZES), old + new)
    cost = np.exp(rng.uniform(np.log(150), np.log(20_000), FUNCTIONS))
    unit = np.log(cost) + 0.1 * size[:, None] * rng.normal(0, 1, FUNCTIONS)
    unit = unit + rng.normal(0, noise, (count, FUNCTIONS)) + rng.normal(0, speeds, (count, 1))
    unit[:, FUNCTIONS // 2 :] += rng.normal(0, phase, (count, 1))
    unit += np.log1p(rng.normal(0, tracer, (count, 1)) / cost)
    unit += np.where(rng.random(unit.shape) < lumps, rng.exponential(2.0, unit.shape), 0.0)
    return unit, size, np.arange(count) >= SIZES * old, 1.0 / cost


def compared(made):
    unit, size, new, events = made
    return compare_units(unit, size, new, np.ones(FUNCTIONS, dtype=bool), events)


def power(factor, seeds, old=2, new=2, **kind):
    """Share of planted changes that are found at a level of 0.5 % for all functions together."""
    found = 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        unit, size, is_new, events = runs(rng, old, new, **kind)
        unit[is_new, seed % FUNCTIONS] += np.log(factor)
        result = compared((unit, size, is_new, events))
        p = 2 * stdtr(result.freedom, -np.abs(result.change) / result.error)
        found += p[seed % FUNCTIONS] < 0.005 / FUNCTIONS
    return found / seeds


def test_ten_percent_stand_out_of_a_phase_that_a_neighbour_slows():
    assert power(1.1, 30, phase=0.2) >= 0.8


def test_ten_percent_stand_out_of_the_errors_of_the_tracer():
    assert power(1.1, 30, noise=0.02, tracer=10.0) >= 0.8


def test_thirty_percent_stand_out_of_lumps():
    assert power(1.3, 30, old=3, new=1, noise=0.06, speeds=0.3, lumps=0.02) >= 0.8


@pytest.mark.parametrize(
    "kind",
    first(
        3,
        first(
            4,
            [
                {"noise": 0.01},
                {"noise": 0.05, "speeds": 0.3, "phase": 0.3, "tracer": 10.0},
                {"noise": 0.1, "speeds": 0.3, "lumps": 0.02},
            ],
        ),
    ),
)
@pytest.mark.parametrize(("old", "new"), [(1, 1), (2, 2), (3, 1)])
def test_unchanged_functions_rarely_seem_changed(kind, old, new):
    alarms = 0
    for seed in range(examples(60)):
        result = compared(runs(np.random.default_rng(seed), old, new, **kind))
        p = 2 * stdtr(result.freedom, -np.abs(result.change) / result.error)
        alarms += p.min() < 0.005 / FUNCTIONS
    assert alarms <= 1


def test_intervals_hold_the_change():
    inside = []
    for seed in range(40):
        unit, size, new, events = runs(np.random.default_rng(seed), 3, 3, phase=0.2, lumps=0.01)
        unit[np.ix_(new, [3, 8])] += np.log([1.2, 2.0])
        result = compared((unit, size, new, events))
        inside += (np.abs(result.change[[3, 8]] - np.log([1.2, 2.0])) < 2 * result.error[[3, 8]]).tolist()
    assert np.mean(inside) >= 0.9


def test_functions_that_some_runs_lack_are_compared_where_they_are():
    unit, size, new, events = runs(np.random.default_rng(0), 4, 4, noise=0.02)
    unit[size < 2, 5] = np.nan
    unit[new, 6] = np.nan
    unit[:, 7] = np.nan
    unit[new, 5] += np.log(1.5)
    usable = np.isfinite(unit).all(axis=0)
    result = compare_units(unit, size, new, usable, events)
    assert result.change[5] == pytest.approx(np.log(1.5), abs=0.05)
    assert np.isinf(result.error[[6, 7]]).all()
    assert np.isfinite(result.error[usable]).all()


def test_cold_code_that_drifts_is_not_reported_and_hides_no_change_of_hot_code():
    alarms = found = 0
    once = np.arange(FUNCTIONS) < FUNCTIONS // 2
    for seed in range(40):
        rng = np.random.default_rng(seed)
        unit, size, new, events = runs(rng, 4, 2, noise=0.02)
        unit[:, once] += np.where(new[:, None], rng.normal(0, 0.04, FUNCTIONS // 2), 0.0)
        unit[new, 30] += np.log(1.1)
        result = compare_units(unit, size, new, np.ones(FUNCTIONS, dtype=bool), events, once)
        p = 2 * stdtr(result.freedom, -np.abs(result.change) / result.error)
        found += p[30] < 0.005 / FUNCTIONS
        alarms += (np.delete(p, 30) < 0.005 / FUNCTIONS).any()
    assert found >= 36
    assert alarms <= 1
