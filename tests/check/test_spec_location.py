"""Durations of functions of one kind: what became slower is told, a slower or busy machine is not."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.spec_calls import SpecOptions, tallies_of
from perflaw.check.spec_judge import judge_specs
from perflaw.check.spec_location import GROUPED, common_log_factors, locate
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.durations import histogram_of
from perflaw.learn.paths.mine import mine
from perflaw.types import Observed, Platform
from perflaw.types.specifications import MinedSpec
from tests.learn.observing import observe

HOST, THERE = Platform("here", "build", 20.0), Platform("there", "build", 20.0)
TYPICAL = {"mail.parse": 2e3, "mail.sort": 40e3, "mail.render": 900e3, "mail.handle": 950e3}
"""Functions of one kind; the last calls the others."""


def record(seed, runs=3, slower=None, speed=1.0, host=HOST, queued=0.0, names=tuple(TYPICAL), calls=2000):
    """New runs; ``slower`` is function → factor, ``queued`` the share of long calls' time that they queue for a CPU."""
    found = {}
    for number, name in enumerate(names):
        observations = []
        for run in range(1, runs + 1):
            rng = np.random.default_rng([seed, number, run])
            run_speed = speed * np.exp(np.random.default_rng([seed, run]).normal(0, 0.2))
            typical = TYPICAL[name] * (slower or {}).get(name, 1.0)
            on_cpu = typical * run_speed * np.exp(rng.normal(0, 0.1, calls))
            # A call queues in proportion to how long it runs: few of the short ones, all of the long ones.
            waits = rng.random(calls) < np.minimum(on_cpu / 1e6, 1.0)
            values = on_cpu + np.where(waits, queued * 1e6, 0.0)
            ends = run * 10**12 + np.cumsum(values).astype(np.int64)
            path = np.zeros(calls, dtype=int)
            for place, one in enumerate(observe(values, path, ends, every=1000, run=f"{run:04d}")):
                part = slice(1000 * place, 1000 * (place + 1))
                observations.append(replace(one, cpu_paths={0: histogram_of(on_cpu[part])}))
        way = ("main", name) if name == "mail.handle" else ("main", "mail.handle", name)
        total = {f"{run:04d}": round(queued * 1e6 * calls * 2) for run in range(1, runs + 1)}
        found[name, "time"] = Observed(
            name, "time", "ns", (way,), tuple(observations), (host,), share=0.2, queued_ns=total
        )
    return found


def mined(found):
    specs = [mine(one, MiningOptions(), 0) for one in found.values()]
    specs = [MinedSpec(spec, tallies_of(spec, one)) for spec, one in zip(specs, found.values(), strict=True)]
    return locate(specs, list(found.values()))


@pytest.fixture(scope="module")
def specs():
    return mined(record(1))


def test_location_tells_how_far_it_is_until_it_is_done(specs):
    told = []
    locate(specs, list(record(1).values()), told.append)
    assert told == sorted(told) and told[-1] == 1.0
    assert any(GROUPED < part < 1.0 for part in told)


def violated(verdicts):
    return [one.component.name for one in verdicts if one.verdict == "violated"]


@pytest.mark.parametrize(("factor", "has_plan"), [(1.0, False), (1.9, True), (10.0, False)])
def test_verdicts_are_the_same_without_a_plan(specs, factor, has_plan):
    new = record(2, 1, slower={"mail.sort": factor})
    planned, plain = (judge_specs(specs, new, SpecOptions(plan=plan)) for plan in (True, False))
    assert [(one.group, one.verdict, one.e_value) for one in planned] == [
        (one.group, one.verdict, one.e_value) for one in plain
    ]
    assert any(one.more_runs is not None for one in planned) == has_plan
    assert all(one.more_runs is None for one in plain)


@pytest.mark.parametrize("runs", [1, 3])
def test_a_function_of_one_kind_that_became_ten_times_slower_is_told(specs, runs):
    assert not any(one.spec.borders for one in specs)
    verdicts = judge_specs(specs, record(2, runs, slower={"mail.sort": 10.0}))
    assert violated(verdicts) == ["mail.sort"]
    assert verdicts[0].effect == pytest.approx(10.0, rel=0.15)
    assert verdicts[0].effect_low < 10.0 < verdicts[0].effect_high
    assert (verdicts[0].border, verdicts[0].quantile) == (None, 0.5)
    assert verdicts[0].expected == pytest.approx(40e3, rel=0.3)


def test_a_quicker_function_is_no_longer_what_was_specified(specs):
    [verdict] = [one for one in judge_specs(specs, record(3, slower={"mail.parse": 0.2})) if one.verdict == "violated"]
    assert (verdict.component.name, verdict.message) == ("mail.parse", "quicker than specified: mine it again")
    assert verdict.effect == pytest.approx(0.2, rel=0.15)


