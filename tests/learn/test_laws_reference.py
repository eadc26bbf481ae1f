"""Numbers against statsmodels, and the language of laws against what it says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from perflaw.laws.printing import learnt_text
from perflaw.learn.series import Series, learn
from perflaw.learn.series.candidates import MODELS, fit_candidates
from perflaw.learn.series.model import LOGNORMAL, NORMAL, NoiseModel, cluster_covariance
from perflaw.learn.series.series import prepare
from tests.learn.law_data import TRUTHS, draw, generator


@pytest.fixture(scope="module")
def sm() -> Any:
    """statsmodels, which takes longer to import than all else that tests of learners need."""
    import statsmodels.api

    return statsmodels.api


def place(family: str, intercept: bool, noise: NoiseModel) -> int:
    return next(m for m, k in enumerate(MODELS) if (k.family.name, k.intercept, k.noise) == (family, intercept, noise))


def band(series: Series, family: str, intercept: bool, noise: NoiseModel, at: float) -> list[float]:
    found = fit_candidates([prepare(series)])
    law = found.fitted(np.array([0]), np.array([0]), place(family, intercept, noise), 0.95)
    return [float(limit[0, 0]) for limit in law.band(np.array([[at]]))]


def test_line_is_ordinary_least_squares(sm: Any) -> None:
    rng = generator(40)
    x = rng.uniform(1, 50, 25)
    y = 300 + 4 * x + rng.normal(0, 10, 25)
    frame = sm.OLS(y, sm.add_constant(x)).fit().get_prediction([[1.0, 80.0]]).summary_frame(alpha=0.05)
    expected = frame[["mean", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper"]].to_numpy()[0]
    assert band(Series("s", y, {"n": x}), "linear", True, NORMAL, 80.0) == pytest.approx(expected.tolist())


def test_weights_are_weighted_least_squares(sm: Any) -> None:
    rng = generator(41)
    x, w = rng.uniform(1, 50, 25), rng.uniform(0.5, 2, 25)
    y = 300 + 4 * x + rng.normal(0, 10, 25)
    expected = sm.WLS(y, sm.add_constant(x), weights=w).fit().predict([[1.0, 80.0]])[0]
    assert band(Series("s", y, {"n": x}, weights=w), "linear", True, NORMAL, 80.0)[0] == pytest.approx(expected)


def test_power_is_least_squares_of_logarithms(sm: Any) -> None:
    rng = generator(42)
    x = rng.uniform(10, 5000, 30)
    y = 2 * x**1.4 * np.exp(0.3 * rng.standard_normal(30))
    fitted = sm.OLS(np.log(y), sm.add_constant(np.log(x))).fit()
    frame = fitted.get_prediction([[1.0, np.log(1e4)]]).summary_frame(alpha=0.05)
    _, _, _, low, high = band(Series("s", y, {"n": x}), "power", False, LOGNORMAL, 1e4)
    assert [low, high] == pytest.approx(np.exp(frame[["obs_ci_lower", "obs_ci_upper"]].to_numpy()[0]).tolist())


def test_power_with_intercept_reaches_the_minimum(sm: Any) -> None:
    """Against a fine grid of exponents with the other parameters by least squares."""
    rng = generator(43)
    x = np.sort(rng.uniform(1, 100, 30))
    y = 50 + 0.3 * x**1.7 + rng.normal(0, 5, 30)
    found = fit_candidates([prepare(Series("s", y, {"n": x}))])
    ours = float(found.fits[place("power", True, NORMAL)].rss[0])
    grid = [sm.OLS(y, sm.add_constant(x**b)).fit().ssr for b in np.linspace(0.3, 5, 400)]
    assert ours <= min(grid) * (1 + 1e-9)


def test_likelihoods_compare_across_noises(sm: Any) -> None:
    """−2 log likelihood of y itself: the Jacobian is in."""
    rng = generator(44)
    x = rng.uniform(1, 50, 20)
    y = np.exp(rng.normal(3, 0.4, 20))
    found = fit_candidates([prepare(Series("s", y, {"n": x}))])
    constant = 20 * (np.log(2 * np.pi))
    assert found.fits[place("constant", False, NORMAL)].deviance[0] + constant == pytest.approx(
        -2 * sm.OLS(y, np.ones(20)).fit().llf
    )
    logs = sm.OLS(np.log(y), np.ones(20)).fit()
    expected = -2 * logs.llf + 2 * np.log(y).sum()
    assert found.fits[place("constant", False, LOGNORMAL)].deviance[0] + constant == pytest.approx(expected)


def test_cluster_covariance_is_the_jackknife_over_runs(sm: Any) -> None:
    rng = generator(45)
    run = np.repeat(np.arange(5), 12)
    x = rng.uniform(1, 50, 60)
    design = sm.add_constant(x)
    y = 3 + 2 * x + rng.normal(0, 3, 5)[run] + rng.normal(0, 1, 60)
    whole = sm.OLS(y, design).fit()
    moves = np.array([sm.OLS(y[run != r], design[run != r]).fit().params - whole.params for r in range(5)])
    ours = cluster_covariance(design.T, np.ones(60), np.asarray(whole.resid), run)
    assert ours == pytest.approx(0.8 * moves.T @ moves)
    robust = whole.get_robustcov_results("cluster", groups=run).cov_params()
    ratio = np.diag(ours) / np.diag(robust)
    assert (ratio > 0.1).all() and (ratio < 10).all(), "of the size of the sandwich"


def evaluate(expression: str, values: dict[str, float]) -> float:
    """A mean expression by Python's rules; names may have dots."""
    for name, value in values.items():
        expression = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", repr(value), expression)
    return float(eval(expression.replace("^", "**"), {"log": np.log}))


@pytest.mark.parametrize("feature", ["n", "docs.len", "e"])
def test_expressions_say_what_the_law_says(feature: str) -> None:
    rng = generator(46)
    data = [draw(truth, noise, 15, rng)[0] for truth, _ in TRUTHS.values() for noise in (0.0, 0.1)]
    for one in learn([Series("s", series.y, {feature: series.features["n"]}) for series in data]):
        name = "LogNorm" if one.law.noise.distribution == "lognormal" else "Norm"
        scale = f"{one.law.noise.scale:.6g}".replace("e+", "e")
        mean = learnt_text(one.law.mean)
        assert learnt_text(one.law.expression) == f"{name}({mean}, {scale})"
        for p in one.law.predictions:
            assert evaluate(mean, dict(p.features)) == pytest.approx(p.mean, rel=1e-4)
