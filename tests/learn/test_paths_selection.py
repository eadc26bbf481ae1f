"""Recordings that recorded different callers of one function."""

from contextlib import contextmanager
from dataclasses import replace
from functools import cache, reduce
from itertools import permutations

from perflaw.api import mining
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.merge import is_comparable, merge
from perflaw.learn.paths.mine import mine
from perflaw.learn.paths.selection import FEWER_CALLERS, is_recorded, with_like_callers
from perflaw.specs.files import parse_specs, spec_yaml
from perflaw.types.specifications import MinedSpec, SpecFile
from tests.learn.path_models import model, observed

NOW, OPTIONS = 10**18, MiningOptions()
WAYS = (("write", "semop"), ("write", "headers", "semop"))
"""A page is written, and before it its headers, which is slow more often."""
SELECTED = {
    "semop": (),
    "semop write": ("write",),
    "semop headers": ("headers",),
    "semop write headers": ("write", "headers"),
}


def seen(seed, selected, n=2000):
    """What is observed with some callers recorded; paths that these do not tell apart are one."""
    paths = [tuple(name for name in way if name in (*SELECTED[selected], "semop")) for way in WAYS]
    one = observed(seed, (0.8, 0.4), WAYS, n)
    names = tuple(dict.fromkeys(paths))
    if len(names) == 1:  # as the recorder has it, which does not know of two
        one = observed(seed, (0.6,), names, n)
    return replace(one, paths=names, observations=tuple(replace(each, selected=selected) for each in one.observations))


@cache
def spec(seed, selected, n=2000):
    return mine(seen(seed, selected, n), OPTIONS, NOW)


def both(one, other):
    """Two measurements of one function."""
    paths = tuple(dict.fromkeys((*one.paths, *other.paths)))
    moved = [
        replace(each, paths={paths.index(part.paths[place]): h for place, h in each.paths.items()}, path_batches={})
        for part in (one, other)
        for each in part.observations
    ]
    return replace(one, paths=paths, observations=tuple(moved))


def test_calls_of_which_no_caller_was_recorded_do_not_count_as_a_way_of_their_own():
    mixed = both(seen(1, "semop", 3000), seen(2, "semop write headers"))
    found = with_like_callers(mixed, OPTIONS)
    mined = mine(found, OPTIONS, NOW)
    assert set(mined.paths) == set(WAYS)
    assert len(mined.groups) == 2
    assert mined.points == 2000
    assert found.notes == (f"3 of 5 {FEWER_CALLERS}",)


def test_callers_that_too_few_runs_recorded_to_tell_how_much_these_vary_wait_for_more():
    def mixed(more, without=3):
        runs = [(seed, "semop") for seed in range(without)]
        runs += [(seed, "semop write headers") for seed in range(3, 3 + more)]
        parts = [seen(seed, selected) for seed, selected in runs]
        marked = [
            replace(one, observations=tuple(replace(each, run=str(number)) for each in one.observations))
            for number, one in enumerate(parts)
        ]
        return mine(with_like_callers(reduce(both, marked), OPTIONS), OPTIONS, NOW)

    waiting = "callers that only 2 runs have recorded tell 2 groups of call paths apart: they count from 3 runs on"
    unknown = "no callers on its call path: what explains durations of several kinds is not known"
    assert set(mixed(2).paths) == {("semop",)}
    assert mixed(2).notes == (waiting, unknown), "a model without callers does not say that there is one call path"
    assert set(mixed(3).paths) == set(WAYS)
    assert not mixed(3).notes[1:]
    assert set(mixed(1, without=1).paths) == set(WAYS)  # both together tell it no more
    assert not any("count from" in note for note in mixed(1, without=1).notes)


def test_observations_of_like_callers_stay_what_they_are():
    one = seen(1, "semop write headers")
    assert with_like_callers(one, OPTIONS) is one


def test_functions_that_were_timed_together_make_no_difference(monkeypatch):
    """They are on no call path, so that nothing has to be mined to compare them."""
    one, other = seen(1, "semop write headers"), seen(2, "semop write headers")
    beside = tuple(replace(each, selected=f"{each.selected} other") for each in other.observations)
    monkeypatch.setattr("perflaw.learn.paths.selection.mine", None)
    found = with_like_callers(both(one, replace(other, observations=beside)), OPTIONS)
    assert set(found.paths) == set(WAYS)
    assert len(found.observations) == 4


def test_callers_that_tell_nothing_apart_cost_no_calls():
    """Further ones were recorded in one measurement only: they are left out of its paths."""
    one, other = seen(1, "semop headers"), seen(2, "semop write headers")
    found = with_like_callers(both(one, other), OPTIONS)
    assert len(found.observations) == 4
    assert set(mine(found, OPTIONS, NOW).paths) == {("semop",), ("headers", "semop")}


def test_models_with_too_few_callers_are_left_out_in_whatever_order_they_are_merged():
    specs = [
        spec(1, "semop", 3000),
        spec(2, "semop write", 3000),
        spec(3, "semop write headers"),
        spec(4, "semop headers"),
    ]
    orders = list(permutations(specs))[::7]
    found = [merge(order, OPTIONS) for order in orders]
    assert {one.paths for one in found} == {(("headers", "semop"), ("semop",))}
    assert {one.points for one in found} == {4000}
    assert all(f"2 of 4 {FEWER_CALLERS}" in one.notes for one in found)


def test_only_models_that_both_count_are_compared():
    timed, near, all_callers = spec(1, "semop"), spec(2, "semop headers"), spec(3, "semop write headers")
    assert is_comparable(near, all_callers)
    assert not is_comparable(timed, all_callers)
    assert not is_comparable(spec(2, "semop write"), near)
    everything = model([{("m", "a", "f"): (90, 10)}, {("m", "b", "f"): (10, 90)}])
    assert is_comparable(everything, everything)
    short = replace(timed, paths=(), path_counts=(), groups=(), borders=(), points=0)
    assert is_comparable(short, all_callers)
    assert is_comparable(all_callers, short)


def test_what_was_recorded_is_known_by_literal_names_and_by_patterns():
    assert is_recorded("std::map<int, long>::operator[]", ("f std::map<int, long>::operator[[]] g",))
    assert not is_recorded("long>::operator()", ("f std::map<int, long>::operator[[]] g",))
    assert is_recorded("shop.load", ("shop.*", "shop.l* x"))
    assert not is_recorded("shop.save", ("shop.*", "shop.l* x"))


def test_files_of_specifications_keep_what_was_recorded():
    one = spec(1, "semop headers")
    text = spec_yaml(SpecFile((MinedSpec(one),)))
    assert parse_specs(text, "x.yaml").specs[0].spec.selected == one.selected == ("semop headers",)
    reviewed = spec_yaml(SpecFile((MinedSpec(one),)), evidence=False)
    assert parse_specs(reviewed, "x.yaml").specs[0].spec.selected == one.selected


def test_progress_is_told_while_selections_are_compared(monkeypatch):
    told = []

    @contextmanager
    def progress(label):
        told.append(label)
        yield told.append

    monkeypatch.setattr(mining, "progress", progress)
    one = seen(1, "semop write headers")
    mixed = both(seen(1, "semop", 3000), seen(2, "semop write headers"))
    mined = mining._with_like_callers([mixed, one, mixed], OPTIONS)
    assert [each.notes for each in mined] == [with_like_callers(each, OPTIONS).notes for each in (mixed, one, mixed)]
    assert told[1:] == [0.5, 0.5, 1.0], "what was recorded with the same callers takes no time"
