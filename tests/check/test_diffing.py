"""Differences of two sets of laws: planted ones are found with their ratio, none is found where nothing changed."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.diffing import DiffSide, compare
from tests.check.made import evidence, keyed, learnt, written
from tests.conftest import first


def version(slope, second=0.0):
    """mysql_execute_command of MySQL 5.7 (0.86 µs a byte) or 8.0 (4.94), as in the paper's Figure 5."""

    def cost(x, rng):
        return 168_650 + 1000 * slope * x + second * x**2 + rng.normal(0, 5_000, x.size)

    return cost


def side(cost, seed, name="mysql_execute_command", **options):
    made = evidence(name, cost, np.random.default_rng(seed), sizes=(1_000, 100_000), calls=300, runs=5, **options)
    return DiffSide(learnt(made), keyed(made))


@pytest.mark.parametrize("twins", [False, True])
def test_the_regression_of_mysql_is_told_as_a_ratio_with_its_interval(twins):
    old, new = side(version(0.86), 1), side(version(4.94), 2)
    if twins:
        old, new = replace(old, evidence=None), replace(new, evidence=None)
    [found] = compare(old, new)
    assert found.verdict == "violated"
    assert found.p < 0.01
    [slope] = [one for one in found.changes if one.what == "coefficient"]
    assert slope.low < 4.94 / 0.86 < slope.high
    assert slope.ratio == pytest.approx(5.74, rel=0.1)
    assert found.effect_low > 1.1
    [back] = compare(new, old)
    assert (back.verdict, back.better) == ("holds", True)


def test_another_family_is_told():
    [found] = compare(side(version(0.86), 1), side(version(0.86, 5.0), 2))
    assert found.verdict == "violated"
    assert {one.what for one in found.changes} & {"family", "slope", "scope"}


@pytest.mark.parametrize("tau", first(1, [0.03, 0.1]))
def test_recordings_of_the_same_program_do_not_differ(tau):
    def recorded(seed):
        rng = np.random.default_rng(seed)
        several = [
            evidence(f"f{number}", cost, rng, tau=tau, calls=100)
            for number in range(40)
            for cost in [(lambda x, rng: 2_000 * x), (lambda x, rng: np.full(x.size, 50_000.0))][number % 2 :][:1]
        ]
        return DiffSide(learnt(*several), keyed(*several))

    found = compare(recorded(1), recorded(2))
    assert not [one for one in found if one.verdict == "violated" or one.better or one.changes]
    assert sum(one.verdict == "holds" for one in found) >= 36


def test_one_run_on_a_side_decides_nothing():
    one = evidence("f", version(4.94), np.random.default_rng(2), sizes=(1_000, 100_000), calls=300, runs=1)
    [found] = compare(side(version(0.86), 1, "f"), DiffSide(learnt(one), keyed(one)))
    assert found.verdict == "inconclusive"


def test_texts_are_taken_at_their_word():
    def diff(old, new):
        [found] = compare(DiffSide(written(old)), DiffSide(written(new)))
        return found

    assert diff("f.time(n) { Norm(2*n, 1) }", "f.time(n) { Norm(3*n, 1) }").verdict == "violated"
    assert diff("f.time(n) { Norm(2*n, 1) }", "f.time(n) { Norm(2.1*n, 1) }").verdict == "holds"
    assert diff("f.time(n) { Norm(2*n, 1) }", "f.time(n) { Norm(2*n, 5) }").changes[0].what == "noise"
    other = diff("f.time(n) { Norm(2*n, 1) }", "f.time(n) { Norm(2*n^2, 1) }")
    assert (other.verdict, other.p) == ("inconclusive", None)
