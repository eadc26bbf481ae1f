"""Rounds of a continuous check: when they are made within the budget."""

from __future__ import annotations

import pytest

from perflaw.mine.messages import Measurement
from perflaw.mine.watching import LEVELS, RESERVED_ROUNDS, SpecRounds

COST, INCOME = 10.0, 1.0
"""What a recording takes, and what is saved each second."""


class Account:
    """A budget that saves evenly."""

    saved = 0.0

    def saved_ns(self):
        return self.saved

    def expected_ns(self, seconds):
        return COST

    def pause_s(self, seconds):
        return 1.0

    def begin_probes(self):
        pass

    def add_samples(self, cost):
        pass

    def end_probes(self, decision, measurement):
        self.saved -= COST

    def settle_window(self, functions):
        pass


class Process:
    """Nothing is ever called in it."""

    def measure(self, request):
        return Measurement(request.number, request.kind, 1, 2, run="run")


@pytest.fixture
def watch():
    account = Account()

    def rest(seconds):
        account.saved += INCOME * seconds
        one.passed += seconds

    one = SpecRounds(Process(), account, {"f": frozenset()}, rest, lambda: False)
    one.passed = 0.0
    return one


def seconds_of(watch, **how):
    before = watch.passed
    assert watch.round(LEVELS, **how) == ["run"]
    return watch.passed - before


def test_rounds_that_watch_leave_half_of_what_is_saved_until_enough_is_left_to_confirm(watch):
    filling = [seconds_of(watch, reserving=True) for _ in range(RESERVED_ROUNDS)]
    assert filling == [2 * COST] * RESERVED_ROUNDS
    assert [seconds_of(watch, reserving=True) for _ in range(5)] == [COST] * 5  # all that is saved
    # A violation is confirmed at once, and the target is kept at any moment.
    assert [seconds_of(watch) for _ in range(RESERVED_ROUNDS)] == [1.0] * RESERVED_ROUNDS
    assert watch.budget.saved > 0
    assert seconds_of(watch, reserving=True) == 2 * COST
