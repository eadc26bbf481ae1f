"""Which of the paper's exponent and the law to believe: known growths, and data of which both say the same."""

import numpy as np
import pytest

from perflaw.learn.trend import trend
from tests.learn.law_data import generator

SIZES = np.array([30.0, 60, 120, 250, 500, 1000, 2000, 4000])


def disagreement(counts, sizes=SIZES):
    one = trend([np.rint(counts)], ["f"], {"n": sizes}).clusters[0]
    return one.disagreements.get("n")


@pytest.mark.parametrize(
    ("counts", "growth"),
    [
        (20_000 + 5 * SIZES, 1.0),
        (5000 + 40 * SIZES + SIZES**2 / 20, 2.0),
        (np.where(SIZES < 200, 30 * SIZES, SIZES**2 / 6), 2.0),
    ],
)
def test_a_constant_or_a_regime_bends_the_power_law_and_the_law_is_to_be_believed(counts, growth):
    found = disagreement(counts)
    assert found.believe == "law"
    assert found.growth == pytest.approx(growth, abs=0.02)
    assert found.law_error < 0.01 < 0.1 < found.power_error


def test_what_the_paper_says_as_well_is_no_disagreement():
    for counts in (3 * SIZES, SIZES**2 / 10, 7 * SIZES**1.5):
        assert disagreement(counts) is None
    logarithm = disagreement(3 * SIZES * np.log2(SIZES))  # told as n^1.13
    assert (logarithm.believe, logarithm.law_error < 0.001) == ("law", True)
    rng, told = generator(21), 0
    size = np.geomspace(100, 1e5, 20)
    for _ in range(40):
        told += (
            disagreement(5 * size ** rng.uniform(0.8, 1.6) * np.exp(0.2 * rng.standard_normal(20)), size) is not None
        )
    assert told <= 4


def test_a_law_that_is_not_established_is_not_believed():
    rng, seen = np.random.default_rng(5), 0
    size = np.geomspace(1e4, 1e6, 12)
    for _ in range(30):
        one = trend(np.rint([size * np.exp(1.2 * rng.standard_normal(12))]), ["f"], {"n": size}).clusters[0]
        for found in one.disagreements.values():
            seen += 1
            assert found.believe == ("law" if one.laws["n"].verdict == "law" else "power law")
    assert seen < 15


def test_an_exponential_has_no_exponent():
    assert disagreement(50 * np.exp(SIZES / 500)).growth > 20
