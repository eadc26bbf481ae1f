"""A program that advances the fake clock itself: every number of the recording is known exactly."""

import math

import pytest

from tests.conftest import PROGRAMS, costs_of

pytestmark = pytest.mark.interpreter


def _components(recording):
    return {row[1]: row for row in recording.tables()["components"]}


def test_calls_totals_and_self_times_are_exact(recorded):
    [recording] = recorded("--clock", "fake", "--", PROGRAMS / "known.py", 64)
    found = costs_of(recording)
    n, calls = 64, 4
    assert found["known.linear"] == (calls * 4, 0, calls * 4 * 250 * n, calls * 4 * 0 + 0)
    assert found["known.quadratic"][:3] == (calls, 0, calls * 3 * n * n)
    assert found["known.nlogn"][2] == calls * round(90 * n * math.log(n))
    assert found["known.outer"][2] == calls * (3 * 250 * n + 1000)
    assert found["known.main"][0] == 1


def test_moments_of_a_node_are_exact(recorded):
    [recording] = recorded("--clock", "fake", "--", PROGRAMS / "known.py", 32)
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    node = next(row[0] for row in tables["calltree"] if row[2] >= 0 and names[row[2]] == "known.outer")
    moments = next(row for row in tables["moments"] if row[:2] == (node, "time"))
    cost = 3 * 250 * 32 + 1000
    assert moments[2:5] == (4, 4 * cost, 4 * cost**2)
    [link] = [row for row in tables["links"] if _is_link(tables, names, row, node, "known.linear")]
    y = 3 * 250 * 32
    assert link[3:] == (4, 0, 12, 36, 12 * y, 4 * y, 4 * y * y, 4 * y * cost)


def _is_link(tables, names, row, node, below):
    return (row[0], row[2]) == (node, "time") and names[_component(tables, row[1])] == below


def _component(tables, node):
    return next(row[2] for row in tables["calltree"] if row[0] == node)


def test_features_have_names_a_developer_recognises(recorded):
    [recording] = recorded("--clock", "fake", "--", PROGRAMS / "known.py", 16)
    features = {(row[2], row[3], row[4]) for row in recording.tables()["features"]}
    assert ("items.len", 16.0, None) in features
    assert ("items.type", None, "list") in features
    assert ("n", 16.0, None) in features
    assert recording.run.features == {"argv1": 16.0}


def test_the_command_is_the_same_component_as_a_script_and_as_a_module(recorded):
    [recording] = recorded("--clock", "fake", "--select", "__main__.quadratic", "--", PROGRAMS / "known.py", 8)
    assert set(_components(recording)) == {"known.quadratic"}
