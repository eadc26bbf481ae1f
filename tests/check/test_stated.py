"""Laws written by hand: a spread that is stated is part of the claim."""

import numpy as np
import pytest

from perflaw.check.judge import judge
from tests.check.made import evidence, keyed, learnt, written


def half_a_millisecond(x, rng):
    return 500_000 * np.exp(rng.normal(0, 0.1, x.size))


def verdict(law, seed=1, cost=half_a_millisecond):
    [found] = judge(written(f"f.time(n) {law}"), keyed(evidence("f", cost, np.random.default_rng(seed))))
    return found


@pytest.mark.parametrize(
    ("law", "outcome"),
    [
        ("[us] { Norm(500, 50) }", "holds"),
        ("[ms] { Norm(500, 5000) }", "holds"),  # 0.5 ms is within what it says
        ("[us] { Norm(500, 5000) }", "holds"),
        ("[us] { Norm(450, 200) }", "holds"),  # a mean effect far below the deviation
        ("[us] { Exp(400) }", "holds"),
        ("[us] { Norm(500, 0.001) }", "holds"),  # the mean is what it says
        ("[us] { Norm(250, 50) }", "violated"),
        ("[us] { Norm(900, 50) }", "violated"),
        ("[us] { Norm(1, 5) }", "violated"),  # far outside of a wide spread
        ("[us] { Norm(5000, 1000) }", "violated"),
        ("[us] { Exp(200) }", "violated"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mean_within_half_a_stated_deviation_is_no_violation(law, outcome, seed):
    assert verdict(law, seed).verdict == outcome


def test_a_spread_of_another_size_is_told():
    assert verdict("[us] { Norm(500, 50) }").message == ""
    assert "0.01x as far as the law states" in verdict("[us] { Norm(500, 5000) }").message
    assert "x as far as the law states" in verdict("[us] { Norm(500, 0.001) }").message


def test_wide_scatter_that_was_learnt_excuses_nothing():
    """Runs say how exactly its mean is known."""

    def wide(x, rng):
        return 500_000 * np.exp(rng.normal(0, 0.8, x.size))

    law = learnt(evidence("f", wide, np.random.default_rng(1)))
    [same] = judge(law, keyed(evidence("f", wide, np.random.default_rng(2))))
    [slow] = judge(law, keyed(evidence("f", lambda x, rng: 1.5 * wide(x, rng), np.random.default_rng(2))))
    assert (same.verdict, slow.verdict) == ("holds", "violated")
