"""What is told of the machine: CPU of others, waiting for a CPU, switches, memory; and the load that is made on purpose."""

import os
import subprocess
import sys
import time

from perflaw.explore.target.load import end_load, start_load
from perflaw.explore.target.proc import ConditionsWatch, children_of, family, stat_of, threads_of

SPIN = "import os, time\n{}\nuntil = time.process_time() + {}\nwhile time.process_time() < until: pass"


def spin(seconds, first=""):
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", SPIN.format(first, seconds)])


def watched(ours, others):
    """Conditions of a target that uses ``ours`` seconds of CPU beside others that use ``others``."""
    targets = []
    watch = ConditionsWatch(lambda: [target.pid for target in targets], lambda: sum(os.times()[:2]))
    watch.begin()  # before either starts, so that it sees all of their CPU time
    began = time.monotonic()
    neighbour, target = spin(others), spin(ours)
    targets.append(target)
    while os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        watch.look()
        time.sleep(0.005)
    neighbour.wait()
    _, status, usage = os.wait4(target.pid, 0)
    target.returncode = os.waitstatus_to_exitcode(status)
    watch.reaped(target.pid, usage)
    return watch.end(), time.monotonic() - began


def test_the_cpu_of_target_and_others_is_told_apart():
    conditions, seconds = watched(0.3, 0.3)
    # Others on this machine may use more; less than the neighbour they cannot.
    assert 0.28 <= conditions.cpu_s <= 0.5
    assert conditions.other_cpu * seconds >= 0.22


def test_threads_that_wait_for_a_cpu_are_told():
    """Several spinning processes on one CPU: each waits for about as long as the others run."""
    one = {min(os.sched_getaffinity(0))}
    targets = []
    watch = ConditionsWatch(lambda: [target.pid for target in targets], lambda: 0.0)
    watch.begin()
    targets.extend(spin(0.2, f"os.sched_setaffinity(0, {one})") for _ in range(4))
    while any(target.poll() is None for target in targets):
        watch.look()
        time.sleep(0.005)
    assert watch.end().run_delay > 0.5


def test_sleeping_is_voluntary_and_memory_is_seen():
    code = "import time\nroom = bytearray(50 << 20)\nfor _ in range(50): time.sleep(.002)"
    target = subprocess.Popen([sys.executable, "-I", "-S", "-c", code])
    watch = ConditionsWatch(lambda: [target.pid], lambda: 0.0)
    watch.begin()
    _, status, usage = os.wait4(target.pid, 0)
    target.returncode = os.waitstatus_to_exitcode(status)
    watch.reaped(target.pid, usage)
    conditions = watch.end()
    assert conditions.memory_bytes > 50 << 20 and conditions.voluntary > 0


def test_families_are_found_by_parents():
    child = subprocess.Popen(["sh", "-c", "sleep 30 & wait"])
    while len(family(child.pid)) < 1:
        time.sleep(0.001)
    (grandchild,) = children_of(child.pid)
    assert {child.pid, grandchild} <= set(family(os.getpid())) and grandchild not in family(os.getpid(), [child.pid])
    assert stat_of(grandchild).parent == child.pid and threads_of(grandchild)
    os.kill(grandchild, 9)
    child.wait()
    assert stat_of(grandchild) is None or stat_of(grandchild).state == "Z"


def test_load_is_made_as_asked_and_ends(tmp_path):
    began = time.monotonic()
    processes = start_load({"cpu": 0.5, "memory": 8 << 20, "disk": 4 << 20}, str(tmp_path))
    assert len(processes) == 3
    deadline = time.monotonic() + 20
    stats = [stat_of(process.pid) for process in processes]
    while (stats[0].cpu_s < 0.1 or stats[1].rss < 8 << 20) and time.monotonic() < deadline:
        time.sleep(0.02)
        stats = [stat_of(process.pid) for process in processes]
    assert stats[1].rss > 8 << 20 and not list(tmp_path.iterdir())  # what is written on the disk has no name
    assert 0.1 <= stats[0].cpu_s <= 0.8 * (time.monotonic() - began) + 0.1
    end_load(processes)
    assert all(process.returncode == -9 for process in processes)
