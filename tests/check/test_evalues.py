"""E-values on runs of known truth: false alarms at most as many as promised, shifts found, at any time of looking."""

import numpy as np
import pytest
from scipy import integrate, stats

from perflaw.check.evalues import (
    DEFAULT_FREEDOM,
    DEFAULT_SCALE,
    MAX_FREEDOM,
    MIN_SCALE,
    NO_RUNS,
    TAU,
    Effects,
    RunSpread,
    RunStatistics,
    _between,
    e_bh,
    e_value,
    learn_spread,
    logsumexp,
)
from perflaw.special import ndtr
from tests.conftest import first

LEAST = np.log(1.1)


def runs(rng, ratio, tau, count, within=0.01):
    value = np.log(ratio) + rng.normal(0, tau, count) + rng.normal(0, within, count)
    return Effects(value, np.full(count, within**2))


def components(seed, ratio, tau, count=1000, old=3, new=3):
    rng = np.random.default_rng(seed)
    pairs = [(runs(rng, 1.0, tau, old), runs(rng, ratio, tau, new)) for _ in range(count)]
    spread = learn_spread([each for pair in pairs for each in pair])
    return np.array([e_value(*pair, spread, LEAST).e for pair in pairs]), spread


@pytest.mark.parametrize("tau", first(1, [0.1, 0.0, 0.03, 0.3]))
def test_no_alarm_among_a_thousand_components_that_did_not_change(tau):
    e, _ = components(1, 1.0, tau)
    assert not e_bh(e, 0.01).any()
    assert (e >= 100).mean() <= 0.01
    assert e.mean() <= 1


def test_no_alarm_at_the_border_of_what_matters():
    e, _ = components(2, 1.1, 0.03)
    assert (e >= 100).mean() <= 0.01
    assert not e_bh(e, 0.01).any()


@pytest.mark.slow
def test_components_that_differ_in_how_much_runs_differ_raise_no_alarm():
    rng = np.random.default_rng(3)
    taus = rng.choice([0.01, 0.03, 0.2], 1000)
    pairs = [(runs(rng, 1, tau, 3), runs(rng, 1, tau, 3)) for tau in taus]
    spread = learn_spread([each for pair in pairs for each in pair])
    e = np.array([e_value(*pair, spread, LEAST).e for pair in pairs])
    assert (e >= 100).mean() <= 0.01
    assert not e_bh(e, 0.01).any()


@pytest.mark.slow
@pytest.mark.parametrize("ratio", first(1, [1.5, 1 / 1.5]))
def test_one_shift_among_a_thousand_components_is_found_with_three_runs(ratio):
    nulls, spread = components(4, 1.0, 0.03, 999)
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(50):
        e = e_value(runs(rng, 1.0, 0.03, 3), runs(rng, ratio, 0.03, 3), spread, LEAST).e
        rejected = e_bh(np.append(nulls, e), 0.01)
        found += rejected[-1]
        assert not rejected[:-1].any()
    assert found >= 45


@pytest.mark.slow
def test_looking_after_every_run_raises_no_more_alarms():
    rng = np.random.default_rng(6)
    spread = RunSpread(0.05, 8.0)
    tau = np.sqrt(8.0 * 0.05**2 / rng.chisquare(8.0, 300))
    alarms = 0
    for one in tau:
        old, new = runs(rng, 1.0, one, 4, 1e-4), runs(rng, 1.1, one, 10, 1e-4)
        alarms += any(
            e_value(old, Effects(new.value[:count], new.variance[:count]), spread, LEAST).e >= 20
            for count in range(2, 11)
        )
    assert alarms / 300 <= 0.05


def test_the_interval_covers_the_shift():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(500):
        old, new = runs(rng, 1.0, 0.05, 4), runs(rng, 1.3, 0.05, 3)
        found = e_value(old, new, RunSpread(0.05, 8.0), LEAST)
        covered += found.low <= np.log(1.3) <= found.high
    assert 0.92 <= covered / 500 <= 0.985


