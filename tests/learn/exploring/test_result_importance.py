"""Shares of variance: known truth, exact on full grids, nothing from noise alone."""

import numpy as np
import pytest

from perflaw.learn.exploring.importance import (
    centred_kernel,
    dependence,
    full_grid,
    grid_effects,
    importance,
    main_knobs,
)
from perflaw.learn.exploring.observations import responses
from tests import studies_factory as made


def shares(trials, space=None):
    space = space or made.space()
    found = importance(responses(trials, space, "throughput"), space)
    return {one.knobs: one for one in found.shares}, found


@pytest.fixture(scope="module")
def truth():
    """Shares of the planted function over all 256 configurations, without noise."""
    return shares(made.trials(made.space().all(), noise=1e-9))[0]


@pytest.mark.slow
def test_a_full_grid_is_exact(truth):
    found, whole = shares(made.trials(made.space().all(), noise=0.05))
    assert whole.exact
    assert np.isnan(whole.noise)  # no configuration was tried twice
    _, twice = shares(made.trials([*made.space().all(), *made.space().all()], noise=0.05))
    assert twice.exact and twice.noise == pytest.approx(0.05, rel=0.3)
    for knobs in (("page_size",), ("cache",), ("page_size", "cache")):
        assert found[knobs].low <= truth[knobs].share <= found[knobs].high
        assert found[knobs].high - found[knobs].low < 0.06
    assert truth["page_size", "cache"].share > 0.3  # the planted interaction


@pytest.mark.slow
def test_forty_of_256_trials_show_the_interaction(truth):
    found, whole = shares(made.trials(made.sample(made.space(), 40)))
    assert not whole.exact
    assert found["page_size", "cache"].sure
    for knobs in (("page_size",), ("cache",), ("page_size", "cache")):
        assert found[knobs].share == pytest.approx(truth[knobs].share, abs=0.06)
    assert not any("shared_cache" in one.knobs and one.sure for one in whole.shares)
    assert main_knobs(whole)[:2] == ["page_size", "cache"]


def test_noise_alone_has_no_importance():
    space, flat = made.space(), lambda one: 12.0
    several = [shares(made.trials(made.sample(space, 30, seed), flat, 0.1, seed))[1] for seed in range(15)]
    assert sum(bool(one.shares) for one in several) <= 1
    told = [one for one in several if not one.shares]
    assert all("no knob is shown to matter" in one.reason for one in told)


def test_few_or_equal_trials_say_why_not():
    space = made.space()
    assert "8 are needed" in shares(made.trials(made.sample(space, 5)))[1].reason
    assert "the same" in shares(made.trials(made.sample(space, 20), lambda one: 3.0, 0.0))[1].reason


def test_sums_of_squares_are_those_of_the_textbook():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 4, 2))
    found = grid_effects(values, 0.0, 1.0, 1, rng)
    rows = values.mean(axis=(1, 2)) - values.mean()
    assert found.mains[0, 0] == pytest.approx(np.mean(rows**2))
    both = values.mean(axis=2) - values.mean(axis=(1, 2))[:, None] - values.mean(axis=(0, 2))[None, :] + values.mean()
    assert found.pairs[0, 0] == pytest.approx(np.mean(both**2))
    assert found.mains.sum() + found.pairs.sum() + found.triples.sum() == pytest.approx(values.var())


def test_a_grid_with_a_hole_is_none():
    levels = [np.array([0.0, 1.0]), np.array([0.0, 1.0])]
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert full_grid(levels, x, np.arange(4.0)) is not None
    assert full_grid(levels, x[:3], np.arange(3.0)) is None
    assert full_grid(levels, x[[0, 1, 2, 2]], np.arange(4.0)) is None


def test_centred_kernels_average_to_nothing():
    for levels, ordered in ((np.linspace(0, 1, 5), True), (np.array([0.1, 0.5, 0.9]), False)):
        kernel = centred_kernel(levels, ordered, levels)
        assert np.abs(kernel.mean(axis=0)).max() < 1e-12
        assert np.diag(kernel).mean() == pytest.approx(1.0)


def test_the_null_holds_its_error():
    levels, ordered = [np.linspace(0, 1, 4), np.array([0.0, 1.0])], np.array([True, False])
    rng = np.random.default_rng(5)
    x = np.stack([rng.choice(levels[0], 24), rng.choice(levels[1], 24)], axis=1)
    p = [dependence(levels, ordered, x, rng.standard_cauchy(24), rng) for _ in range(40)]
    assert np.mean(np.array(p) <= 0.1) <= 0.25
    assert dependence(levels, ordered, x, x[:, 0] * x[:, 1], rng) <= 0.01


def test_a_setting_that_is_best_in_the_middle_of_its_range_matters():
    """A symmetric peak has no trend; three knobs of four levels, noise of a fifth of the peak's height."""
    levels, ordered = [np.linspace(0, 1, 4)] * 3, np.ones(3, dtype=bool)
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.choice(levels[0], (20, 3))
        y = -4 * (x[:, 1] - 0.5) ** 2 + rng.normal(0, 0.2, 20)
        found += dependence(levels, ordered, x, y, rng) <= 0.01
    assert found >= 19
