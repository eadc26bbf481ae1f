"""Outcomes of branches, counted by invocation: exact in every kind of condition, and harmless to what the program does."""

import itertools
import random
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from perflaw.errors import TargetError
from perflaw.record.settings import require_collectable
from perflaw.store.evidence import gather
from tests.conftest import first
from tests.record.branch_oracle import SMALL, expected, program

pytestmark = pytest.mark.interpreter


@pytest.fixture
def outcomes(recorded, tmp_path):
    """Record a program with its branches; function → outcome → (n,) counts, in order of completion."""

    def record(text, *options, command=("app.py",)):
        (tmp_path / "app.py").write_text(text)
        recordings = recorded("--collect", "branches", *options, "--", *command)
        return {one.component.name.removeprefix("app."): one.branches for one in gather(recordings)}

    return record


def counts(found):
    """Outcome → counts, as lists."""
    return {name.removeprefix("branch."): column.tolist() for name, column in found.items()}


@pytest.mark.parametrize("seed", range(2))
def test_what_the_source_says(outcomes, seed):
    chance, text = random.Random(seed), program(seed)
    calls = [
        (f"f{k}", arguments)
        for k in range(25)
        for arguments in chance.sample(list(itertools.product(SMALL, repeat=3)), 8)
    ]
    run = "\n".join(f"{name}{arguments}" for name, arguments in calls)
    total: Counter = Counter()
    for branches in outcomes(text + run + "\n").values():
        for name, column in branches.items():
            place, outcome = re.fullmatch(r"branch\.(L\d+(?:_\d+)?)\.(taken|not_taken)", name).groups()
            total[place, outcome == "taken"] += int(np.nansum(column))
    assert total == expected(text, calls)


def test_each_invocation_has_its_own_counts(outcomes):
    found = outcomes(
        "def rec(n):\n"
        "    if n:\n"
        "        rec(n - 1)\n"
        "    for i in range(n):\n"
        "        if i == 2: raise ValueError\n"
        "try: rec(5)\n"
        "except ValueError: rec(1)\n"
    )
    assert counts(found["rec"]) == {  # 0 1 2 end, 3 raises through 4 and 5
        "L2.taken": [0, 1, 1, 1, 1, 1, 0, 1],
        "L2.not_taken": [1, 0, 0, 0, 0, 0, 1, 0],
        "L4.taken": [0, 1, 2, 3, 0, 0, 0, 1],
        "L4.not_taken": [1, 1, 1, 0, 0, 0, 1, 1],
        "L5.taken": [0, 0, 0, 1, 0, 0, 0, 0],
        "L5.not_taken": [0, 1, 2, 2, 0, 0, 0, 1],
    }


def test_generators_coroutines_and_threads(outcomes):
    found = outcomes(
        "import asyncio, threading\n"
        "def gen(n):\n"
        "    for i in range(n):\n"
        "        if i % 2: yield i\n"
        "a, b = gen(3), gen(6)\n"
        "next(a); next(b); next(b); list(a); threading.Thread(target=list, args=(b,)).start()\n"
        "c = gen(9); list(c)\n"
        "async def waits(n):\n"
        "    while n:\n"
        "        n -= 1\n"
        "        await asyncio.sleep(0)\n"
        "async def both(): await asyncio.gather(waits(2), waits(4))\n"
        "asyncio.run(both())\n"
        "def work(n):\n"
        "    while n: n -= 1\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in (20000, 30000, 40000)]\n"
        "for thread in threads: thread.start()\n"
    )
    gen = counts(found["gen"])
    ways = sorted(zip(gen["L3.taken"], gen["L3.not_taken"], gen["L4.taken"], gen["L4.not_taken"], strict=True))
    assert ways == [(3, 1, 1, 2), (6, 1, 3, 3), (9, 1, 4, 5)]
    assert counts(found["waits"]) == {"L9.taken": [2, 4], "L9.not_taken": [1, 1]}
    assert sorted(counts(found["work"])["L15.taken"]) == [20000, 30000, 40000]


def test_deep_recursion(outcomes):
    found = outcomes(
        "import sys, threading\n"
        "sys.setrecursionlimit(30000); threading.stack_size(512 << 20)\n"
        "def deep(n):\n"
        "    return deep(n - 1) if n else 0\n"
        "thread = threading.Thread(target=deep, args=(20000,)); thread.start(); thread.join()\n"
    )["deep"]
    taken = found["branch.L4.taken"]
    counted = taken[~np.isnan(taken)]
    assert len(counted) >= 40  # mostly over 400; fewer where other work kept the reading of features waiting
    assert sorted(counted)[1:] == [1] * (len(counted) - 1)  # the innermost went the other way


def test_only_functions_that_are_selected_and_ones_own(outcomes):
    text = "import json\ndef f(x):\n    if x: pass\ndef g(x):\n    if x: pass\nf(1); g(1); json.dumps({1: [2]})\n"
    found = outcomes(text)
    assert {name for name, branches in found.items() if branches} == {"f", "g"}
    found = outcomes(text, "-e", "some", "--select", "*.g", "--select", "json.*encode")
    assert {name for name, branches in found.items() if branches} >= {"g"}


