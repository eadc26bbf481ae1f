"""The account of what measuring costs, with counters that the test moves."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from perflaw.cli.live_mining import spent_words
from perflaw.mine import budget as module
from perflaw.mine.budget import LEAST_PAUSE_S, LEAST_SAMPLING, Budget, WorkCounters, _middle_mean
from perflaw.mine.knowledge import Decision, KnownFunction
from perflaw.mine.messages import Measurement, ProbeCost, Request


@dataclass
class Clock:
    """A program under load: its time, CPU time and work."""

    now: float = 0.0
    cpu_ns: int = 0
    work: int = 0
    own_ns: int = 0

    def go(self, seconds, slower=1.0):
        self.now += seconds
        self.cpu_ns += round(seconds * 1e9)
        self.work += round(seconds * 10_000 / slower)


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    monkeypatch.setattr(module.time, "monotonic", lambda: one.now)
    monkeypatch.setattr(
        module, "work_counters", lambda pid: WorkCounters(one.cpu_ns, {"packets": one.work, "switches": 3})
    )
    monkeypatch.setattr(module, "own_cpu_ns", lambda: one.own_ns)
    return one


def decided(*names, utility=1.0):
    return Decision(Request(1, "durations", names), "", utility, 0.0)


def measured(calls, call_ns, cpu_ns=10**9):
    return Measurement(1, "durations", 0, 1, cost=ProbeCost(calls, call_ns, cpu_ns))


def pair(budget, clock, slower, calls=0, name="f"):
    clock.go(1.0)
    budget.begin_probes()
    clock.go(1.0, slower)
    return budget.end_probes(decided(name), measured(calls, 100.0))


def test_the_number_of_calls_and_their_cost_are_the_account_until_there_are_pairs(clock):
    budget = Budget(1, 0.05)
    spent = pair(budget, clock, 1.2, calls=100_000)
    assert spent == module.ATTACH_NS + 10_000_000
    assert budget.paired() is None


def test_what_the_presence_of_probes_costs_otherwise_is_found_by_pairs(clock):
    budget = Budget(1, 0.05)
    for _ in range(8):
        spent = pair(budget, clock, 1.2, calls=1000)
    assert budget.paired() == pytest.approx(0.2, abs=0.01)
    assert spent == pytest.approx(1e9 * 0.2 / 1.2, rel=0.05)


def test_probes_stay_out_until_the_debt_is_paid(clock):
    budget = Budget(1, 0.05)
    pair(budget, clock, 1.0, calls=2_000_000)  # 204 ms of 2 s
    pause = budget.pause_s()
    assert pause == pytest.approx((0.204 - 0.05 * 2) / 0.05, rel=0.01)
    assert budget.must_wait()
    clock.go(pause)
    assert not budget.must_wait()
    assert budget.pause_s() == LEAST_PAUSE_S


def test_the_target_is_kept_over_a_long_time(clock):
    for target in (0.02, 0.05, 0.1):
        clock.now, clock.cpu_ns, clock.work = 0.0, 0, 0
        budget = Budget(1, target)
        while clock.now < 1000:
            pair(budget, clock, 1.25, calls=1_000_000)
            while budget.must_wait():
                clock.go(budget.pause_s())
            budget.settle_window({})
        assert budget.share == pytest.approx(target, abs=0.01)


def test_the_target_is_kept_at_every_moment_by_what_probes_are_presumed_to_cost(clock):
    budget, shares = Budget(1, 0.02, presumed=0.2), []
    while clock.now < 300:
        seconds = min(4.0, budget.longest_s())
        clock.go(LEAST_PAUSE_S)
        while budget.must_wait(seconds):
            clock.go(budget.pause_s(seconds))
        budget.begin_probes()
        clock.go(seconds, 1.25)
        budget.end_probes(decided("f"), measured(100, 100.0))
        shares.append(budget.spent_ns / clock.cpu_ns)
    assert max(shares) < 0.025
    assert shares[-1] == pytest.approx(0.02, abs=0.002)


def test_pairs_that_differ_much_are_drawn_to_what_is_presumed(clock):
    budget = Budget(1, 0.05, presumed=0.2)
    for number in range(8):
        spent = pair(budget, clock, (0.4, 4.0)[number % 2], calls=1000)
    assert budget.paired() > 0.3 or budget.paired() < 0.1
    assert spent == pytest.approx(1e9 * 0.2 / 1.2, rel=0.25)


@pytest.mark.parametrize("pairs", [5, 10, 24])
def test_the_error_of_pairs_is_what_they_differ_by_from_one_time_to_another(pairs):
    """Of values with and without outliers, whose mean is 0: 68 % of the means are within their error, as of a normal one."""
    rng = np.random.default_rng(pairs)
    within = [
        abs(mean) < error
        for values in (rng.normal(size=(1000, pairs)), rng.standard_t(3, size=(1000, pairs)))
        for row in values
        for mean, error in [_middle_mean(list(zip(row, rng.integers(50, 150, pairs).tolist(), strict=True)))]
    ]
    assert 0.64 < np.mean(within) < 0.76


def test_pairs_in_which_the_program_had_hardly_anything_to_do_say_nothing_of_the_others(clock):
    budget = Budget(1, 0.05)
    for _ in range(8):
        pair(budget, clock, 1.05, calls=1000)
    loaded = budget.spent_ns
    for _ in range(8):  # its load has ended: what probes cost is most of what it does now
        clock.go(1.0)
        budget.begin_probes()
        clock.now, clock.cpu_ns, clock.work = clock.now + 1.0, clock.cpu_ns + 5_000_000, clock.work + 60
        budget.end_probes(decided("f"), measured(0, 100.0))
    assert budget.paired() == pytest.approx(0.05, abs=0.005)
    assert budget.spent_ns == pytest.approx(loaded + 8 * module.ATTACH_NS, rel=0.1)


def test_a_program_that_does_nothing_is_not_measured_beyond_what_was_saved(clock):
    budget = Budget(1, 0.05)
    clock.go(1.0)  # 50 ms saved, and then its load ends
    measurements = 0
    while not budget.must_wait(1.0) and measurements < 100:
        budget.begin_probes()
        clock.now, clock.cpu_ns = clock.now + 1.0, clock.cpu_ns + 100_000
        budget.end_probes(decided("f"), measured(100_000, 100.0))  # 10 ms and the attachment
        measurements += 1
    assert measurements == 3
    assert budget.spent_ns <= 0.05 * clock.cpu_ns


def test_what_was_spent_before_the_cost_was_known_counts_when_it_is(clock):
    budget = Budget(1, 0.05)
    for _ in range(8):
        pair(budget, clock, 1.2, calls=1000)
    assert budget.spent_ns == pytest.approx(8 * 1e9 * 0.2 / 1.2, rel=0.05)


def test_samples_of_a_compiled_program_are_in_the_account(clock):
    budget = Budget(1, 0.05)
    clock.go(10.0)
    budget.add_samples(ProbeCost(10_000, 10_000.0))
    assert budget.spent_ns == 1e8
    pair(budget, clock, 1.0, calls=1000)
    assert budget.spent_ns == 1e8 + module.ATTACH_NS + 1e5
    assert budget.settle_window({}).spent_ns == budget.spent_ns


def test_own_cpu_time_is_told_and_does_not_count_against_throughput(clock):
    budget, clock.own_ns = Budget(1, 0.05), 1_400_000_000
    pair(budget, clock, 1.0, calls=1000)
    clock.own_ns += 300_000_000
    clock.go(9.0)
    window = budget.settle_window({})
    assert (window.own_ns, window.spent_ns) == (1_700_000_000, module.ATTACH_NS + 1e5)
    assert window.share == pytest.approx(window.spent_ns / 11e9)
    assert budget.own_share == pytest.approx(1.7 / 11)
    assert budget.share == pytest.approx(window.share)
    assert not budget.must_wait()


def test_own_cpu_time_is_more_than_that_of_a_program_that_does_nothing(clock):
    budget, clock.own_ns = Budget(1, 0.05), 1_400_000_000
    clock.now += 12.0
    assert budget.settle_window({}).own_ns == 1_400_000_000
    assert budget.own_share == math.inf
    assert "1.4 s of CPU time, more than the program" in spent_words(budget)


def test_a_budget_of_cpu_time_contains_the_start_and_all_that_is_thought(clock):
    budget, ends = Budget(1, 0.05, of="cpu"), []
    clock.own_ns = 1_400_000_000  # the start, which takes 28 s to pay for
    clock.go(27.0)
    assert budget.must_wait()
    clock.go(2.0)
    assert not budget.must_wait()
    while clock.now < 1000:
        clock.go(LEAST_PAUSE_S)
        while budget.must_wait(1.0):
            clock.go(budget.pause_s(1.0))
            clock.own_ns += 100_000
        pair(budget, clock, 1.0, calls=1000)
        clock.own_ns += 250_000_000
        budget.settle_window({})
        if clock.now > 60:
            ends.append(budget.share)
    assert max(ends) < 0.055  # what the next measurement takes is known from those before it
    assert ends[-1] == pytest.approx(0.05, abs=0.003)
    assert sum(one.own_ns for one in budget.windows) == budget.own_ns
    clock.own_ns += 10**10
    assert budget.must_wait()


def test_what_an_earlier_account_contains_is_not_in_a_later_one(clock):
    clock.own_ns = 10**11  # after hours with a program in whose place is another one now
    budget = Budget(1, 0.05, of="cpu", own_before_ns=clock.own_ns)
    clock.go(10.0)
    assert not budget.must_wait()
    clock.own_ns += 100_000_000
    assert budget.settle_window({}).own_ns == budget.own_ns == 100_000_000


def test_own_cpu_time_is_that_of_this_process_and_of_its_children():
    import resource
    import subprocess
    import sys

    before, sum_before = module.own_cpu_ns(), time.process_time()
    burn = "sum(range(3_000_000)); import resource; print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))"
    child_s = float(subprocess.run([sys.executable, "-c", burn], capture_output=True, text=True, check=True).stdout)
    own_s = time.process_time() - sum_before
    assert module.own_cpu_ns() - before >= 0.9e9 * (child_s + own_s)
    assert module.own_cpu_ns() <= 1e9 * (time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))


def test_an_account_of_days_keeps_no_more_than_one_of_hours(clock, monkeypatch):
    monkeypatch.setattr(module, "MOST_PROBED", 50)
    budget = Budget(1, 0.05)
    for _ in range(3 * module.MOST_WINDOWS):
        pair(budget, clock, 1.2, calls=1000)
        clock.go(9.0)
        budget.settle_window({})
    assert len(budget.windows) == module.MOST_WINDOWS
    assert len(budget._probed) == 50
    assert budget.share == pytest.approx(0.2 / 1.2 / 11, rel=0.01)


def test_the_worst_cost_for_its_utility_is_halved_then_detached_and_enabled_again(clock):
    functions = {name: KnownFunction(name, "") for name in ("dear", "cheap")}
    budget, actions = Budget(1, 0.01), []
    for _ in range(4):
        pair(budget, clock, 1.0, calls=5_000_000, name="dear")
        pair(budget, clock, 1.0, calls=1_000, name="cheap")
        clock.go(10)
        actions.append(budget.settle_window(functions).action)
    assert functions["dear"].sampling == 0.0
    assert functions["cheap"].sampling == 1.0
    assert actions[-1] == "dear is not observed any more"
    clock.go(11)
    budget.settle_window(functions)
    assert functions["dear"].sampling == LEAST_SAMPLING


def test_what_was_saved_before_pays_for_a_window_beyond_the_target(clock):
    functions = {"f": KnownFunction("f", "")}
    budget = Budget(1, 0.01)
    clock.go(60)
    budget.settle_window(functions)
    pair(budget, clock, 1.0, calls=5_000_000)
    clock.go(9)
    window = budget.settle_window(functions)
    assert window.share > 0.01
    assert not window.action
    assert functions["f"].sampling == 1.0


def test_the_kernel_counts_the_work_of_a_process():
    before = module.work_counters(os.getpid())
    sum(range(3_000_000))
    after = module.work_counters(os.getpid())
    assert after.cpu_ns > before.cpu_ns > 0
    assert "switches" in after.work


def test_cpu_time_of_threads_that_have_ended_counts():
    """The thread that loads the tracer has ended when its cost is asked for."""
    before = module.work_counters(os.getpid()).cpu_ns

    def burn():
        while time.thread_time() < 0.05:
            pass

    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
    assert module.work_counters(os.getpid()).cpu_ns - before >= 50_000_000
