"""The loop keeps its budget whatever the last measurements cost: made-up schedules, with time that the test moves."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from perflaw.mine import budget as module
from perflaw.mine.budget import Budget, WorkCounters
from perflaw.mine.knowledge import Decision
from perflaw.mine.loop import MiningLoop
from perflaw.mine.messages import Measurement, ProbeCost, Request

MINUTE_S, PLACING_S, CALL_NS, TARGET = 60.0, 1.5, 100.0, 0.1


@dataclass
class Program:
    """A program that always runs, and is measured in a time of the test's own."""

    calls_a_second: float = 0.0
    now: float = 0.0
    pid = 1
    alive = True
    program = SimpleNamespace(name="made up")

    def go(self, seconds):
        self.now += seconds

    def measure(self, request):
        start_ns = round(self.now * 1e9)
        self.go(PLACING_S + request.seconds)
        cost = ProbeCost(round(self.calls_a_second * request.seconds), CALL_NS, 10**9)
        return Measurement(request.number, request.kind, start_ns, round(self.now * 1e9), cost=cost)


@pytest.fixture
def mined(monkeypatch):
    """Mines for a minute; gives what was spent at the end, and the number of measurements."""

    def mine(schedule):
        program, lengths = Program(), []
        monkeypatch.setattr(module, "work_counters", lambda pid: WorkCounters(round(program.now * 1e9), {}))
        monkeypatch.setattr(module, "own_cpu_ns", lambda: 0)
        monkeypatch.setattr("time.monotonic", lambda: program.now)
        monkeypatch.setattr("time.sleep", program.go)
        loop = MiningLoop(program, Budget(1, TARGET), SimpleNamespace(write=lambda *_: None), None, lambda _: None)
        loop.is_over = lambda: program.now >= MINUTE_S

        def following(_):
            program.calls_a_second, expected = schedule(program.now, len(lengths))
            return Decision(Request(1, "durations", ("f",), seconds=4.0), "", 1.0, 4.0 * expected)

        def learn(measurement, request):
            lengths.append(request.seconds)
            return []

        loop.knowledge = SimpleNamespace(
            next=following, add=learn, functions={}, superseded=[], sampled_ns=1, stacks={}, share=lambda _: 0.0
        )
        loop.run()
        return loop.budget.spent_ns / (program.now * 1e9), lengths

    return mine


def test_a_loop_that_is_never_surprised_spends_what_it_may(mined):
    spent, lengths = mined(lambda now, number: (2e6, 2e6 if number else 0))
    assert 0.8 * TARGET < spent < 1.02 * TARGET
    assert len(lengths) >= 6


def test_functions_that_call_little_are_measured_as_long_as_asked_without_a_wait(mined):
    spent, lengths = mined(lambda now, number: (100.0, 100.0 if number % 2 else 0))
    assert spent < 0.2 * TARGET
    assert len(lengths) >= 9 and set(lengths) == {4.0}


def test_a_function_of_unknown_cost_is_tried_for_a_short_time_when_nothing_is_saved(mined):
    spent, lengths = mined(lambda now, number: (8e6, 0) if now > 45 else (2e6, 2e6 if number else 0))
    assert spent < 1.1 * TARGET
    assert lengths[-1] < 4.0


def test_a_dear_function_is_measured_when_that_is_saved(mined):
    spent, _ = mined(lambda now, number: (8e6, 8e6) if now > 40 else (1.5e6, 1.5e6 if number else 0))
    assert spent < 1.02 * TARGET


def test_what_comes_out_dearer_than_expected_is_expected_of_the_next_one(mined):
    spent, _ = mined(lambda now, number: (3e6, 1e6 if number else 0))
    assert spent < 1.1 * TARGET
