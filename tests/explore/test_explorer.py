"""The main loop: trials as runs, resume, repetitions, budgets, policies that err."""

import itertools
import json
import shutil

import pytest

from perflaw.errors import UsageError
from perflaw.explore.agent.client import InvalidTrial
from perflaw.explore.journal import Journal
from perflaw.explore.study_file import read_study
from perflaw.explore.studying import Wish, opened, wished
from tests.conftest import first
from tests.explore.tiny import KNOB, ONE_SHOT, PYTHON, RATE, experiment_of, explore, forked_agent, steps, write


def test_trials_are_runs_of_the_experiment(tmp_path):
    trials = explore(write(tmp_path, ONE_SHOT + "policy: grid\ntrials: 4\n"))
    assert [trial.number for trial in trials] == [1, 2, 3, 4]
    assert all(trial.valid and trial.verified == {} for trial in trials)
    assert all(trial.metrics["rate"] == 100 - abs(trial.configuration["size"] - 5) for trial in trials)
    recordings = experiment_of(tmp_path).recordings()
    assert [one.run.features["size"] for one in recordings] == [trial.configuration["size"] for trial in trials]
    assert [one.run.id for one in recordings] == [trial.run for trial in trials]
    assert {metric.name for metric in recordings[0].run.metrics} == {"time", "cpu", "events", "memory", "rate"}
    assert json.loads((recordings[0].folder / "stdout.txt").read_text())["rate"] == trials[0].metrics["rate"]
    assert 0 < trials[0].conditions.cpu_s <= 5 and trials[0].conditions.memory_bytes > 1_000_000


def test_what_the_target_has_is_the_setting_of_a_trial(tmp_path):
    """A target that rounds to tens: the journal has the settings that it really has."""
    program = "import json, sys; n = round(int(sys.argv[1]) / 10) * 10; print(json.dumps({'rate': n, 'n': n}))"
    knob = "knobs: {n: {type: int, range: [100, 140], step: 2, tolerance: 5%, apply: {arg: '{}'}, verify: {path: n}}}\n"
    target = f'target: {{run: "{PYTHON} tens.py {{args}}", result: {{json: stdout}}}}\n'
    path = write(tmp_path, target + knob + RATE + "policy: grid\ntrials: 12\n", tens=program)
    trials = explore(path)
    assert all(trial.valid and trial.verified == trial.configuration for trial in trials)
    assert {trial.configuration["n"] for trial in trials} == {100, 110, 120, 130, 140}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trials_and_another_one_others(tmp_path):
    found = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        path = write(tmp_path / name, ONE_SHOT + "policy: random\nrepetitions: 2\ntrials: 6\n")
        found.append([dict(trial.configuration) for trial in explore(path, Wish(seed))])
    assert found[0] == found[1] != found[2]


def test_a_study_goes_on_where_it_was_left_as_if_it_never_had_been(tmp_path):
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    text = ONE_SHOT + "policy: random\nrepetitions: 2\ntrials: 6\n"
    whole = explore(write(tmp_path / "whole", text), Wish(3))
    path = write(tmp_path / "broken", text)
    for count in (1, 3):
        running = steps(path, Wish(3))
        for _ in range(count):
            next(running)
        running.close()  # as Ctrl-C: what is complete is kept
    trials = explore(path, Wish(3))
    assert [(one.number, one.configuration, one.repetition) for one in trials] == [
        (one.number, one.configuration, one.repetition) for one in whole
    ]
    assert sorted(one.run for one in trials) == sorted(experiment_of(tmp_path / "broken").ids())


def test_more_trials_are_added_to_a_finished_study(tmp_path):
    path = write(tmp_path, ONE_SHOT + "policy: grid\n")
    first = explore(path, Wish(trials=2))
    more = explore(path, Wish(trials=4))
    assert more[:2] == first and len(more) == 4


@pytest.mark.slow
def test_repetitions_are_never_back_to_back(tmp_path):
    path = write(tmp_path, ONE_SHOT + "policy: random\nrepetitions: 3\ntrials: 12\n")
    # A trial that other programs disturbed is made again under its number.
    order = list({trial.number: trial.configuration["size"] for _, trial in steps(path)}.values())
    assert len(order) == 12
    # The last ones may be left over together.
    assert all(one != other for one, other in itertools.pairwise(order[:9]))
    assert {order.count(size) for size in order} == {3}


