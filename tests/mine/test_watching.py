"""Rounds of a continuous check: when they are made within the budget."""

from __future__ import annotations

from collections import Counter

import pytest

from perflaw.mine.messages import Measurement
from perflaw.mine.watching import LEVELS, RESERVED_ROUNDS, SpecCallers, SpecRounds

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

    def __init__(self, stacks=()):
        self.stacks, self.asked, self.idle = Counter(stacks), [], ()

    def measure(self, request):
        self.asked.append(request)
        return Measurement(request.number, request.kind, 1, 2, stacks=self.stacks, run="run", idle=self.idle)


@pytest.fixture
def watch():
    account = Account()

    def rest(seconds):
        account.saved += INCOME * seconds
        one.passed += seconds

    one = SpecRounds(Process(), account, {"f": SpecCallers(frozenset(), ())}, rest, lambda: False)
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


def rounds_of(stacks, **callers):
    """Rounds over a process that samples found in these stacks, with what is known of each function's callers."""
    known = {name: SpecCallers(frozenset(named), selected) for name, (named, selected) in callers.items()}
    one = SpecRounds(Process(stacks), Account(), known, lambda seconds: None, lambda: False)
    one.budget.saved = 1e9
    one.sample()
    return one


def test_what_is_not_watched_is_recorded_only_to_know_how_fast_the_machine_is():
    stacks = [("main", "page", leaf) for leaf in ("a", "b", "c", "d", "e")]
    watched, leaves = {"page", "a"}, dict.fromkeys("abcde", ((), ()))
    rounds = rounds_of(stacks, page=((), ()), main=((), ()), **leaves)
    rounds.restrict(watched)
    assert set(rounds.callers) == {"page", "a", "b", "c"}  # three that call none of the others
    rounds.restrict({"a", "b", "c"})
    assert set(rounds.callers) == {"a", "b", "c"}


def test_rounds_that_watch_record_the_callers_that_it_was_mined_with():
    """Others divide no call path, and tell only where a violation comes from."""
    rounds = rounds_of(
        [("main", "page", "query", "load"), ("main", "job", "query", "load")],
        load=(("page", "load"), ("page job load",)),
        tell=((), ()),
    )
    rounds.round(0)
    assert set(rounds.process.asked[-1].callers) == {"page", "job"}
    rounds.round(2)
    assert set(rounds.process.asked[-1].callers) == {"page", "job", "query"}


def test_what_waits_until_somebody_asks_is_not_recorded_unless_a_person_wrote_of_it():
    rounds = rounds_of([("main", "page"), ("main", "wait")], page=((), ()), wait=((), ()))
    rounds.round(0)
    assert rounds.process.asked[-1].functions == ("page", "wait")
    rounds.process.idle = ("main", "wait")
    rounds.round(0)
    assert rounds.idle == {"wait"}
    rounds.round(0)
    assert rounds.process.asked[-1].functions == ("page",)
    rounds.callers["wait"] = SpecCallers(frozenset(), (), is_written=True)
    rounds.round(0)
    assert rounds.process.asked[-1].functions == ("page", "wait")
