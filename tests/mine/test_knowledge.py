"""The loop's decisions, on a made-up program whose truth is known: which function is slow by which call path."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.paths.borders import PERTURBED
from perflaw.learn.paths.mine import mine
from perflaw.learn.paths.stable import stable_borders
from perflaw.mine.knowledge import Knowledge
from perflaw.mine.messages import Measurement, ProbeCost
from perflaw.types import Observed, Platform
from tests.learn.observing import observe

SECOND = 10**9
STACKS = {
    ("app.main", "app.quick", "app.load"): 60,
    ("app.main", "app.slow", "app.load"): 60,
    ("app.main", "app.slow", "app.tiny"): 40,
    ("app.main", "app.slow"): 4,
    ("app.main",): 1,
}


class MadeUp:
    """A program in which ``load`` is slow where ``slow`` calls it, and ``tiny`` is always alike."""

    def __init__(self, seed=0):
        self.rng, self.now, self.asked = np.random.default_rng(seed), SECOND, []
        self.third, self.slow_share, self.above, self.distorting = False, 0.5, (), ()

    def measure(self, request):
        self.asked.append(request)
        begun, self.now = self.now, self.now + round(request.seconds * SECOND)
        if request.kind == "samples":
            stacks = {(*path[:-1], *self.above, path[-1]): count for path, count in STACKS.items()}
            return Measurement(request.number, request.kind, begun, self.now, stacks=stacks)
        observed = tuple(self._observed(name, request, begun) for name in request.functions)
        return Measurement(
            request.number, request.kind, begun, self.now, observed=observed, cost=ProbeCost(8000, 50.0, SECOND)
        )

    def _observed(self, name, request, begun):
        n = round(4000 * request.seconds)
        is_slow = self.rng.random(n) < self.slow_share
        centre = np.where(is_slow, 12.0, 9.0) if name == "app.load" else np.full(n, 10.0)
        if self.third and name == "app.load":
            centre = np.where(is_slow & (self.rng.random(n) < 0.5), 16.0, centre)
        durations = np.exp(centre + self.rng.normal(0, 0.2, n))
        chains = [("app.main", caller, *self.above, name) for caller in ("app.quick", "app.slow")]
        kept = {*request.callers, name}
        paths = [tuple(one for one in chain if one in kept) for chain in chains]
        names = tuple(dict.fromkeys(paths))
        path = np.array([names.index(paths[int(slow)]) for slow in is_slow])
        ends = begun + np.sort(self.rng.integers(1, request.seconds * SECOND, n))
        pieces = observe(durations, path, ends, 1000, run=str(request.number))
        if set(self.distorting) & set(request.callers):
            pieces = [replace(one, nested=10**9) for one in pieces]
        return Observed(name, "time", "ns", names, tuple(pieces), (Platform("host", "b", 1.0),), 10.0)


def learn(program, knowledge, rounds):
    news = []
    for _ in range(rounds):
        decision = knowledge.next(program.now)
        if decision is None:
            break
        news += knowledge.add(program.measure(decision.request), decision.request)
    return news


def test_the_call_path_that_makes_a_function_slow_is_found_by_its_edge():
    program, knowledge = MadeUp(), Knowledge()
    news = learn(program, knowledge, 16)
    load = knowledge.functions["app.load"]
    assert load.settled
    assert len(load.spec.borders) == 1
    assert {group.distribution for group in load.spec.groups} == {(1.0, 0.0), (0.0, 1.0)}
    assert set(load.spec.atoms) <= {("app.slow", "app.load"), ("app.quick", "app.load")}
    assert len(load.spec.atoms) == 1
    assert any("hot" in one for one in news)
    assert program.asked[0].kind == "samples"


def test_callers_are_recorded_only_after_durations_have_borders():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 16)
    kinds = [(one.kind, one.functions) for one in program.asked]
    first = next(place for place, (kind, _) in enumerate(kinds) if kind == "paths")
    assert any(kind == "durations" and "app.load" in names for kind, names in kinds[:first])
    assert all(one.callers for one in program.asked if one.kind == "paths")
    assert all(not one.callers for one in program.asked if one.kind == "durations")


def test_of_functions_that_are_not_settled_the_one_of_most_own_time_is_next():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 1)
    knowledge.functions["app.tiny"].level = 2  # it was begun, and climbs to its callers
    assert knowledge.next(program.now).request.functions[0] == "app.load"


def test_callers_that_are_on_all_call_paths_are_passed_over():
    program, knowledge = MadeUp(), Knowledge()
    program.above = ("app.first", "app.second", "app.third")  # between load and the callers that tell its calls apart
    learn(program, knowledge, 16)
    load = knowledge.functions["app.load"]
    assert {edge[0] for edge in load.spec.atoms} <= {"app.quick", "app.slow"}
    assert len(load.spec.atoms) == 1
    levels = [one.callers for one in program.asked if one.kind == "paths" and "app.load" in one.functions]
    assert list(dict.fromkeys(map(len, levels))) == [1, 5]
    assert len([one for one in levels if len(one) == 1]) == 1


def test_callers_that_are_called_by_the_function_itself_leave_it_as_it_was_known_before():
    """Stale words on the stack of a compiled program look like callers."""
    program, knowledge = MadeUp(), Knowledge()
    program.distorting = ("app.slow",)
    news = learn(program, knowledge, 24)
    load = knowledge.functions["app.load"]
    assert "app.load: settled, recording what samples took for its callers distorts it" in news
    assert (load.settled, load.level, len(load.spec.borders)) == (True, 0, 1)
    with_callers = [one.functions for one in program.asked if "app.load" in one.functions and one.callers]
    assert [len(functions) for functions in with_callers] == [2, 1]  # with others, and then alone


def test_a_measurement_counts_only_for_groups_that_it_shows():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 16)
    load = knowledge.functions["app.load"]
    assert load.replicates >= 3
    assert not load.lacks_replicates
    request = next(one for one in program.asked if one.kind == "paths" and one.functions == ("app.load",))
    program.slow_share = 0.002
    load.observed = [*load.observed[:2], *(program.measure(request).observed[0] for _ in range(3))]
    load.count_replicates()
    assert load.replicates == 2
    assert load.lacks_replicates
    knowledge.functions["app.other"] = replace(load, name="app.other", settled=False, level=3)
    assert knowledge.next(program.now).request.functions[0] == "app.load"  # before another one's callers are recorded


def test_what_earlier_recordings_say_is_measured_first_and_by_the_callers_that_told_call_paths_apart():
    program, before = MadeUp(), Knowledge()
    learn(program, before, 16)
    knowledge = Knowledge()
    knowledge.start_from([before.functions["app.load"].spec], program.now)
    learn(program, knowledge, 1)
    decision = knowledge.next(program.now)
    assert decision.request.functions[0] == "app.load"
    assert set(decision.request.callers) & {"app.slow", "app.quick"}
    assert "known" in decision.why
    learn(program, knowledge, 4)
    load = knowledge.functions["app.load"]
    assert load.settled
    assert load.spec.atoms == before.functions["app.load"].spec.atoms
    timed = Knowledge()  # an earlier loop had only timed it when it ended: it need not be timed again
    timed.start_from([replace(load.spec, groups=load.spec.groups[:1], paths=(("app.load",),))], program.now)
    learn(program, timed, 1)
    assert timed.next(program.now).request.kind == "paths"


def test_functions_that_had_several_groups_come_before_hotter_ones_that_had_one():
    program, before, knowledge = MadeUp(), Knowledge(), Knowledge()
    learn(program, before, 30)
    specs = [before.functions[name].spec for name in ("app.load", "app.tiny")]
    knowledge.start_from(specs, program.now)
    knowledge.sampled_ns = program.now
    knowledge.add_samples({("app.main", "app.slow", "app.tiny"): 90, ("app.main", "app.quick", "app.load"): 10})
    assert knowledge.next(program.now).request.functions[0] == "app.load"


def test_stacks_that_waited_for_a_cpu_name_callers_and_make_nothing_hot():
    knowledge = Knowledge()
    decision = knowledge.next(SECOND)
    stacks = {("app.main", "app.load"): 0, ("app.main", "app.wait"): 0}
    assert knowledge.add(Measurement(1, "samples", 1, 2, stacks=stacks), decision.request) == []
    assert not knowledge.functions
    assert knowledge.callers("app.load", 1) == ("app.main",)
    knowledge.add_samples({("app.main", "app.load"): 60})
    knowledge.add(Measurement(2, "samples", 2, 3, stacks=stacks), decision.request)
    assert knowledge.functions.keys() == {"app.load"}


def test_what_waits_until_somebody_asks_is_neither_hot_nor_measured_any_more():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 3)
    assert knowledge.functions["app.load"].observed
    decision = knowledge.next(program.now)
    assert "app.load" in decision.request.functions
    measurement = replace(program.measure(decision.request), run="9", idle=("app.main", "app.load"))
    news = knowledge.add(measurement, decision.request)
    assert "app.load: not measured, it waits until somebody asks for something" in news
    assert ("app.load", "9") in knowledge.superseded
    learn(program, knowledge, 10)
    assert knowledge.functions.keys() & {"app.load", "app.main"} == set()
    assert "app.tiny" in knowledge.functions


def test_callers_of_settled_functions_are_candidates():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 30)
    assert {"app.quick", "app.slow"} <= knowledge.functions.keys()


def test_others_are_timed_while_the_callers_of_one_function_are_recorded():
    """Probes cost most by being there. What is known of the others is as if they had been timed by themselves."""
    program, knowledge = MadeUp(), Knowledge()
    for _ in range(3):
        learn(program, knowledge, 1)
    tiny = knowledge.functions["app.tiny"]
    tiny.settled, tiny.rounds, tiny.observed, tiny.runs, tiny.spec = False, 0, [], [], None
    learn(program, knowledge, 1)
    while program.asked[-1].kind != "paths":
        learn(program, knowledge, 1)
    assert set(program.asked[-1].functions) == {"app.load", "app.tiny"}
    assert "app.slow" in program.asked[-1].callers
    assert (tiny.rounds, tiny.spec.paths) == (1, (("app.tiny",),))
    assert tiny.spec.points == 4000 * program.asked[-1].seconds
    assert {path[0] for path in knowledge.functions["app.load"].spec.paths} == {"app.quick", "app.slow"}


def test_the_callers_of_several_functions_are_recorded_together():
    """Else each function with call paths waits for its turn, and few have enough recordings after some minutes."""
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 1)
    load, tiny = knowledge.functions["app.load"], knowledge.functions["app.tiny"]
    load.level = tiny.level = 1
    tiny.named = ("app.slow",)  # it has callers of its own to be told by
    knowledge.functions["app.slow"].settled = True
    learn(program, knowledge, 1)
    assert set(program.asked[-1].functions) == {"app.load", "app.tiny"}
    assert set(program.asked[-1].callers) == {"app.quick", "app.slow"}
    assert {path[:-1] for path in load.spec.paths} == {("app.quick",), ("app.slow",)}
    assert {path[:-1] for path in tiny.spec.paths} == {(), ("app.slow",)}  # the caller of load alone divides nothing
    assert tiny.spec.points == load.spec.points == 4000


def test_functions_become_hot_while_others_are_measured():
    program, knowledge = MadeUp(), Knowledge()
    knowledge.add(Measurement(1, "samples", 1, 2, stacks={("app.main", "app.load"): 60}), knowledge.next(1).request)
    request = knowledge.next(3).request
    measurement = replace(program.measure(request), stacks={("app.main", "app.new"): 20})
    assert any(one.startswith("app.new: hot") for one in knowledge.add(measurement, request))


def test_recordings_of_the_level_below_stay_until_those_of_the_next_one_tell_how_much_they_vary():
    """Whenever the loop ends, there is something that the program can be held against."""
    program, knowledge, kept = MadeUp(), Knowledge(), {}
    for _ in range(30):
        request = knowledge.next(program.now).request
        knowledge.add(replace(program.measure(request), run=str(request.number)), request)
        if "app.load" in request.functions:
            kept[request.number] = request.kind
        for name, run in knowledge.superseded:
            if name == "app.load":
                kept.pop(int(run), None)
        knowledge.superseded = []
        counts = Counter(kept.values())
        assert counts["durations"] or not 0 < counts["paths"] < 3
    assert counts["paths"] >= 3
    assert not counts["durations"]


def test_functions_that_call_each_other_are_not_timed_together():
    knowledge = Knowledge()
    decision = knowledge.next(SECOND)
    far = tuple(f"app.between{number}" for number in range(20))
    stacks = {("app.other",): 50, ("app.outer",): 50, ("app.outer", *far, "app.inner"): 50}
    knowledge.add(Measurement(decision.request.number, "samples", 1, 2, stacks=stacks), decision.request)
    chosen = knowledge.next(SECOND).request.functions
    assert "app.other" in chosen
    assert len({"app.outer", "app.inner"} & {*chosen}) == 1


def test_what_is_known_is_verified_again_as_it_gets_older():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 40)
    assert all(one.settled for one in knowledge.functions.values())
    fresh = max(one.utility(program.now) for one in knowledge.functions.values())
    later = min(one.utility(program.now + 3600 * SECOND) for one in knowledge.functions.values())
    assert fresh < later == 1.0


def test_a_function_that_others_distort_is_measured_alone():
    program, knowledge = MadeUp(), Knowledge()
    news = learn(program, knowledge, 1)
    decision = knowledge.next(program.now)
    assert len(decision.request.functions) > 1
    measurement = program.measure(decision.request)
    distorted = tuple(
        replace(one, probe_ns=1e9, observations=tuple(replace(each, nested=5000) for each in one.observations))
        for one in measurement.observed
    )
    news = knowledge.add(replace(measurement, observed=distorted), decision.request)
    assert any("again alone" in one for one in news)
    decision = knowledge.next(program.now)
    assert len(decision.request.functions) == 1


@pytest.mark.slow
def test_a_function_whose_durations_change_is_learnt_anew_and_its_old_recordings_go():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 16)
    assert len(knowledge.functions["app.load"].spec.borders) == 1
    knowledge.superseded.clear()
    program.third, program.now = True, program.now + 3600 * SECOND
    news = learn(program, knowledge, 24)
    assert [one for one in news if "changed" in one] == ["app.load: its durations have changed; it is learnt anew"]
    assert len(knowledge.functions["app.load"].spec.borders) == 2


@pytest.mark.slow
def test_another_share_of_slow_calls_is_noticed_where_the_borders_stay():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 16)
    program.slow_share, program.now = 0.8, program.now + 3600 * SECOND
    news = learn(program, knowledge, 24)
    assert [one for one in news if "changed" in one] == ["app.load: its durations have changed; it is learnt anew"]
    slow = sum(sum(counts[1:]) for counts in knowledge.functions["app.load"].spec.path_counts)
    assert slow / knowledge.functions["app.load"].spec.points > 0.7


def test_one_sample_makes_no_function_hot_and_few_samples_are_not_the_last():
    knowledge = Knowledge()
    for number in range(2):
        decision = knowledge.next(number * SECOND)
        assert decision.request.kind == "samples"
        stacks = {("app.main", f"app.once{number}"): 1}
        assert not knowledge.add(Measurement(decision.request.number, "samples", 1, 2, stacks=stacks), decision.request)
    decision = knowledge.next(3 * SECOND)
    news = knowledge.add(Measurement(decision.request.number, "samples", 3, 4, stacks=STACKS), decision.request)
    assert any(one.startswith("app.load: hot") for one in news)
    assert knowledge.next(4 * SECOND).request.kind == "durations"


def test_a_function_that_is_not_called_any_more_is_settled():
    program, knowledge = MadeUp(), Knowledge()
    learn(program, knowledge, 1)
    while decision := knowledge.next(program.now):
        knowledge.add(
            Measurement(decision.request.number, decision.request.kind, program.now, program.now + 1), decision.request
        )
    assert all(one.settled for one in knowledge.functions.values())


class LearningAll(Knowledge):
    """Knowledge that learns in full where parts suffice for the decision."""

    def _mined(self, several, now_ns):
        return super()._mined(several, now_ns or several[-1].observations[-1].end_ns)

    def _is_distorted(self, observed):
        spec = mine(observed, self.options, None)
        return not spec.points and any(note.startswith(PERTURBED) for note in spec.notes)

    def _shows_other_borders(self, known, observed):
        newest = stable_borders(observed, self.options)
        return known.stable and newest.stable and len(newest.borders) != len(known.borders)


@pytest.mark.parametrize("distorting", [(), ("app.slow",)])
def test_what_is_not_learnt_in_full_changes_no_decision(distorting):
    def run(knowledge):
        program = MadeUp()
        program.distorting = distorting
        news = learn(program, knowledge, 20)
        program.third, program.now = True, program.now + 3600 * SECOND
        return [*news, *learn(program, knowledge, 12)], program.asked, knowledge.specs(program.now)

    assert run(Knowledge()) == run(LearningAll())
