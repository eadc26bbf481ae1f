"""Mining one function: what is claimed, and what is not and why."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.edges import holds
from perflaw.learn.paths.grouping import PathCounts, count_calls, group_paths
from perflaw.learn.paths.mine import explain_groups, group_and_explain, mine
from perflaw.learn.paths.stable import stable_borders
from perflaw.types import Observed, Platform
from tests.learn.observing import observe
from tests.learn.path_models import QUICK, SEMOP, observed

NOW = 10**18


def mined(data, **options):
    return mine(data, MiningOptions(**options), NOW)


@cache
def usual(seed):
    """A specification with all defaults."""
    return mined(observed(seed))


def counted_of(paths, counts, platforms=None):
    counts = np.array(counts)
    return PathCounts(tuple(paths), counts, counts.sum(axis=1).astype(float), platforms or {0: counts})


def groups_of(paths, counts, **options):
    data = counted_of(paths, counts)
    labels = group_paths(data.counts, data.effective)
    return explain_groups("f time", data, labels, MiningOptions(**options), np.zeros(0, dtype=np.intp))


def test_a_specification_adds_up():
    spec = usual(3)
    assert sum(map(sum, spec.path_counts)) == spec.points == 20_000
    assert sum(sum(group.counts) for group in spec.groups) == 20_000
    for group in spec.groups:
        assert sum(group.distribution) == pytest.approx(1.0)
        assert 0 < group.effective <= sum(group.counts)
        assert group.behaviours is None
    assert sorted(place for group in spec.groups for place in group.paths) == list(range(6))
    assert [sum(group.counts) for group in spec.groups] == sorted((sum(g.counts) for g in spec.groups), reverse=True)
    assert (spec.component, spec.metric, spec.share, spec.observations) == ("semop", "time", 0.3, 20)


def test_ids_and_everything_else_do_not_depend_on_the_order_of_paths():
    data = observed(3)
    order = [3, 0, 5, 1, 4, 2]
    place = {old: new for new, old in enumerate(order)}
    moved = replace(
        data,
        paths=tuple(data.paths[old] for old in order),
        observations=tuple(
            replace(
                one,
                paths={place[path]: h for path, h in reversed(one.paths.items())},
                path_batches={place[path]: b for path, b in one.path_batches.items()},
            )
            for one in data.observations
        ),
    )
    assert mined(moved) == usual(3)


def test_ids_are_the_same_in_another_run_and_differ_between_functions():
    ids = [{group.id for group in usual(seed).groups} for seed in (3, 4)]
    assert ids[0] == ids[1]
    other = mined(replace(observed(4), component="other"))
    assert ids[0].isdisjoint(group.id for group in other.groups)


def classify(spec, path):
    """Id of the group where a path was seen, or else of the only group whose expression holds; None if it is unknown."""
    for group in spec.groups:
        if any(spec.paths[place] == path for place in group.paths):
            return None if group.standing == "quarantined" else group.id
    matching = [group.id for group in spec.groups if not group.standing and holds(group.expression, path)]
    return matching[0] if len(matching) == 1 else None


def test_paths_are_classified():
    spec = usual(3)
    of = {path: classify(spec, path) for path in SEMOP}
    assert [len({of[path] for path, q in zip(SEMOP, QUICK, strict=True) if q == share}) for share in (0.41, 0.99)] == [
        1,
        1,
    ]
    assert classify(spec, ("main", "mpm_run", "child", "listen", "acquire", "semop")) == of[SEMOP[1]]
    assert classify(spec, ("main", "mpm_run", "startup", "reload", "release", "semop")) == of[SEMOP[4]]


def test_an_unseen_path_of_which_two_expressions_hold_is_unknown():
    paths = [("m", "a", "f"), ("m", "b", "f"), ("m", "c", "f")]
    found = groups_of(paths, [[900, 100], [500, 500], [100, 900]])
    assert len(found.groups) == 3
    spec = replace(usual(3), groups=found.groups, paths=tuple(paths))
    assert {classify(spec, path) for path in paths} == {group.id for group in found.groups}
    assert classify(spec, ("m", "a", "f", "b", "f")) is None or len(found.atoms) == 2


def test_rare_paths_go_where_the_expression_says():
    paths = [("m", "a", "f"), ("m", "b", "f"), ("m", "x", "a", "f"), ("m", "y", "f")]
    found = groups_of(paths, [[9000, 1000], [1000, 9000], [1, 1], [1, 1]])
    first = next(group for group in found.groups if 0 in group.paths)
    assert 2 in first.paths
    joined = {place for group in found.groups for place in group.paths}
    assert joined | set(found.unknown) == {0, 1, 2, 3}


def test_paths_of_the_same_edges_in_different_groups_are_inseparable():
    """Recursion over two functions: the same calls in another order."""
    paths = [("a", "b", "a", "c", "a", "f"), ("a", "c", "a", "b", "a", "f")]
    found = groups_of(paths, [[900, 100], [100, 900]])
    assert [group.standing for group in found.groups] == ["inseparable"] * 2
    assert [group.expression for group in found.groups] == [(), ()]
    assert found.groups[0].id != found.groups[1].id
    assert found.atoms == ()


def test_a_rule_that_is_wrong_for_most_calls_of_a_group_is_none():
    """Recursion: two thirds of a group's calls come by a path with the edges of a larger group."""
    paths = [("a", "b", "a", "c", "a", "f"), ("a", "c", "a", "b", "a", "f"), ("a", "d", "f")]
    found = groups_of(paths, [[18_000, 2_000], [80, 720], [40, 360]])
    group = next(group for group in found.groups if 2 in group.paths)
    assert set(group.paths) == {1, 2}
    assert (group.standing, group.expression, group.mislabelled) == ("inseparable", (), 0.0)