def test_a_study_that_changed_is_refused_and_says_how_to_go_on(tmp_path):
    path = write(tmp_path, ONE_SHOT + "policy: random\ntrials: 1\n")
    explore(path)
    path.write_text(path.read_text().replace("--size={}", "--size={} -q"))
    with pytest.raises(UsageError, match=r"knob size changed in the middle.*-e study-2"):
        explore(path)
    path.write_text(path.read_text().replace("prog.py {args}", "prog.py -v {args}").replace(" -q", ""))
    with pytest.raises(UsageError, match=r"target changed in the middle.*-e study-2"):
        explore(path)
    path.write_text(path.read_text().replace("prog.py -v", "prog.py"))
    with pytest.raises(UsageError, match="seed changed"):
        explore(path, Wish(seed=7))
    assert len(explore(path)) == 1


def test_a_journal_of_an_earlier_version_goes_on_as_long_as_its_study_file_is_the_same(tmp_path):
    path = write(tmp_path, ONE_SHOT + "policy: grid\ntrials: 2\n")
    explore(path)
    journal = Journal(experiment_of(tmp_path).folder / "study.db")
    journal.put(frame="0123abcd")
    journal.close()
    changed = path.read_text()
    path.write_text(changed.replace("9]", "8]"))
    with pytest.raises(UsageError, match="the study file changed in the middle"):
        explore(path)
    path.write_text(changed)
    assert len(explore(path)) == 2


def test_two_explorers_at_once_are_refused(tmp_path):
    path = write(tmp_path, ONE_SHOT + "policy: random\ntrials: 2\n")
    running = steps(path)
    next(running)
    with pytest.raises(UsageError, match="another perflaw explores it now"):
        explore(path)
    running.close()


MINE = """
from perflaw.explore.policy import Policy
class Mine(Policy):
    def next_config(self, history):
        if len(history) == 2:
            WRONG
        return {"size": len(history) + 1}
"""


@pytest.mark.parametrize(
    ("wrong", "told"),
    first(
        2,
        [
            ("raise RuntimeError('boom')", r"mine.py:Mine could not propose: RuntimeError: boom"),
            ("return {'size': 99}", r"mine.py:Mine proposed \{'size': 99\}: .*not between 1 and 9"),
            ("return {'size': 1}", r"mine.py:Mine proposed \{'size': 1\} again: it was tried before"),
            ("return 7", r"mine.py:Mine could not propose: TypeError"),
        ],
    ),
)
def test_a_policy_that_errs_is_named_and_nothing_is_lost(tmp_path, wrong, told):
    text = ONE_SHOT + 'policy: "mine.py:Mine"\ntrials: 4\n'
    path = write(tmp_path, text, mine=MINE.replace("WRONG", wrong))
    with pytest.raises(UsageError, match=told):
        explore(path)
    (tmp_path / "mine.py").write_text(MINE.replace("WRONG", "pass"))
    trials = explore(path)
    assert [trial.configuration["size"] for trial in trials] == [1, 2, 3, 4]


def test_a_policy_may_end_a_trial_and_the_study(tmp_path):
    mine = """
from perflaw.explore.policy import Policy
class Mine(Policy):
    def next_config(self, history): return {"size": len(history) + 1}
    def on_record(self, reading): self.seen = reading
    def stop_run(self): return self.seen.value > 2
    def done(self, history): return "three are enough" if len(history) == 3 else ""
"""
    slow = (
        "import json, time\nfor i in range(400):\n    print(json.dumps({'rate': i}), flush=True)\n    time.sleep(.01)"
    )
    text = f'target: {{run: "{PYTHON} slow.py {{args}}", result: {{lines: stdout}}}}\n' + KNOB + RATE
    path = write(tmp_path, text + 'policy: "mine.py:Mine"\n', mine=mine, slow=slow)
    seen = [(trial, explorer) for explorer, trial in steps(path)]
    assert len(seen) == 3 and seen[-1][1].ended == "three are enough"
    assert all(trial.valid and "ended it" in trial.stopped and trial.n < 400 for trial, _ in seen)
    assert (experiment_of(tmp_path).recordings()[0].folder / "records.parquet").is_file()


