"""``perflaw record``: values, repeats, selection, failures, and what is kept of them."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.conftest import started_perflaw

APP = """
import sys
def work(n):
    return sum(range(n))
def helper(): pass
n = int(sys.argv[1])
work(n); helper()
if n == 13:
    raise RuntimeError("unlucky")
"""


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def runs(perflaw, experiment="default"):
    return json.loads(perflaw("runs", "-e", experiment, "--json").stdout)["runs"]


def components(perflaw, run=1):
    lines = perflaw("dump", run, "--table", "components").stdout.splitlines()
    return {line.split()[2] for line in lines if line.startswith("components: ") and "component name" not in line}


def test_every_value_is_run_and_repeats_are_rounds(perflaw, app):
    done = perflaw("record", "--vary", "n=1,2", "--repeat", 2, "--feature", "threads=4", "--", "app.py", "{n}")
    assert [run["features"] for run in runs(perflaw)] == [{"n": n, "threads": 4.0} for n in (1.0, 2.0, 1.0, 2.0)]
    assert done.stdout == ""
    line, advice = done.stderr.splitlines()
    assert line.startswith("recorded 4 runs of app.py, ")
    assert line.endswith("· nothing lost · .perflaw/default · perflaw show")
    assert advice == "perflaw: n has 2 sizes, a law needs at least 4: add --vary n=4,8"


def test_sizes_of_the_whole_experiment_are_counted(perflaw, app):
    assert "n has 3 sizes" in perflaw("record", "--vary", "n=100,1000,10000", "--", "app.py", "{n}").stderr
    assert "sizes" not in perflaw("record", "--vary", "n=320", "--", "app.py", "{n}").stderr


def test_what_the_program_got_of_the_machine_is_kept(perflaw, app):
    (app / "burn.py").write_text(
        "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass\n"
    )
    perflaw("record", "--", "burn.py")
    [run] = runs(perflaw)
    machine = run["machine"]
    assert machine["cpus"] == len(os.sched_getaffinity(0))
    # How the kernel divides CPU time into user and system depends on where its ticks fall: only the sum is exact.
    cpu_ns = machine["user_ns"] + machine["system_ns"]
    assert cpu_ns >= 100_000_000
    assert machine["before_ns"] > 0
    assert 0 < machine["before_ns"] + machine["tracer_start_ns"] + machine["after_ns"] < cpu_ns
    assert machine["voluntary_switches"] + machine["involuntary_switches"] > 0


def test_a_failing_value_is_reported_kept_and_the_others_go_on(perflaw, app):
    done = perflaw("record", "--vary", "n=1,13,2", "--", "app.py", "{n}", status=1)
    assert "run 0002 of n=13 is incomplete: exit status 1" in done.stderr
    assert "unlucky" in done.stderr
    assert [run["complete"] for run in runs(perflaw)] == [True, False, True]
    assert "app.work" in components(perflaw, 2)


@pytest.mark.parametrize(
    ("ending", "status", "ended"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, "killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM, "killed by SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 128 + signal.SIGSEGV, "killed by SIGSEGV"),
        ("os._exit(0)", 0, "os._exit: without the interpreter's shutdown"),
        ("os._exit(5)", 5, "exit status 5"),
        ("sys.exit(3)", 3, "exit status 3"),
        ("os.execv('/bin/true', ['true'])", 0, "os.exec: another program took the process over"),
    ],
)
@pytest.mark.interpreter
def test_what_had_completed_is_kept(perflaw, tmp_path, ending, status, ended):
    calls = 1234
    (tmp_path / "app.py").write_text(
        "import os, signal, sys\n"
        "def f(n): return n\n"
        f"def main():\n    for i in range({calls}): f(i)\n    {ending}\n"
        "main()\n"
    )
    perflaw("record", "--", "app.py", status=status)
    [run] = runs(perflaw)
    assert not run["complete"]
    by_python = (
        "without the interpreter's shutdown (os._exit, exec)"  # which the pure-Python tracer does not tell apart
    )
    assert run["ended"] == (by_python if run["tracer"].startswith("python") and ended.startswith("os.") else ended)
    rows = perflaw("dump", 1, "--table", "components").stdout.splitlines()
    [row] = [line.split() for line in rows if " app.f " in line]
    assert int(row[8]) == calls
    if ending.startswith("os."):
        opened = [line.split() for line in rows if " app." in line and line.split()[-1] != "0"]
        assert [row[-1] for row in opened] == ["1", "1"]  # main and the module
        assert run["lost"]["open_invocations"] >= 2  # on 3.13 also generators that a library dropped


def test_a_kill_from_outside_keeps_what_had_completed(app):
    (app / "slow.py").write_text(
        "import time\ndef f(): time.sleep(0.001)\nfor _ in range(9): f()\nprint('go', flush=True)\nwhile True: f()\n"
    )
    with started_perflaw(app, "record", "--", "slow.py") as process:
        assert process.stdout.readline() == "go\n"
        child = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(child[0]), signal.SIGKILL)
        assert process.wait(30) == 137
    manifest = json.loads((app / ".perflaw/default/runs/0001/run.json").read_text())
    assert manifest["calls"] >= 9
    assert manifest["ended"] == "killed by SIGKILL"


def test_ctrl_c_keeps_what_is_complete(app):
    (app / "slow.py").write_text(
        "import time\ndef f(): time.sleep(0.001)\nfor _ in range(9): f()\nprint('go', flush=True)\nwhile True: f()\n"
    )
    with started_perflaw(app, "record", "--", "slow.py") as process:
        assert process.stdout.readline() == "go\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
    manifest = json.loads((app / ".perflaw/default/runs/0001/run.json").read_text())
    assert manifest["calls"] >= 9
    assert not manifest["complete"]


@pytest.mark.interpreter
def test_selection(perflaw, app):
    perflaw("record", "--select", "app.wo*", "--", "app.py", 5)
    assert components(perflaw) == {"app.work"}
    perflaw("record", "--exclude", "*.helper", "--", "app.py", 5)
    assert {name for name in components(perflaw, 2) if name.startswith("app.")} == {"app.<module>", "app.work"}
    perflaw("record", "--select", "json.*", "--", sys.executable, "-c", "import json; json.loads('[1]')")
    assert "json.decoder.JSONDecoder.raw_decode" in components(perflaw, 3), "selected library functions in full"


@pytest.mark.parametrize("tracer", ["native", "python"])
@pytest.mark.interpreter
def test_library_functions_are_recorded_whoever_calls_them(perflaw, app, tracer):
    (app / "lib.py").write_text("import json\ndef mine(s): return json.loads(s)\nmine('[1, 2]')\n")
    perflaw("record", "--tracer", tracer, "--", "lib.py")
    assert {"lib.mine", "json.loads", "json.decoder.JSONDecoder.decode", "json.<module>"} <= components(perflaw)
    assert "left out" not in perflaw("annotate").stdout


@pytest.mark.interpreter
def test_a_selected_function_that_never_returned_is_kept(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import os, signal\ndef main(): os.kill(os.getpid(), signal.SIGKILL)\nmain()\n")
    perflaw("record", "--select", "app.main", "--", "app.py", status=137)
    [run] = runs(perflaw)
    assert run["lost"]["open_invocations"] == 1


def test_an_exit_status_is_no_signal(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import sys; sys.exit(137)")
    perflaw("record", "--", "app.py", status=137)
    assert runs(perflaw)[0]["ended"] == "exit status 137"


def test_an_experiment_of_two_programs_is_told(perflaw, app):
    (app / "other.py").write_text("")
    perflaw("record", "--", "app.py", "1")
    assert "holds runs of app.py as well" in perflaw("record", "--", "other.py").stderr


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--vary", "n"], "not of the form NAME=VALUE"),
        (["--vary", "n=1,,2"], "a value is empty"),
        (["--vary", "m=1"], "{m} stands nowhere"),
        (["--vary", "app=app", "--feature", "app=1", "--", "{app}.py"], "two values"),
        (["--feature", "x=abc"], "is not a number"),
        (["--feature", "x=inf"], "is not a number"),
        (["--repeat", "0"], "0"),
        (["-e", "../up"], "experiment name"),
        (["--frobnicate"], "no option --frobnicate"),
        (["--repat=3"], "no option --repat=3: did you mean --repeat?"),
        (["--tracer", "magic"], "there are auto, native, python and nothing"),
        (["--select", "nope.*"], "nothing selected: no function that ran matches nope.*"),
    ],
)
def test_wrong_use(perflaw, app, options, what):
    command = [] if "--" in options else ["--", "app.py", "3"]
    done = perflaw("record", *options, *command, status=2)
    assert what in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5
    assert not list(app.glob(".perflaw/*/runs/*/run.json"))


def test_nothing_selected_names_what_was_seen(perflaw, app):
    assert "app.work" in perflaw("record", "--select", "nope.*", "--", "app.py", "3", status=2).stderr


def test_a_missing_script(perflaw, app):
    done = perflaw("record", "--", "missing.py", status=2)
    assert "missing.py: no such file or command" in done.stderr
    assert "try: perflaw record" in done.stderr


def test_secrets_do_not_enter_the_recording(perflaw, app):
    env = {**os.environ, "API_TOKEN": "tell-nobody", "LC_ALL": "C.UTF-8"}
    perflaw("record", "--", "app.py", "3", "--password", "hunter2", "--api-key=s3cret", "--token=77731", env=env)
    for path in (app / ".perflaw").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret in content for secret in (b"hunter2", b"s3cret", b"77731", b"tell-nobody"))
            assert path.stat().st_mode & 0o077 == 0, "the user's alone"
    assert runs(perflaw)[0]["environment"]["LC_ALL"] == "C.UTF-8"


def test_files_named_in_the_arguments_are_features(perflaw, app):
    (app / "data.txt").write_text("one\ntwo\n")
    (app / "files.py").write_text("def main(): pass\nmain()\n")
    perflaw("record", "--", "files.py", "data.txt", "--input", "data.txt", "--size=7", "-3", "-o", "data.txt")
    assert runs(perflaw)[0]["features"] == {
        "argv1.bytes": 8.0,
        "argv1.lines": 2.0,
        "input.bytes": 8.0,
        "input.lines": 2.0,
        "size": 7.0,
        "argv5": -3.0,
    }


def test_two_recorders_at_once(app):
    command = [sys.executable, "-m", "perflaw", "record", "--repeat", "3", "--", "app.py", "4"]
    both = [subprocess.Popen(command, cwd=app, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert len(list(app.glob(".perflaw/default/runs/*/run.json"))) == 6


@pytest.mark.interpreter
def test_the_do_nothing_tracer_is_the_floor(perflaw, app):
    perflaw("record", "--tracer", "nothing", "--", "app.py", "4")
    assert runs(perflaw)[0]["calls"] == 0
