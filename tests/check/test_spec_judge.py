"""Specifications held against new runs: planted regressions are told by their edge, clean runs and slow machines are not."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.spec_calls import KnownCalls, SpecOptions, group_of, tallies_of
from perflaw.check.spec_judge import NewProgram, judge_specs
from perflaw.check.spec_location import locate, reviewable
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.mine import mine
from perflaw.specs.call_paths import expression_text
from perflaw.specs.files import parse_specs, spec_yaml
from perflaw.types import Observed, Platform
from perflaw.types.specifications import MinedSpec, SpecFile
from tests.learn.observing import observe

from . import spec_data

THERE = Platform("there", "other", 30.0)


def mined(found):
    specs = [mine(one, MiningOptions(), 0) for one in found.values()]
    specs = [MinedSpec(spec, tallies_of(spec, one)) for spec, one in zip(specs, found.values(), strict=True)]
    return locate(specs, list(found.values()))


@pytest.fixture(scope="module")
def specs():
    """Mined from three runs."""
    return mined(spec_data.observed(1))


def violated(verdicts):
    return [(one.component.name, one.path) for one in verdicts if one.verdict == "violated"]


def new(seed, **more):
    return spec_data.observed(seed, first=11, **more)


def test_groups_are_those_planted(specs):
    load = specs[0].spec
    assert [len(group.paths) for group in load.groups] == [2, 1]
    assert {expression_text(group.expression) for group in load.groups} == {
        '"view.search -> db.load"', 'not "view.search -> db.load"',
    }  # fmt: skip


def test_what_was_planted_on_one_path_is_told_by_its_edge(specs):
    verdicts = judge_specs(specs, new(2, planted={("db.load", 1): 0.5}))
    assert violated(verdicts) == [("db.load", '"view.list -> db.load"')]
    worst = verdicts[0]
    assert worst.effect == pytest.approx(0.45, abs=0.05)
    assert worst.effect_low < worst.effect < worst.effect_high
    assert worst.expected == pytest.approx(0.05, abs=0.02)
    assert worst.p < 0.01
    assert (worst.runs, worst.message) == (3, "slower than specified")


@pytest.mark.slow
def test_a_path_that_is_slow_in_all_calls_is_found_in_one_run_against_one():
    for seed in range(30, 40):
        once = mined(spec_data.observed(seed, runs=1))
        assert violated(judge_specs(once, new(seed, runs=1, planted={("db.load", 1): 1.0}))) == [
            ("db.load", '"view.list -> db.load"')
        ]
        assert violated(judge_specs(once, new(seed, runs=1))) == []


def test_as_many_more_runs_as_are_told_settle_it(specs):
    """Some more slow calls by one path: too little for a run, and told to be."""
    once = judge_specs(specs, new(41, runs=1, planted={("db.load", 1): 0.2}))
    verdict = next(one for one in once if one.component.name == "db.load" and one.verdict == "inconclusive")
    assert verdict.more_runs
    assert f"{verdict.more_runs} more run" in verdict.message
    more = new(41, runs=1 + 2 * verdict.more_runs, planted={("db.load", 1): 0.2})
    assert violated(judge_specs(specs, more)) == [("db.load", '"view.list -> db.load"')]


def test_the_numbers_are_those_of_the_calls_that_are_named(specs):
    """Also where the evidence of the whole group is overwhelming: its share of slow calls rises by half as much."""
    [verdict] = [
        one for one in judge_specs(specs, new(2, runs=8, planted={("db.load", 1): 0.9})) if one.verdict == "violated"
    ]
    assert verdict.path == '"view.list -> db.load"'
    assert verdict.effect == pytest.approx(0.85, abs=0.04)
    assert verdict.effect_high - verdict.effect_low < 0.15
    assert verdict.calls == pytest.approx(8 * 4000 / 3, rel=0.05)


def test_a_whole_group_is_told_by_what_makes_it(specs):
    verdicts = judge_specs(specs, new(3, planted={("db.load", 2): 0.95}))
    assert violated(verdicts) == [("db.load", '"view.search -> db.load"')]


def test_quicker_calls_are_no_longer_what_was_specified_either(specs):
    verdicts = judge_specs(specs, new(4, planted={("db.load", 2): 0.1}))
    assert violated(verdicts) == [("db.load", '"view.search -> db.load"')]
    assert verdicts[0].effect < 0
    assert verdicts[0].message == "quicker than specified: mine it again"


def test_callers_of_what_is_slower_are_not_told_but_explained(specs):
    planted = {("db.load", 0): 0.6, ("view.item", 0): 0.6}
    verdicts = judge_specs(specs, new(5, planted=planted))
    assert violated(verdicts) == [("db.load", '"view.item -> db.load"')]
    caller = next(one for one in verdicts if one.component.name == "view.item")
    assert (caller.verdict, caller.follows) == ("inconclusive", "db.load")


def test_a_caller_that_is_slower_by_itself_is_told(specs):
    assert violated(judge_specs(specs, new(6, planted={("view.item", 0): 0.6}))) == [("view.item", "")]


@pytest.mark.slow
def test_no_alarm_in_twenty_clean_checks_of_runs_that_differ(specs):
    for seed in range(100, 120):
        for runs in (1, 3):
            assert violated(judge_specs(specs, new(seed, runs=runs, noise=0.02))) == []


@pytest.mark.parametrize("scale", [0.5, 1.6, 3.0])
def test_a_machine_that_is_slower_as_a_whole_is_no_violation(specs, scale):
    assert violated(judge_specs(specs, new(7, scale=scale))) == []
    planted = judge_specs(specs, new(8, scale=scale, planted={("db.load", 1): 0.5}))
    assert violated(planted) == [("db.load", '"view.list -> db.load"')]


def test_absolute_bounds_hold_on_the_platform_alone(specs):
    slower = judge_specs(specs, new(9, scale=30.0), SpecOptions(absolute=True))
    assert {name for name, _ in violated(slower)} == {"db.load", "db.lock"}  # the views follow from db.load
    elsewhere = judge_specs(specs, new(9, host=THERE), SpecOptions(absolute=True))
    assert {(one.verdict, one.message[:24]) for one in elsewhere} == {("out of scope", "no bounds for there: che")}


def test_on_another_machine_groups_are_compared_with_each_other(specs):
    verdicts = judge_specs(specs, new(10, host=THERE, scale=4.0))
    assert {one.component.name for one in verdicts if one.verdict == "holds"} == {"db.load", "db.lock"}
    assert violated(verdicts) == []
    single = next(one for one in verdicts if one.component.name == "view.item")
    assert (single.verdict, single.message[:17]) == ("out of scope", "another machine, ")
    planted = judge_specs(specs, new(11, host=THERE, scale=4.0, planted={("db.load", 1): 0.5}))
    assert ("db.load", '"view.list -> db.load"') in violated(planted)


def test_why_a_function_is_out_of_scope_is_told_as_far_as_it_is_known(specs):
    found = {key: one for key, one in new(12).items() if key[0] != "db.lock"}

    def reason(**program):
        verdicts = judge_specs(specs, found, program=NewProgram({}, **program))
        [gone] = [one for one in verdicts if one.component.name == "db.lock"]
        assert gone.verdict == "out of scope"
        return gone.message

    assert reason(calls={}) == "not in the new recordings: not called, or no longer there"
    assert reason(calls={"db.pool.lock": 5}).endswith("; db.pool.lock is: was it moved?")
    assert reason(calls={"db.lock": 1200}) == (
        "1,200 calls, but none with durations by call path: perflaw record --paths 'db.lock' keeps them"
    )
    assert reason(calls={}, selected=True).startswith("not recorded: left out by --select")


def test_calls_by_new_paths_are_sorted_by_expressions_or_told_to_belong_nowhere(specs):
    spec = specs[0].spec
    assert group_of(spec, ("main", "other", "db.load")) == 0
    assert group_of(spec, ("main", "view.search", "db.load")) == 1
    both = replace(spec, groups=tuple(replace(group, expression=((),)) for group in spec.groups))
    assert group_of(both, ("main", "other", "db.load")) is None
    found = new(13)
    paths = tuple(("main", "x", *path[2:]) for path in found["db.load", "time"].paths)
    verdicts = judge_specs([MinedSpec(both)], {("db.load", "time"): replace(found["db.load", "time"], paths=paths)})
    assert {one.message for one in verdicts} == {"no call by these call paths"}


def test_a_tolerance_that_a_person_widens_excuses_more(specs):
    found = new(14, planted={("db.load", 1): 0.2})
    assert violated(judge_specs(specs, found, SpecOptions(tolerance=0.3))) == []


def test_shares_that_a_person_wrote_are_taken_at_their_word(specs):
    def edited(shares):
        spec = specs[2].spec
        group = replace(spec.groups[0], distribution=shares)
        return [MinedSpec(replace(spec, groups=(group,)))]

    found = {("view.search", "time"): new(15)["view.search", "time"]}
    assert violated(judge_specs(edited((0.9, 0.1)), found)) == [("view.search", "")]
    assert violated(judge_specs(edited((0.52, 0.48)), found)) == []


def test_quarantined_groups_claim_nothing(specs):
    spec = specs[0].spec
    groups = tuple(replace(group, standing="quarantined", expression=()) for group in spec.groups)
    verdicts = judge_specs([MinedSpec(replace(spec, groups=groups))], new(16, planted={("db.load", 1): 0.9}))
    assert {one.verdict for one in verdicts} == {"out of scope"}


def test_few_calls_say_nothing(specs):
    verdicts = judge_specs(specs, new(17, calls=6, planted={("db.load", 1): 0.9}))
    assert violated(verdicts) == []
    assert any("too few calls" in one.message for one in verdicts)


def test_calls_that_resemble_their_predecessors_count_for_fewer():
    """Slow calls in long stretches: what looks like thousands is worth some tens."""
    rng = np.random.default_rng(3)
    from perflaw.types import Observed
    from tests.learn.observing import observe

    def one(run):
        slow = np.repeat(rng.random(40) < 0.3, 100)
        values = np.where(slow, 2e6, 1e5) * np.exp(rng.normal(0, 0.2, slow.size))
        ends = run * 10**12 + np.cumsum(values).astype(np.int64)
        return observe(values, np.zeros(slow.size), ends, run=f"{run:04d}")

    def several(runs):
        return {
            ("f", "time"): Observed(
                "f", "time", "ns", (("main", "f"),), tuple(o for r in runs for o in one(r)), (spec_data.HOST,)
            )
        }

    for start in range(1, 60, 6):
        assert (
            violated(judge_specs(mined(several(range(start, start + 2))), several(range(start + 2, start + 3)))) == []
        )


def test_edges_lead_over_callers_that_were_not_recorded_when_it_was_mined(specs):
    spec = replace(specs[0].spec, selected=("view.item view.list view.search db.load",), paths=(), groups=tuple(
        replace(one, paths=()) for one in specs[0].spec.groups
    ))  # fmt: skip
    searched = group_of(spec, ("view.search", "db.load"))
    assert searched == group_of(spec, ("view.search", "db.cached", "db.load"))
    assert searched != group_of(spec, ("view.item", "db.cached", "db.load"))


LOAD_PATHS = [(top, view, "load") for view in ("item", "list") for top in ("page", "job")]


def loads(seed, slow, selected, first=1):
    """Three runs with a share of slow calls by each of four paths, of which the callers were recorded that are selected."""
    rng = np.random.default_rng(seed)
    recorded = [tuple(name for name in path if name in selected) for path in LOAD_PATHS]
    paths = tuple(dict.fromkeys(recorded))
    observations = []
    for run in range(first, first + 3):
        by = rng.integers(4, size=600)
        is_slow = rng.random(600) < np.array(slow)[by]
        values = np.where(is_slow, spec_data.SLOW, spec_data.QUICK) * np.exp(rng.normal(0, 0.25, 600))
        places = np.array([paths.index(path) for path in recorded])[by]
        ends = run * 10**12 + np.cumsum(values).astype(np.int64)
        observations += observe(values, places, ends, every=300, run=f"{run:04d}")
    observations = tuple(replace(one, selected=" ".join(selected)) for one in observations)
    return {("load", "time"): Observed("load", "time", "ns", paths, observations, (spec_data.HOST,), 100.0, 0.5)}


def test_callers_that_were_not_recorded_when_it_was_mined_divide_what_is_specified_and_still_tell_the_edge():
    """Half of the calls by ``item`` are slow, all of them by one of its callers, which a file without it cannot know."""
    before = loads(1, (0.0, 0.9, 0.02, 0.02), ("item", "list", "load"))
    reviewed = reviewable(mined(before), list(before.values()))
    file = parse_specs(spec_yaml(SpecFile(tuple(reviewed)), evidence=False), "load.yaml")
    assert len(file.specs[0].spec.groups) == 2
    deeper = ("page", "job", "item", "list", "load")
    assert violated(judge_specs(file.specs, loads(2, (0.0, 0.9, 0.02, 0.02), deeper, first=11))) == []
    planted = judge_specs(file.specs, loads(3, (0.0, 0.9, 0.02, 0.7), deeper, first=11))
    # Most calls by ``job`` are slow now, but those by ``item`` were before.
    assert violated(planted) == [("load", '"job -> list"')]


def test_what_is_known_of_recordings_from_earlier_verdicts_changes_none(specs):
    """A watch judges each recording some ten times, and computes what it shows once."""
    new_runs, known = new(2, runs=6, planted={("db.load", 1): 0.5}), KnownCalls()
    for first in (11, 12, 13, 14):
        window = {f"{run:04d}" for run in range(first, first + 3)}
        part = {
            key: replace(one, observations=tuple(each for each in one.observations if each.run in window))
            for key, one in new_runs.items()
        }
        options = SpecOptions(plan=False)
        assert repr(judge_specs(specs, part, options, known_calls=known)) == repr(judge_specs(specs, part, options))
        known.forget([f"{first:04d}"])
        assert {run for _, _, run, *_ in known.calls} == window - {f"{first:04d}"}
