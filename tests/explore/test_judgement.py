"""Steady states, contamination and the order of trials: planted causes are found, nothing is found where there is none."""

import random

import numpy as np

from perflaw.explore.judging import (
    choose_waiting,
    disturbance,
    may_repeat,
    random_numbers,
    repeats_now,
    switch_cost,
)
from perflaw.explore.target.scoring import steady_mean
from perflaw.types.studies import Conditions, Knob, Trial


def test_a_planted_warm_up_is_cut_off_and_none_is_invented():
    numbers = np.random.default_rng(1)
    cut, kept = [], []
    for _ in range(200):
        noise = 100 + numbers.normal(0, 5, 100)
        warm = noise - 80 * np.exp(-np.arange(100) / 5)
        cut.append(steady_mean(warm))
        kept.append(steady_mean(noise))
    assert np.mean([abs(one.mean - 100) < 1.5 for one in cut]) > 0.97
    assert all(one.settled and 5 <= one.warm <= 45 for one in cut)
    assert np.median([one.warm for one in kept]) <= 5 and np.mean([one.settled for one in kept]) > 0.8
    missed = np.mean([abs(one.mean - 100) > 2.26 * one.error for one in kept if one.error])
    assert missed < 0.12  # 95 % intervals of the null


def test_what_still_rises_at_the_end_is_not_steady_mean():
    assert not steady_mean(np.arange(60.0)).settled


def trial(number, other=0.1, delay=0.0, size=None):
    conditions = Conditions(other_cpu=other, run_delay=delay)
    return Trial(
        number, {"size": size or number}, {"rate": 1}, valid=True, started="now", measured_s=1.0, conditions=conditions
    )


def test_a_busy_neighbour_is_noticed_and_a_quiet_machine_never():
    numbers = random.Random(1)
    quiet = [trial(i, abs(numbers.gauss(0.1, 0.03))) for i in range(300)]
    assert sum(bool(disturbance(one, quiet[:i])) for i, one in enumerate(quiet)) == 0
    assert "other programs used 0.90 CPUs" in disturbance(trial(301, 0.9), quiet)
    # What is usual on a busy machine is no reason to do anything.
    busy = [trial(i, abs(numbers.gauss(1.5, 0.2))) for i in range(300)]
    assert sum(bool(disturbance(one, busy[:i])) for i, one in enumerate(busy)) <= 3


def test_waiting_for_a_cpu_counts_against_repetitions_alone():
    same = [trial(i, delay=0.05, size=7) for i in range(3)]
    assert "waited 90 %" in disturbance(trial(9, delay=0.9, size=7), same)
    assert not disturbance(trial(9, delay=0.9, size=8), same)  # many threads wait always: that is the configuration's


def test_repeating_is_bounded():
    assert may_repeat(1, 0, 10) and not may_repeat(2, 0, 10) and not may_repeat(1, 2, 10) and may_repeat(1, 19, 100)


KNOBS = (Knob("page", "int", switch_cost="rebuild"), Knob("threads", "int", switch_cost="none"))


def test_waiting_trials_are_of_another_configuration_and_cheap_to_switch_to():
    last = {"page": 1, "threads": 1}
    waiting = [Trial(1, {"page": 2, "threads": 1}), Trial(2, {"page": 1, "threads": 2}), Trial(3, last)]
    assert {choose_waiting(waiting, last, KNOBS, random.Random(i)).number for i in range(20)} == {2}
    assert choose_waiting(waiting[2:], last, KNOBS, random.Random(1)).number == 3
    assert switch_cost(KNOBS, last, last) == 0 < switch_cost(KNOBS, last, waiting[0].configuration)


def test_the_next_step_is_a_function_of_seed_and_trials_made():
    draws = [[repeats_now(2, 3, True, random_numbers(seed, made)) for made in range(30)] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2] and {*draws[0]} == {True, False}
    assert (
        repeats_now(1, 1, False, random_numbers(1, 1))
        and not repeats_now(0, 1, False, random_numbers(1, 1))
        and repeats_now(9, 3, True, random_numbers(1, 1))
    )
