"""A stub beside a real process: it measures what the controller asks for, and leaves the process as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from perflaw.mine.fleet.sources import AttachedSource
from perflaw.mine.fleet.stub import Spending, Stub
from perflaw.mine.messages import Measurement, ProbeCost, Request
from tests.conftest import started_perflaw
from tests.mine.fleet.fleet import PATIENCE_S, Fleet, wait_for
from tests.mine.test_attached import COMPILED, SERVICE
from tests.mine.test_budget import clock  # noqa: F401 (a fixture)
from tests.record.test_attach import running

MORE, FLAT_MB = 6, 1.0
"""Measurements over which the memory of a program must not grow by more. benchmarks/mine_soak.py does this for an hour."""


def measurements(fleet):
    """How often functions of the service were measured."""
    return sum(one.measurements for one in fleet.ledger.coverage("app"))


def memory_mb(pid):
    """Memory of a process that is resident."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


class NeverCalled:
    """A process in whose measurements no function is called."""

    experiment, program, presumed, alive = MagicMock(), MagicMock(), 0.0, True

    def __init__(self, *_, **__):
        self.requests = []

    def measure(self, request):
        self.requests.append(request)
        return Measurement(request.number, request.kind, 1, 2, request.sampling)


def test_requests_and_the_budget_set_the_sampling_factor_and_what_is_detached_counts_as_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr("perflaw.mine.fleet.sources.AttachedProcess", NeverCalled)
    source = AttachedSource(tmp_path, os.getpid(), print)
    request = Request(1, "paths", ("app.load",), seconds=2.0, sampling=0.5)
    assert [one.component for one in source.measure(request).observed] == ["app.load"]  # known not to be called
    source._functions["app.load"].sampling = 0.25
    assert source.measure(request).sampling == 0.125
    source._functions["app.load"].sampling = 0.0
    assert source.measure(request).observed == ()
    assert source.measure(replace(request, seconds=0.0)).observed == ()
    assert [one.sampling for one in source._process.requests] == [0.5, 0.125]


def test_samples_that_are_taken_beside_a_measurement_go_with_the_next_samples(tmp_path, monkeypatch):
    """Nobody looks for hot functions in measurements of durations, whose messages they would make large."""

    class Sampled(NeverCalled):
        def measure(self, request):
            return replace(super().measure(request), stacks={("app.main", "app.load"): 3})

    monkeypatch.setattr("perflaw.mine.fleet.sources.AttachedProcess", Sampled)
    source = AttachedSource(tmp_path, os.getpid(), print)
    for number in range(2):
        assert source.measure(Request(number, "paths", ("app.load",))).stacks == {}
    assert source.measure(Request(3, "samples")).stacks == {("app.main", "app.load"): 9}
    assert source.measure(Request(4, "samples")).stacks == {("app.main", "app.load"): 3}


def test_a_budget_of_cpu_time_pays_for_the_stub_itself_before_anything_is_measured(tmp_path, monkeypatch, clock):  # noqa: F811 (fixtures are given by name)
    monkeypatch.setattr("perflaw.mine.fleet.sources.AttachedProcess", NeverCalled)
    samples = Request(1, "samples")
    sources = {of: AttachedSource(tmp_path, os.getpid(), print, of) for of in ("throughput", "cpu")}
    clock.own_ns = 1_000_000_000  # the start
    clock.go(5.0)
    assert sources["throughput"].pause_s(0.1, samples) == 0
    assert sources["cpu"].pause_s(0.1, samples) > 0
    clock.go(6.0)
    for of, counted in (("throughput", 0.0), ("cpu", 1 / 11)):
        assert sources[of].pause_s(0.1, samples) == 0
        (window,) = sources[of].spent()
        assert (window.share, window.own) == pytest.approx((counted, 1 / 11))
        assert window.end_ns == pytest.approx(time.time_ns(), abs=60e9)
        assert not sources[of].spent()


def test_what_a_stub_measures_is_within_the_budget_at_each_moment(tmp_path, monkeypatch, clock):  # noqa: F811 (fixtures are given by name)
    """It saves for a measurement before it makes it, and shortens one that would be too dear."""

    class Dear(NeverCalled):
        def measure(self, request):
            self.requests.append(request)
            seconds = request.seconds * request.sampling
            clock.go(seconds)
            cost = ProbeCost(round(2_000_000 * seconds), 100.0, round(seconds * 1e9))  # a fifth of the program's time
            return Measurement(request.number, request.kind, 1, 2, request.sampling, cost=cost)

    monkeypatch.setattr("perflaw.mine.fleet.sources.AttachedProcess", Dear)
    source, shares = AttachedSource(tmp_path, os.getpid(), print), []
    request = Request(1, "paths", ("app.load", "app.quick"), seconds=8.0)
    clock.go(20.0)
    while clock.now < 600:
        while pause := source.pause_s(0.05, request):
            clock.go(pause)
        source.measure(request)
        shares.append(source._budget.spent_ns / clock.cpu_ns)
    first, *others = shares  # nothing is known of the cost of the first one
    assert max(others) < 0.055 and others[-1] > 0.045
    assert all(one.sampling < 1 for one in source._process.requests[1:])
    assert first < 0.1


