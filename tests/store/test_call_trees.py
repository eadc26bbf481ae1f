"""Recordings as call trees for the learner of variance: exact sums on every node, whatever shape the calls have."""

import numpy as np
import pytest

from perflaw.learn.variance.analyse import variance
from perflaw.learn.variance.parts import parts_of
from perflaw.learn.variance.tree import Options, Tree
from perflaw.store import schema, tables
from perflaw.store.call_trees import read_call_tree
from perflaw.types import CPU, EVENTS, TIME, call_trees
from tests.conftest import PROGRAMS
from tests.record.recording import record_fake


def test_what_stands_for_no_callee_is_the_same_everywhere():
    assert (schema.LOCAL, schema.OTHER) == (call_trees.LOCAL, call_trees.OTHER)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """Recursion, generators, coroutines, exceptions and threads, twice."""
    folder = tmp_path_factory.mktemp("shapes")
    return record_fake(folder, "native", [PROGRAMS / "shapes.py"], select=["shapes.*"], metrics=["cpu"], repeat=2)


@pytest.mark.parametrize("metric", [TIME, CPU, EVENTS])
def test_parts_add_up_on_every_node(shapes, metric):
    tree = Tree(read_call_tree(shapes, metric))
    assert tree.size > 50
    for node in range(1, tree.size):
        parts = parts_of(tree, [node])
        assert sum(parts.net) == parts.total.spread
        assert sum(sum(row) for row in parts.covariance) == parts.total.spread
        assert sum(one.y for one in parts.sums) == parts.total.x


@pytest.mark.parametrize("metric", [TIME, CPU, EVENTS])
def test_everything_is_explained(shapes, metric):
    """Every function's explanation can be made, and its budget adds up."""
    tree = read_call_tree(shapes, metric)
    for component in tree.components:
        one = variance(tree, Options(high=0.1, least=2, trim=0), component).explanation
        if one is None:
            continue
        assert sum(part.cf_net for part in one.parts) == pytest.approx(1.0 if one.cov else 0.0)
        if one.budget:
            assert sum(row.share for row in one.budget.rows) == pytest.approx(1.0)


def test_samples_stand_for_all_invocations(shapes):
    tree = read_call_tree(shapes, TIME)
    samples, n = tree.samples, tree.moments["time"].n
    by_component = np.zeros(len(tree.components))
    np.add.at(by_component, tree.component[samples.node], samples.weight)
    completed = np.zeros(len(tree.components))
    np.add.at(completed, tree.component[1:], n[1:])
    aside = ("(waiting)", "(garbage collection)")
    waiting = [place for place, one in enumerate(tree.components) if one.name in aside]
    completed[waiting] = 0
    np.testing.assert_allclose(by_component, completed)
    assert len(set(samples.run)) == 2


def test_callees_of_samples_are_those_of_their_run(shapes):
    samples = read_call_tree(shapes, TIME).samples
    spent = np.zeros(len(samples.x))
    np.add.at(spent, samples.of, samples.y)
    assert (spent <= samples.x).all()


def test_tables_of_which_nothing_is_in_a_tree_are_not_read(shapes, monkeypatch):
    read, names = tables.read_table, set[str]()

    def counted(folder, name, columns=()):
        names.add(name)
        return read(folder, name, columns)

    monkeypatch.setattr(tables, "read_table", counted)
    read_call_tree(shapes, TIME)
    assert names >= {"calltree", "moments", "links", "invocations", "features"}
    assert not names & {"spans", "worst"}
