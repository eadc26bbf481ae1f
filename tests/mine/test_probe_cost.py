"""What a measurement says that recording a call cost the program."""

from __future__ import annotations

import pytest

from perflaw.mine.attached import added_call_ns
from perflaw.types import Clock, Losses, Run

CALLS, CPU_NS = 1000, 400_000


def cost(most):
    """The cost of a call if the kinds of calls of the calibration say 20 ns to ``most``."""
    clock = Clock("perf_counter", 1, 50, 50 * CALLS, cpu_ns=CPU_NS, added_ns=(20.0, most))
    run = Run(
        "0001", ("app",), "app", {}, "2026-01-01T00:00:00", 10**6, 10**6, 0, True, "ended", "hooks", "",
        clock, Losses(), "host", {}, {}, CALLS, 1, 1,
    )  # fmt: skip
    return added_call_ns(run)


def test_it_is_the_middle_of_what_the_kinds_of_calls_say():
    assert cost(80.0) == pytest.approx((20 + 80 * 1.75) / 2)


def test_an_upper_bound_that_is_all_of_the_cpu_time_counts_for_half():
    assert cost(600.0) == pytest.approx((20 + 0.99 * CPU_NS / CALLS) / 2)
