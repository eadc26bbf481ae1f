"""Threads are hastened for a moment, and have their own priority back also where the recorder was killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from perflaw.record.attach.priority import hastened, urgent

HASTEN = """
import sys, time
from perflaw.record.attach.priority import hastened
with hastened([int(sys.argv[1])]):
    print("hastened", flush=True)
    time.sleep(100)
"""


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process.pid
        process.kill()


def is_permitted() -> bool:
    """Whether this process may have real-time priorities at all."""
    with urgent():
        return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR


def test_a_thread_is_hastened_while_entered_and_an_ordinary_one_afterwards(sleeper: int) -> None:
    os.setpriority(os.PRIO_PROCESS, sleeper, 5)
    with hastened([sleeper]):
        expected = os.SCHED_RR | os.SCHED_RESET_ON_FORK if is_permitted() else os.SCHED_OTHER
        assert os.sched_getscheduler(sleeper) == expected
    assert os.sched_getscheduler(sleeper) == os.SCHED_OTHER
    assert os.getpriority(os.PRIO_PROCESS, sleeper) == 5


def test_a_thread_with_a_policy_of_its_own_keeps_it(sleeper: int) -> None:
    os.sched_setscheduler(sleeper, os.SCHED_BATCH, os.sched_param(0))
    with hastened([sleeper]):
        assert os.sched_getscheduler(sleeper) == os.SCHED_BATCH
    assert os.sched_getscheduler(sleeper) == os.SCHED_BATCH


def test_a_thread_that_has_ended_is_passed_over() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with hastened([process.pid]):
        pass


def test_a_killed_recorder_leaves_no_thread_hastened(sleeper: int) -> None:
    with subprocess.Popen([sys.executable, "-c", HASTEN, str(sleeper)], stdout=subprocess.PIPE) as recorder:
        assert recorder.stdout
        assert recorder.stdout.readline() == b"hastened\n"
        assert os.sched_getscheduler(sleeper) == (
            os.SCHED_RR | os.SCHED_RESET_ON_FORK if is_permitted() else os.SCHED_OTHER
        )
        recorder.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while os.sched_getscheduler(sleeper) != os.SCHED_OTHER:
        assert time.monotonic() < deadline
        time.sleep(0.01)
