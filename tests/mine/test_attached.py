"""Samples, measurements and the loop in real programs that run already."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from perflaw.cli import live_mining
from perflaw.cli.live_mining import mine_running
from perflaw.errors import TargetError
from perflaw.mine.attached import AttachedProcess
from perflaw.mine.journal import read_journal
from perflaw.mine.messages import Request
from perflaw.notices import shown_by
from perflaw.record.attach import idle_waits, stack_samples
from perflaw.record.attach.native_samples import NativeSampler
from perflaw.record.attach.process import native_program, running_program
from perflaw.record.attach.session import prepare
from perflaw.record.attach.stack_samples import StackSampler
from perflaw.record.compiled.inject.choice import all_functions
from perflaw.record.process import Siblings, siblings_of
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import open_experiment
from perflaw.store.paths import read_observed
from tests.conftest import Run, cpu_s, started_perflaw
from tests.record.test_attach import running

SERVICE = """
import os, sys

def load(size):
    total = 0
    for number in range(size):
        total += number
    return total

def quick():
    return load(100)

def slow():
    return load(3000)

class Handler:
    def page(self):
        quick()
        quick()
        return slow()

def pages(count):
    for _ in range(count):
        yield handler.page()

def serve():
    while os.path.exists(sys.argv[1]):
        sum(pages(100))

handler = Handler()
print("ready", flush=True)
serve()
print(sorted(name for name in sys.modules if "perflaw" in name))
"""


def nothing(text: str) -> None:
    """A build is not told."""


@pytest.mark.interpreter
def test_samples_name_the_functions_of_a_running_program_as_recordings_do(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, SERVICE, tmp_path / "go") as program:
        target = prepare(running_program(program.pid), RecordSettings(), nothing)
        sampler = StackSampler(target.program, target.offsets)
        found = sampler.collect(1.0, lambda: False)
        for _ in range(20):  # on a machine that is busy, few looks find the program on a CPU
            if sum(found.stacks.values()) >= 20:
                break
            found.stacks.update(sampler.collect(1.0, lambda: False).stacks)
        sampler.close()
        (tmp_path / "go").unlink()
        program.communicate(timeout=30)
    chain = ("app.<module>", "app.serve", "app.pages", "app.Handler.page", "app.slow", "app.load")
    assert found.stacks.get(chain, 0) > 0, found.stacks
    # The service asks now and then whether its file still exists, and a sample may meet it there.
    assert {name for stack in found.stacks for name in stack} <= {*chain, "app.quick", "genericpath.exists"}


EVENT_LOOP = """
import selectors, os, sys

def communicate():
    poller = selectors.PollSelector()
    poller.register(ends[0], selectors.EVENT_READ)
    poller.register(others[0], selectors.EVENT_READ)
    poller.select(0.01)

def page():
    communicate()

def turn():
    poller.select(0.01)
    page()

ends, others = os.pipe(), os.pipe()
poller = selectors.EpollSelector()
poller.register(ends[0], selectors.EVENT_READ)
print("ready", flush=True)
while os.path.exists(sys.argv[1]):
    turn()
