"""Whether a thread runs, or only waits for a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from perflaw.record.attach import on_cpu as module
from perflaw.record.attach.on_cpu import OnCpu

STATUS = "Name:\tpython\nState:\t{} (running)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"


@pytest.mark.parametrize(
    ("state", "arrivals", "cpus", "runs"),
    [
        ("R", 13, {0, 1}, True),
        ("R", 12, {0, 1}, False),  # it waits for a CPU
        ("R", 3, {0, 1}, True),  # they were not counted from its beginning on: nothing is known
        ("R", 12, {1}, True),  # on the only CPU, whoever asks has interrupted it
        ("S", 12, {0, 1}, None),
    ],
)
def test_a_thread_that_waits_for_a_cpu_does_not_run(monkeypatch, state, arrivals, cpus, runs):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: cpus)
    monkeypatch.setattr(module, "_is_counted", lambda: True)
    texts = {128: f"100 200 {arrivals}\n", module._STATUS_BYTES: STATUS.format(state)}
    monkeypatch.setattr(module.os, "pread", lambda file, size, _: texts[size].encode())
    with closing(OnCpu(os.getpid(), threading.get_native_id())) as one:
        assert one.runs() is runs


def test_counts_that_never_agreed_are_known_when_a_thread_sleeps_or_has_long_seemed_to_wait(monkeypatch):
    now, looks = [0.0], []

    def read(file: int, size: int, _: int) -> bytes:
        return (f"1 2 {looks[0][1]}" if size == 128 else STATUS.format(looks.pop(0)[0])).encode()

    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(module, "_is_counted", lambda: True)
    monkeypatch.setattr(module.os, "pread", read)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with closing(OnCpu(os.getpid(), threading.get_native_id())) as one:
        looks += [("S", 8), ("R", 8), ("R", 9)]
        assert [one.runs() for _ in range(3)] == [None, False, True]
    with closing(OnCpu(os.getpid(), threading.get_native_id())) as one:
        looks += [("R", 12), ("R", 12), ("R", 11)]
        assert not one.runs()
        now[0] += 2
        assert one.runs()
        assert not one.runs()


def test_whoever_asks_runs_and_what_is_stopped_does_not():
    with closing(OnCpu(os.getpid(), threading.get_native_id())) as one:
        # Of a few threads the kernel's counts are off, which is seen when they have seemed to wait for a second.
        deadline = time.monotonic() + 10
        assert any(one.runs() for _ in iter(lambda: time.monotonic() < deadline, False))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child, closing(OnCpu(child.pid, child.pid)) as other:
        child.send_signal(19)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        assert other.runs() is None
        child.kill()


def test_of_two_threads_on_one_cpu_at_most_one_runs(monkeypatch):
    """The kernel's state says that both do."""
    cpu = min(os.sched_getaffinity(0))
    every = os.sched_getaffinity(0) | {0, 1}  # on a machine with one CPU as well
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: every)
    assert module._is_counted()
    burn = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        assert all(child.stdout.readline() for child in children)
        both = [OnCpu(child.pid, child.pid) for child in children]
        can_run = seen = 0
        for _ in range(200):
            status = [module._state(os.pread(one._status, module._STATUS_BYTES, 0))[0] for one in both]
            can_run += all(status)
            seen += both[0].runs() and both[1].runs() and both[0].runs()
        for one in both:
            one.close()
        assert (can_run, seen) == (200, 0) or seen < can_run / 20  # one may give way to the other between two looks
    finally:
        for child in children:
            child.kill()
            child.wait()
            child.stdout.close()


def test_a_process_that_has_ended_is_an_error():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with pytest.raises(OSError, match="No such"):
        OnCpu(child.pid, child.pid)
