"""A process is recorded again and again: each recording has its own settings, and nothing is left behind between them."""

import json
import subprocess
import sys

import pytest

from perflaw.record.build import build, core, extension
from perflaw.record.python.interpreter import probe
from perflaw.record.python.native_reader import NativeReader

pytestmark = pytest.mark.interpreter

PROGRAM = """
import importlib.util, json, os, sys, threading, time

spec = importlib.util.spec_from_file_location("_perflaw_native", sys.argv[1])
tracer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tracer)

def first(n):
    return n + 1

def second(n):
    return first(n) * 2

def work():
    for n in range(100):
        second(n)

asked, done, over = threading.Semaphore(0), threading.Semaphore(0), False

def serve():  # a thread that runs before, between and after all recordings
    while True:
        asked.acquire()
        if over:
            return
        work()
        done.release()

def both():
    work()
    asked.release()
    done.acquire()

def memory():
    status = open("/proc/self/status").read()
    return int(status.split("VmRSS:")[1].split()[0])

def rings():
    return sum(".ring" in line for line in open("/proc/self/maps"))

thread = threading.Thread(target=serve)
thread.start()
both()
sizes = []
for number, glob in enumerate(json.loads(sys.argv[3])):
    spool = os.path.join(sys.argv[2], str(number))
    os.mkdir(spool)
    settings = {"SPOOL": spool, "MAIN": "app", "SELECT": glob, "CLOCK": "real", "SEED": str(number)}
    settings["METRICS"] = "allocated_bytes\\nlock_wait" if number % 2 else ""
    tracer.start({f"PERFLAW_TARGET_{name}": value for name, value in settings.items()})
    both()
    tracer.finish()
    both()
    assert not rings(), "a ring is still mapped"
    sizes.append(memory())
over = True
asked.release()
thread.join()
print(json.dumps(sizes))
"""


def run(folder, globs):
    """Run the program with a recording for each glob; returns its memory in kB after each of them."""
    interpreter = probe(sys.executable)
    (folder / "app.py").write_text(PROGRAM)
    command = [sys.executable, "app.py", build(extension(interpreter)), folder, json.dumps(globs)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def calls(spool):
    """Name of each function → its completed calls in all threads."""
    recorded = next(NativeReader(spool, 1, build(core())).finish(0))
    assert recorded.definitions.ended is not None
    counts = {}
    for node in recorded.tree.nodes[1:]:
        name = recorded.definitions.components[int(node["code"])].name
        counts[name] = counts.get(name, 0) + int(node["n"])
    return counts


def test_each_start_has_its_own_selection_and_sees_threads_that_run_already(tmp_path):
    globs = ["app.first", "app.second", "app.first\napp.work", "app.first"]
    run(tmp_path, globs)
    found = [calls(tmp_path / str(number)) for number in range(len(globs))]
    assert found == [{"app.first": 200}, {"app.second": 200}, {"app.first": 200, "app.work": 2}, {"app.first": 200}]


@pytest.mark.slow
def test_memory_stays_flat_over_a_hundred_recordings(tmp_path):
    sizes = run(tmp_path, ["app.*"] * 100)
    assert sizes[-1] - sizes[20] < 1024
    assert calls(tmp_path / "99")["app.first"] == 200


UNTOUCHED = """
import ctypes, importlib.util, json, os, sys, threading, time, _thread

spec = importlib.util.spec_from_file_location("_perflaw_native", sys.argv[1])
tracer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tracer)

class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]

def entry(function):  # of a built-in function or method: what it calls
    place = ctypes.c_void_p.from_address(id(function) + (16 if isinstance(function, type(len)) else 40)).value
    return ctypes.c_void_p.from_address(place + 8).value

def present():
    allocator = Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(2, ctypes.byref(allocator))
    found = [entry(time.sleep), entry(_thread.LockType.acquire), allocator.malloc]
    if sys.version_info >= (3, 12):
        found += [entry(sys.monitoring.get_tool), entry(sys.monitoring.set_local_events)]
    else:
        get = ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
        found.append(get(ctypes.pythonapi.PyInterpreterState_Get()))
    return found

def work():
    for n in range(3):
        time.sleep(0)

def events():  # that somebody wants of us; while we record, all tools look free
    if sys.version_info < (3, 12):
        return 0
    assert sys.monitoring.get_tool(4) is None
    sys.monitoring.use_tool_id(4, "test")
    found = sys.monitoring.get_events(4) | sys.monitoring.get_local_events(4, work.__code__)
    sys.monitoring.free_tool_id(4)
    return found

before = present()
for number in range(2):
    spool = os.path.join(sys.argv[2], str(number))
    os.mkdir(spool)
    settings = {"SPOOL": spool, "MAIN": "app", "SELECT": "app.work", "CLOCK": "real", "SEED": "1"}
    settings |= {"METRICS": "allocated_bytes\\nlock_wait", "COLLECT": "lines"}
    tracer.start({f"PERFLAW_TARGET_{name}": value for name, value in settings.items()})
    work()
    assert all(one != other for one, other in zip(before, present())), (before, present())
    tracer.finish()
    assert present() == before, (before, present())
    assert events() == 0
    work()
"""


def test_nothing_of_ours_is_called_after_the_end(tmp_path):
    interpreter = probe(sys.executable)
    (tmp_path / "app.py").write_text(UNTOUCHED)
    command = [sys.executable, "app.py", build(extension(interpreter)), tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [calls(tmp_path / str(number)) for number in range(2)] == [{"app.work": 1}] * 2
