"""Components that did not change: a diff and a check say so of at least 99 in 100, and of none the opposite."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.diffing import DiffSide, compare
from perflaw.check.judge import judge
from perflaw.check.law_records import law_records
from perflaw.check.run_effects import baseline_of
from tests.check.made import evidence, keyed, learnt
from tests.conftest import examples

COMPONENTS = examples(1000)


def linear(x, rng):
    return 5_000 + 300 * x * np.exp(rng.normal(0, 0.1, x.size))


def sides(tau):
    """Laws and evidence of both sides; each law is the same but for the runs behind it, which differ by ``tau``."""
    rng = np.random.default_rng([7, round(1000 * tau)])
    [law] = learnt(evidence("f", linear, rng, calls=300, tau=0.01))
    both = []
    for _ in range(2):
        found = [evidence(f"f{i}", linear, rng, calls=50, tau=tau) for i in range(COMPONENTS)]
        claims = [
            replace(law, component=one.component.name, baseline=baseline_of(law, law_records(law, one)))
            for one in found
        ]
        both.append(DiffSide(claims, keyed(*found)))
    return both


def assert_nothing_changed(verdicts):
    outcomes = [one.verdict for one in verdicts]
    assert len(outcomes) == COMPONENTS
    assert outcomes.count("violated") == 0
    assert outcomes.count("holds") >= 0.99 * COMPONENTS


@pytest.mark.slow
def test_a_diff_sees_no_change_where_there_is_none():
    verdicts = compare(*sides(0.03))
    assert_nothing_changed(verdicts)
    assert not any(one.changes or one.better for one in verdicts)


@pytest.mark.slow
def test_a_check_sees_no_change_where_there_is_none():
    old, new = sides(0.05)
    assert_nothing_changed(judge(old.claims, new.evidence))
