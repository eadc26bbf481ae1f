"""Means taken apart into terms, and their coefficients' intervals."""

import numpy as np
import pytest

from perflaw.check.changes import coefficients, mean_terms
from perflaw.check.law_records import law_records
from perflaw.laws.reading import parse_distribution
from tests.check.made import evidence, written


@pytest.mark.parametrize(
    ("law", "terms"),
    [
        ("Norm(5, 1)", {"": 5}),
        ("Norm(-3*n + 2*n, 1)", {"n": -1}),
        ("LogNorm(2*a*b^2 - (3 - c), 0.1)", {"a*b^2": 2, "": -3, "c": 1}),
        ("Exp(n/4)", {"n": 0.25}),
        ("Binom(10*n, 0.5)", {"n": 5}),
        ("Norm(6*n/m, 1)", {"n/m": 6}),
    ],
)
def test_terms(law, terms):
    assert {one.text: one.coefficient for one in mean_terms(parse_distribution(law))} == pytest.approx(terms)


def test_a_long_sum_is_taken_apart_without_recursion():
    law = parse_distribution("Norm(" + " + ".join(["n"] * 900) + ", 1)")
    assert [one.coefficient for one in mean_terms(law)] == [900]


def test_intervals_of_coefficients_cover_the_truth_between_runs():
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        made = evidence("f", lambda x, rng: 300 * x, rng, runs=6, calls=50, tau=0.05)
        [claim] = written("f.time(n) { LogNorm(300*n, 0.05) }")
        [[found]] = coefficients(claim, law_records(claim, made))
        half = found.high - found.value
        fitted = float((made.cost / made.features["n"]).mean())
        covered += abs(fitted - 300) <= half
    assert covered >= 53


def test_one_run_has_no_interval():
    rng = np.random.default_rng(1)
    [claim] = written("f.time(n) { Norm(300*n, 5) }")
    [[found]] = coefficients(claim, law_records(claim, evidence("f", lambda x, rng: 300 * x, rng, runs=1)))
    assert (found.value, found.low, found.high) == (300, None, None)
