"""What evidence says of each sampled invocation beside its cost: types, calls of callees, outcomes of branches."""

import numpy as np

from perflaw.store.evidence import gather
from perflaw.types import CPU, TIME

PROGRAM = """
import asyncio
def leaf(x): return x
def again(x): return leaf(x)
def caller(n, what):
    for i in range(n): leaf(i)
    again(leaf(n))
    return what
async def waits(n):
    for _ in range(n): await asyncio.sleep(0)
for n in range(5): caller(n, "text" if n % 2 else 2.5)
asyncio.run(waits(3))
"""


def evidence_of(recordings, name, metric=TIME):
    return next(one for one in gather(recordings, metric) if one.component.name.endswith(name))


def test_types_and_calls_of_each_invocation(recorded, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    caller = evidence_of(recorded("--", "app.py"), "caller")
    order = np.argsort(caller.features["n"])
    assert caller.categories["what.type"][order].tolist() == ["float", "str", "float", "str", "float"]
    assert caller.categories["n.type"].tolist() == ["int"] * 5
    assert set(caller.edges) == {"calls.app.leaf", "calls.app.again"}
    assert caller.edges["calls.app.leaf"][order].tolist() == [1, 2, 3, 4, 5]
    assert caller.edges["calls.app.again"].tolist() == [1] * 5
    assert not caller.branches


def test_a_callee_that_was_not_called_counts_zero_and_runs_stand_together(recorded, tmp_path):
    (tmp_path / "app.py").write_text(
        "import sys\ndef leaf(): pass\ndef f(n):\n if n: leaf()\nf(int(sys.argv[1])); f(0)\n"
    )
    found = evidence_of(recorded("--vary", "n=0,1", "--", "app.py", "{n}"), "app.f")
    calls = dict(
        zip(zip(found.run.tolist(), found.features["n"], strict=True), found.edges["calls.app.leaf"], strict=True)
    )
    assert calls == {("0001", 0): 0, ("0002", 0): 0, ("0002", 1): 1}


def test_waiting_is_no_callee(recorded, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    edges = evidence_of(recorded("--", "app.py"), "waits").edges
    assert set(edges) == {"calls.asyncio.tasks.sleep"}


def test_a_run_that_ends_in_the_middle_costs_at_least_what_completed_there(recorded, tmp_path):
    """A program that ends by exit never returns from its first function."""
    (tmp_path / "app.py").write_text(
        "import os\ndef work(): return sum(range(100_000))\ndef f():\n work(); os._exit(0)\nf()\n"
    )
    work = evidence_of(recorded("--", "app.py", status=0), "app.work", CPU)
    [cost] = work.runs
    assert cost.cost >= cost.total > 0
