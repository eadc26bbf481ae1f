"""Wall time on a busy machine: what a program queued for a CPU is left out, what it waited of its own accord stays."""

import os
import subprocess
import sys

import pytest

from perflaw.store.evidence import find_metric, gather
from perflaw.store.experiment import open_experiment
from perflaw.store.profiles import read_profile
from perflaw.store.program import read_program
from tests.conftest import run_perflaw
from tests.record.test_hooks import HOOKS, built

PROGRAM = """
import os, sys, time

os.sched_setaffinity(0, {int(sys.argv[1])})


def spin():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass


def rest():
    time.sleep(0.6)


spin()
rest()
"""


@pytest.fixture(params=[True, False], ids=["busy", "quiet"])
def neighbour(request):
    """A CPU and, where busy, a process that never leaves it."""
    cpu = min(os.sched_getaffinity(0))
    command = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"]
    process = subprocess.Popen(command) if request.param else None
    yield cpu, request.param
    if process:
        process.kill()
        process.wait(20)


def test_queueing_is_left_out_and_sleeping_stays(tmp_path, neighbour):
    cpu, busy = neighbour
    (tmp_path / "app.py").write_text(PROGRAM)
    run_perflaw(tmp_path, "record", "--", "app.py", cpu)
    recordings = open_experiment("default", tmp_path).recordings()
    costs = read_program(recordings, find_metric(recordings, "time"))
    own = {component.name: value / 1e9 for component, value in zip(costs.components, costs.own[0], strict=True)}
    # It used 0.4 s by the kernel's account. With queueing it is twice that, and beside many processes the tracer's account
    # of its time on the CPU was 6 % less.
    assert 0.3 <= own["app.spin"] < 0.6
    assert 0.4 <= own["app.rest"] < 0.9
    if busy:
        assert costs.queued is not None and costs.queued[0] > 0.1e9
        assert costs.context_own.sum() == pytest.approx(costs.own.sum(), rel=1e-6)
        # All that it was off the CPU is known, whoever asks.
        used = read_program(recordings, find_metric(recordings, "cpu"))
        [on_cpu] = [used.own[0, at] / 1e9 for at, one in enumerate(used.components) if one.name == "app.spin"]
        assert own["app.spin"] == pytest.approx(on_cpu, rel=0.02)
        profile = read_profile(recordings)
        [at] = [at for at, one in enumerate(profile.components) if one.name == "app.spin"]
        assert profile.function_own["time"][at] == pytest.approx(on_cpu * 1e9, rel=0.02)
        assert profile.queued == pytest.approx(costs.queued[0], rel=0.02)
        [row] = [one.runs[0] for one in gather(recordings) if one.component.name == "app.spin"]
        assert row.self_total == row.total == pytest.approx(on_cpu * 1e9, rel=0.02)


RECURSIVE = """
import os, sys, time

os.sched_setaffinity(0, {int(sys.argv[1])})


def items(depth):
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass
    yield depth
    if depth:
        yield from tokens(depth - 1)


def tokens(depth):
    return [one for one in items(depth)]


def work():
    for _ in range(5):
        tokens(40)


work()
"""


@pytest.mark.slow
def test_queueing_within_recursion_is_left_out_once(tmp_path, neighbour):
    """A node of the call tree that calls are folded into holds inner calls again, and their queueing with them."""
    cpu, busy = neighbour
    (tmp_path / "app.py").write_text(RECURSIVE)
    run_perflaw(tmp_path, "record", "--", "app.py", cpu)
    recordings = open_experiment("default", tmp_path).recordings()
    used = {one.component.name: one.runs[0] for one in gather(recordings, find_metric(recordings, "cpu"))}
    took = {one.component.name: one.runs[0] for one in gather(recordings)}
    for name in ("app.work", "app.tokens", "app.items", "app.<module>"):
        assert took[name].total == pytest.approx(used[name].total, rel=0.05, abs=5e6)
        assert took[name].self_total == pytest.approx(used[name].self_total, rel=0.05, abs=5e6)
    assert took["app.work"].cost == pytest.approx(used["app.work"].cost, rel=0.1)
    costs = read_program(recordings, find_metric(recordings, "time"))
    cpu_costs = read_program(recordings, find_metric(recordings, "cpu"))
    assert costs.own.sum() == pytest.approx(cpu_costs.own.sum(), rel=0.05)
    profile = read_profile(recordings)
    assert profile.function_own["time"].sum() == pytest.approx(profile.function_own["cpu"].sum(), rel=0.05)
    if busy:
        assert costs.queued is not None and profile.queued == pytest.approx(costs.queued[0], rel=0.02)


def test_calls_cost_what_they_did_not_queue(tmp_path, neighbour):
    """Exactly, for each call; what the kernel says of a call's queueing is no cost of it."""
    cpu, busy = neighbour
    program = built(tmp_path, "queueing.c", "-O2", HOOKS)
    select = ("--select", "work", "--select", "main")
    done = run_perflaw(tmp_path, "record", *select, "--", program, cpu, 200)
    [recording] = open_experiment("default", tmp_path).recordings()
    tables = recording.tables()
    [work] = [row[0] for row in tables["components"] if row[1] == "work"]
    queued = {row[1]: row[3] for row in tables["invocation_costs"] if row[2] == "off.queued"}
    of_work = [row for row in tables["invocations"] if row[2] == work]
    expected = [row[5] - queued.get(row[1], 0) for row in of_work]
    [evidence] = [one for one in gather([recording]) if one.component.name == "work"]
    assert evidence.cost.tolist() == expected
    on_cpu = [row[6] for row in of_work]
    assert len(on_cpu) == 200
    assert min(expected) > 0.5e6, "each call spent a millisecond on the CPU"
    assert sum(on_cpu) < 1.3 * int(done.stdout.split()[-1]), "what it was off the CPU is not its CPU time"
    if busy:
        assert any(queued.values())
