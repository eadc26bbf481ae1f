"""``perflaw attach`` records programs that run already, and leaves them as they were."""

from __future__ import annotations

import os
import platform
import signal
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from perflaw import listening
from perflaw.record import saving
from perflaw.record.attach import injection, process, stopping
from perflaw.record.attach.session import record_running
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import Recording, open_experiment
from tests.conftest import FULL, Run, attach_for_a_while, attached_perflaw, first, started_perflaw

pytestmark = pytest.mark.interpreter

WITH_THREADS = """
import sys, threading, time

def leaf(n):
    return sum(range(n))

def serve(n):
    return leaf(n) + leaf(2 * n)

def work(n):
    return serve(n) - 1

def forever(function):
    while not over.is_set():
        function(5000)
        time.sleep(0.0002)

over = threading.Event()
threads = [threading.Thread(target=forever, args=(function,)) for function in (serve, work)]
for thread in threads:
    thread.start()
print("ready", flush=True)
assert sys.stdin.readline() == "end\\n"
over.set()
for thread in threads:
    thread.join()
names = sorted(name for name in sys.modules if "perflaw" in name)
print(names, threading.active_count(), sorted(name for name in globals() if "perflaw" in name))
"""
BUSY = """
import os, sys

def leaf(n):
    return n + 1

def work():
    total = 0
    for n in range(1000):
        total = leaf(total)

print("ready", flush=True)
while os.path.exists(sys.argv[1]):
    for _ in range(100):
        work()
"""


