"""Early stop on streams with a known end: losers go, winners and what still warms up stay."""

import numpy as np
import pytest

from perflaw.learn.exploring.racing import BATCHES, Batches, Stopper, halfwidth, inflation, slope, steady_from

READINGS = 128
TIMES = (np.arange(READINGS) + 1) / READINGS * 10.0


def stopped_at(values, goal="max", incumbent=(100.0, 101.0), **more):
    """Share of the trial's time at which it was stopped; 1 where it was not."""
    stopper = Stopper(goal, incumbent, 10.0, **more)
    for at, value in zip(TIMES, values, strict=True):
        stopper.add(float(at), float(value))
        if stopper.verdict():
            return float(at) / 10.0
    return 1.0


def noisy(level, rng, noise=0.05, rho=0.0):
    error, errors = 0.0, []
    for _ in range(READINGS):
        error = rho * error + rng.normal(0, noise * np.sqrt(1 - rho**2))
        errors.append(error)
    return level * np.exp(np.array(errors))


def test_a_loser_is_stopped_and_told_why():
    stopper = Stopper("max", [100.0], 10.0)
    for at, value in zip(TIMES[:64], noisy(40, np.random.default_rng(1))[:64], strict=True):
        stopper.add(float(at), float(value))
    assert "cannot win" in stopper.verdict() and "against 100" in stopper.verdict()


@pytest.mark.parametrize(("goal", "level"), [("max", 50), ("min", 200)])
def test_losers_save_time_either_way(goal, level):
    rng = np.random.default_rng(2)
    assert np.mean([stopped_at(noisy(level, rng, rho=0.5), goal) for _ in range(10)]) < 0.5


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_equals_are_never_stopped(rho):
    rng = np.random.default_rng(3)
    assert all(stopped_at(noisy(100, rng, 0.15, rho)) == 1.0 for _ in range(60))


@pytest.mark.parametrize("warm", [
    lambda t: 0.2 + 0.8 * np.minimum(1, t / 0.7),
    lambda t: 1 - 0.8 * np.exp(-t / 0.25),
    lambda t: np.minimum(1, 0.1 + (t / 0.6) ** 0.7),
], ids=["linear", "exponential", "cache"])  # fmt: skip
def test_what_still_rises_is_not_stopped(warm):
    rng = np.random.default_rng(4)
    curve = warm(TIMES / 10.0)
    assert all(stopped_at(noisy(120, rng) * curve) == 1.0 for _ in range(20))


def test_a_late_step_is_waited_for_where_an_earlier_trial_had_it():
    rng = np.random.default_rng(5)
    step = np.where(TIMES < 4.0, 0.3, 1.0)
    seen = steady_from(TIMES.tolist(), (noisy(90, rng) * step).tolist(), "max")
    assert 3.8 < seen < 4.5
    assert stopped_at(noisy(120, rng) * step, steady_s=seen) == 1.0
    assert stopped_at(noisy(30, rng) * step, steady_s=seen) < 0.9


def test_nothing_is_stopped_without_an_incumbent_or_a_time():
    for stopper in (Stopper("max", [], 10.0), Stopper("max", [100.0], 0.0)):
        for at in TIMES:
            stopper.add(float(at), 1.0)
        assert stopper.verdict() == ""


def test_readings_without_records_or_number_are_ignored():
    stopper = Stopper("max", [100.0], 10.0)
    for at in TIMES:
        stopper.add(float(at), 0.0, n=0)
        stopper.add(float(at), float("nan"))
    assert stopper.verdict() == ""


def test_the_interval_holds_whenever_one_looks():
    """Null: the mean is 0; in how many streams is it ever outside, at 5 %?"""
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(200):
        values = rng.normal(size=BATCHES)
        missed += any(abs(values[:m].mean()) > halfwidth(values[:m], 0.05) for m in range(8, BATCHES, 4))
    assert missed <= 10


def test_steady_streams_have_no_warm_up():
    rng = np.random.default_rng(7)
    late = [steady_from(TIMES.tolist(), noisy(100, rng, 0.1, 0.5).tolist()) for _ in range(40)]
    assert np.mean(np.array(late) > 0) <= 0.05


def test_a_start_better_than_the_rest_is_no_warm_up_given_a_goal():
    burst = np.where(TIMES < 3.0, 2.0, 1.0) * 100
    assert steady_from(TIMES.tolist(), burst.tolist(), "max") == 0.0
    assert steady_from(TIMES.tolist(), burst.tolist(), "min") > 2.5
    assert steady_from(TIMES.tolist(), burst.tolist()) > 2.5


def test_batches_bound_memory_and_keep_means():
    batches = Batches(10.0)
    for at in np.linspace(0.001, 10, 10_000):
        batches.add(float(at), float(at))
    means = batches.complete()
    assert means.size == BATCHES - 1 and np.allclose(means, (np.arange(BATCHES - 1) + 0.5) * 10 / BATCHES, atol=0.01)


def test_autocorrelation_widens():
    rng = np.random.default_rng(8)
    assert inflation(noisy(1, rng, 0.1, 0.9)) > 4 > inflation(noisy(1, rng, 0.1)) >= 1
    assert slope(np.arange(10.0))[0] == pytest.approx(1.0)
