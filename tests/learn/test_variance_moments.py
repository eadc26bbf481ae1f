"""Weights of sampled invocations by context, and costs at their borders: none, of zero, exactly high."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.variance.moments import (
    Link,
    Stats,
    bucket_middle,
    context_weights,
    pooled,
    quantile,
    quantiles_of_groups,
)
from perflaw.learn.variance.places import Places
from perflaw.types.call_trees import log_bucket
from tests.learn.variance_data import Call, Recorder


@pytest.fixture
def tree():
    """Six samples: node 1 calls node 2 with costs of two strata, and three times node 3."""
    recorder = Recorder()
    recorder.add(Call("top", 100, [(1, Call("work", 5)), (1, Call("work", 40)), (2, Call("rest", 3))]))
    recorder.add(Call("top", 100, [(1, Call("work", 6))]))
    return recorder.tree()


def weights_by_node(found, tree):
    return [(node, weight) for node, weight in zip(tree.samples.node.tolist(), found.weight.tolist(), strict=True)]


def histogram(*rows):
    """Rows (node, cost, invocations)."""
    columns = ([row[0] for row in rows], [log_bucket(row[1]) for row in rows], [row[2] for row in rows])
    return tuple(np.array(column, dtype=np.int64) for column in columns)


def test_without_histogram_samples_keep_their_weight(tree):
    tree = replace(tree, samples=replace(tree.samples, weight=np.arange(1.0, 7.0)))
    found = context_weights(tree)
    assert found.weight.tolist() == [1, 2, 3, 4, 5, 6]
    assert not found.complete
    assert found.node.size == found.value.size == found.count.size == 0


def test_samples_stand_for_the_invocations_of_their_own_context_and_stratum(tree):
    nodes = {name: node for node, name in enumerate(["", "top", "work", "rest"])}
    tree = replace(
        tree,
        samples=replace(tree.samples, weight=np.full(6, 7.0)),
        histogram=histogram(
            (nodes["top"], 120, 30), (nodes["top"], 100, 10),  # both in the stratum of 64 to 127, but in two buckets
            (nodes["work"], 5, 8), (nodes["work"], 6, 2), (nodes["work"], 40, 9), (nodes["work"], 1000, 4),
        ),
    )  # fmt: skip
    found = context_weights(tree)
    by_cost = dict(zip(tree.samples.time.tolist(), found.weight.tolist(), strict=True))
    assert by_cost == {148.0: 7.0, 106.0: 40.0, 5.0: 5.0, 6.0: 5.0, 40.0: 9.0, 3.0: 7.0}
    assert found.complete
    assert (found.node.tolist(), found.count.tolist()) == ([nodes["work"]], [4.0])
    assert found.value.tolist() == [bucket_middle(log_bucket(1000))]


def test_contexts_of_neighbouring_numbers_do_not_share_cells(tree):
    """The largest stratum of one context and the smallest of the next are cells of their own."""
    tree = replace(tree, histogram=histogram((2, 2**40, 5), (3, 3, 11), (3, 0, 13)))
    found = context_weights(tree)
    by_cost = dict(zip(tree.samples.time.tolist(), found.weight.tolist(), strict=True))
    assert by_cost[3.0] == 11
    assert sorted(zip(found.node.tolist(), found.count.tolist(), strict=True)) == [(2, 5), (3, 13)]


def test_every_value_lies_in_its_bucket_and_an_eighth_from_its_middle():
    for x in [*range(3000), 2**31 - 1, 2**31, 3 * 2**40, 2**62]:
        middle = bucket_middle(log_bucket(x))
        assert abs(middle - x) <= x / 8 + (0.5 if 2 <= x <= 3 else 0)
        assert log_bucket(int(middle)) == log_bucket(x)


def test_quantiles_by_weight():
    x, weight = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 4.0])
    expected = np.repeat(x, weight.astype(int))
    for p in np.linspace(0.1, 1, 10):
        assert quantile(x, weight, p) == expected[round(p * 10) - 1]
    assert quantile(x, weight, 0.0) == 1.0


def test_costs_of_nothing_vary_nothing():
    for none in (Stats(0, 0, 0), Stats(5, 0, 0)):
        assert (none.mean, none.variance, none.sigma, none.cov) == (0, 0, 0, 0)
        assert not none.is_high(0.0)


def test_high_is_from_the_threshold_on_and_from_the_noise_on():
    x = Stats(2, 4, 10)  # 1 and 3: mean 2, σ 1
    assert (x.mean, x.variance, x.cov) == (2, 1, 0.5)
    assert x.is_high(0.5)
    assert not x.is_high(0.51)
    assert x.is_high(0.1, noise=1.0)
    assert not x.is_high(0.1, noise=1.01)


def test_links_are_covariances_and_add_up():
    """X = 1, 3, 8 over three invocations; K = 1, 2, 0 and Y = 1, 2, 0."""
    link = Link(n=2, once=1, k=3, kk=5, ky=5, y=3, yy=5, yx=7)
    x, y = np.array([1, 3, 8]), np.array([1, 2, 0])
    assert link.net(Stats(3, 12, 74)) == 9 * np.mean((x - x.mean()) * (y - y.mean()))
    assert link.spread(3) == pytest.approx(9 * y.var())
    assert pooled([]) == Link(0, 0, 0, 0, 0, 0, 0, 0)
    assert pooled([link]) == link
    assert pooled([link, link, link]) == Link(*(3 * value for value in link))


def test_quantiles_of_groups_are_those_of_each_group_to_the_last_bit():
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 70, 200)
    first = np.cumsum(lengths) - lengths
    weight = rng.choice([1.0, 1 / 3, 17.7], lengths.sum())
    x = np.concatenate([np.sort(rng.lognormal(size=length)) for length in lengths])
    for p in (0.5, 0.99):
        each = [
            quantile(x[at : at + n], weight[at : at + n], p)
            for at, n in zip(first.tolist(), lengths.tolist(), strict=True)
        ]
        assert quantiles_of_groups(x, weight, first, p).tolist() == each
    assert quantiles_of_groups(np.zeros(0), np.zeros(0), np.zeros(0, np.intp), 0.5).tolist() == []


def test_rows_of_nodes_are_found_in_ascending_order():
    node = np.array([2, 0, 2, 1, 4, 2])
    places = Places(node, 6)
    for nodes in ([2], [4, 2], [2, 2, 0], [3], []):
        assert places.of(nodes).tolist() == np.flatnonzero(np.isin(node, nodes)).tolist()


def test_rows_of_many_nodes_are_those_of_each():
    rows = Places(np.array([2, 0, 2, 5, 0, 2]), 7)
    for nodes in ([5, 2], [1], [], [6, 0, 3], range(7)):
        assert rows.of_many(np.array(nodes, np.intp)).tolist() == rows.of(nodes).tolist()
