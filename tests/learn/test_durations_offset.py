"""Durations on a comb whose teeth stand beside the multiples of the clock's step: a recorder took its own time out of them."""

import numpy as np
import pytest

from perflaw.learn.paths.borders import borders_of
from perflaw.learn.paths.durations import histogram_of

STEP = 10.0


def on_a_comb(values, off, rng):
    """Whole ns, as stamps are."""
    return np.floor(np.floor(values / STEP) * STEP + off + rng.random(values.size))


@pytest.mark.parametrize("off", range(10))
@pytest.mark.parametrize("median", [60, 200, 1000])
def test_teeth_are_no_modes(off, median):
    rng = np.random.default_rng(off)
    values = rng.lognormal(np.log(median), 0.3, 20_000)
    assert borders_of(histogram_of(on_a_comb(values, off, rng)), STEP).size == 0


@pytest.mark.parametrize("off", range(10))
def test_two_modes_are_two(off):
    rng = np.random.default_rng(off)
    values = np.r_[rng.lognormal(np.log(60), 0.2, 12_000), rng.lognormal(np.log(300), 0.2, 8_000)]
    (border,) = borders_of(histogram_of(on_a_comb(values, off, rng)), STEP)
    assert 90 < border < 220
