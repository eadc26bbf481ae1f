"""Races and noise: the best is not thrown out however often one looks, losers are, and estimates are not flattered."""

import numpy as np
import pytest

from perflaw.learn.exploring.noise import again, evidence, fair_estimate, run_scatter, shrunk, survivors


def race(levels, seed, trials=80, noise=0.05, sign=1.0, alpha=0.05):
    """Values by key, repeated as the race asks, and whether the best was ever out."""
    rng = np.random.default_rng(seed)
    values = {str(i): [] for i in range(len(levels))}
    best = str(int(np.argmax(sign * np.array(levels))))
    lost = False
    for key, level in zip(values, levels, strict=True):
        values[key].append(level * np.exp(rng.normal(0, noise)))
    for _ in range(trials):
        wanted = again(values, sign, alpha)
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
    assert again({"a": [1.0]}, 1.0) == [] and survivors({}, 1.0) == []


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


def test_the_winner_is_not_flattered():
    """30 alike configurations, the best of one trial each is repeated: the fair estimate has no bias, the plain one has."""
    rng = np.random.default_rng(6)
    fair, plain, inside = [], [], 0
    for _ in range(200):
        first = 100 * np.exp(rng.normal(0, 0.05, 30))
        again_ = 100 * np.exp(rng.normal(0, 0.05, 4))
        values = [float(first.max()), *again_.tolist()]
        estimate = fair_estimate(values, 1, 0.05, 60)
        fair.append(estimate.value)
        plain.append(np.mean(values))
        inside += estimate.low <= 100 <= estimate.high
    assert abs(np.mean(fair) - 100) < 1 < np.mean(plain) - 100
    assert inside >= 180
    assert fair_estimate([110.0], 1, 0.05, 60).low < 95


def test_means_are_drawn_together_by_what_noise_scatters():
    rng = np.random.default_rng(7)
    alike = {str(i): float(rng.normal(0, 1)) for i in range(40)}
    drawn = shrunk(alike, dict.fromkeys(alike, 1), 1.0)
    assert np.var(list(drawn.values())) < 0.2 * np.var(list(alike.values()))
    apart = {str(i): float(10 * i) for i in range(40)}
    assert shrunk(apart, dict.fromkeys(apart, 1), 1.0)["39"] == pytest.approx(390, abs=1)
