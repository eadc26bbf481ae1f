"""Whether a thread runs, or only waits for a CPU."""

from __future__ import annotations

import os
import time

import pytest

from perflaw.record.attach import on_cpu as module
from perflaw.record.attach.on_cpu import OnCpu


@pytest.mark.parametrize(
    ("state", "ran", "cpus", "runs"),
    [
        ("R", 1.0, {0, 1}, True),
        ("R", 0.6, {0, 1}, True),  # it was interrupted meanwhile
        ("R", 0.0, {0, 1}, False),  # it waits for a CPU
        ("R", 0.0, {1}, True),  # on the only CPU, whoever asks has interrupted it
        ("S", 1.0, {0, 1}, False),  # another thread of the process runs
    ],
)
def test_a_thread_that_waits_for_a_cpu_does_not_run(tmp_path, monkeypatch, state, ran, cpus, runs):
    now = {"ns": 0}

    def elapse(*_):
        now["ns"] += 10_000
        return f"17 (py (x) R) {state} 1 17".encode()

    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: cpus)
    monkeypatch.setattr(module.os, "pread", elapse)
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: now["ns"])
    monkeypatch.setattr(module.time, "clock_gettime_ns", lambda clock: round(ran * now["ns"]))
    assert OnCpu(os.getpid()).runs(-1) is runs


def test_the_clock_is_that_of_the_process():
    before = time.process_time_ns()
    assert before <= time.clock_gettime_ns(OnCpu(os.getpid())._clock) <= time.process_time_ns()


def test_a_process_that_has_ended_is_an_error():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(OSError, match="No such process"):
        OnCpu(child)
