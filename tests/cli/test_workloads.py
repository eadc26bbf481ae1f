"""``perflaw record --workloads``, ``--timeout``, ``--resume``, ``--keep-output``: programs run, recorders killed."""

import json
import signal
import subprocess
import sys
import time

import pytest

from perflaw.record.process import TimeLimit

APP = """
import signal, sys, time
def work(n):
    return sum(range(n))
n = int(sys.argv[1])
print("sum is", work(n))
if n == 13:
    raise RuntimeError("unlucky")
if n == 99:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    time.sleep(1000)
"""
FILE = """
command = "app.py {n}"
[outputs.sum]
pattern = 'sum is (\\d+)'
[[workload]]
name = "small"
vary = { n = [10, 20] }
repeat = 2
features = { threads = 2 }
[[workload]]
name = "bad"
args = "x"
vary = { n = [13] }
[[workload]]
name = "endless"
command = "app.py 99"
timeout = 0.7
[[workload]]
name = "missing"
command = "missing.py"
[[workload]]
name = "reads"
command = ["count.py"]
stdin = "text.txt"
"""
QUICK = ("--tracer", "python")


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "count.py").write_text(
        "import sys\ndef read(): return len(sys.stdin.read())\nprint('sum is', read())\n"
    )
    (tmp_path / "text.txt").write_text("four")
    (tmp_path / "w.toml").write_text(FILE)
    return tmp_path


def runs(folder, experiment="default"):
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f".perflaw/{experiment}/runs/*/run.json"))]


def block_sigterm():
    """Let the SIGTERM of a time limit wait until the program is there to take it, however long it takes to start."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


@pytest.mark.slow
def test_a_failing_workload_is_reported_and_the_others_go_on(perflaw, app):
    done = perflaw("record", *QUICK, "--workloads", "w.toml", status=1, preexec_fn=block_sigterm)
    assert "run 0003 of bad n=13 is incomplete: exit status 1" in done.stderr
    assert "run 0004 of endless is incomplete: ran over its 0.7 s, ended by SIGTERM" in done.stderr
    assert "run of missing: missing.py: no such file or command" in done.stderr
    assert done.stdout.splitlines()[:2] == ["sum is 45", "sum is 190"], "what programs print is seen as ever"
    made = runs(app)
    assert [one["complete"] for one in made] == [True, True, False, False, True, True, True]
    assert [one["workload"] for one in made] == ["small", "small", "bad", "endless", "reads", "small", "small"]
    assert made[0]["features"] == {"n": 10, "threads": 2, "sum": 45}
    assert made[4]["features"] == {"stdin.bytes": 4, "sum": 4}
    assert "recording" not in done.stderr, "no progress on a pipe"
    laws = json.loads(perflaw("annotate", "--json").stdout)["annotations"]
    assert {"n", "sum"} <= {name for one in laws for name in one["features"]}


def test_a_timeout_of_a_program_that_ends_well_is_a_failure(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "import signal, sys, time\ndef end(*_): sys.exit(0)\nsignal.signal(signal.SIGTERM, end)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})\ntime.sleep(1000)\n"
    )
    perflaw("record", *QUICK, "--timeout", 0.7, "--", "app.py", status=124, preexec_fn=block_sigterm)
    [run] = runs(tmp_path)
    assert (run["status"], run["complete"], run["ended"]) == (0, False, "ran over its 0.7 s, ended by SIGTERM")
    assert "above 0" in perflaw("record", "--timeout", 0, "--", "app.py", status=2).stderr


def test_a_timeout_before_the_tracer_begins_is_told(perflaw, tmp_path):
    slow = tmp_path / "python3"  # answers the recorder's questions, but never starts the program
    slow.write_text(f'#!/bin/sh\n[ "$1" = -I ] && exec {sys.executable} "$@"\nexec sleep 1000\n')
    slow.chmod(0o755)
    (tmp_path / "app.py").write_text("")
    told = perflaw("record", *QUICK, "--timeout", 0.1, "--", slow, "app.py", status=143).stderr
    assert "it ran over its 0.1 s, ended by SIGTERM, before the tracer began · try: a longer --timeout" in told


def test_who_ignores_sigterm_is_killed_with_all_it_started(monkeypatch):
    monkeypatch.setattr("perflaw.record.process.GRACE_S", 0.3)
    code = (
        "import signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if len(sys.argv) == 1: print(subprocess.Popen([sys.executable, '-c', sys.orig_argv[2], 'x']).pid, flush=True)\n"
        "else: print('go', flush=True)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        lines = {process.stdout.readline().strip(), process.stdout.readline().strip()}
        [child] = lines - {"go"}
        deadline = TimeLimit(0.01)
        while process.poll() is None:
            deadline.enforce(process)
            time.sleep(0.01)
        deadline.finish()
        assert process.returncode == -signal.SIGKILL
        assert deadline.message == "ran over its 0.01 s, ended by SIGKILL"
        assert process.stdout.read() == "", "the child has gone as well, for nobody holds its output"
        assert int(child) in deadline.family


def test_a_pattern_that_does_not_match_is_told_and_the_run_kept(perflaw, app):
    (app / "w.toml").write_text(
        "command = 'app.py 10'\n[outputs.x]\npattern = 'no (\\d+)'\n[outputs.y]\npattern = 'sum'\n"
    )
    done = perflaw("record", *QUICK, "--workloads", "w.toml", status=2)
    assert "run 0001: feature x: nothing that it printed matches" in done.stderr
    assert "run 0001: feature y: 'sum' is no number" in done.stderr
    assert runs(app)[0]["complete"]


def test_a_wrong_file_makes_nothing(perflaw, app):
    (app / "w.toml").write_text("command = 'app.py 1'\nrepeet = 2\n")
    assert "w.toml:2: repeet: unknown key" in perflaw("record", "--workloads", "w.toml", status=2).stderr
    assert not (app / ".perflaw").exists()


def test_manifests_from_before_workloads_are_read(perflaw, app):
    perflaw("record", *QUICK, "--", "app.py", 5)
    [path] = app.glob(".perflaw/default/runs/*/run.json")
    document = json.loads(path.read_text())
    path.write_text(  # nor did they have checksums
        json.dumps(
            {
                name: value
                for name, value in document.items()
                if name not in ("workload", "planned", "tables", "checksum")
            }
        )
    )
    assert json.loads(perflaw("runs", "--json").stdout)["runs"][0]["workload"] == ""
    assert "0 of 1 planned" in perflaw("record", *QUICK, "--resume", "--", "app.py", 5).stderr
