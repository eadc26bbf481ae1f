"""The kernel's samples of threads: as many as the CPU time says, wherever a thread waits meanwhile."""

from __future__ import annotations

import os
import threading
import time

import pytest

from perflaw.record.attach.cpu_samples import PERIOD_NS, ProcessSamples


def use_cpu(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


@pytest.fixture
def samples():
    try:
        taken = ProcessSamples(os.getpid())
    except PermissionError:
        pytest.xfail("the kernel gives this user no samples; threads are stopped instead")
    yield taken
    taken.close()


def test_there_is_a_sample_for_each_period_of_cpu_time_and_none_for_waiting(samples):
    list(samples.read())
    use_cpu(15 * PERIOD_NS / 1e9)
    found = list(samples.read())
    assert 5 <= len(found) <= 25  # a machine that gives its time to others too may merge some
    time.sleep(10 * PERIOD_NS / 1e9)
    assert len(list(samples.read())) <= 3
    assert all(one.place and len(one.stack) % 8 == 0 for one in found)


def test_threads_that_begin_later_are_sampled_and_those_that_end_are_forgotten(samples):
    began, seen = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        seen.wait()
        use_cpu(5 * PERIOD_NS / 1e9)

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    list(samples.read())
    seen.set()
    thread.join()
    assert len(list(samples.read())) >= 2
    assert len(list(samples.read())) <= 3
