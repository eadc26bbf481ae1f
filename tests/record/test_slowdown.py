"""The slowdown of a run, from the CPU times that were measured and those that the tracer knows by calibration."""

from dataclasses import replace

import pytest

from perflaw.types import Clock, Losses, Machine, Run

MACHINE = Machine(2, 0.0, 900, 100, 0, 0, 0, 0, 0, before_ns=50, tracer_start_ns=100, after_ns=50)
RUN = Run(
    "0001", ("app.py",), "app.py", {}, "2026-01-01T00:00:00", 5000, 5000, 0, True, "ended", "python", "3.11",
    Clock("perf_counter", 1, 5, 600, waited_ns=200), Losses(), "host", {}, {}, 1, 1, 1, machine=MACHINE,
)  # fmt: skip


def test_the_tracers_own_time_is_taken_out_but_for_what_it_waited():
    assert RUN.slowdown == pytest.approx(1000 / (1000 - 100 - 400))


def test_what_only_calibration_tells_takes_longer_in_a_program_than_in_the_calibration():
    known_by_calibration = replace(RUN, clock=replace(RUN.clock, counting_ns=200))
    assert known_by_calibration.slowdown == pytest.approx(1000 / (500 - 0.25 * 200))


def test_the_interpreter_runs_the_programs_code_slower_while_a_function_profiles():
    """Of 500 ns that are left, 100 are the interpreter's start and end, which nothing profiles."""
    profiled = replace(RUN, clock=replace(RUN.clock, profiled_percent=200))
    assert profiled.slowdown == pytest.approx(1000 / (100 + 400 / 2))