"""


@pytest.mark.interpreter
def test_a_wait_until_somebody_asks_is_no_wait_within_what_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_waits, "LEAST_LOOKS", 50)
    monkeypatch.setattr(stack_samples, "_THREADS_S", 0.0)  # it is looked at each time where the thread sleeps
    (tmp_path / "go").touch()
    with running(tmp_path, EVENT_LOOP, tmp_path / "go") as program:
        target = prepare(running_program(program.pid), RecordSettings(), nothing)
        sampler = StackSampler(target.program, target.offsets)
        for _ in range(20):
            if idle := sampler.collect(0.7, lambda: False).idle:
                break
        sampler.close()
        (tmp_path / "go").unlink()
        program.communicate(timeout=30)
    assert idle == {"app.<module>", "app.turn", "selectors.EpollSelector.select"}


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


CHANGING = SERVICE.replace("    return load(100)", "    return load(2000 if os.path.exists(sys.argv[2]) else 100)")
"""``quick`` is slow from the moment on at which a file exists."""


@pytest.mark.slow
def test_what_becomes_slow_in_a_running_program_is_told_by_its_edge(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, CHANGING, tmp_path / "go", tmp_path / "planted") as program:
        select = ("--select", "app.load", "--select", "app.slow", "--select", "app.quick", "--select", "app.pages")
        for _ in range(3):
            perflaw("attach", program.pid, "--seconds", "1", "--collect", "paths", *select)
        (tmp_path / "spec.yaml").write_text(perflaw("mine", "--export", "yaml").stdout)
        words = ("spec.yaml", "--attach", program.pid, "--budget", "50%", "-e", "live")
        once = perflaw("check", *words, "--json")
        assert "slower" not in json.dumps(
            [one for one in json.loads(once.stdout)["verdicts"] if one["verdict"] == "violated"]
        )
        # As a shell starts it in the background: deaf to Ctrl-C, which is meant for another program.
        outputs = ("--watch", "--metrics", "m.prom", "--otlp", "m.json")
        with started_perflaw(tmp_path, "check", *words, *outputs, preexec_fn=_ignore_interrupts) as watch:
            (tmp_path / "planted").touch()
            watch.send_signal(signal.SIGINT)
            told = list(iter(watch.stdout.readline, "violated 1\n"))  # the last line of an alarm
            watch.send_signal(signal.SIGTERM)
            errors = watch.communicate(timeout=60)[1]
        (tmp_path / "go").unlink()
        program.communicate(timeout=30)
    assert watch.returncode == 1, errors
    text = " ".join("".join(told).split())
    assert "app.quick" in text
    assert "slower than specified" in text
    assert 'perflaw_spec_violated{function="app.load"}' in (tmp_path / "m.prom").read_text()
    assert json.loads((tmp_path / "m.json").read_text())["resourceMetrics"]


def test_checks_of_running_programs_are_refused_without_what_they_need(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("schema: perflaw.specs/1\n")
    assert "no process was named" in perflaw("check", "a.yaml", "--watch", status=2).stderr
    assert "file of specifications" in perflaw("check", "a.law", "--attach", os.getpid(), status=2).stderr


@pytest.mark.slow
@pytest.mark.interpreter
def test_the_loop_learns_the_slow_call_path_of_a_running_program_and_leaves_it_as_it_was(
    perflaw: Run, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, SERVICE, tmp_path / "go") as program:
        with started_perflaw(tmp_path, "mine", "--attach", program.pid, "--budget", "50%", "--json") as loop:
            deadline = time.monotonic() + 120
            folder = open_experiment("default", tmp_path).folder
            while time.monotonic() < deadline:
                events = read_journal(folder)
                settled = any("app.load: settled" in one.get("what", "") for one in events)
                # How much call paths vary is known from three measurements, the last of which is over.
                with_callers = [place for place, one in enumerate(events) if one.get("kind") == "paths"]
                third = with_callers[2] if len(with_callers) > 2 else len(events)
                if settled and any(one["event"] == "measurement" for one in events[third:]):
                    break
                time.sleep(0.2)
            own_s = cpu_s(loop.pid)
            loop.send_signal(signal.SIGINT)
            out, errors = loop.communicate(timeout=60)
        assert loop.returncode == 0, errors
        assert program.poll() is None
        (tmp_path / "go").unlink()
        assert program.communicate(timeout=30) == ("[]\n", "")
    spec = next(one for one in json.loads(out)["specs"] if one["component"] == "app.load")
    assert len(spec["groups"]) == 2
    assert len(spec["edges"]) == 1
    again = json.loads(perflaw("mine", "--json", "load").stdout)["specs"][0]  # what was learnt is kept
    assert again["edges"] == spec["edges"]
    journal = read_journal(folder)
    shares = [one["shares"]["app.load"] for one in journal if "app.load" in one.get("shares", {})]
    assert again["share"] == pytest.approx(shares[-1])  # of samples: in its recordings it is all that was recorded
    assert {one["event"] for one in journal} >= {"begin", "decision", "measurement", "finding", "budget", "end"}
    account = [one for one in journal if one["event"] == "budget"]
    assert sum(one["own_ns"] for one in account) == journal[-1]["own_ns"] >= 1e9 * (own_s - 0.05)
    assert f"perflaw itself took {journal[-1]['own_ns'] / 1e9:.1f} s" in errors
    assert all(one["why"] and 0 < one["utility"] <= 1 for one in journal if one["event"] == "decision")


def test_a_command_is_started_and_measured_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import sys, time\ntime.sleep(1.5)\nsys.exit(7)\n")
    with started_perflaw(tmp_path, "mine", "--", "app.py") as loop:
        loop.communicate(timeout=60)
    assert loop.returncode == 7


def test_a_command_that_ends_when_it_is_about_to_be_measured_has_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> int:
        raise TargetError("process 1", "it has ended", "ps -e")

    monkeypatch.setattr(live_mining, "_measure", ended)
    monkeypatch.chdir(tmp_path)
    assert mine_running("default", None, ("sh", "-c", "sleep 0.7; exit 7"), 0.05, None).status == 7


def test_the_seconds_begin_when_earlier_recordings_have_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading took a whole minute of a busy machine, after which nothing was measured."""
    now, is_over = [0.0], []

    def known(experiment: object) -> list[object]:
        now[0] += 100.0
        return []

    def measured(*words: object) -> int:
        is_over.append(words[-1]())
        now[0] += 61.0
        is_over.append(words[-1]())
        return 1

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live_mining, "_known", known)
    monkeypatch.setattr(live_mining, "_measure", measured)
    monkeypatch.setattr(
        live_mining, "_attached", lambda *_, **__: SimpleNamespace(is_replaced=False, alive=True, presumed=0.1)
    )
    monkeypatch.setattr(live_mining.time, "monotonic", lambda: now[0])
    assert mine_running("default", os.getpid(), (), 0.05, 60.0).functions == 1
    assert is_over == [False, True]