def test_a_mislabelled_path_is_told_as_a_share():
    paths = [("m", "a", "f"), ("m", "b", "f"), ("m", "c", "b", "f"), ("m", "d", "e", "b", "f")]
    found = groups_of(paths, [[50_000, 10_000], [1_000, 60_000], [835, 165], [10, 500]], left=0.02)
    fast, slow = (next(group for group in found.groups if place in group.paths) for place in (1, 0))
    assert (fast.paths, slow.paths) == ((1, 3), (0, 2))
    assert (fast.mislabelled, slow.mislabelled) == (pytest.approx(510 / 61_510), 0.0)
    assert len(found.atoms) == 1
    exact = groups_of(paths, [[50_000, 10_000], [1_000, 60_000], [835, 165], [10, 500]], exact=True)
    assert len(exact.atoms) == 2
    assert {group.mislabelled for group in exact.groups} == {0.0}


def test_too_few_calls_make_no_claims():
    spec = mined(observed(7, n=300))
    assert (spec.borders, len(spec.groups), spec.stable) == ((), 1, False)
    assert spec.groups[0].expression == ((),)
    assert any("too few" in note for note in spec.notes)


def test_nothing_at_all_makes_an_empty_specification():
    spec = mined(Observed("f", "time", "ns", (), (), (), notes=("recursion folded",)))
    assert (spec.groups, spec.points, spec.utility) == ((), 0, 1.0)
    assert spec.notes[0] == "recursion folded"


def test_one_call_path_is_told():
    spec = mined(observed(8, quick=(0.5,), paths=SEMOP[:1]))
    assert len(spec.borders) == 1
    assert [group.distribution[0] for group in spec.groups] == [pytest.approx(0.5, abs=0.03)]
    assert any("one call path" in note for note in spec.notes)


def test_a_clock_that_stands_still_makes_no_claims():
    seen = observe(np.zeros(3000), np.arange(3000) % 2, np.arange(3000))
    spec = mined(Observed("f", "cpu", "ns", (("a", "f"), ("b", "f")), seen, (Platform("h", "", 1e6),)))
    assert (spec.borders, len(spec.groups)) == ((), 1)
    assert any("clock" in note for note in spec.notes)


def test_durations_that_probes_made_longer_are_left_out():
    """The median is about 1,100 ns: one nested call of 40 ns is fine, two of them are too many."""
    fine = mined(observed(9, quick=(0.9,) * 6, probe_ns=40.0, nested=1))
    assert fine.borders
    assert not any("perturbed" in note for note in fine.notes)
    perturbed = mined(observed(9, quick=(0.9,) * 6, probe_ns=40.0, nested=2))
    assert (perturbed.borders, perturbed.groups, perturbed.points, perturbed.utility) == ((), (), 0, 1.0)
    note = next(note for note in perturbed.notes if note.startswith("perturbed"))
    assert "--select semop" in note


def test_what_was_recorded_alone_is_used():
    alone, nested = observed(10), observed(11, probe_ns=100.0, nested=50)
    both = replace(alone, observations=(*alone.observations, *nested.observations), probe_ns=100.0)
    spec = mined(both)
    assert spec.points == 20_000
    assert [(len(spec.borders), len(spec.groups))] == [(1, 3)]
    assert any("20 of 40" in note for note in spec.notes)


def test_platforms_have_borders_and_behaviours_of_their_own():
    here, there = observed(12), observed(13, host="there", scale=5.0)
    both = replace(
        here,
        platforms=(*here.platforms, *there.platforms),
        observations=(*here.observations, *(replace(one, platform=1) for one in there.observations)),
    )
    spec = mined(both)
    assert len(spec.groups) == 3
    assert spec.platform_borders[1][0] / spec.platform_borders[0][0] == pytest.approx(5.0, rel=0.5)
    for group in spec.groups:
        for shares in group.behaviours.values():
            assert shares == pytest.approx(group.distribution, abs=0.03)
    counts = np.array([spec.platform_counts[place] for place in (0, 1)])
    assert counts.sum(axis=0).tolist() == [list(row) for row in spec.path_counts]


def test_runs_that_differ_count_as_few():
    """The share of slow calls drifts from run to run by more than paths differ within one: no groups."""
    runs = [
        observed(20 + run, quick=tuple(np.random.default_rng(run).uniform(0.35, 0.65, 6)), n=3000) for run in range(10)
    ]
    together = replace(runs[0], observations=tuple(one for run in runs for one in run.observations))
    data = count_calls(together, stable_borders(together, MiningOptions()))
    assert data.effective.sum() < 0.3 * data.counts.sum()
    assert len(mined(together).groups) == 1


def test_groups_are_made_fewer_until_the_edges_suffice():
    """Every leaf of a binary tree of calls behaves in its own way: 32 groups need more than 4 edges."""
    rng = np.random.default_rng(0)
    paths = [("m", *(f"{level}{bit >> level & 1}" for level in range(5)), "f") for bit in range(32)]
    quick = 0.1 + 0.8 * np.arange(32) / 31
    counts = rng.multinomial(200_000, np.stack([quick, 1 - quick], axis=1))
    found, notes = group_and_explain("f time", counted_of(paths, counts), MiningOptions(difference=0.02, most_atoms=4))
    assert len(found.atoms) <= 4
    assert notes
    assert 2 <= len(found.groups) < 32
