"""The paper's own examples: bubble sort (§3, §4.1.2, §6.1.2), the list append (§1, §5.5, §5.6.2), a location as a feature."""

import numpy as np
import pytest

from perflaw.learn.trend import TrendOptions, trend
from tests.learn.trend_data import LINES, bubble, by_name, cluster, parser

COMPARES = ("bubble.c:4", "bubble.c:5", "bubble.c:7")
SWAPS = ("bubble.c:6",)
SIZE = ("bubble.c:2", "bubble.c:3", "bubble.c:8")

KINDS = {
    "a": {"bubble.c:4": COMPARES, "bubble.c:6": SWAPS, "n": SIZE},
    "b": {"bubble.c:4": COMPARES, "n": SIZE},
    "c": {"bubble.c:4": tuple(sorted(COMPARES + SWAPS)), "n": SIZE},
    "p": {"bubble.c:4": tuple(sorted(COMPARES + SWAPS)), "n": SIZE},
    "d": {"bubble.c:4": COMPARES, "n": tuple(sorted(SIZE + SWAPS))},
}
"""What the four kinds of workloads make of line 6 (§6.1.2), and permutations, see ``workload``."""


@pytest.mark.parametrize("paper", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_four_kinds_of_workloads_of_the_paper(kind, paper):
    counts, sizes = bubble(kind)
    found = trend(counts, LINES, {"n": sizes}, options=TrendOptions(paper=paper))
    assert by_name(found) == KINDS[kind]
    assert found.constant == 1  # line 1
    assert found.zero == (kind == "b")


def test_bubble_sort_as_in_section_4():
    counts, sizes = bubble("a")
    found = trend(counts, LINES, {"n": sizes})
    compares, swaps, size = (cluster(found, name) for name in ("bubble.c:4", "bubble.c:6", "n"))
    assert [one.rank for one in (compares, swaps, size)] == [1, 2, 3]
    # §6.2.2: 1.5 n² − 0.5 n together.
    assert compares.costs == tuple(1.5 * sizes**2 - 0.5 * sizes)
    assert compares.law.family == "quadratic"
    assert compares.powers["n"].exponent == pytest.approx(2.0, abs=0.01)
    assert 1.3 < swaps.powers["n"].exponent < 2.1
    assert size.is_feature
    assert size.features == ("n",)
    assert size.law.family == "linear"
    assert not size.overtakes


def test_without_the_feature_a_location_represents_size():
    counts, _ = bubble("a")
    found = trend(counts, LINES, {})
    assert by_name(found) == {"bubble.c:4": COMPARES, "bubble.c:6": SWAPS, "bubble.c:2": SIZE}
    assert any("no feature" in note for note in found.notes)


def test_a_location_can_be_the_missing_feature():
    counts, sizes = bubble("a")
    found = trend(counts, LINES, {"n": sizes}, options=TrendOptions(representatives=(5,)))
    swaps = cluster(found, "bubble.c:6")
    assert found.features == ("n", "bubble.c:6")
    assert swaps.is_feature
    assert swaps.row == 5
    assert swaps.members == (5,)
    assert swaps.powers["bubble.c:6"].exponent == pytest.approx(1.0)


def test_a_walking_append_is_a_problem_when_lists_grow():
    counts, names, size = parser(lists_grow=True)
    found = trend(counts, names, {"bytes": size}, at=[{"bytes": 2e8}])
    walk = cluster(found, "list.c:3")
    assert (walk.rank, walk.predicted_rank) == (2, 1)
    assert found.by_prediction == (2, 1)
    assert walk.powers["bytes"].exponent_low > 1.2
    (passed,) = walk.overtakes
    assert (passed.rank, passed.representative, passed.feature) == (1, "bytes", "bytes")
    assert size.max() < passed.low < passed.at < passed.high < 2e9


def test_the_same_append_is_benign_when_lists_stay_short():
    counts, names, size = parser(lists_grow=False)
    found = trend(counts, names, {"bytes": size}, at=[{"bytes": 2e8}])
    assert [one.representative for one in found.clusters] == ["bytes"]
    assert 4 in found.clusters[0].members
    assert found.clusters[0].powers["bytes"].exponent == pytest.approx(1.0, abs=0.01)
    assert not found.clusters[0].overtakes


def test_lists_that_grow_are_no_problem_below_the_crossing():
    counts, names, size = parser(lists_grow=True)
    near = trend(counts, names, {"bytes": size}, at=[{"bytes": 4e6}])
    assert near.by_prediction == (1, 2)
    assert near.clusters[1].predicted.mean < near.clusters[0].predicted.mean
    assert np.isclose(near.at["bytes"], 4e6)