@pytest.mark.slow
def test_a_signal_to_the_loop_alone_ends_a_command_and_shows_what_was_learnt(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SERVICE)
    (tmp_path / "go").touch()
    # A shell that becomes the program, as scripts that start services do.
    command = ("sh", "-c", "sleep 1; exec python app.py go")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ("--budget", "50%", "--json", "--", *command)
    with started_perflaw(tmp_path, "mine", *words, env=environment) as loop:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not any(
            one["event"] == "measurement" and one["run"]
            for one in read_journal(open_experiment("default", tmp_path).folder)
        ):
            time.sleep(0.2)
        loop.send_signal(signal.SIGINT)
        out, errors = loop.communicate(timeout=60)
    assert "runs another program now" in errors
    assert "KeyboardInterrupt" in errors  # the program's own
    assert loop.returncode == 128 + signal.SIGINT, errors
    assert json.loads(out.removeprefix("ready\n"))["specs"]  # the first line is the program's own


AGAIN = SERVICE.replace(
    'print("ready", flush=True)\nserve()',
    """
import threading, time
def again():
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.05)
    os.remove(sys.argv[2])
    os.execv(sys.executable, [sys.executable, "app.py", *sys.argv[1:]])
threading.Thread(target=again, daemon=True).start()
print("ready", flush=True)
serve()""",
)
"""It begins anew, as the same process, when a file exists."""


@pytest.mark.slow
def test_a_program_that_begins_anew_is_measured_anew(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, AGAIN, tmp_path / "go", tmp_path / "again") as program:
        with started_perflaw(tmp_path, "mine", "--attach", program.pid, "--budget", "50%", "--json") as loop:
            folder = open_experiment("default", tmp_path).folder

            def await_measurement() -> None:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline:
                    entries = read_journal(folder)
                    begun = max((at for at, one in enumerate(entries) if one["event"] == "begin"), default=0)
                    if any(one.get("run") for one in entries[begun:]):
                        return
                    time.sleep(0.1)

            await_measurement()
            (tmp_path / "again").touch()
            assert program.stdout.readline() == "ready\n"
            while sum(one["event"] == "begin" for one in read_journal(folder)) < 2:
                assert loop.poll() is None, loop.stderr.read()
                time.sleep(0.1)
            await_measurement()
            loop.send_signal(signal.SIGINT)
            _, errors = loop.communicate(timeout=60)
        assert loop.returncode == 0, errors
        assert "runs another program now" in errors
        assert program.poll() is None
        (tmp_path / "go").unlink()
        assert program.communicate(timeout=30) == ("[]\n", "")


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print("ready", flush=True)
sys.stdin.read()
child.kill()
"""


def test_a_process_that_waits_for_its_workers_names_the_busiest_one(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, PARENT) as program:
        errors = perflaw("mine", "--attach", program.pid, "--seconds", "1.5", status=2).stderr
        (child,) = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        program.communicate("", timeout=30)
    assert "has used more CPU time" in errors
    assert f"perflaw mine --attach {child}" in errors


WORKERS = """
import os, sys, time
WORK = "import time\\nprint(flush=True)\\nwhile True: sum(range(10**5)), time.sleep(0.01)\\n"
REST = "import sys\\nprint(flush=True)\\nsys.stdin.read()\\n"
import subprocess
workers = [
    subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for text in (REST, WORK)
]
for worker in workers:
    worker.stdout.readline()