def test_a_law_taken_at_its_word_has_no_runs_of_its_own():
    rng = np.random.default_rng(8)
    same = e_value(NO_RUNS, runs(rng, 1.0, 0.03, 3), RunSpread(0.05, 4.0), LEAST)
    twice = e_value(NO_RUNS, runs(rng, 2.0, 0.03, 3), RunSpread(0.05, 4.0), LEAST)
    assert same.e < 1 < 100 < twice.e
    assert twice.low < np.log(2) < twice.high


def test_the_likelihood_is_that_of_the_textbook():
    """Two runs: their difference is normal with variance 2τ² + v₁ + v₂."""
    effects = Effects(np.array([0.1, 0.25]), np.array([0.01, 0.02]))
    found = RunStatistics.of([effects]).likelihood[0]
    wanted = stats.norm.logpdf(0.15, 0, np.sqrt(2 * TAU**2 + 0.03))
    assert found - found[0] == pytest.approx(wanted - wanted[0])


def test_the_prior_is_one_of_probability():
    assert np.exp(RunSpread(0.05, 4.0).log_weights()).sum() == pytest.approx(1)
    total, _ = integrate.quad(lambda x: 2 * x * stats.invgamma.pdf(x**2, 2, scale=2 * 0.05**2), 0, 3)
    assert total == pytest.approx(1, abs=1e-3)


def test_the_spread_of_runs_is_learnt():
    rng = np.random.default_rng(9)
    found = learn_spread([runs(rng, 1, 0.1, 4, 1e-3) for _ in range(200)])
    assert 0.08 <= found.scale <= 0.12
    assert learn_spread([]) == RunSpread(0.05, 4.0)


def test_runs_of_few_records_are_worth_less():
    sharp = Effects(np.log([1.5, 1.5, 1.5]), np.full(3, 1e-4))
    blunt = Effects(np.log([1.5, 1.5, 1.5]), np.full(3, 0.1))
    old = Effects(np.zeros(3), np.full(3, 1e-4))
    spread = RunSpread(0.03, 8.0)
    assert e_value(old, sharp, spread, LEAST).e > 1000 > 1 > e_value(old, blunt, spread, LEAST).e


def test_e_bh_bounds_false_discoveries():
    assert e_bh(np.zeros(0), 0.01).tolist() == []
    assert e_bh(np.array([99.0]), 0.01).tolist() == [False]
    assert e_bh(np.array([100.0]), 0.01).tolist() == [True]
    assert e_bh(np.array([150.0, 150.0, 1.0]), 0.01).tolist() == [True, True, False]
    assert e_bh(np.array([150.0, 140.0, 1.0]), 0.01).tolist() == [False, False, False]


def test_the_spread_of_runs_is_the_most_likely_of_all_candidates(monkeypatch):
    rng = np.random.default_rng(3)
    components = [runs(rng, 1.0, 0.2, count) for count in (1, 2, 3, 5, 8)]
    likelihood = RunStatistics.of([one for one in components if one.value.size > 1]).likelihood
    scores = {}
    for freedom in (2.0, 4.0, 8.0, MAX_FREEDOM):
        for scale in np.geomspace(MIN_SCALE, 1.0, 24):
            spread = RunSpread(float(scale), freedom)
            scores[spread] = float(logsumexp(likelihood + spread.log_weights(), axis=1).sum())
            scores[spread] -= 0.5 * np.log(scale / DEFAULT_SCALE) ** 2 + 0.5 * np.log(freedom / DEFAULT_FREEDOM) ** 2
    best = max(scores, key=scores.__getitem__)
    assert learn_spread(components) == best
    monkeypatch.setattr("perflaw.check.evalues.SPREADS_AT_ONCE", 1)
    assert learn_spread(components) == best


def test_probabilities_between_edges_are_differences_of_the_smaller_tails():
    rng = np.random.default_rng(4)
    edges = np.sort(rng.normal(0, 6, (20, 16, 48)), axis=1)
    edges[0, 3] = 0.0
    edges[0].sort(axis=0)
    below, above = ndtr(edges), ndtr(-edges)
    expected = np.where(edges[:, :-1] > 0, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1])
    assert (_between(edges) == expected).all()  # to the last digit
