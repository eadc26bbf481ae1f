"""The surrogate on laws that are known: predictions, doubt, scales; and what it must survive."""

import numpy as np
import pytest

from perflaw.learn.exploring.acquisition import (
    acquisition,
    expected_improvement,
    fill_space,
    probability_above,
    reference,
    validity,
)
from perflaw.learn.exploring.gaussian_process import (
    Hyperparameters,
    covariance,
    distances,
    fit_surrogate,
    prior_variance,
    scale_of,
)

ORDERED = np.array([True, True, False])
GRID = np.array([(a, b, c) for a in np.linspace(0, 1, 5) for b in np.linspace(0, 1, 5) for c in (0.0, 1.0)])


def truth(x):
    return 100 * np.exp(x[:, 0] + 2 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5) - 0.5 * x[:, 2])


def test_predictions_and_their_doubt_are_right():
    rng = np.random.default_rng(1)
    train = rng.permutation(len(GRID))[:25]
    left = np.setdiff1d(np.arange(len(GRID)), train)
    y = truth(GRID[train]) * np.exp(rng.normal(0, 0.02, train.size))
    law = fit_surrogate(GRID[train], ORDERED, y, 1.0, 0)
    means, sds = law.predict(GRID[left])
    off = np.log(law.scale.back(means.mean(axis=0)) / truth(GRID[left]))
    spread = np.sqrt((sds**2).mean(axis=0) + means.var(axis=0)) * law.scale.spread
    assert np.sqrt(np.mean(off**2)) < 0.08
    assert np.mean(np.abs(off) < 1.96 * spread) >= 0.7


def test_less_is_better_turns_the_order():
    y = truth(GRID)
    for sign, best in ((1.0, y.max()), (-1.0, y.min())):
        scale = scale_of(y, sign)
        assert scale.back(scale.to(y)) == pytest.approx(y)
        assert y[np.argmax(scale.to(y))] == best


@pytest.mark.parametrize("y", [np.ones(9), np.zeros(9), -np.arange(9.0), np.array([1.0] * 8 + [1e9])])
def test_odd_responses(y):
    law = fit_surrogate(GRID[:9], ORDERED, y, 1.0, 0)
    means, sds = law.predict(GRID)
    assert np.isfinite(means).all() and (sds > 0).all()


def test_a_few_rates_of_nothing_do_not_turn_the_scale():
    y = truth(GRID)
    y[[3, 9]] = 0.0
    assert scale_of(y, 1.0).logarithm and np.isfinite(scale_of(y, 1.0).to(y)).all()
    assert not scale_of(y, -1.0).logarithm and not scale_of(y - 1e6, 1.0).logarithm
    errors = np.full(y.size, 1.0)
    assert np.isfinite(fit_surrogate(GRID, ORDERED, y, 1.0, 0, errors, draws=2).predict(GRID)[0]).all()


def test_one_trial_and_repeated_points_suffice():
    for rows in ([0], [3, 3, 3, 3]):
        law = fit_surrogate(GRID[rows], ORDERED, np.full(len(rows), 5.0), 1.0, 0)
        assert np.isfinite(law.predict(GRID)[0]).all()


def test_a_disturbed_trial_is_not_believed():
    y = truth(GRID[:40])
    seen = y.copy()
    seen[17] *= 0.02
    law = fit_surrogate(GRID[:40], ORDERED, seen, 1.0, 0)
    predicted = law.scale.back(law.predict(GRID[17:18])[0].mean(axis=0))[0]
    assert predicted > 0.5 * y[17]


def test_covariances_are_positive_and_have_their_variance():
    rng = np.random.default_rng(2)
    for rough in (False, True):
        curves = Hyperparameters(rng.uniform(0.1, 1, 3), rng.uniform(0.2, 2, 3), 1.3, 0.01, rough)
        matrix = covariance(distances(GRID, GRID, ORDERED), curves, ORDERED)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-8
        assert np.diag(matrix) == pytest.approx(prior_variance(curves))


def test_draws_of_whole_laws_agree_with_predictions():
    law = fit_surrogate(GRID[::3], ORDERED, truth(GRID[::3]), 1.0, 0)
    means, sds = law.predict(GRID[:6])
    drawn = law.sample(GRID[:6], 400, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(means.mean(axis=0), abs=0.1 * sds.max() + 0.01)


def test_a_start_is_spread_over_all_levels():
    rng = np.random.default_rng(3)
    chosen = [0]
    for _ in range(7):
        left = np.setdiff1d(np.arange(len(GRID)), chosen)
        chosen.append(int(left[fill_space(GRID[chosen], GRID[left], ORDERED, rng)]))
    assert len(set(GRID[chosen, 2])) == 2 and min(len(set(GRID[chosen, k])) for k in (0, 1)) >= 3


def test_expected_improvement_and_chance():
    means, sds = np.array([[0.0, 1.0, -9.0]]), np.array([[1.0, 1.0, 1.0]])
    gain = expected_improvement(means, sds, np.array([[0.0]]))
    assert gain[0] == pytest.approx(0.3989, abs=1e-4) and gain[1] > gain[0] > gain[2] >= 0
    assert probability_above(means, sds, 0.0)[:2] == pytest.approx([0.5, 0.8413], abs=1e-4)
    hopeless = acquisition(means - 20, np.array([[1.0, 1.0, 9.0]]), np.array([[0.0]]), np.ones(3))
    assert np.argmax(hopeless) == 2


def test_where_trials_failed_is_learnt():
    bad = GRID[GRID[:, 0] > 0.9][::2]
    good = GRID[GRID[:, 0] < 0.9][::4]
    usable = validity(good, bad, GRID, ORDERED, 0)
    assert usable[GRID[:, 0] > 0.9].max() < 0.5 < usable[GRID[:, 0] < 0.6].min()
    assert (validity(good, bad[:0], GRID, ORDERED, 0) == 1).all()


def test_candidates_are_compared_under_their_own_workload():
    workload = np.array([False, False, True])
    law = fit_surrogate(GRID[:40], ORDERED, truth(GRID[:40]), 1.0, 0)
    best = reference(law, GRID[:40], GRID, workload)
    heavy, light = best[:, GRID[:, 2] == 1.0], best[:, GRID[:, 2] == 0.0]
    assert best.shape[1] == len(GRID) and (light.min(axis=1) > heavy.max(axis=1)).all()
    assert reference(law, GRID[:40], GRID, np.zeros(3, dtype=bool)).shape[1] == 1


@pytest.mark.parametrize("failures", [1, 5])
def test_a_setting_that_never_worked_is_left_after_a_few_failures_however_little_is_known_of_it(failures):
    generator = np.random.default_rng(4)
    ordered = np.array([True, False])
    good = np.column_stack([generator.random(12), generator.integers(0, 2, 12) / 2])
    failed = np.column_stack([generator.random(failures), np.ones(failures)])
    at = np.column_stack([np.linspace(0, 1, 20), np.repeat([0.0, 1.0], 10)])
    usable = validity(good, failed, at, ordered, 0)
    assert usable[:10].min() > 0.5
    gain = acquisition(np.zeros((1, 20)), np.where(at[:, 1] == 1.0, 9.0, 0.1)[None], np.zeros((1, 1)), usable)
    assert (gain[10:].max() > gain[:10].max()) == (failures == 1)