def test_many_branches_are_bounded_and_told(outcomes, perflaw, tmp_path):
    body = "".join(f"        if n == {k}: pass\n" for k in range(100))
    text = f"def f(n):\n    while n:\n{body}        n -= 1\nf(5)\n"
    found = counts(outcomes(text)["f"])
    assert len({name.split(".")[0] for name in found}) == 64
    assert found["L2.taken"], found["L2.not_taken"] == ([5], [1])  # its copy stands behind all others
    said = perflaw("record", "--collect", "branches", "--", "app.py").stderr
    assert "branches: of functions with many, the first 64 are counted" in said
    said = perflaw("record", "--collect", "branches", "--", sys.executable, "-X", "no_debug_ranges", "app.py").stderr
    assert "-X no_debug_ranges leaves out" in said


HOSTILE = {
    "debugger": """
import io, pdb
def f(n):
    for i in range(n):
        if i == 1: x = n
    return n
debugger = pdb.Pdb(stdin=io.StringIO('s\\ns\\nn\\nw\\np n\\nu\\nd\\nuntil 6\\nc\\n'), nosigint=True, readrc=False)
debugger.use_rawinput = False
print(debugger.runcall(f, 3)); print(f(2))
""",
    "debugger_within": """
import io, pdb
def f(n):
    debugger = pdb.Pdb(stdin=io.StringIO('n\\nn\\np n\\nn\\nc\\n'), nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.set_trace()
    for i in range(n):
        if i == 1: x = n
    return n
print(f(3)); print(f(2))
""",
    "own_tracer": """
import sys
seen = []
def trace(frame, event, argument):
    if frame.f_code.co_name in ("f", "g"): seen.append((event, frame.f_lineno))
    return trace
def g(n):
    while n: n -= 1
def f(n):
    g(n)
    print(sys.gettrace(), sys._getframe().f_trace)
    sys.settrace(trace)
    g(n)
    if n: n += 1
    sys.settrace(None)
    g(n)
    return n
print(f(2), f(3), seen)
""",
    "own_profiler": """
import sys
seen = []
def watch(frame, event, argument): seen.append((event, frame.f_code.co_name))
def f(n):
    sys.setprofile(watch)
    while n: n -= 1; len("")
    sys.setprofile(None)
    while seen and n: n -= 1
print(f(3), f(0), seen)
""",
    "errors": """
import traceback
class Odd:
    def __bool__(self): raise KeyError("odd")
def f(x, n):
    for i in range(n):
        try:
            if x and i: return 1
        except KeyError as error: return traceback.format_exc().count("line"), error.__context__
    else: return 3
print(f(Odd(), 2), f(1, 2), f(0, 2), f(0, 0))
def g():
    try: yield 1
    except ValueError:
        if 1 < 2: yield 2
    finally: print("closed")
x = g(); next(x); print(x.throw(ValueError)); x.close(); del x
def h(n): return h(n + 1) if n >= 0 else 0
try: h(0)
except RecursionError as error: print(type(error))
""",
    "fork": """
import os, sys
def f(n):
    while n:
        n -= 1
        if n == 2:
            child = os.fork()
            if not child: print("child", n); sys.stdout.flush()
            else: os.waitpid(child, 0)
    return n
print(f(4), flush=True)
""",
}


@pytest.mark.parametrize("name", first(3, HOSTILE))
def test_the_program_does_not_notice(perflaw, tmp_path, name):
    (tmp_path / "app.py").write_text(HOSTILE[name])
    plain = perflaw("record", "-e", "plain", "--", sys.executable, "app.py")
    assert perflaw("record", "--collect", "branches", "--", sys.executable, "app.py").stdout == plain.stdout != ""


COVERAGE = """
import sys
sys.argv = ["coverage"]
import coverage
measured = coverage.Coverage(data_file=None, branch=True, include=["*/loops.py"])
measured.start()
import loops
print([loops.f(n) for n in range(6)])
measured.stop()
print(sorted(measured.get_data().arcs(loops.__file__)))
loops.f(7)
"""


@pytest.mark.slow
def test_beside_coverage(outcomes, perflaw, tmp_path):
    (tmp_path / "loops.py").write_text(
        "def f(n):\n    while n:\n        n -= 1\n        if n == 3:\n            break\n    return n\n"
    )
    (tmp_path / "app.py").write_text(COVERAGE)
    plain = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    done = perflaw("record", "-e", "other", "--collect", "branches", "--", sys.executable, "app.py")
    assert done.stdout == plain
    taken = outcomes(COVERAGE)["loops.f"]["branch.L2.taken"].tolist()
    assert taken[-1] == 4
    if sys.version_info < (3, 12):  # both would need the one trace function of the thread
        assert "not counted while the program traced itself" in done.stderr
    else:
        assert taken == [0, 1, 2, 3, 1, 2, 4]


def test_without_the_option_nothing_is_counted(recorded, tmp_path):
    (tmp_path / "app.py").write_text("def f(n):\n    if n: pass\nf(1)\n")
    assert not any(one.branches for one in gather(recorded("--collect", "calls", "--", "app.py")))


@pytest.mark.any_python
def test_what_cannot_be_collected_is_refused(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("print(1)\n")
    said = perflaw("record", "--collect", "events", "--", "app.py", status=2).stderr
    assert "--collect events" in said and "calls, branches, lines, paths and probes" in said
    said = perflaw("record", "--collect", "branches", "--tracer", "python", "--", "app.py", status=2).stderr
    assert "only the native tracer" in said
    with pytest.raises(TargetError, match="no compiler"):
        require_collectable(("branches",), "python", "no compiler")
