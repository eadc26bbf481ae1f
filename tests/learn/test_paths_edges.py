"""Distinguishing edges and expressions: as few as can be, proven against trying them all."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.learn.paths.edges import assess, edge_table, exact_columns, holds, soft_columns, table_of
from perflaw.learn.paths.grouping import group_paths
from perflaw.learn.paths.mine import shortest_expression
from tests.conftest import examples
from tests.learn.path_data import planted

PAPER = (("a", "b", "c", "z"), ("a", "b", "z"), ("a", "c", "z"))


def soft(columns, labels, calls, left=0.02):
    return soft_columns(columns.rows, labels, calls, left, 8)


def test_the_papers_example_needs_the_edge_from_b_to_c():
    columns = edge_table(PAPER)
    labels, calls = np.array([0, 1, 1]), np.array([50.0, 30.0, 20.0])
    for found in (soft(columns, labels, calls), exact_columns(columns.rows, labels, calls)):
        assert [columns.edges[column] for column in found.chosen] == [("b", "c")]
    edge = (("b", "c"),)
    assert shortest_expression([(True,)], [(False,)], edge) == (((("b", "c"), True),),)
    assert shortest_expression([(False,)], [(True,)], edge) == (((("b", "c"), False),),)


def test_of_edges_on_the_same_paths_the_nearest_to_the_function_is_kept():
    paths = (("m", "p", "q", "f"), ("m", "r", "f"))
    assert edge_table(paths).edges == (("q", "f"),)
    assert edge_table(paths[:1]).edges == ()
    assert edge_table(()).edges == ()


def test_where_paths_start_tells_nothing_apart_because_other_recordings_have_more_callers():
    shop = [(page, way, "rows") for page in ("item", "basket") for way in ("item_of", "stock_of")]
    edges = edge_table(shop).edges
    assert len(edges) == 5  # four calls by a page, and one of the two calls of rows, which are complementary
    with_callers = edge_table([("main", "serve", *path) for path in shop])
    assert set(edges) < set(with_callers.edges)


def planted_case(seed, most, noise=0.0):
    case = planted(np.random.default_rng([3, seed]), most=most, noise=noise)
    labels = group_paths(case.counts, case.counts.sum(axis=1).astype(float))
    known = np.flatnonzero(labels >= 0)
    return case, edge_table([case.paths[i] for i in known]), labels[known], case.counts[known].sum(axis=1).astype(float)


@pytest.mark.parametrize("seed", range(8))
def test_soft_separation_takes_four_edges_at_most(seed):
    _, columns, labels, calls = planted_case(seed, 600, noise=0.05)
    found = soft(columns, labels, calls)
    assert found.enough
    assert len(found.chosen) <= 4
    left = assess(table_of(columns.rows, labels, calls), found.chosen)
    assert left.wrong[0] <= 0.02 * calls.sum() + table_of(columns.rows, labels, calls).lost
    assert left.unseparated[0] == 0


@pytest.mark.parametrize("seed", range(12))
def test_soft_separation_of_everything_agrees_with_the_exact_one(seed):
    _, columns, labels, calls = planted_case(seed, 60)
    exact = exact_columns(columns.rows, labels, calls)
    assert exact.enough
    assert len(exact.chosen) > 4 or len(soft(columns, labels, calls, 0.0).chosen) == len(exact.chosen)
    assert len(soft(columns, labels, calls).chosen) <= len(exact.chosen)


def separates(rows, group, chosen):
    seen = {}
    return all(
        seen.setdefault(tuple(row[list(chosen)]), label) == label for row, label in zip(rows, group, strict=True)
    )


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_no_fewer_edges_than_those_of_the_exact_search_do(data):
    paths, edges = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 8))
    bits = data.draw(st.lists(st.integers(0, 2**edges - 1), min_size=paths, max_size=paths))
    rows = np.array([[bit >> k & 1 for k in range(edges)] for bit in bits], dtype=bool)
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=paths, max_size=paths)))
    calls = np.array(data.draw(st.lists(st.integers(1, 9), min_size=paths, max_size=paths)), dtype=float)
    table = table_of(rows, labels, calls)
    each, group = table.rows > 0, table.calls.argmax(axis=1)
    found = exact_columns(rows, labels, calls)
    assert found.enough
    assert separates(each, group, found.chosen)
    fewer = combinations(range(edges), len(found.chosen) - 1) if found.chosen else ()
    assert not any(separates(each, group, chosen) for chosen in fewer)


def test_a_search_that_takes_too_long_is_completed_and_says_so():
    rng = np.random.default_rng(0)
    rows, labels, calls = rng.random((60, 40)) < 0.5, rng.integers(0, 2, 60), np.ones(60)
    found = exact_columns(rows, labels, calls, max_states=3)
    assert not found.enough
    assert separates(rows, labels, found.chosen)


def test_soft_separation_says_where_it_falls_short():
    rng = np.random.default_rng(0)
    rows, labels = rng.random((200, 12)) < 0.5, rng.integers(0, 2, 200)
    found = soft_columns(rows, labels, np.ones(200), 0.02, 3)
    assert not found.enough
    assert len(found.chosen) == 3


def edges_named(k):
    return tuple((f"a{i}", f"b{i}") for i in range(k))


def true_of(expression, pattern, edges):
    on = dict(zip(edges, pattern, strict=True))
    return any(all(on[edge] == wanted for edge, wanted in term) for term in expression)


@settings(max_examples=examples(100), deadline=None)
@given(k=st.integers(1, 4), picks=st.lists(st.integers(0, 2), min_size=16, max_size=16))
def test_expressions_hold_for_their_own_patterns_and_have_the_fewest_terms(k, picks):
    patterns = list(product((False, True), repeat=k))
    own = [one for one, pick in zip(patterns, picks, strict=False) if pick == 0]
    others = [one for one, pick in zip(patterns, picks, strict=False) if pick == 1]
    if not own:
        return
    edges = edges_named(k)
    found = shortest_expression(own, others, edges)
    assert all(true_of(found, one, edges) for one in own)
    assert not any(true_of(found, one, edges) for one in others)
    literals = [[(edge, value) for value in (False, True)] + [None] for edge in edges]
    cubes = [tuple(one for one in cube if one) for cube in product(*literals)]
    sound = [cube for cube in cubes if not any(true_of((cube,), one, edges) for one in others)]
    for fewer in combinations(sound, min(len(found) - 1, 2)):
        assert not all(true_of(fewer, one, edges) for one in own)


def test_expressions_over_many_edges_are_sound():
    rng = np.random.default_rng(0)
    patterns = sorted({tuple(bool(bit) for bit in row) for row in rng.random((80, 20)) < 0.5})
    edges = edges_named(20)
    found = shortest_expression(patterns[:40], patterns[40:], edges)
    assert all(true_of(found, one, edges) for one in patterns[:40])
    assert not any(true_of(found, one, edges) for one in patterns[40:])


def test_the_empty_expression_holds_for_no_path_and_the_empty_term_for_all():
    assert not holds((), ("a", "b"))
    assert holds(((),), ("a", "b"))


def test_a_rare_group_that_many_edges_would_tell_is_given_up():
    """Forty paths by leaves of their own, 1 % of the calls, half of each planted group's edges: two edges tell the rest."""
    rows = np.zeros((44, 42), dtype=bool)
    rows[:4, :2] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    rows[4:, 0] = np.arange(40) % 2
    rows[4:, 2:] = np.eye(40)
    labels = np.array([0, 0, 1, 1] + [2] * 40)
    calls = np.array([5000.0] * 4 + [5.0] * 40)
    found = soft_columns(rows, labels, calls, 0.02, 8)
    assert found.enough
    assert found.chosen == (0,)
    assert len(exact_columns(rows, labels, calls).chosen) > 8
