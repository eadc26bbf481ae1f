"""Experiments seen from outside: who writes to them, what is new; a look takes no lock and changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflaw.explore.journal import Journal
from perflaw.explore.studying import is_explored
from perflaw.mine.journal import Journal as MiningJournal
from perflaw.record.unfinished import RunClaim
from perflaw.store.checks import keep_check
from perflaw.store.experiment import open_experiment
from perflaw.store.watching import experiment_names, experiment_state, held_locks, is_held


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_is_recorded_as_long_as_its_recorder_lives() -> None:
    target = open_experiment("app")
    with pytest.raises(KeyboardInterrupt), RunClaim(target, "key") as claim:
        assert experiment_state("app").recording == ("0001",)
        assert not is_held(target.runs_folder)
        raise KeyboardInterrupt
    assert claim.folder.exists()
    left = experiment_state("app")
    assert (left.recording, left.abandoned, left.runs) == ((), 1, 0)


def test_a_look_at_locks_keeps_nobody_out(tmp_path: Path) -> None:
    opened: list[str] = []
    folder = open_experiment("app")
    folder.make()
    os.close(os.open(folder.folder / "study.lock", os.O_RDWR | os.O_CREAT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fcntl.flock", lambda *_: opened.append("flock"))
        assert not is_explored(folder.folder)
        experiment_state("app")
    assert opened == []
    assert is_held(tmp_path / "gone", held_locks()) is False


def test_the_mark_changes_with_runs_trials_and_checks_alone(tmp_path: Path) -> None:
    target = open_experiment("app")
    target.make()
    marks = [experiment_state("app").mark]
    run = target.new_run()
    assert experiment_state("app").mark == marks[0]  # it is not finished
    (run / "run.json").write_text("{}")
    marks.append(experiment_state("app").mark)
    keep_check(target.folder, "a.law", {"verdicts": [], "runs": []})
    marks.append(experiment_state("app").mark)
    journal = Journal(target.folder / "study.db")
    try:
        state = experiment_state("app")
        assert (state.trials, len(state.checks)) == (0, 1)
        marks.append(state.mark)
    finally:
        journal.close()
    assert len(set(marks)) == len(marks)
    assert "not a manifest" in state.error  # of the run: its manifest holds nothing
    again = experiment_state("app", before=state)
    assert again.error == state.error


def test_experiments_have_runs_or_trials() -> None:
    for name in ("b", "a"):
        open_experiment(name).make()
    Path(".perflaw/odd name").mkdir()
    Path(".perflaw/empty").mkdir()
    assert experiment_names() == ["a", "b"]
    assert experiment_names(Path("elsewhere")) == []


def test_mining_is_told_as_long_as_its_journal_is_open() -> None:
    target = open_experiment("app")
    target.make()
    journal, other = MiningJournal(target.folder), MiningJournal(target.folder)
    assert experiment_state("app").is_mined_now
    journal.close()
    assert experiment_state("app").is_mined_now, "another one mines"
    other.close()
    state = experiment_state("app")
    assert (state.mined, state.is_mined_now) == (True, False)
