"""Calls whose noise is correlated in time are worth fewer calls: a drifting machine is no growth."""

import numpy as np

from perflaw.learn.annotations.records import record_table
from perflaw.learn.annotations.serial import worth_of_calls
from perflaw.learn.series import Options, Series, learn
from tests.learn.annotation_data import evidence, learn_one

SIZES = np.round(np.geomspace(1e3, 1e5, 60))


def calls(seed, correlation, rounds=3, shuffled=False):
    """Calls of a linear function, by growing size round after round, with noise of a first-order autoregression."""
    random = np.random.default_rng(seed)
    n = np.tile(SIZES, rounds)
    n = random.permutation(n) if shuffled else n
    noise = random.normal(0, 0.25, n.size)
    for at in range(1, n.size):
        noise[at] = correlation * noise[at - 1] + np.sqrt(1 - correlation**2) * noise[at]
    return evidence(70 * n * np.exp(noise), {"n": n})


def worth(*several):
    laws = learn([Series("f", made.cost, dict(made.features)) for made in several], None, Options(regimes=False))
    return [worth_of_calls(law, record_table(made)) for law, made in zip(laws, several, strict=True)]


def test_independent_calls_are_worth_all_of_them():
    assert np.mean(np.equal(worth(*[calls(seed, 0.0) for seed in range(30)]), 1.0)) > 0.9


def test_correlated_calls_are_worth_fewer_unless_their_inputs_come_in_any_order():
    ordered = worth(*[calls(seed, 0.7) for seed in range(15)])
    assert 0.12 < np.median(ordered) < 0.35  # (1 - ρ) / (1 + ρ) is 0.18
    assert np.median(worth(*[calls(seed, 0.7, shuffled=True) for seed in range(15)])) > 0.75


def test_inputs_that_never_come_again_and_equal_costs_show_nothing():
    assert worth(calls(1, 0.7, rounds=1)) == [1.0]
    n = np.tile(SIZES, 3)
    assert worth(evidence(70 * n, {"n": n})) == [1.0]


def test_a_linear_function_on_a_drifting_machine_grows_linearly():
    laws = [learn_one(calls(seed, 0.7)).scopes[0].law for seed in range(4, 13)]
    assert [law.slope_low["n"] <= 1.0 <= law.slope_high["n"] for law in laws].count(False) <= 1