def test_a_stub_whose_budget_permits_nothing_says_so_once(monkeypatch):
    monkeypatch.setattr("perflaw.mine.fleet.stub.ControllerClient", MagicMock())
    now, source, said = [0.0], MagicMock(), []
    monkeypatch.setattr("perflaw.mine.fleet.stub.time.monotonic", lambda: now[0])
    stub = Stub(MagicMock(), source, MagicMock(), said.append)
    stub._stopped = MagicMock(wait=lambda seconds: now.__setitem__(0, now[0] + seconds), is_set=lambda: False)
    for waits, times in ((5, 0), (30, 1), (30, 1)):
        source.pause_s.side_effect = [1.0] * waits + [0.0]
        stub._rest(0.02, Request(1, "samples"))
        assert len(said) == times
    assert "more than 2 % of the process's CPU time" in said[0]


def test_what_a_stub_spends_is_told_while_the_budget_permits_no_measurement(tmp_path, monkeypatch):
    """As long as a budget of CPU time has not paid for the stub's own start, which may take minutes."""
    monkeypatch.setattr("perflaw.mine.fleet.stub.ControllerClient", MagicMock())
    source = MagicMock()
    source.pause_s.side_effect = [0.01, 0.0]
    source.spent.return_value = [Spending(5, 0.1, 0.1)]
    stub = Stub(MagicMock(), source, MagicMock(), print)
    stub._rest(0.05, Request(1, "samples"))
    assert stub._spent == [Spending(5, 0.1, 0.1)]


@pytest.mark.slow
def test_a_running_program_is_measured_within_its_allow_list_and_left_as_it_was(tmp_path):
    fleet = Fleet(tmp_path)
    try:
        fleet.serve()
        enrolment = fleet.enrol("app", ("app.load", "app.quick", "app.slow"), 0.5)
        (tmp_path / "go").touch()
        with running(tmp_path, SERVICE, tmp_path / "go") as program:
            with started_perflaw(tmp_path, "stub", enrolment, "--attach", program.pid, "--budget-of", "cpu") as stub:
                wait_for(lambda: any(one.calls > 1000 for one in fleet.ledger.coverage("app")))
                before, mb = measurements(fleet), memory_mb(program.pid)
                wait_for(lambda: measurements(fleet) >= before + MORE)
                assert memory_mb(program.pid) < mb + FLAT_MB  # probes went in and out meanwhile
                wait_for(lambda: fleet.ledger.spent("app", 0))
                assert all(share > own > 0 for _, _, share, own in fleet.ledger.spent("app", 0))
                stub.send_signal(signal.SIGTERM)
                _, said = stub.communicate(timeout=PATIENCE_S)
                assert stub.returncode == 0, said
            assert program.poll() is None
            (tmp_path / "go").unlink()
            answer, _ = program.communicate(timeout=PATIENCE_S)
        assert answer == "[]\n"  # nothing of ours is left in it
        assert {one.component for one in fleet.ledger.coverage("app")} <= {"app.load", "app.quick", "app.slow"}
        assert not list(tmp_path.glob("app.spool/.perflaw/stub/runs/*"))
        assert "delivered" not in said
    finally:
        fleet.close()


@pytest.mark.slow
def test_a_compiled_program_is_sampled_and_measured_in_the_fleet(tmp_path):
    """Its allow-list has a wildcard, so that only samples tell which functions there are."""
    fleet = Fleet(tmp_path)
    (tmp_path / "go").touch()
    (tmp_path / "app.c").write_text(COMPILED)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    try:
        fleet.serve()
        enrolment = fleet.enrol("app", ("*",), 0.5)
        with subprocess.Popen(["./app", "go"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout.readline() == "ready\n"
            with started_perflaw(tmp_path, "stub", enrolment, "--attach", program.pid) as stub:
                wait_for(
                    lambda: any(one.component == "load" and one.calls > 1000 for one in fleet.ledger.coverage("app"))
                )
                stub.send_signal(signal.SIGTERM)
                _, said = stub.communicate(timeout=PATIENCE_S)
                assert stub.returncode == 0, said
            assert program.poll() is None
            (tmp_path / "go").unlink()
            assert program.wait(PATIENCE_S) == 0
    finally:
        fleet.close()
