"""Profilers, tracers, debuggers and coverage that the program uses itself show it what they always do."""

import sys

import pytest

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
free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
for tool in (0, 1, 2, 3, 5):
    monitoring.use_tool_id(tool, 'mine')
    monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, at, tool=tool: seen.append((tool, code)))
    monitoring.set_events(tool, monitoring.events.PY_START)
f()
print([(tool, code.co_name) for tool, code in seen])
for tool in (0, 1, 2, 3, 5): monitoring.set_events(tool, 0); monitoring.free_tool_id(tool)
monitoring.use_tool_id(0, 'mine')
monitoring.register_callback(0, monitoring.events.PY_START, lambda code, at: monitoring.DISABLE)
monitoring.set_local_events(0, f.__code__, monitoring.events.PY_START)
f(); f(); monitoring.restart_events(); f()
"""
TAKES_ALL = """
import sys
def f(): pass
taken = []
for tool in range(6):
    try: sys.monitoring.use_tool_id(tool, 'mine')
    except ValueError: taken.append(tool)
f()
assert len(taken) <= 1
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

    @pytest.mark.parametrize("program", [TOOL_IDS, TAKES_ALL])
    def test_monitoring_tools_of_its_own(both, program):
        assert both(program).calls()["f"] in (1, 4)


CORES = ["ctrace", "pytrace", *(["sysmon"] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("core", CORES)
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