@pytest.mark.slow
def test_losers_are_ended_early_and_the_winner_never(tmp_path):
    stream = """
import json, sys, time
size = int(sys.argv[1].split("=")[1])
for i in range(80):
    print(json.dumps({"rate": 100 * size + (i * 7919 % 13) / 13}), flush=True)
    time.sleep(.005 if size == 1 else .05)  # the others have not ended by themselves when they are to end
"""
    text = f'target: {{run: "{PYTHON} prog.py {{args}}", result: {{lines: stdout}}}}\n'
    text += 'knobs: {size: {type: ordinal, values: [1, 2, 8], apply: {arg: "--size={}"}}}\n' + RATE.replace(
        "max", "min"
    )
    path = write(tmp_path, text + "policy: grid\n")
    (tmp_path / "prog.py").write_text(stream)
    best, *others = explore(path)
    assert best.configuration == {"size": 1} and not best.stopped
    assert all(trial.valid and trial.metrics["rate"] > 199 for trial in others)
    stopped = [trial for trial in others if trial.stopped]
    assert stopped and all("cannot win" in trial.stopped and trial.n < best.n for trial in stopped)


def test_metrics_added_later_are_scored_from_what_is_kept(tmp_path):
    path = write(tmp_path, ONE_SHOT + "policy: grid\ntrials: 2\n")
    explore(path)
    path.write_text(path.read_text().replace("metrics: {", "metrics: {size2: {path: size}, took: wall, "))
    trials = explore(path, Wish(rescore=True))
    assert [trial.metrics["size2"] for trial in trials] == [trial.configuration["size"] for trial in trials]
    assert all(trial.metrics["took"] > 0 for trial in trials) and len(experiment_of(tmp_path).ids()) == 2


@pytest.mark.slow
def test_trials_stay_when_ranges_limits_and_metrics_change(tmp_path):
    path = write(tmp_path, ONE_SHOT.replace("9]", "4]") + "policy: grid\ntrials: 20\n")
    first = explore(path)
    sizes = [trial.configuration["size"] for trial in first]
    path.write_text(path.read_text().replace("4]", "6]").replace("target: {", "target: {timeout: 30 s, "))
    path.write_text(path.read_text().replace("metrics: {", "metrics: {size2: {path: size}, "))
    words = []
    study, target = wished(read_study(path), Wish()), experiment_of(tmp_path)
    with opened(target, study, Wish(), words.append) as (journal, _):
        assert [trial.valid for trial in journal.trials()] == [True] * len(first)
    assert words == [f"the study file changed since the last trial: {len(first)} trials are kept"]
    wider = explore(path)
    assert [trial.run for trial in wider[: len(first)]] == [trial.run for trial in first]
    assert sorted(trial.configuration["size"] for trial in wider) == sorted([*sizes, 5, 6])
    assert all(trial.metrics["size2"] == trial.configuration["size"] for trial in wider)
    path.write_text(path.read_text().replace("6]", "5]"))
    narrower = explore(path)
    (outside,) = (trial for trial in narrower if not trial.valid)
    assert outside.configuration == {"size": 6} and "no longer a part of the study" in outside.reason
    path.write_text(path.read_text().replace("5]", "6]"))
    assert all(trial.valid for trial in explore(path)) and len(explore(path)) == len(wider)


def test_the_journal_alone_is_not_enough_to_be_doubled(tmp_path):
    """A run whose trial the journal does not know is what a kill left: it goes when the study goes on."""
    path = write(tmp_path, ONE_SHOT + "policy: grid\ntrials: 3\n")
    running = steps(path)
    explorer, trial = next(running)
    running.close()
    runs = experiment_of(tmp_path).runs_folder
    shutil.copytree(runs / trial.run, runs / "0002")
    (runs / "0002" / "unfinished").write_text(f"explore {explorer.study.digest[:16]} 2")
    trials = explore(path)
    assert len(trials) == 3 and sorted(experiment_of(tmp_path).ids()) == sorted(one.run for one in trials)


def test_a_disturbed_trial_is_made_again_under_its_number_and_not_for_ever(tmp_path, monkeypatch):
    seen = []

    def disturbed(trial, others):
        seen.append(trial.number)
        return "others used the machine" if trial.number == 2 else ""

    monkeypatch.setattr("perflaw.explore.judging.disturbance", disturbed)
    trials = explore(write(tmp_path, ONE_SHOT + "policy: grid\ntrials: 4\n"))
    assert [trial.number for trial in trials] == [1, 2, 3, 4] and sorted(seen) == [1, 2, 2, 3, 4]
    assert [bool(trial.contaminated) for trial in trials] == [False, True, False, False]
    # The run of the first attempt is replaced: every trial is one run.
    assert sorted(experiment_of(tmp_path).ids()) == sorted(trial.run for trial in trials)


def test_an_enough_that_crosses_the_end_of_a_trial_is_no_question():
    agent = forked_agent()
    agent.channel.send("enough", {"why": "it cannot win"})
    with pytest.raises(InvalidTrial, match="no configuration was applied"):
        agent.ask("measure")
    agent.close()
