"""``--paper``: the choices of Freud's paper where ours differ (§3.2, §4.3)."""

import numpy as np
import pytest

from perflaw.learn.annotations.paper import learn_paper
from perflaw.learn.modes import paper_borders
from perflaw.learn.series import Series
from tests.learn.annotation_data import evidence, learn_one, told

N = 400


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def paper(y, features):
    [found] = learn_paper([Series("f", y, features)], 0.9)
    return found


@pytest.mark.parametrize(
    ("family", "mean"),
    [
        ("constant", lambda x: 700 + 0 * x),
        ("linear", lambda x: 40 + 3 * x),
        ("nlogn", lambda x: 40 + 3 * x * np.log(x)),
        ("quadratic", lambda x: 40 + 3 * x * x),
    ],
)
def test_the_four_classes(rng, family, mean):
    x, useless = rng.uniform(1, 1000, N), rng.uniform(1, 1000, N)
    law = paper(mean(x) + rng.normal(0, 30, N), {"x": x, "useless": useless}).law
    assert law.family == family
    assert law.features == (() if family == "constant" else ("x",))
    assert law.expression.name == "Norm"


def test_coefficients_are_those_of_least_squares(rng):
    import statsmodels.api as sm  # takes seconds

    x, z = rng.uniform(1, 1000, N), rng.uniform(1, 1000, N)
    y = 5 + 3 * x + 2 * z + rng.normal(0, 20, N)
    found = paper(y, {"x": x, "z": z})
    reference = sm.OLS(y, sm.add_constant(np.column_stack([x, z]))).fit()
    assert found.plausible[0].coefficients == pytest.approx(reference.params, rel=1e-8)
    assert found.law.r2 == pytest.approx(reference.rsquared)
    assert found.law.noise.scale == pytest.approx(np.sqrt(reference.mse_resid))


def test_one_of_an_equivalence_class_stands_for_all(rng):
    x = rng.uniform(1, 1000, N)
    law = paper(3 * x, {"self.items.deep.len": x * (1 + 0.01 * rng.normal(size=N)), "items.len": x, "n": x}).law
    assert law.features == ("n",)


def test_the_bootstrap_interval_holds_the_truth(rng):
    x = rng.uniform(1, 1000, N)
    [asked] = paper(40 + 3 * x + rng.normal(0, 30, N), {"x": x}).predict([{"x": 2000.0}])
    assert asked.mean_low < 6040 < asked.mean_high
    assert asked.new_low < asked.mean_low < asked.mean_high < asked.new_high


def test_all_minima_of_the_density_are_borders(rng):
    y = np.concatenate([rng.normal(10, 1, 300), rng.normal(30, 1, 300)])
    assert any(13 < border < 27 for border in paper_borders(y))
    assert paper_borders(np.ones(10)).size == 0


def test_scopes_of_branches(rng):
    t, taken = rng.integers(1, 500, N), rng.integers(0, 2, N)
    made = evidence(np.where(taken, 3 * t**2, 100 * t) * 1000, {"t": t}, branches={"branch.L12.taken": taken})
    assert told(learn_one(made, paper=True)) == {"branch.L12.taken > 0": "quadratic", "branch.L12.taken == 0": "linear"}


def test_a_mixture_of_three_modes(rng):
    y = rng.choice([900.0, 600.0, 300.0], N) * 1000
    found = learn_one(evidence(y, {"a": rng.integers(1, 200, N)}), paper=True)
    assert sorted(round(scope.law.coefficient / 1000) for scope in found.scopes) == [300, 600, 900]
