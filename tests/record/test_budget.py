"""Functions of libraries are recorded by default; beyond the budget tiny ones are counted exactly and not timed."""

import pytest

from tests.conftest import costs_of

pytestmark = pytest.mark.interpreter

LIBRARY = """
def tiny(x):
    return x

def inner(n):
    for i in range(n):
        tiny(i)

def outer(n):
    inner(n)
    tiny(0)
"""
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from library import outer

def own_tiny(x):
    return x

def main(n):
    outer(n)
    for i in range(n):
        own_tiny(i)

main(30_000)
"""


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "library.py").write_text(LIBRARY)
    (tmp_path / "app.py").write_text(PROGRAM)
    return tmp_path / "app.py", folder


def test_calls_between_functions_of_libraries_are_recorded(recorded, program):
    [recording] = recorded("--clock", "fake", "--", *program)
    found = costs_of(recording)
    assert found["library.tiny"][0] == 30_001
    assert found["library.inner"][0] == found["library.outer"][0] == 1


def test_tiny_functions_are_counted_beyond_the_budget(recorded, program):
    [recording] = recorded("--budget", "1.001", "--", *program)
    tables, names = recording.tables(), {row[0]: row[1] for row in recording.tables()["components"]}
    assert recording.run.lost.counted_functions == 1
    assert costs_of(recording)["library.tiny"][0] == 30_001
    assert costs_of(recording)["app.own_tiny"][0] == 30_000
    nodes = {row[0]: row for row in tables["calltree"]}
    [(node, counted)] = [row for row in tables["counted"] if row[1] > 1]
    assert names[nodes[node][2]] == "library.tiny"
    assert names[nodes[nodes[node][1]][2]] == "library.inner"
    n = {row[1]: row[2] for row in tables["moments"] if row[0] == node}
    assert n["events"] == 30_000
    assert n["time"] == n["cpu"] == 30_000 - counted
    events = {row[0]: row[3] for row in tables["moments"] if row[1] == "events"}
    inner = nodes[node][1]
    assert events[inner] == 30_001
    [callee] = [row for row in tables["callees"] if row[2] == node]
    assert callee[3] == 30_000


@pytest.mark.parametrize("options", [("--budget", "1000"), ("--budget", "1.001", "--select", "*")])
def test_within_the_budget_and_selected_all_are_timed(recorded, program, options):
    [recording] = recorded(*options, "--", *program)
    assert recording.run.lost.counted_functions == 0
    assert not list(recording.tables()["counted"])


def test_the_closing_line_and_the_table_say_how_many_are_counted(perflaw, program):
    done = perflaw("record", "--budget", "1.001", "--", *program)
    assert "functions (1 counted, not timed)" in done.stderr
    assert "counted, not timed: 1 tiny library function" in perflaw("annotate").stdout


@pytest.mark.parametrize("budget", ["1", "fast", "0.5x", "-2x", "inf"])
def test_a_budget_is_a_number_above_one(perflaw, program, budget):
    assert f"--budget {budget}" in perflaw("record", "--budget", budget, "--", *program, status=2).stderr
