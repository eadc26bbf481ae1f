"""Races and noise: the best is not dropped however often the race is looked at, and losers are."""

import numpy as np
import pytest

from perflaw.learn.exploring.racing import evidence, run_scatter, survivors, to_repeat


def race(levels, seed, trials=80, noise=0.05, sign=1.0, alpha=0.05):
    """Values by key, repeated as the race asks, and whether the best was ever out."""
    rng = np.random.default_rng(seed)
    values = {str(i): [] for i in range(len(levels))}
    best = str(int(np.argmax(sign * np.array(levels))))
    lost = False
    for key, level in zip(values, levels, strict=True):
        values[key].append(level * np.exp(rng.normal(0, noise)))
    for _ in range(trials):
        wanted = to_repeat(values, sign, alpha)
        if not wanted:
            break
        values[wanted[0]].append(levels[int(wanted[0])] * float(np.exp(rng.normal(0, noise))))
        lost = lost or best not in survivors(values, sign, alpha)
    return values, lost


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_one_wins_and_losers_cost_little(sign):
    levels = [100, 130, 70, 80, 100, 60] if sign > 0 else [100, 70, 130, 120, 100, 150]
    values, _ = race(levels, 1, sign=sign)
    assert survivors(values, sign) == ["1"]
    assert sum(map(len, values.values())) < 40


def test_the_best_is_thrown_out_in_at_most_alpha():
    """Null and close races: all alike, or one better by a little; looked at after every trial."""
    lost = [race([100, 100, 100, 100.001], seed, 60)[1] for seed in range(40)]
    lost += [race([100, 102, 98, 95], seed, 60)[1] for seed in range(40)]
    assert np.mean(lost) <= 0.05


def test_alike_configurations_are_not_told_apart():
    values, _ = race([100, 100], 3, 40)
    assert len(values["0"]) + len(values["1"]) == 42 and abs(len(values["0"]) - len(values["1"])) <= 1


def test_single_trials_and_ties_tell_nothing():
    assert survivors({"a": [1.0], "b": [99.0]}, 1.0) == ["b", "a"]
    assert evidence(1.0, 1, 1, 0.0, 0) == 0.0
    assert survivors({"a": [1.0, 1.0], "b": [1.0, 1.0]}, 1.0) == ["a", "b"]
    assert to_repeat({"a": [1.0]}, 1.0) == [] and survivors({}, 1.0) == []


def test_values_of_either_sign_are_compared_as_they_are():
    rng = np.random.default_rng(4)
    values = {"a": (rng.normal(0, 1, 12)).tolist(), "b": (rng.normal(-9, 1, 12)).tolist()}
    assert survivors(values, 1.0) == ["a"] and survivors(values, -1.0) == ["b"]


def test_scatter_is_pooled_over_repeated_configurations():
    rng = np.random.default_rng(5)
    groups = [(level * np.exp(rng.normal(0, 0.02, 4))).tolist() for level in rng.uniform(1, 1000, 30)]
    sd, freedom = run_scatter([*groups, [5.0], [0.0, 0.0]])
    assert sd == pytest.approx(0.02, rel=0.25) and freedom == 90
    assert run_scatter([]) == (0.05, 0.0)
