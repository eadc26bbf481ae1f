"""Mixtures: what a mode costs is a claim about calls, how often it comes is one about the workload."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.diffing import DiffSide, compare
from perflaw.check.judge import judge
from tests.check.made import evidence, keyed, learnt, written

TEXT = "f.time(n) [us] { {0.9} LogNorm(1, 0.1); {0.1} LogNorm(30, 0.1) }"


def modes(often, fast=1_000, slow=30_000):
    """Calls of two modes that are told apart by nothing."""
    return lambda x, rng: np.where(rng.random(x.size) < often, fast, slow) * np.exp(rng.normal(0, 0.1, x.size))


def made(cost, seed=2, sizes=(10, 1000)):
    return evidence("f", cost, np.random.default_rng(seed), sizes=sizes)


@pytest.fixture(scope="module")
def law():
    [found] = learnt(made(modes(0.9), 1))
    assert len(found.clauses[0].parts) == 2
    return found


def test_the_same_mix_holds(law):
    [found] = judge([law], keyed(made(modes(0.9))))
    assert (found.verdict, found.message) == ("holds", "")


@pytest.mark.parametrize(("often", "now"), [(0.7, "now 7"), (0.99, "now 99 %")])
def test_a_mix_that_changed_on_the_same_inputs_is_told_as_that(law, often, now):
    [found] = judge([law], keyed(made(modes(often))))
    assert found.verdict == "violated"
    assert found.message.startswith("mix changed, each mode holds: mode 1 of 2: 90 % of the calls")
    assert now in found.message


def test_of_other_inputs_the_probabilities_claim_nothing(law):
    [found] = judge([law], keyed(made(modes(0.7), sizes=(300, 1000))))
    assert found.verdict == "out of scope"
    assert "mix changed with the inputs (n), each mode holds" in found.message


@pytest.mark.parametrize(
    "cost",
    [modes(0.9, fast=1_500), modes(0.9, slow=90_000), modes(0.7, slow=60_000), modes(0.9, 2_000, 60_000)],
    ids=["fast mode", "slow mode", "slow mode and mix", "all"],
)
@pytest.mark.parametrize("sizes", [(10, 1000), (300, 1000)])
def test_a_mode_that_costs_more_is_a_violation_whatever_the_inputs(law, cost, sizes):
    [found] = judge([law], keyed(made(cost, sizes=sizes)))
    assert found.verdict == "violated"
    assert "mix" not in found.message


def test_by_hand_probabilities_are_taken_at_their_word():
    [same] = judge(written(TEXT), keyed(made(modes(0.9))))
    [mix] = judge(written(TEXT), keyed(made(modes(0.7))))
    [slow] = judge(written(TEXT), keyed(made(modes(0.9, slow=90_000))))
    assert (same.verdict, mix.verdict, slow.verdict) == ("holds", "violated", "violated")
    assert "mix changed" in mix.message
    assert "mix changed" not in slow.message


def test_a_diff_says_so_as_well():
    old, new = made(modes(0.9), 1), made(modes(0.7))
    [found] = compare(DiffSide(learnt(old), keyed(old)), DiffSide(learnt(new), keyed(new)))
    assert (found.verdict, found.message[:11]) == ("violated", "mix changed")


def test_a_call_that_cost_nothing_hides_no_change_of_the_mix():
    """No lognormal mode has a cost of 0, which a clock that steps tells now and then."""
    mixed = made(modes(0.7))
    cost = mixed.cost.copy()
    cost[3] = 0.0
    [found] = judge(written(TEXT), keyed(replace(mixed, cost=cost)))
    assert "mode 1 of 2: 90 % of the calls, now 7" in found.message
