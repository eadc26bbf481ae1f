"""Calls in a process of their own: what they give, how they fail, and that nothing of them stays."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from perflaw.mine.fleet.apart import ProcessLost, apart
from perflaw.mine.fleet.database import DatabaseLost
from tests.mine.fleet.test_heap import resident

MB = 1 << 20


def halved(number):
    return number / 2, os.getpid()


def lost(name):
    raise DatabaseLost(name, "it is away", "ping")


def killed(number):
    os.kill(os.getpid(), number)


def ended(status):
    os._exit(status)


def large(size):
    return len([np.ones(1000, np.uint8) for _ in range(size)])


def test_a_call_gives_what_the_function_gives_from_another_process():
    half, process = apart(halved, 5)
    assert half == 2.5
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_an_error_of_the_function_is_raised_here_as_it_is():
    with pytest.raises(DatabaseLost, match=r"fleet: it is away · try: ping"):
        apart(lost, "fleet")


@pytest.mark.parametrize(
    ("function", "number", "why"), [(killed, signal.SIGKILL, "SIGKILL"), (ended, 3, "exit status 3")]
)
def test_a_process_that_ends_before_it_answers_is_told(function, number, why):
    with pytest.raises(ProcessLost, match=f"before it answered: it ended by {why} · try: free -m"):
        apart(function, number)
    assert apart(halved, 2)[0] == 1


def test_an_interrupt_in_a_terminal_is_not_for_the_process():
    with pytest.raises(ProcessLost, match="exit status 7"):
        apart(interrupted, 7)


def interrupted(status):
    os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def test_memory_of_a_call_ends_with_it():
    apart(large, 1)
    before = resident()
    assert apart(large, 100_000) == 100_000
    assert resident() - before < 5 * MB
