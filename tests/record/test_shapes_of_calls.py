"""Recursion, generators, coroutines, exceptions and threads on the fake clock."""

import sys

import pytest

from perflaw.record.doctor import pythons
from perflaw.store.experiment import open_experiment
from tests.conftest import PROGRAMS, costs_of

pytestmark = pytest.mark.interpreter


@pytest.fixture
def components(recorded):
    [recording] = recorded("--clock", "fake", "--", PROGRAMS / "shapes.py")
    assert recording.run.complete
    return costs_of(recording)


def _calls_total_self(components, name):
    calls, _, total, self_total = components[f"shapes.{name}"]
    return calls, total, self_total


def _fib_calls(n):
    return 1 if n < 2 else 1 + _fib_calls(n - 1) + _fib_calls(n - 2)


def test_all_shapes(components):
    calls = _fib_calls(10) + 3 * _fib_calls(5)
    assert _calls_total_self(components, "fib") == (calls, calls, calls)
    # even(7) calls odd(6), …: recursion through another function is counted once in the outermost call.
    assert _calls_total_self(components, "even") == (4, 4 * 3 + 4 * 5, 4 * 3)
    assert _calls_total_self(components, "fails") == (5, 5 * 7, 5 * 7)
    assert _calls_total_self(components, "catches") == (1, 5 * 7 + 1, 1)
    # Two generators: one delegated to and exhausted, one closed after four values.
    assert _calls_total_self(components, "numbers") == (2, 4 * 10 + 2 + 4 * 10 + 2, 4 * 10 + 2 + 4 * 10 + 2)
    assert _calls_total_self(components, "consume") == (1, 84 + 400, 400)
    assert _calls_total_self(components, "step") == (5, 5 * 50, 5 * 50)
    assert _calls_total_self(components, "work")[0] == 3
    assert any(name.startswith("shapes.main.<locals>.<lambda>:") for name in components)
    assert components["(waiting)"][0] >= 5


def test_recursion_is_folded(recorded):
    [recording] = recorded("--clock", "fake", "--select", "shapes.fib", "--", PROGRAMS / "shapes.py")
    assert recording.run.nodes < 40
    assert max(row[5] for row in recording.tables()["calltree"]) <= 8


ITEMS = """
class Body:
    def __getitem__(self, at): return at

class Assigned: pass

def item(self, at): return at

Assigned.__getitem__ = lambda self, at: at
Made = type("Made", (), {"__getitem__": item})

def use(kind):
    several = kind()
    return sum(several[at] for at in range(1000))

for kind in (Body, Assigned, Made):
    use(kind)
"""


@pytest.mark.slow
def test_items_are_calls_however_a_class_came_by_their_function(perflaw, tmp_path):
    """CPython before 3.11.4 makes such calls without its frame evaluation function; each Python 3.11 here is tried."""
    (tmp_path / "items.py").write_text(ITEMS)
    affected = [python.path for python in pythons() if python.version.split(".")[:2] == ["3", "11"]]
    for python in {sys.executable, *affected}:
        perflaw("record", "-e", "items", "--", python, "items.py")
    for recording in open_experiment("items", tmp_path).recordings():
        counted = {name: calls for name, (calls, *_) in costs_of(recording).items()}
        names = ("items.Body.__getitem__", "items.item", "items.<lambda>:9")
        assert [counted.get(name) for name in names] == [1000, 1000, 1000]
