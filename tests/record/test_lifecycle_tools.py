"""Profilers, tracers, debuggers and coverage that the program uses itself show it what they always do."""

import sys

import pytest

from perflaw.store.counts import read_counts
from tests.conftest import first
from tests.record.both_ways import run_both_ways

pytestmark = pytest.mark.interpreter

OWN_HOOKS = """
import cProfile, io, pstats, sys, threading
def f(n): return g(n)
def g(n): return n
profile = cProfile.Profile(); profile.enable(); [f(i) for i in range(10)]; profile.disable()
print(sorted((place[2], found[0]) for place, found in pstats.Stats(profile).stats.items() if 'app.py' in place[0]))
seen = []
def watch(frame, event, argument): seen.append((event, frame.f_code.co_name, frame.f_lineno, frame.f_lasti >= 0))
def trace(frame, event, argument): watch(frame, event, argument); return trace
sys.setprofile(watch); f(1); sys.setprofile(None)
sys.settrace(trace)
f(1)
try: 1 / 0
except ZeroDivisionError: pass
sys.settrace(None)
threading.setprofile(watch); thread = threading.Thread(target=f, args=(1,)); thread.start(); thread.join()
threading.setprofile(None)
print([one for one in seen if one[1] in 'fg'], sys.gettrace(), sys.getprofile())
"""
DEBUGGER = """
import io, pdb
def f(n):
    x = n + 1
    return x
debugger = pdb.Pdb(stdin=io.StringIO('s\\ns\\nw\\np n\\nc\\n'), nosigint=True, readrc=False)
debugger.use_rawinput = False
print(debugger.runcall(f, 3))
"""
TOOL_IDS = """
import sys
monitoring, seen = sys.monitoring, []
def f(): return g()
def g(): pass
print([tool for tool in range(6) if monitoring.get_tool(tool) is None])
monitoring.free_tool_id(4)
for tool in (0, 1, 2, 3, 4):
    monitoring.use_tool_id(tool, 'mine')
    monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, at, tool=tool: seen.append((tool, code)))
    monitoring.set_events(tool, monitoring.events.PY_START)
f()
print([(tool, code.co_name) for tool, code in seen])
for tool in (0, 1, 2, 3, 4): monitoring.set_events(tool, 0); monitoring.free_tool_id(tool)
monitoring.use_tool_id(0, 'mine')
monitoring.register_callback(0, monitoring.events.PY_START, lambda code, at: monitoring.DISABLE)
monitoring.set_local_events(0, f.__code__, monitoring.events.PY_START)
f(); f(); monitoring.restart_events(); f()
"""
TAKES_OURS = """\
import sys
def f(n):
    for i in range(n):
        n += 1
f(5)
sys.monitoring.use_tool_id(4, 'mine')
f(5)
"""
TAKES_ALL = """
import sys
def f(): pass
taken = []
for tool in range(6):
    try: sys.monitoring.use_tool_id(tool, 'mine')
    except ValueError: taken.append(tool)
    f()
print(taken)
"""
COVERED = """\
def f(n):
    if n > 1:
        return 2
    return 1
def g():
    yield 1
    yield 2
f(1)
print(list(g()))
"""


def test_hooks_of_its_own(both):
    assert both(OWN_HOOKS).calls()["f"] == 13


def test_a_debugger(both):
    assert "(Pdb)" in both(DEBUGGER).stdout


if sys.version_info >= (3, 12):

    def test_monitoring_tools_of_its_own(both):
        assert both(TOOL_IDS).calls()["f"] == 4

    @pytest.mark.parametrize("tracer", ["native", "python"])
    def test_a_program_that_uses_every_monitoring_tool(tmp_path, tracer):
        """The last one is the recorder's, which steps aside and says so; calls until then are kept."""
        done = run_both_ways(tmp_path, ("-c", TAKES_ALL), tracer=tracer)
        run = done.recordings[0].run
        assert done.calls()["f"] == (5 if tracer == "native" else 6)
        if tracer == "native":
            assert (run.complete, run.lost.reason) == (False, "the program uses every tool of sys.monitoring itself")

    def test_lines_are_counted_under_another_tool(tmp_path):
        (tmp_path / "app.py").write_text(TAKES_OURS)
        (recording,) = run_both_ways(tmp_path, ("app.py",), options=("--collect", "lines")).recordings
        counts = read_counts(recording.folder)
        lines = {
            place.line: count
            for place, count in zip(counts.locations, counts.counts, strict=True)
            if place.kind == "line"
        }
        assert lines == {1: 1, 2: 1, 3: 12, 4: 10, 5: 1, 6: 1, 7: 1}


CORES = ["ctrace", "pytrace", *(["sysmon"] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("core", first(1, CORES))
def test_coverage_sees_the_same_lines(both, tmp_path, core, monkeypatch):
    monkeypatch.setenv("COVERAGE_CORE", core)
    (tmp_path / "covered.py").write_text(COVERED)
    (tmp_path / ".coveragerc").write_text("[run]\ninclude = covered.py\n")
    done = both(
        "import coverage\n"
        "measured = coverage.Coverage(config_file='.coveragerc', data_file=None); measured.start()\n"
        "import covered\n"
        "measured.stop(); print(measured.analysis2('covered.py')[1:4])\n"
    )
    assert done.stdout.endswith("([1, 2, 3, 4, 5, 6, 7, 8, 9], [], [3])\n"), done.stdout
    assert done.recordings[0].run.calls > 3