@contextmanager
def running(
    folder: Path, text: str, *arguments: object, python: str = sys.executable, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A program that has said that it is ready; it is killed if a test fails."""
    (folder / "app.py").write_text(text)
    command = [python, "app.py", *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=folder, text=True, env=env, **pipes) as program:
        try:
            assert program.stdout.readline() == "ready\n"
            yield program
        except BaseException:
            program.kill()
            raise


def await_beginning(folder: Path) -> None:
    """Return when the tracer in a program has begun."""
    deadline = time.monotonic() + 60
    while not any("start" in file.read_text() for file in folder.glob(".perflaw/*/runs/*/spool/*/definitions")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def record_while_it_answers(folder: Path, program: subprocess.Popen[str], word: str) -> None:
    """Attach to a program, tell it to go on, and end the recording when it says that it is done."""
    with started_perflaw(folder, "attach", program.pid) as recorder:
        await_beginning(folder)
        program.stdin.write(f"{word}\n")
        program.stdin.flush()
        assert program.stdout.readline() == "done\n"
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said


def calls(recording: Recording) -> dict[str, int]:
    """Name of each function → its recorded calls."""
    return {row[1]: row[7] for row in recording.tables()["components"]}


def recorded(folder: Path) -> list[Recording]:
    return open_experiment("default", folder).recordings()


def test_the_functions_of_all_threads_are_recorded_and_the_program_goes_on(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        said = attach_for_a_while(tmp_path, program.pid, "--feature", "load=3", s=0.1)
        out, errors = program.communicate("end\n", timeout=30)
    assert said.startswith("recorded 1 run of app.py, ")
    assert (out, errors, program.returncode) == ("[] 1 []\n", "", 0)
    [recording] = recorded(tmp_path)
    found = calls(recording)
    assert {"app.leaf", "app.serve", "app.work"} <= found.keys()
    assert found["app.leaf"] >= 2 * found["app.serve"] - 4 > 2 * found["app.work"] > 0
    assert recording.run.complete
    assert recording.run.features == {"load": 3.0}
    machine = recording.run.machine  # of the time of the recording alone
    assert (machine.before_ns, machine.tracer_start_ns, machine.after_ns) == (0, 0, 0)
    assert 0 < machine.cpu_ns < recording.run.wall_ns * machine.cpus
    assert recording.run.command[1:] == ("app.py",)
    assert "app.leaf" in perflaw("annotate").stdout


def test_a_program_may_be_in_another_folder_than_the_recorder(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with running(tmp_path / "elsewhere", WITH_THREADS) as program:
        perflaw("attach", program.pid, "--seconds", "0.1")
        program.communicate("end\n", timeout=30)
    assert len(recorded(tmp_path)) == 1


def test_a_program_whose_only_thread_never_waits_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, BUSY, tmp_path / "go") as program:
        attach_for_a_while(tmp_path, program.pid, s=0.2)
        (tmp_path / "go").unlink()
        assert program.wait(timeout=30) == 0
    [recording] = recorded(tmp_path)
    assert calls(recording)["app.leaf"] > 1000


COMPARES_ITS_CODE = """
import dis, sys, threading

def leaf(a, b):
    c, d = b, a
    return c + d

def unit():
    total = 0
    for number in range(100):
        total = leaf(total, number)

def forever():
    while not over.is_set():
        unit()

def instructions():
    for _ in range(100):
        unit()
    found = [one.opname for code in (leaf, unit) for one in dis.get_instructions(code, adaptive=True)]
    return [name for name in found if not name.startswith("RESUME")]

over = threading.Event()
thread = threading.Thread(target=forever)
thread.start()
before = instructions()
print("ready", flush=True)
assert sys.stdin.readline() == "end\\n"
over.set()
thread.join()
after = instructions()
print("same" if after == before else (before, after))
"""


@pytest.mark.parametrize("begins", first(1, ["", "import perflaw; perflaw.listen()\n"]))
def test_a_process_executes_the_same_instructions_afterwards(tmp_path: Path, begins: str) -> None:
    """Python 3.12 itself would leave code slower that was watched for a while."""
    with running(tmp_path, begins + COMPARES_ITS_CODE) as program:
        for _ in range(2):
            attach_for_a_while(tmp_path, program.pid, s=0.1)
        assert program.communicate("end\n", timeout=30)[0] == "same\n"
    assert all(calls(recording)["app.leaf"] > 100 for recording in recorded(tmp_path))


@pytest.mark.slow
def test_a_process_is_recorded_again_and_again(tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        for _ in range(3):
            attach_for_a_while(tmp_path, program.pid, s=0.03)
        assert len(list(Path(f"/proc/{program.pid}/task").iterdir())) == 3
        maps = Path(f"/proc/{program.pid}/maps").read_text()
        program.communicate("end\n", timeout=30)
    assert program.returncode == 0
    assert ".perflaw" not in maps  # neither rings nor definitions
    assert [calls(recording)["app.leaf"] > 0 for recording in recorded(tmp_path)] == [True] * 3


@pytest.mark.slow
def test_memory_stays_flat_over_a_hundred_attachments(tmp_path: Path) -> None:
    sizes = []
    with running(tmp_path, WITH_THREADS) as program:
        for number in range(100):
            experiment = open_experiment(str(number), tmp_path)
            found = process.running_program(program.pid)
            attached = record_running(experiment, found, RecordSettings(), {}, 0.05, lambda text: None)
            assert attached.outcome.run.complete
            assert attached.outcome.run.calls
            status = Path(f"/proc/{program.pid}/status").read_text()
            sizes.append(int(status.split("VmRSS:")[1].split()[0]))
        program.communicate("end\n", timeout=30)
    assert program.returncode == 0
    assert sizes[-1] - sizes[20] < 1024


def test_a_program_that_ends_meanwhile_keeps_what_completed(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        with attached_perflaw(tmp_path, program.pid, s=0.05) as recorder:
            program.kill()
            said = recorder.communicate(timeout=60)[1]
        assert recorder.returncode == 0
    assert f"process {program.pid} ended while it was recorded" in said
    [recording] = recorded(tmp_path)
    assert not recording.run.complete
    assert calls(recording)["app.leaf"] > 0


@pytest.mark.any_python
def test_a_killed_recorder_leaves_the_program_as_it_was(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        tasks = Path(f"/proc/{program.pid}/task")
        with started_perflaw(tmp_path, "attach", program.pid) as recorder:
            await_beginning(tmp_path)
            assert len(list(tasks.iterdir())) == 4
            recorder.kill()
        while len(list(tasks.iterdir())) == 4:
            time.sleep(0.02)
        options = ("--select", "app.leaf", "--metric", "memory", "--collect", "lines")
        attach_for_a_while(tmp_path, program.pid, *options, s=0.05)
        out, errors = program.communicate("end\n", timeout=30)
    assert (out, errors, program.returncode) == ("[] 1 []\n", "", 0)
    [recording] = recorded(tmp_path)
    assert calls(recording).keys() == {"app.leaf"}
    assert "allocated_bytes" in {metric.name for metric in recording.run.metrics}
    assert recording.run.configuration == {
        "select": "app.leaf",
        "metrics": "allocated_bytes allocated_blocks",
        "collect": "lines",
    }


@pytest.mark.any_python
def test_a_recorder_may_be_killed_at_any_moment(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        for number in range(6 if FULL else 3):
            with started_perflaw(tmp_path, "attach", program.pid) as recorder:
                while not list(tmp_path.glob(f".perflaw/default/runs/*{number + 1}/spool/attached")):
                    time.sleep(0.001)
                time.sleep(0.004 * number)  # from before the injection until behind it
                recorder.kill()
        perflaw("attach", program.pid, "--seconds", "0.2", "-e", "last")
        out, errors = program.communicate("end\n", timeout=30)
    assert (out, errors, program.returncode) == ("[] 1 []\n", "", 0)


FORKING = """
import gc, os, sys

def leaf(n):
    return n + 1

def work():
    total = 0
    for n in range(100):
        total = leaf(total)
    return total

print("ready", flush=True)
assert sys.stdin.readline() == "fork\\n"
assert work() == 100
child = os.fork()
if not child:
    assert work() == 100
    assert sys.version_info < (3, 12) or not sys.monitoring.get_tool(4)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert work() == 100
print("done", flush=True)
assert sys.stdin.readline() == "end\\n"
"""


def test_a_forked_child_is_left_alone(tmp_path: Path) -> None:
    with running(tmp_path, FORKING) as program:
        record_while_it_answers(tmp_path, program, "fork")
        program.communicate("end\n", timeout=30)
    assert program.returncode == 0
    [recording] = recorded(tmp_path)
    own = {name: count for name, count in calls(recording).items() if name.startswith("app.") and count}
    assert own == {"app.work": 2, "app.leaf": 200}


NESTED = """
import sys

def leaf():
    return 1

def other():
    return 2

def inner():
    assert sys.stdin.readline() == "go\\n"
    return leaf()

def outer():
    inner()
    return other()

print("ready", flush=True)
outer()
print("done", flush=True)
assert sys.stdin.readline() == "end\\n"
"""


def test_frames_that_are_open_already_are_callers(tmp_path: Path) -> None:
    with running(tmp_path, NESTED) as program:
        record_while_it_answers(tmp_path, program, "go")
        program.communicate("end\n", timeout=30)
    [recording] = recorded(tmp_path)
    contexts = paths(recording)
    assert ("app.<module>", "app.outer", "app.inner", "app.leaf") in contexts
    assert ("app.<module>", "app.outer", "app.other") in contexts
    found = calls(recording)
    assert [found[f"app.{name}"] for name in ("leaf", "other", "inner", "outer")] == [1, 1, 0, 0]
    assert recording.run.words["earlier"].startswith("app.<module>; app.outer; app.inner")


def paths(recording: Recording) -> list[tuple[str, ...]]:
    """The functions on the way to each calling context."""
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    found: dict[int, tuple[str, ...]] = {}
    for node, parent, component, *_ in tables["calltree"]:  # parents stand before children
        found[node] = (*found[parent], names[component]) if node else ()
    return list(found.values())


@pytest.mark.slow
def test_a_program_that_listens_needs_not_be_stopped(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, f"import perflaw\nperflaw.listen()\n{FORKING}") as program:
        for _ in range(2):
            assert "stopped for 0.0 ms" in perflaw("attach", program.pid, "--seconds", "0.1").stderr
        with started_perflaw(tmp_path, "attach", program.pid, "--select", "app.*") as recorder:
            await_beginning(tmp_path)
            program.stdin.write("fork\n")
            program.stdin.flush()
            assert program.stdout.readline() == "done\n"
            recorder.kill()
        assert "stopped for 0.0 ms" in perflaw("attach", program.pid, "--seconds", "0.1").stderr
        program.communicate("end\n", timeout=30)
    assert program.returncode == 0
    assert len(recorded_runs(tmp_path)) == 3


@pytest.mark.slow
def test_a_program_listens_where_its_environment_says_so(perflaw: Run, tmp_path: Path) -> None:
    sources = Path(listening.__file__).parents[1]
    site_packages = Path(site.getusersitepackages().replace(site.getuserbase(), str(tmp_path / "base")))
    site_packages.mkdir(parents=True)
    for name in ("perflaw", "perflaw-listen.pth"):
        (site_packages / name).symlink_to(sources / name)
    asked = {"PYTHONUSERBASE": str(tmp_path / "base"), "PERFLAW_LISTEN": "1"}
    outside = os.path.realpath(sys.executable)  # of no virtual environment, for these read no packages of a user
    for environment, says in ((asked, "stopped for 0.0 ms"), ({**asked, "PERFLAW_LISTEN": "0"}, "stopped for ")):
        with running(tmp_path, WITH_THREADS, python=outside, env={**os.environ, **environment}) as program:
            said = perflaw("attach", program.pid, "--seconds", "0.1").stderr
            out, _ = program.communicate("end\n", timeout=30)
        assert says in said
        assert ("stopped for 0.0 ms" in said) == (environment is asked)
        assert ("perflaw.listening" in out) == (environment is asked)


GREENLETS = """
import sys, threading
import gevent, greenlet

def leaf(n):
    return n + 1

def work(n):
    for _ in range(20):
        leaf(n)
        gevent.sleep(0)

def serve():
    while words[-1:] != ["end"]:
        gevent.joinall([gevent.spawn(work, n) for n in range(3)])
        if words[-1:] == ["trace"]:
            words.pop()
            print(greenlet.gettrace(), flush=True)

def listen():
    for line in sys.stdin:
        words.append(line.strip())

def mine(*event):
    pass

words = []
threading.Thread(target=listen, daemon=True).start()
if "own" in sys.argv:
    greenlet.settrace(mine)
print("ready", flush=True)
serve()
"""


@pytest.mark.slow
@pytest.mark.parametrize("own", first(1, [False, True]))
def test_greenlets_are_kept_apart_and_left_as_they_were(tmp_path: Path, own: bool) -> None:
    with running(tmp_path, GREENLETS, *["own"] * own) as program:
        for _ in range(2):
            attach_for_a_while(tmp_path, program.pid, s=0.5)
            program.stdin.write("trace\n")
            program.stdin.flush()
            assert program.stdout.readline().startswith("<function mine" if own else "None")
        _, errors = program.communicate("end\n", timeout=30)
    assert (program.returncode, errors) == (0, "")
    recordings = recorded(tmp_path)
    assert len(recordings) == 2
    for recording in recordings:
        assert calls(recording)["app.leaf"] > 20
        contexts = [path for path in paths(recording) if path[-1:] == ("app.leaf",)]
        # Of greenlets that are switched out when the recording begins, the open frames are not known.
        assert {path[-2:-1] for path in contexts} | {()} == {("app.work",), ()}
        assert all(path.count("app.work") <= 1 for path in contexts)


# ---- what cannot be recorded ----


def refusal(perflaw: Run, pid: int) -> str:
    said = perflaw("attach", pid, "--seconds", "0.1", status=2).stderr
    assert said.startswith(f"perflaw: process {pid}: ")
    assert said.count("\n") == 1
    return said


@pytest.mark.any_python
def test_processes_that_cannot_be_recorded_are_refused_with_the_reason(perflaw: Run, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        sleeping.kill()
        os.waitid(os.P_PID, sleeping.pid, os.WEXITED | os.WNOWAIT)
        assert "it has ended" in refusal(perflaw, sleeping.pid)
    assert "there is no such process" in refusal(perflaw, sleeping.pid)
    with running(tmp_path, WITH_THREADS) as program:
        program.send_signal(signal.SIGSTOP)
        assert "it is stopped by a signal" in refusal(perflaw, program.pid)
        program.send_signal(signal.SIGCONT)
        with traced(program.pid) as tracer:
            assert f"process {tracer} traces it already" in refusal(perflaw, program.pid)
        program.communicate("end\n", timeout=30)
    assert not recorded_runs(tmp_path)


def recorded_runs(folder: Path) -> list[str]:
    return open_experiment("default", folder).ids()


@contextmanager
def traced(pid: int) -> Iterator[int]:
    """Another process traces this one."""
    seize = f"import ctypes; assert ctypes.CDLL(None).ptrace(0x4206, {pid}, None, None) == 0; print(); input()"
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", seize], text=True, **pipes) as tracer:
        tracer.stdout.readline()
        yield tracer.pid
        tracer.communicate("\n")


def test_a_program_that_is_recorded_already_is_refused(perflaw: Run, tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        with started_perflaw(tmp_path, "attach", program.pid) as first:
            await_beginning(tmp_path)
            assert "this process is being recorded already" in refusal(perflaw, program.pid)
            first.send_signal(signal.SIGINT)
            first.communicate(timeout=60)
        program.communicate("end\n", timeout=30)
    assert [folder.name for folder in tmp_path.glob(".perflaw/default/runs/*")] == recorded_runs(tmp_path)
    assert len(recorded_runs(tmp_path)) == 1


def test_a_recording_that_holds_nothing_is_never_among_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lists the runs meanwhile sees none that vanishes: neither without calls nor with calls that have not ended."""
    saved: list[Path] = []
    save = saving._save
    monkeypatch.setattr(saving, "_save", lambda *given: saved.append(given[1]) or save(*given))
    experiment = open_experiment("default", tmp_path)
    with running(tmp_path, WITH_THREADS) as program:
        found = process.running_program(program.pid)
        for select, paths in (("app.nothing", False), ("app.forever", True)):
            wanted = {"collect": ("paths",), "paths": (select,), "only_paths": True} if paths else {}
            settings = RecordSettings(select=(select,), **wanted)
            assert record_running(experiment, found, settings, {}, 0.05, lambda text: None).outcome.folder is None
        program.communicate("end\n", timeout=30)
    assert saved == []
    assert list(experiment.runs_folder.iterdir()) == []


@pytest.mark.any_python
def test_a_process_that_ends_before_it_is_recorded_is_said_to(tmp_path: Path) -> None:
    with running(tmp_path, WITH_THREADS) as program:
        found = process.running_program(program.pid)
        program.communicate("end\n", timeout=30)
    with pytest.raises(process.TargetError, match=f"process {program.pid}: it ended before it could be recorded"):
        injection.start_thread(found, tmp_path, {})


@pytest.mark.any_python
def test_what_the_kernel_refuses_is_said_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid, setting = os.getpid(), tmp_path / "ptrace_scope"
    monkeypatch.setattr(process, "YAMA", setting)
    assert "capability SYS_PTRACE" in str(process.not_permitted(pid))
    setting.write_text("1\n")
    assert "kernel.yama.ptrace_scope is 1" in str(process.not_permitted(pid))


@pytest.mark.any_python
def test_the_doctor_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert injection.refusal() is None
    monkeypatch.setattr(stopping, "_ptrace", mock.Mock(side_effect=PermissionError))
    assert "capability SYS_PTRACE" in injection.refusal()[0]
    monkeypatch.setattr(process, "YAMA", tmp_path / "ptrace_scope")
    process.YAMA.write_text("1\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "kernel.yama.ptrace_scope is 1" in injection.refusal()[0]
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "this is Linux on aarch64" in injection.refusal()[0]


@pytest.mark.any_python
def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(process.TargetError, match="on Linux on x86-64; this is Linux on aarch64"):
        process.running_program(os.getpid())
