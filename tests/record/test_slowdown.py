"""The slowdown of a run, from the CPU times that were measured and those that the tracer knows by calibration."""

import sys
from dataclasses import replace

import pytest

from perflaw.record.plan import make_plan
from perflaw.record.session import record_all
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import TracerChoice
from perflaw.store.experiment import open_experiment
from perflaw.types import Clock, Losses, Machine, Run
from tests.record.test_hooks import HOOKS, built, recorded

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


@pytest.mark.parametrize("own_ns", [1000, 1100, 1400])
def test_a_program_took_at_least_what_its_calls_take_if_they_do_nothing(own_ns):
    calls = replace(RUN, calls=4, clock=replace(RUN.clock, own_ns=own_ns, call_ns=20))
    assert calls.slowdown == pytest.approx(1000 / (4 * 20 + 50 + 50))
    assert replace(calls, clock=replace(calls.clock, own_ns=600)).slowdown == RUN.slowdown
    unknown = replace(calls, clock=replace(calls.clock, call_ns=0), machine=replace(MACHINE, before_ns=0, after_ns=0))
    assert unknown.slowdown == (100 if own_ns > 1090 else pytest.approx(1000 / (1100 - own_ns)))


def test_recorded_calls_take_the_mean_of_the_calibration_and_not_its_shortest_trial():
    busy = replace(RUN, calls=4, clock=replace(RUN.clock, event_ns=5, call_ns=2, recorded_call_ns=32))
    assert busy.slowdown == pytest.approx(1000 / (500 - 4 * (32 - 2 - 5)))


def test_what_recording_adds_to_calls_of_several_kinds_bounds_the_slowdown():
    calls = replace(RUN, calls=4, clock=replace(RUN.clock, event_ns=5, call_ns=2, added_ns=(20.0, 4.0, 28.0)))
    assert calls.slowdown_low == pytest.approx(1000 / (500 - 4 * (4 - 5)))
    assert calls.slowdown_high == pytest.approx(1000 / (500 - 4 * (28 * 1.75 - 5)))
    assert calls.slowdown == pytest.approx((calls.slowdown_low * calls.slowdown_high) ** 0.5)
    assert RUN.slowdown_low == RUN.slowdown == RUN.slowdown_high
    dense = replace(calls, clock=replace(calls.clock, added_ns=(500.0, 4.0)))
    assert dense.slowdown_high == pytest.approx(1000 / (4 * 2 + 50 + 50))  # its calls took time of their own


@pytest.mark.parametrize("flags", [(), (HOOKS,)], ids=["injected", "hooks"])
def test_compiled_programs_measure_what_a_call_takes_and_what_waiting_for_the_recorder_takes_of_the_cpu(
    tmp_path, flags
):
    (recording,) = recorded(tmp_path, built(tmp_path, "jumps.c", "-O1", *flags), "tail", 50000)
    clock = recording.run.clock
    assert 0 < clock.call_ns < max(clock.added_ns)
    assert recording.run.slowdown_low <= recording.run.slowdown <= recording.run.slowdown_high
    assert recording.run.calls * clock.event_ns / 2 < clock.own_ns - clock.waited_ns < recording.run.machine.cpu_ns


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_tracers_measure_what_a_call_takes(tmp_path, tracer):
    (tmp_path / "app.py").write_text("def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(17)\n")
    experiment = open_experiment("default", tmp_path)
    plan = make_plan((sys.executable, str(tmp_path / "app.py")), {}, 1, {})
    list(record_all(experiment, plan, TracerChoice(tracer, lambda text: None), RecordSettings()))
    (recording,) = experiment.recordings()
    assert recording.run.clock.call_ns > 0
