"""The journal: what is written comes back, and a step is whole or not there."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from perflaw.errors import StoreError
from perflaw.explore.journal import Journal
from perflaw.types.studies import Conditions, Trial
from tests.conftest import examples

NUMBERS = some.floats(allow_nan=False, allow_infinity=False)
SETTINGS = some.booleans() | some.integers(-(2**53), 2**53) | NUMBERS | some.text(max_size=5)
CONDITIONS = some.builds(Conditions, other_cpu=NUMBERS, run_delay=NUMBERS, memory_bytes=some.integers(0, 2**50))
TRIALS = some.builds(
    Trial,
    number=some.just(1),
    configuration=some.dictionaries(some.text(max_size=5), SETTINGS, max_size=3),
    metrics=some.dictionaries(some.text(max_size=5), NUMBERS, max_size=3),
    reason=some.text(max_size=9),
    valid=some.booleans(),
    seconds=NUMBERS,
    conditions=CONDITIONS,
)


@settings(max_examples=examples(25), deadline=None)
@given(TRIALS)
def test_a_trial_comes_back_as_it_was(tmp_path_factory, trial):
    path = tmp_path_factory.mktemp("journal") / "study.db"
    journal = Journal(path)
    with journal.step():
        journal.plan([Trial(1, {})])
        journal.write(trial)
    journal.close()
    again = Journal(path)
    assert again.trials() == [trial] and not again.to_run()
    again.close()


def test_a_step_that_fails_leaves_nothing(tmp_path):
    journal = Journal(tmp_path / "study.db")
    with pytest.raises(ZeroDivisionError), journal.step():
        journal.plan([Trial(1, {"x": 1})])
        journal.put(state={"a": 1})
        1 / 0  # noqa: B018 (the error is what is wanted)
    assert journal.trials() == [] and journal.get("state") is None
    journal.close()


def test_states_of_trials_and_the_order_of_making(tmp_path):
    journal = Journal(tmp_path / "study.db")
    with journal.step():
        journal.plan([Trial(number, {"x": number}) for number in (1, 2, 3)])
        journal.begin(2)
    assert journal.to_run() == {1: 0, 2: 1, 3: 0} and journal.attempts(2) == 0
    with journal.step():
        journal.write(Trial(2, {"x": 2}, valid=True), again=True)
    assert journal.again() == {2} and journal.to_run()[2] == journal.attempts(2) == 1 and journal.repeated() == 1
    with journal.step():
        journal.write(Trial(1, {"x": 1}))
        journal.write(Trial(2, {"x": 2}, valid=True))
    assert journal.order() == {2: 3, 1: 2} and journal.made() == 3 and journal.repeated() == 1
    assert journal.to_run() == {3: 0}
    journal.close()


def test_what_is_no_journal_of_ours_is_refused(tmp_path):
    (tmp_path / "a.db").write_text("no database at all, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match="cannot be read"):
        Journal(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "b.db") as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(StoreError, match="version 99"):
        Journal(tmp_path / "b.db")
