"""The numbers of Listing 1, exactly: covariances, shares, minimal sets, distances and merge costs."""

from fractions import Fraction

import pytest

from perflaw.learn.variance.analyse import cost_within, pooled_cost
from perflaw.learn.variance.explain import blocks
from perflaw.learn.variance.moments import Stats, split
from perflaw.learn.variance.parts import parts_of
from perflaw.learn.variance.patterns import (
    Overlay,
    Vertex,
    gaussian_difference,
    merge_cost,
    merged,
    running_averages,
    underliers,
)
from perflaw.learn.variance.tree import Options, Tree
from tests.learn.variance_data import ORACLE, listing1


def close(value):
    return pytest.approx(value, abs=1e-6)


def tree_of(variant):
    tree = Tree(listing1(variant).tree())
    return tree, next(node for node in range(tree.size) if tree.name(tree.component[node]) == "f")


def names(tree, nodes):
    return [tree.name(tree.component[node]) for node in nodes]


@pytest.mark.parametrize("variant", "ABC")
def test_covariances_are_those_of_the_oracle(variant):
    tree, f = tree_of(variant)
    parts, expected = parts_of(tree, [f]), ORACLE[variant]
    assert [tree.name(key[1]) for key in parts.keys] == ["", "g1", "g2", "g3", "g4", "g5"]
    n2 = parts.total.n**2
    assert parts.total.n == expected["N"] == 16
    assert [[Fraction(c, n2) for c in row] for row in parts.covariance] == [
        [Fraction(c) for c in row] for row in expected["C"]
    ]
    assert [Fraction(net, n2) for net in parts.net] == [Fraction(net) for net in expected["phi"]]
    assert Fraction(parts.total.spread, n2) == Fraction(expected["var"])
    assert sum(parts.net) == parts.total.spread


@pytest.mark.parametrize(("variant", "mean", "cov"), [("A", 72, 0.217), ("B", 72, 0.274), ("C", 81, 0.292)])
def test_the_function_itself_is_of_low_variance(variant, mean, cov):
    tree, f = tree_of(variant)
    assert tree.stats[f].mean == mean
    assert tree.stats[f].cov == pytest.approx(cov, abs=5e-4)
    assert not tree.stats[f].is_high(0.4)


@pytest.mark.parametrize("variant", "ABC")
def test_minimal_sets_are_those_of_the_oracle(variant):
    tree, f = tree_of(variant)
    parts = parts_of(tree, [f])
    found = blocks(parts.covariance, parts.net, parts.total.n, 0.10)
    assert [[list(one.parts), one.variance, list(one.minimal) if one.minimal else None] for one in found] == [
        [members, float(variance), minimal] for members, variance, minimal in ORACLE[variant]["blocks"]
    ]


def test_the_underlier_of_g1_is_a1():
    tree, f = tree_of("A")
    segments = underliers(tree, [f], Options())
    assert [names(tree, one.nodes) for one in segments] == [["g1", "a1"], ["g2"]]


def test_all_of_g3_is_trip_count():
    tree, f = tree_of("B")
    parts = parts_of(tree, [f])
    assert split(parts.sums[3], 16).trips == close(25)
    assert split(parts.sums[1], 16).mechanism == "cost per call"
    assert split(parts.sums[2], 16).mechanism == "called or not"
    for place in range(1, 6):
        found = split(parts.sums[place], 16)
        assert found.called + found.trips + found.cost == close(float(ORACLE["B"]["C"][place][place]))


@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        ((10, 4), (14, 4), 0.382925),
        ((10, 4), (14, 8), 0.345144),
        ((10, 4), (10, 8), 0.161337),
        ((10, 4), (0, 0), 0.993790),
        ((10, 20), (0, 0), 0.691462),
        ((5, 0), (5, 0), 0.0),
        ((5, 0), (6, 0), 1.0),
    ],
)
def test_differences_of_gaussians(one, two, difference):
    assert gaussian_difference(one, two) == close(difference)
    assert gaussian_difference(two, one) == close(difference)


def vertex(function, stats, order=0):
    return Vertex(function, "Task", frozenset((order,)), frozenset(), Stats(*stats), order)


def raw(n, mean, variance):
    return n, n * mean, n * (variance + mean * mean)


F_A, F_B, G1, G2 = raw(16, 72, 244), raw(16, 72, 388), raw(16, 20, 100), raw(16, 12, 144)


def overlap(second_has_g2=True):
    g2 = vertex(2, G2)
    children = [Overlay((vertex(1, G1), vertex(1, G1, 1))), Overlay((g2, vertex(2, G2, 1) if second_has_g2 else None))]
    return Overlay((vertex(0, F_A), vertex(0, F_B, 1)), children)


def test_merge_costs_of_f():
    assert running_averages(overlap()) == [close(0.055867), close(0.043722), close(0.038677)]
    assert merge_cost(overlap()) == close(0.038677)
    assert merge_cost(overlap(second_has_g2=False)) == close(0.092556)
    assert merge_cost(overlap(), pressure=0.05) is None
    assert merged(overlap()).stats.variance == close(316)


def test_pooling_between_patterns_is_addition():
    both = Stats(*raw(16, 20, 100)) + Stats(*raw(48, 30, 64))
    assert (both.n, both.mean, both.variance) == (64, 27.5, 91.75)
    assert both.sigma * both.n == pytest.approx(613.03, abs=5e-3)


def test_siblings_merged_within_one_originator_add_up_before_they_are_squared():
    tree, f = tree_of("A")
    ends = [node for node in range(tree.size) if names(tree, [node])[0] in ("g4", "g5")]
    exact, printed = cost_within(tree, [f], ends), pooled_cost(tree, [f], ends)
    assert (exact.n, exact.mean, exact.variance) == (16, 18, 0)
    assert (printed.n, printed.mean, printed.variance) == (32, 9, 81)


def test_small_variance_of_large_costs_is_exact():
    costs = [10**9 - 1000, 10**9 + 1000] * 50
    stats = Stats(100, sum(costs), sum(cost * cost for cost in costs))
    assert stats.variance == 10**6
    assert stats.sigma == 1000


def test_contexts_of_a_function_together_are_one_population():
    recorder = listing1("B", listing1("A"), site=1)
    tree = Tree(recorder.tree())
    heads = [node for node in range(tree.size) if names(tree, [node]) == ["f"]]
    parts = parts_of(tree, heads)
    assert (parts.total.n, parts.total.mean, parts.total.variance) == (32, 72, 316)
    assert sum(parts.net) == parts.total.spread
    assert sum(sum(row) for row in parts.covariance) == parts.total.spread
