"""Functions of libraries are recorded by default; beyond the budget tiny ones are counted exactly and not timed."""

from dataclasses import replace

import pytest

from perflaw.store.evidence import gather
from perflaw.store.program import read_program
from perflaw.types import CPU, EVENTS, TIME, Metric
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
    told = perflaw("annotate", "--all").stdout
    assert "counted, few calls timed: 1 tiny library function, whose cost is estimated from these calls" in told
    assert "of 30,001 calls timed" in perflaw("annotate", "--text").stdout


@pytest.mark.parametrize("metric", [TIME, CPU, EVENTS])
def test_counted_calls_cost_what_timed_calls_cost(recorded, program, metric, monkeypatch):
    """The cost model and the rows of tables have the cost of a function that is counted, and it is not its caller's."""
    [recording] = recorded("--budget", "1.001", "--", *program)
    recording = replace(recording, run=replace(recording.run, machine=None))  # no start and end of the process
    for room in ("evidence", "program"):  # nor queueing
        monkeypatch.setattr(f"perflaw.store.{room}.QUEUEING", Metric("nothing", "ns"))
    monkeypatch.setattr("perflaw.store.program.has_table", lambda folder, name: False)
    timed = {name: own for name, (_, own) in _own_costs(recording, metric).items()}
    calls = {name: recorded_costs[0] for name, recorded_costs in costs_of(recording).items()}
    costs = read_program([recording], metric)
    names = [component.name for component in costs.components]
    own = dict(zip(names, costs.own[0], strict=True))
    rows = {one.component.name: one.runs[0] for one in gather([recording], metric)}
    tiny, inner = "library.tiny", "library.inner"
    assert costs.calls[0, names.index(tiny)] == 30_001
    assert costs.context_calls[0, costs.context == names.index(tiny)].sum() == 30_001
    assert costs.edge_calls is not None
    assert costs.edge_calls[0, costs.edges.index((names.index(inner), names.index(tiny)))] == 30_000
    for place, name in enumerate(names):
        assert costs.context_own[0, costs.context == place].sum() == pytest.approx(own[name], abs=1)
        if name in rows:
            assert rows[name].self_total == pytest.approx(own[name], abs=2)
    assert sum(own[name] for name in timed) == pytest.approx(sum(timed.values()), abs=2)
    if metric == EVENTS:
        assert own[tiny] == timed[tiny] == 30_001
        return
    unit = timed[tiny] / (calls[tiny] - rows[tiny].counted)
    assert timed[tiny] < own[tiny] <= unit * calls[tiny] + 1
    callers = [inner, "library.outer"]  # the call by `outer` may be counted too
    assert min(own[caller] for caller in callers) >= 0
    given = sum(timed[caller] for caller in callers) - sum(own[caller] for caller in callers)
    assert given == pytest.approx(own[tiny] - timed[tiny], abs=2)
    assert rows[inner].total == costs_of(recording, metric.name)[inner][2]


def _own_costs(recording, metric):
    """Total and own cost of each function in a metric, as they were recorded."""
    names = {row[0]: row[1] for row in recording.tables()["components"]}
    return {names[row[0]]: row[2:4] for row in recording.tables()["component_costs"] if row[1] == metric.name}


CHANGING = """
def lazy(x):
    return compute(x) if x % 1000 == 999 else x

def compute(x):
    return x + 1

def later(x):
    return sum(range(1000)) if x >= 200_000 else x

def both(n):
    for i in range(n):
        lazy(i)
    for i in range(n + 20_000):
        later(i)
"""


def test_functions_that_call_others_or_take_longer_are_timed_again(recorded, program):
    app, folder = program
    (folder / "library.py").write_text(CHANGING)
    app.write_text("import sys\nsys.path.insert(0, sys.argv[1])\nfrom library import both\n\nboth(200_000)\n")
    # Short calls take more than this budget, and long ones less, also where the machine runs at a third of its speed.
    [recording] = recorded("--budget", "1.1", "--", app, folder)
    names = {row[0]: row[1] for row in recording.tables()["components"]}
    nodes = {row[0]: (names.get(row[2]), row[1]) for row in recording.tables()["calltree"]}
    timed = {"lazy": 0, "later": 0}
    misplaced = 0
    for node, metric, n, *_ in recording.tables()["moments"]:
        name, caller = nodes[node]
        if metric == "time" and name in ("library.lazy", "library.later"):
            timed[name.removeprefix("library.")] += n
        if metric == "events" and name == "library.compute" and nodes[caller][0] != "library.lazy":
            misplaced += n
    found = costs_of(recording)
    assert (found["library.lazy"][0], found["library.compute"][0]) == (200_000, 200)
    assert found["library.later"][0] == 220_000
    assert misplaced <= 1
    assert timed["lazy"] > 198_000
    assert 10_000 < timed["later"] < 100_000


@pytest.mark.parametrize("budget", ["1", "fast", "0.5x", "-2x", "inf"])
def test_a_budget_is_a_number_above_one(perflaw, program, budget):
    assert f"--budget {budget}" in perflaw("record", "--budget", budget, "--", *program, status=2).stderr