print(*[worker.pid for worker in workers], flush=True)
sys.stdin.read()
for worker in workers:
    worker.kill()
"""
"""A server with a worker that has nothing to do, and one that works."""

SPEC_OF_REST = """schema: perflaw.spec/1
runs: []
functions:
- function: app.work
  metric: time
  borders: [1 ms]
  groups:
  - id: a1
    when: always
    shares: [0.9, 0.1]
"""


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """The ids of its idle worker and of its busy one."""
    (folder / "server.py").write_text(WORKERS)
    with subprocess.Popen(
        [sys.executable, "server.py"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        idle, busy = map(int, program.stdout.readline().split())
        yield idle, busy
        program.communicate("", timeout=30)


def test_the_siblings_of_a_worker_are_those_of_its_server_and_no_others(tmp_path: Path) -> None:
    with server(tmp_path) as (idle, busy):
        assert siblings_of(idle) == [busy]
        siblings = Siblings(idle)
        while not (found := siblings.busiest(0.2e9)):
            time.sleep(0.1)
        assert found.pid == busy
        assert found.cpu_ns >= 0.2e9 > found.own_ns
        assert Siblings(busy).busiest(0.0) is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as own:
        assert siblings_of(own.pid) == []  # what this process itself has started is no server's
        own.communicate(b"")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("mine",), ("check", "spec.yaml"), ("check", "spec.yaml", "--watch")])
def test_an_idle_worker_is_told_that_its_sibling_works(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC_OF_REST)
    verb = f"perflaw check spec.yaml -e default --attach {{}}{' --watch' * ('--watch' in words)}"
    again = "perflaw mine --attach {}" if words == ("mine",) else verb
    with server(tmp_path) as (idle, busy), started_perflaw(tmp_path, *words, "--attach", idle) as loop:
        assert loop.stderr
        for line in loop.stderr:
            if "sibling" in line:
                break
        loop.send_signal(signal.SIGINT)
        _, rest = loop.communicate(timeout=60)
    assert f"process {idle} has used 0.0" in line
    assert line.endswith(f": {again.format(busy)}\n")
    assert rest.count(" s of CPU time in ") == 0  # it is told once


SHELL = """
import subprocess, sys
burn = "import time\\nwhile time.process_time() < 0.5: pass\\n"
look = burn + "import os; from perflaw.record.process import busiest_child; print(busiest_child(os.getppid()))"
subprocess.run([sys.executable, "-c", look], check=True)
work = burn + "print(flush=True); time.sleep(60)"
worker = subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE)
worker.stdout.readline()
subprocess.run([sys.executable, "-c", look], check=True)
print(worker.pid)
worker.kill()
"""


def test_the_recorder_is_not_the_busiest_of_those_that_a_shell_has_started() -> None:
    """A shell is the parent of a service and of the recorder, as in a container that was started with one."""
    done = subprocess.run([sys.executable, "-c", SHELL], capture_output=True, text=True, check=True)
    alone, beside, worker = done.stdout.split()
    assert alone == "None"
    assert beside == worker


def test_ctrl_c_while_it_is_prepared_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding a large program takes a minute, in which nothing of ours is in it."""

    def preparing(*words: object, **more: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("perflaw.mine.attached.AttachedProcess", preparing)
    with pytest.raises(KeyboardInterrupt):
        mine_running("default", os.getpid(), (), 0.05, None)


def test_options_for_running_programs_are_refused_without_one(perflaw: Run) -> None:
    refused = {("--budget", "2%"): "nothing runs", ("--attach", str(os.getpid()), "--budget", "0"): "--budget 2%"}
    for words, why in refused.items():
        done = perflaw("mine", *words, status=2)
        assert why in done.stderr


def test_a_process_that_does_not_exist_is_refused(perflaw: Run) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert "no such process" in perflaw("mine", "--attach", ended.pid, status=2).stderr


COMPILED = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) unsigned load(unsigned n) { unsigned s = n; while (n--) s = s * 31 + (n ^ s >> 3); return s; }
__attribute__((noinline)) unsigned quick(unsigned n) { return load(300 + n % 7) + 1; }
__attribute__((noinline)) unsigned slow(unsigned n) { return load(9000 + n % 7) + 2; }
__attribute__((noinline)) unsigned page(unsigned n) { return quick(n) + quick(n + 1) + slow(n); }
int main(int count, char **words) {
    volatile unsigned sum = 0;
    puts("ready");
    fflush(stdout);
    for (unsigned n = 0; count < 2 || !access(words[1], F_OK); n++) sum += page(n);
    return 0;
}
"""


def test_a_stripped_program_is_sampled_by_the_places_that_name_its_functions_in_recordings(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    (tmp_path / "app.c").write_text(COMPILED)
    subprocess.run(["gcc", "-O1", "-s", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    with subprocess.Popen(["./app", "go"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        known = native_program(program.pid)
        assert known
        sampler, stacks = NativeSampler(known), Counter[tuple[str, ...]]()
        for _ in range(50):  # on a machine that is busy, few looks find the program on a CPU
            stacks.update(sampler.collect(0.2, lambda: False).stacks)
            if stacks.total() >= 10:
                break
        (tmp_path / "go").unlink()
    (load, _), *_ = Counter(path[-1] for path in stacks.elements()).most_common()
    named = all_functions(tmp_path / "app")
    assert load in {name for _, names in named.values() for name in names}
    assert load.startswith("app+0x")


def test_reading_the_code_of_a_compiled_program_is_shown(tmp_path: Path) -> None:
    """It takes minutes where a large program is met first."""
    (tmp_path / "go").touch()
    (tmp_path / "app.c").write_text(COMPILED)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    steps: list[str] = []

    @contextmanager
    def step(label: str) -> Iterator[Callable[[float], None]]:
        steps.append(label)
        yield lambda part: None

    with subprocess.Popen(["./app", "go"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        with shown_by(print, step):
            AttachedProcess(open_experiment("x", tmp_path), program.pid, print)
        (tmp_path / "go").unlink()
    assert steps == ["reading the code of app"]


def observed_twice(folder: Path, pid: int, request: Request) -> Iterator[str]:
    """What a measurement has observed, and what its recording says on the disk."""
    experiment = open_experiment("kept", folder)
    with AttachedProcess(experiment, pid, nothing) as process:
        measurements = (process.measure(request) for _ in range(20))  # a busy machine may run it in few of them
        measurement = next(one for one in measurements if one.run)
    yield measurement.to_json()
    read = read_observed([experiment.recording(measurement.run)], request.functions)
    yield replace(measurement, observed=tuple(read)).to_json()


def test_what_a_measurement_observed_is_what_its_recording_says(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, SERVICE, tmp_path / "go") as program:
        request = Request(1, "paths", ("app.load", "app.quick"), ("app.Handler.page",), 0.5)
        here, read = observed_twice(tmp_path, program.pid, request)
        assert here == read
        assert json.loads(here)["observed"]
        left = open_experiment("left", tmp_path)
        with AttachedProcess(left, program.pid, nothing, keeps=False) as process:
            assert any(process.measure(request).observed for _ in range(20))
        assert not list(left.folder.rglob("*.parquet"))
        (tmp_path / "go").unlink()
        program.communicate(timeout=30)


def test_what_a_measurement_of_a_compiled_program_observed_is_what_its_recording_says(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    (tmp_path / "app.c").write_text(COMPILED)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    with subprocess.Popen(["./app", "go"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout and program.stdout.readline() == "ready\n"
        here, read = observed_twice(tmp_path, program.pid, Request(1, "paths", ("load",), ("quick", "slow"), 0.5))
        (tmp_path / "go").unlink()
    assert here == read
    assert json.loads(here)["observed"]


@pytest.mark.slow
def test_the_loop_learns_from_a_compiled_program(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    (tmp_path / "app.c").write_text(COMPILED)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    with subprocess.Popen(["./app", "go"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        with started_perflaw(tmp_path, "mine", "--attach", program.pid, "--budget", "50%", "--json") as loop:
            deadline = time.monotonic() + 120
            folder = open_experiment("default", tmp_path).folder
            while time.monotonic() < deadline:
                if any("load: settled" in one.get("what", "") for one in read_journal(folder)):
                    break
                time.sleep(0.2)
            loop.send_signal(signal.SIGINT)
            out, errors = loop.communicate(timeout=60)
        assert loop.returncode == 0, errors
        assert program.poll() is None
        (tmp_path / "go").unlink()
        assert program.wait(30) == 0
    spec = next(one for one in json.loads(out)["specs"] if one["component"] == "load")
    assert len(spec["groups"]) == 2
    assert len(spec["edges"]) == 1
