"""Every policy on spaces with a known best: proposals are valid, new and the same again; the law finds what interacts."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import qmc

from perflaw.errors import UsageError
from perflaw.explore.policies.even_points import latin_hypercube, sobol_points
from perflaw.explore.policies.law import best_configurations, setting_text
from perflaw.explore.policy import POLICIES, Policy, find_policy
from perflaw.explore.space import Space
from perflaw.learn.exploring.observations import usable
from perflaw.types.studies import Budget, Knob, Study, StudyMetric, Target, Trial
from tests.conftest import first

PAGE = Knob("page", "ordinal", (1, 4, 16, 64), unit="KiB", default=4)
CACHE = Knob("cache", "int", low=2, high=256, scale="log2", default=2)
WAIT = Knob("wait", "float", low=0.1, high=10, scale="log10", default=1.0)
CODEC = Knob("codec", "categorical", ("none", "lz", "zip"), default="none")
SYNC = Knob("sync", "bool", (False, True), default=True)
MIXED = (PAGE, CACHE, WAIT, CODEC, SYNC)
SMALL = (PAGE, CODEC, SYNC)
BUILT_IN = [name for name in POLICIES if name not in ("optuna", "smac")]


def study(knobs, goal="max", trials=None, constraints=(), **options):
    metric = StudyMetric("rate", {"path": "rate"}, goal=goal)
    return Study("s", Target(), knobs, (metric,), constraints, budget=Budget(trials), options=options)


def law_of(c):
    """Page and cache together; the codec shifts what page is best."""
    page, cache = np.log2(c["page"]), np.log2(c.get("cache", 16))
    fits = 1 / (1 + np.exp(-(cache - page)))
    return float(100 * fits * (1 + 0.1 * page) * (1.3 if c["codec"] == "lz" else 1.0) * (0.7 if c["sync"] else 1.0))


def run(name, made, trials, law=law_of, noise=0.02, seed=0, refused=lambda c: False):
    """History of a study in memory; what is proposed must be valid, and new unless the policy may repeat."""
    space = Space(made.knobs, made.constraints)
    policy = find_policy(name)(space, made, seed)
    rng = np.random.default_rng(seed)
    history = []
    while len(history) < trials and not policy.done(history):
        proposal = policy.propose(history)
        if proposal is None:
            break
        assert space.valid(proposal.configuration) == ""
        assert policy.repeats or space.key(proposal.configuration) not in policy.tried(history)
        number = len(history) + 1
        if refused(proposal.configuration):
            history.append(Trial(number, proposal.configuration, reason="refused", started="then", why=proposal.why))
            continue
        value = law(proposal.configuration) * float(np.exp(rng.normal(0, noise)))
        history.append(Trial(number, proposal.configuration, {"rate": value}, valid=True, why=proposal.why))
    return history


@pytest.mark.parametrize("name", first(4, BUILT_IN))
@pytest.mark.parametrize(("knobs", "constraints"), [(MIXED, ("cache >= 2*page",)), (SMALL, ())], ids=["mixed", "small"])
def test_proposals_are_valid_new_and_reproducible(name, knobs, constraints):
    made = study(knobs, trials=11, constraints=constraints, levels=3)
    first, second = (run(name, made, 11) for _ in range(2))
    assert [trial.configuration for trial in first] == [trial.configuration for trial in second]
    assert len(first) == 11 or name == "one-at-a-time"


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_policy_goes_on_from_the_history_alone(name):
    made = study(SMALL, trials=12)
    whole = run(name, made, 12)
    space = Space(made.knobs)
    fresh = find_policy(name)(space, made, 0)
    fresh.restore({})
    proposal = fresh.propose(whole[:9])
    assert proposal.configuration == whole[9].configuration


@pytest.mark.parametrize("name", first(1, ["grid", "random", "sobol", "law"]))
def test_a_small_space_is_tried_to_its_end_and_no_further(name):
    history = run(name, study(SMALL), 100)
    assert len(history) == 24 or name == "sobol"
    assert len({Space(SMALL).key(trial.configuration) for trial in history}) == len(history) <= 24


@pytest.mark.slow
@pytest.mark.parametrize("goal", first(1, ["max", "min"]))
def test_the_law_finds_what_works_together(goal):
    def value(c):
        return law_of(c) if goal == "max" else 1 / law_of(c)

    knobs = (PAGE, Knob("cache", "ordinal", (2, 8, 32, 128), default=2), CODEC, SYNC)
    space = Space(knobs)
    best = max(law_of(c) for c in space.all())
    needed = []
    for seed in range(2):
        history = run("law", study(knobs, goal), 17, value, seed=seed)
        needed.append(next((i for i, t in enumerate(history, 1) if law_of(t.configuration) >= 0.95 * best), 99))
        assert any("% better" in trial.why and ":" in trial.why for trial in history)
    assert max(needed) <= 17


@pytest.mark.parametrize("dimensions", [1, 2, 7, 64])
def test_even_points_are_those_of_scipy(dimensions):
    """Coordinate for coordinate, so a study proposes what it proposed."""
    ours = np.array(list(islice(sobol_points(dimensions, 7), 256)))
    assert (ours == qmc.Sobol(dimensions, scramble=True, seed=7).random(256)).all()
    hypercube = latin_hypercube(dimensions, 20, 3)
    assert (hypercube == qmc.LatinHypercube(dimensions, seed=3).random(20)).all()


def test_points_of_very_many_knobs_are_even_in_each():
    points = np.array(list(islice(sobol_points(100, 1), 64)))
    assert (np.sort(np.floor(points * 64.0), axis=0) == np.arange(64)[:, None]).all()
    assert len({tuple(column) for column in points.T}) == 100


def test_the_law_says_why_and_begins_with_the_default():
    history = run("law", study(SMALL, trials=20), 3)
    assert history[0].configuration == {"page": 4, "codec": "none", "sync": True}
    assert history[0].why.startswith("the default") and history[1].why.startswith("start")


@pytest.mark.slow
def test_the_law_learns_where_configurations_are_refused():
    knobs = (PAGE, CODEC, SYNC, Knob("cache", "ordinal", (2, 16, 128), default=2))
    history = run("law", study(knobs), 20, refused=lambda c: c["page"] == 64)
    late = [trial.configuration["page"] == 64 for trial in history[12:]]
    assert sum(late) <= 3


@pytest.mark.parametrize("law", [lambda c: 1.0, lambda c: 0.0, lambda c: -law_of(c)], ids=["equal", "zero", "negative"])
def test_the_law_survives_odd_metrics(law):
    assert len(run("law", study(SMALL), 11, law, noise=0.0)) == 11


def test_the_law_survives_failures_alone():
    assert len(run("law", study(SMALL), 24, refused=lambda c: True)) == 24


@pytest.mark.slow
def test_one_disturbed_trial_does_not_hide_the_best():
    knobs = (PAGE, Knob("cache", "ordinal", (2, 8, 32, 128), default=2), CODEC, SYNC)
    space = Space(knobs)
    seen = []

    def law(c):
        seen.append(c)
        return law_of(c) * (0.1 if len(seen) == 5 else 1.0)

    history = run("law", study(knobs), 22, law)
    best = max(law_of(c) for c in space.all())
    assert max(law_of(trial.configuration) for trial in history) >= 0.95 * best


def test_racing_repeats_only_what_is_not_told_apart():
    made = study(SMALL, trials=60, configurations=10)
    history = run("racing", made, 60)
    counts = {}
    for trial in history:
        key = Space(SMALL).key(trial.configuration)
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 10 and len(history) < 60
    assert counts[Space(SMALL).key(best_configurations(history, made.metrics[0])[0])] == max(counts.values())


def test_one_at_a_time_warns_and_gets_stuck():
    def together(c):
        return 5.0 if c["page"] == 64 and c["codec"] == "zip" else 1.0 + 0.001 * (c["page"] == 4)

    made = study(SMALL)
    assert "interactions" in find_policy("one-at-a-time").warning
    assert max(together(trial.configuration) for trial in run("one-at-a-time", made, 100, together, 0.0)) < 2


def test_clean_trials_are_preferred_to_disturbed_ones():
    one = {"page": 4}
    history = [
        Trial(1, one, {"rate": 1.0}, valid=True, contaminated="a neighbour"),
        Trial(2, one, {"rate": 3.0}, valid=True),
        Trial(3, {"page": 16}, {"rate": 2.0}, valid=True, contaminated="a neighbour"),
    ]
    assert [trial.number for trial in usable(history, "rate")] == [2, 3]


def test_policies_by_name_and_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from perflaw.explore.policy import Policy\nclass Mine(Policy):\n    pass\nclass Other:\n    pass\n"
    )
    assert issubclass(find_policy("mine.py:Mine", tmp_path), Policy)
    for name, said in [
        ("mine.py:Nobody", "no class"),
        ("mine.py:Other", "not a policy"), ("none.py:Mine", "no file"), ("lwa", "did you mean `law`"),
    ]:  # fmt: skip
        with pytest.raises(UsageError, match=said):
            find_policy(name, tmp_path)
    (tmp_path / "broken.py").write_text("1/0\n")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        find_policy("broken.py:Mine", tmp_path)


@pytest.mark.parametrize("name", ["optuna", "smac"])
def test_extras_say_what_to_install(name, monkeypatch):
    import importlib

    def missing(module):
        raise ImportError(module)

    cls = find_policy(name)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"not installed.*pip install"):
        cls(Space(SMALL), study(SMALL), 0)


def test_settings_are_written_as_people_write_them():
    assert setting_text(65536, Knob("p", "ordinal", unit="B")) == "64 KiB"
    assert setting_text(True, SYNC) == "on" and setting_text("lz", CODEC) == "lz"