def test_a_caller_that_is_slower_through_its_callee_is_explained(specs):
    verdicts = judge_specs(specs, record(4, slower={"mail.render": 4.0, "mail.handle": 3.9}))
    assert violated(verdicts) == ["mail.render"]
    assert next(one for one in verdicts if one.component.name == "mail.handle").follows == "mail.render"


@pytest.mark.slow
def test_no_alarm_in_twenty_unchanged_recordings(specs):
    for seed in range(100, 120):
        for runs in (1, 3):
            assert violated(judge_specs(specs, record(seed, runs))) == []


@pytest.mark.parametrize("speed", [0.5, 1.6, 3.0])
def test_a_machine_that_is_slower_as_a_whole_is_no_violation(specs, speed):
    verdicts = judge_specs(specs, record(5, speed=speed))
    assert violated(verdicts) == []
    verdicts = judge_specs(specs, record(6, speed=speed, slower={"mail.sort": 5.0}))
    assert violated(verdicts) == ["mail.sort"]
    assert verdicts[0].effect == pytest.approx(5.0, rel=0.2)
    assert verdicts[0].machine == pytest.approx(speed, rel=0.3)


def test_another_machine_is_compared_through_the_other_functions(specs):
    assert violated(judge_specs(specs, record(7, speed=6.0, host=THERE))) == []
    assert violated(judge_specs(specs, record(8, speed=6.0, host=THERE, slower={"mail.sort": 10.0}))) == ["mail.sort"]
    alone = {"mail.parse"}
    verdicts = judge_specs(
        [one for one in specs if one.spec.component in alone], record(9, speed=6.0, host=THERE, names=("mail.parse",))
    )
    assert [one.verdict for one in verdicts] == ["out of scope"]


def test_a_single_function_has_no_witness_for_the_machine(specs):
    alone = [one for one in specs if one.spec.component == "mail.sort"]

    def check(factor):
        return judge_specs(alone, record(10, slower={"mail.sort": factor}, names=("mail.sort",)))[0]

    assert check(1.5).verdict != "violated"
    assert check(10.0).verdict == "violated"
    assert check(10.0).effect == pytest.approx(10.0, rel=0.4)


def test_how_much_a_function_varies_that_was_recorded_alone_is_known():
    """No other one says how fast the machine was in these runs: what it deviates is not taken for that."""
    (alone,) = mined(record(11, names=("mail.parse",), runs=6))
    together = {one.spec.component: one.spec.groups[0].duration_spread for one in mined(record(11, runs=6))}
    assert alone.spec.groups[0].duration_spread == pytest.approx(0.2, rel=0.6)
    assert together["mail.parse"] < 0.1


def test_what_calls_queue_for_a_cpu_is_not_theirs(specs):
    """Long calls take up to three times as long beside busy processes, short ones rarely."""
    for seed in range(20, 25):
        assert violated(judge_specs(specs, record(seed, queued=1.5))) == []
    assert violated(judge_specs(specs, record(25, queued=1.5, slower={"mail.sort": 10.0}))) == ["mail.sort"]
    busy = mined(record(26, queued=1.5))
    assert violated(judge_specs(busy, record(27))) == []


def test_waiting_of_its_own_accord_counts(specs):
    """Time off the CPU that the kernel does not count as queueing is the function's own."""
    found = record(28, queued=3.0)
    waiting = {key: replace(one, queued_ns=dict.fromkeys(one.queued_ns, 1000)) for key, one in found.items()}
    assert violated(judge_specs(specs, {**record(28), ("mail.render", "time"): waiting["mail.render", "time"]})) == [
        "mail.render"
    ]


def test_absolute_times_are_not_scaled(specs):
    verdicts = judge_specs(specs, record(29, speed=6.0), SpecOptions(absolute=True))
    assert set(violated(verdicts)) == {"mail.parse", "mail.sort", "mail.render"}


def test_a_factor_needs_witnesses():
    def common(votes, own):
        return common_log_factors(np.array(votes), own=own)

    assert common([[2.3], [0.0]], True) == [0.0]
    assert common([[0.6], [0.5], [2.3]], True) == pytest.approx([0.55])
    assert common([[3.0], [3.1], [3.2], [0.0]], False) == pytest.approx([3.1])
    # A run that was slow for a part of its time; at the upper level one of two functions changed.
    assert common([[0.0, 0.2, 0.5], [0.0, 0.2, 2.0], [0.0, 0.2, 0.5]], True) == pytest.approx([0.0, 0.2, 0.5])
    assert common([[-0.7, -0.7, 2.3], [-0.7, -0.7, -0.7]], True) == pytest.approx([-0.7, -0.7, -0.7])
