"""Recursion, generators, coroutines, exceptions and threads on the fake clock."""

import pytest

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
