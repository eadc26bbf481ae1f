"""Laws fitted together are those fitted one by one, and no law explains more than a monotone curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.annotations.selections import largest_r2, rising_curve
from perflaw.learn.series import Series, learn
from perflaw.learn.series.candidates import MODELS
from perflaw.learn.series.fit import fit
from perflaw.learn.series.stacks import Batch
from tests.learn.law_data import generator


def made(low: float, count: int = 3, n: int = 24, *, weighted: bool = False) -> Batch:
    """Series whose x starts at ``low``, some with responses that are not positive."""
    rng = generator(77)
    x = np.sort(low + 10 ** rng.uniform(0, 2, (count, n)), axis=-1)
    x[:, 0] = low
    y = (5 + np.abs(x) ** 1.3) * np.exp(0.1 * rng.standard_normal((count, n)))
    y[-1] -= y[-1].mean()
    positive = (y > 0).all(axis=-1)
    w = rng.uniform(0.5, 2, (count, n)) if weighted else np.ones((count, n))
    return Batch(x, y, np.where(positive[:, None], np.log(np.abs(y)), 0.0), w, np.zeros(count), positive)


@pytest.mark.parametrize("low", [-5.0, 0.0, 0.2, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_together_as_alone(low: float, weighted: bool) -> None:
    batch = made(low, weighted=weighted)
    with np.errstate(all="ignore"):
        for together in fit(MODELS, batch):
            [alone] = fit([together.model], replace(batch))
            for name in ("theta", "covariance", "rss", "floor", "deviance"):
                np.testing.assert_array_equal(
                    getattr(together, name), getattr(alone, name), err_msg=str(together.model)
                )


def test_series_as_in_a_batch() -> None:
    batch = made(1.0)
    parts = (batch.x, batch.y, batch.log_y, batch.w, batch.quantum, batch.positive)
    with np.errstate(all="ignore"):
        whole, first = fit(MODELS, batch), fit(MODELS, Batch(*(part[:1] for part in parts)))
    for many, one in zip(whole, first, strict=True):
        np.testing.assert_array_equal(many.theta[:1], one.theta)
        np.testing.assert_array_equal(many.deviance[:1], one.deviance)


@pytest.mark.parametrize("seed", range(12))
def test_no_law_explains_more_than_a_monotone_curve(seed: int) -> None:
    rng = generator(900 + seed)
    x = 10 ** rng.uniform(0, 3, 40)
    y = x ** rng.uniform(-1, 2) * np.exp(rng.uniform(0, 1) * rng.standard_normal(40))
    found = learn([Series("s", y, {"n": x})])[0].law
    assert (found.r2 or 0.0) <= largest_r2(x, y) + 1e-9 or found.breakpoints


def test_rising_curve_is_the_nearest() -> None:
    y = generator(5).standard_normal(30).cumsum()
    curve = rising_curve(y)
    assert (np.diff(curve) >= -1e-12).all()
    assert curve.sum() == pytest.approx(y.sum())
    assert abs(float((y - curve) @ curve)) < 1e-9  # the projection on a cone
