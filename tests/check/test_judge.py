"""Verdicts on components of known cost: what changed is found, what did not is left alone, and doubt is said aloud."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.judge import CheckOptions, judge
from perflaw.check.law_records import law_records
from perflaw.check.run_effects import total_effects
from tests.check.made import evidence, keyed, learnt, written
from tests.conftest import first


def linear(x, rng):
    return 5_000 + 300 * x * np.exp(rng.normal(0, 0.1, x.size))


def slower(x, rng):
    return 1.5 * linear(x, rng)


def slower_when_large(x, rng):
    return linear(x, rng) * np.where(x >= 200, 1.8, 1.0)


def two_modes(x, rng):
    return np.where(rng.random(x.size) < 0.9, 1_000, 30_000) * np.exp(rng.normal(0, 0.1, x.size))


def more_misses(x, rng):
    return np.where(rng.random(x.size) < 0.7, 1_000, 30_000) * np.exp(rng.normal(0, 0.1, x.size))


def shorter_than_the_tracer(x, rng):
    return 40.0 + 0.0 * x


def one(verdicts):
    [verdict] = verdicts
    return verdict


@pytest.fixture(scope="module")
def law():
    return learnt(evidence("f", linear, np.random.default_rng(1)))


def test_the_same_function_holds(law):
    found = one(judge(law, keyed(evidence("f", linear, np.random.default_rng(2)))))
    assert found.verdict == "holds"
    assert found.effect_low < 1 < found.effect_high
    assert found.p > 0.01
    assert (found.runs, found.records, found.outside) == (3, 3000, 0)


def test_a_slower_function_violates_its_law(law):
    found = one(judge(law, keyed(evidence("f", slower, np.random.default_rng(2)))))
    assert found.verdict == "violated"
    assert found.p < 0.01
    assert found.effect_low < 1.5 < found.effect_high
    assert (found.runs_beyond, found.runs, found.since) == (3, 3, "")


def test_the_size_from_which_on_it_is_slower_is_told(law):
    found = one(judge(law, keyed(evidence("f", slower_when_large, np.random.default_rng(2)))))
    assert found.verdict == "violated"
    name, value = found.since.split(" = ")
    assert name == "n"
    assert 150 <= float(value) <= 300
    assert found.effect == pytest.approx(1.8, rel=0.1)


def test_a_faster_function_violates_its_law_as_well(law):
    found = one(judge(law, keyed(evidence("f", lambda x, rng: linear(x, rng) / 2, np.random.default_rng(2)))))
    assert found.verdict == "violated"
    assert found.effect == pytest.approx(0.5, rel=0.1)
    assert "cheaper" in found.message


def test_a_mode_that_became_more_frequent_is_found():
    law = learnt(evidence("g", two_modes, np.random.default_rng(1), sizes=None))
    same = one(judge(law, keyed(evidence("g", two_modes, np.random.default_rng(2), sizes=None))))
    more = one(judge(law, keyed(evidence("g", more_misses, np.random.default_rng(2), sizes=None))))
    assert (same.verdict, more.verdict) == ("holds", "violated")


@pytest.mark.parametrize("tau", first(1, [0.03, 0.1]))
def test_no_alarm_on_many_components_that_did_not_change(tau):
    rng = np.random.default_rng(3)
    old = [evidence(f"f{i}", linear, rng, calls=200, tau=tau) for i in range(60)]
    new = [evidence(f"f{i}", linear, rng, calls=200, tau=tau) for i in range(60)]
    assert [found.verdict for found in judge(learnt(*old), keyed(*new))].count("violated") == 0


def test_one_slow_component_among_many_is_found():
    rng = np.random.default_rng(4)
    old = [evidence(f"f{i}", linear, rng, calls=200) for i in range(60)]
    new = [evidence(f"f{i}", slower if i == 7 else linear, rng, calls=200) for i in range(60)]
    found = judge(learnt(*old), keyed(*new))
    assert [one.component.name for one in found if one.verdict == "violated"] == ["f7"]


def test_one_run_alone_violates_nothing(law):
    new = keyed(evidence("f", slower, np.random.default_rng(2), runs=1))
    found = one(judge(law, new))
    assert found.verdict == "inconclusive"
    assert "one run" in found.message
    assert one(judge(law, new, CheckOptions(single_run=True))).verdict == "violated"
    assert one(judge(law, keyed(evidence("f", linear, np.random.default_rng(2), runs=1)))).verdict == "holds"


def test_a_law_of_one_run_is_violated_by_nothing():
    law = learnt(evidence("f", linear, np.random.default_rng(1), runs=1))
    assert one(judge(law, keyed(evidence("f", slower, np.random.default_rng(2))))).verdict == "inconclusive"


def test_inputs_that_were_not_learnt_from_are_said_aloud(law):
    far = one(judge(law, keyed(evidence("f", linear, np.random.default_rng(2), sizes=(5_000, 9_000)))))
    assert far.verdict == "out of scope"
    assert far.outside == 1
    assert "learnt from" in far.message
    some = one(judge(law, keyed(evidence("f", linear, np.random.default_rng(2), sizes=(300, 1_500)))))
    assert some.verdict == "holds"
    assert 0.1 < some.outside < 0.4


def test_too_few_records_and_no_records():
    law = written("f.time(n) { Norm(5000 + 300*n, 100) }")
    few = one(judge(law, keyed(evidence("f", linear, np.random.default_rng(2), runs=2, calls=1))))
    assert few.verdict == "inconclusive"
    none = evidence("f", linear, np.random.default_rng(2), runs=2, calls=0)
    assert one(judge(law, keyed(none))).verdict == "inconclusive"
    assert judge([], {}) == []


def test_a_component_that_is_gone_is_told_with_those_of_similar_name(law):
    found = one(judge(law, keyed(evidence("pkg.f", linear, np.random.default_rng(2)))))
    assert found.verdict == "inconclusive"
    assert "pkg.f" in found.message
    assert found.effect is None


def test_a_feature_that_was_not_recorded_is_named():
    law = written("f.time(n) { Norm(10*docs.len, 1) }")
    found = one(judge(law, keyed(evidence("f", linear, np.random.default_rng(2)))))
    assert found.verdict == "inconclusive"
    assert "docs.len" in found.message


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("f.time(n) { Norm(5000 + 300*n, 0.2) }", "holds"),
        ("f.time(n) [us] { Norm(5 + 0.3*n, 1) }", "holds"),
        ("f.time(n) { Norm(5000 + 200*n, 0.2) }", "violated"),
        ("f.time(n) { [n > 100] Norm(5000 + 300*n, 9); [n <= 100] Norm(5000 + 300*n, 9) }", "holds"),
        ("f.time(n) { [n > 100] Norm(5000 + 300*n, 9); [n <= 100] Norm(5000 + 100*n, 9) }", "violated"),
        ("f.time(n) { [n > 5000] Norm(300*n, 9) }", "out of scope"),
        ("f.time(n) { {0.5} LogNorm(2500 + 150*n, 0.1); {0.5} LogNorm(7500 + 450*n, 0.1) }", "holds"),
        ("f.time(n) { LogNorm(log(n - 5000), 0.1) }", "out of scope"),
    ],
)
def test_laws_written_by_hand(text, verdict):
    new = keyed(evidence("f", linear, np.random.default_rng(2)))
    assert one(judge(written(text), new)).verdict == verdict


def test_a_condition_is_the_place_of_a_violation():
    text = "f.time(n) { [n > 100] Norm(5000 + 300*n, 9); [n <= 100] Norm(5000 + 100*n, 9) }"
    found = one(judge(written(text), keyed(evidence("f", linear, np.random.default_rng(2)))))
    assert found.path == "n <= 100"


def test_a_call_that_the_tracer_cannot_measure_that_finely_is_left_alone():
    law = learnt(evidence("f", lambda x, rng: 100 + 0 * x, np.random.default_rng(1), sizes=None, tau=0.01))
    new = evidence("f", lambda x, rng: 130 + 0 * x, np.random.default_rng(2), sizes=None, tau=0.01)
    assert one(judge(law, keyed(new))).verdict == "holds"


def test_costs_below_zero_after_the_tracers_own_cost_is_subtracted():
    """CPU time of very short calls: the sum over a run may be negative, which is no ratio."""
    rng = np.random.default_rng(4)
    claims = learnt(evidence("f", shorter_than_the_tracer, rng))
    new = evidence("f", shorter_than_the_tracer, rng)
    new = replace(new, cost=new.cost - 60.0 + rng.normal(0, 30, new.cost.size))
    assert new.cost.sum() < 0
    verdict = one(judge(claims, keyed(new)))
    assert 0 < verdict.effect <= 1
    assert verdict.verdict != "out of scope"


@pytest.mark.parametrize("stated", ["0.001", "1e-9*n", "1e99*n", "exp(n)"])
def test_costs_many_orders_of_magnitude_from_the_law_have_effects_that_are_numbers(stated):
    """Relative errors above 1 are no errors of a logarithm: intervals went beyond every number."""
    claims = written(f"f.time(n) {{ Norm({stated}, 1) }}")
    new = evidence("f", lambda x, rng: np.where(x > 900, 1e15, 1.0), np.random.default_rng(5), runs=3, calls=40)
    records = law_records(claims[0], new)
    assert total_effects(records.take(records.inside)).variance.max(initial=0.0) < 100.0
    verdict = one(judge(claims, keyed(new)))
    ends = (verdict.effect_low, verdict.effect, verdict.effect_high)
    assert verdict.effect is None or np.isfinite(np.log(ends)).all()
