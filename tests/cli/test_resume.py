"""``perflaw record --resume``: recorders really killed, in many places, and exactly the planned runs at the end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.conftest import first, started_perflaw

QUICK = ("--tracer", "python")
APP = """
import sys
def work(n):
    return sum(range(n))
n = int(sys.argv[1])
work(n)
if n == 13:
    raise RuntimeError("unlucky")
"""


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def runs(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob(".perflaw/default/runs/*/run.json"))]


KILLED = """
import os, sys
import perflaw.record.{module} as module
from perflaw.cli.main import main
before, calls, recorder = {where}, 0, os.getpid()
def end():
    os.kill(recorder, 9)
    os._exit(9)  # the process that writes the tables, if it came here
def instead(*arguments, **named):
    global calls
    calls += 1
    if calls == {call} and {first}: end()
    result = before(*arguments, **named)
    if calls == {call}: end()
    return result
{where} = instead
main(sys.argv[1:])
"""
POINTS = {
    "a folder is made": ("session", "module.RunClaim.with_spool", 2, False),
    "tables are written": ("saving", "module.save", 4, True),
    "the program's run is kept": ("saving", "module.save", 3, False),
    "its child's run is kept": ("saving", "module.save", 4, False),
    "marks are being removed": ("unfinished", "module.remove_mark", 3, False),
}
"""Where the recorder and the process that writes its tables are gone at once: a function, which call of it, before or after."""
PARENT = """
import subprocess, sys
def f(n): return n
f(int(sys.argv[1]))
subprocess.run([sys.executable, "-c", "def g(): pass\\ng()"], check=True)
"""


def assert_exactly_the_planned_runs(folder, planned):
    """Every planned run is there once and whole, with its one child, and nothing else lies about."""
    made = runs(folder)
    programs = [one for one in made if not one["parent"]]
    assert Counter(one["features"].get("n") for one in programs) == planned
    assert all(one["complete"] for one in made)
    assert Counter(one["parent"] for one in made if one["parent"]) == Counter(one["id"] for one in programs)
    left = {path.name for path in (folder / ".perflaw/default/runs").iterdir()}
    assert left == {one["id"] for one in made}
    assert not list(folder.glob(".perflaw/*/runs/*/unfinished"))


@pytest.mark.parametrize("point", first(1, POINTS))
def test_a_killed_recorder_is_resumed(perflaw, tmp_path, point):
    module, where, call, first = POINTS[point]
    (tmp_path / "app.py").write_text(PARENT)
    options = ("record", "--tracer", "native", "--vary", "n=1,2")
    script = KILLED.format(module=module, where=where, call=call, first=first)
    killed = [sys.executable, "-c", script, *options, "--", "app.py", "{n}"]
    assert subprocess.run(killed, cwd=tmp_path, capture_output=True).returncode == -9
    done = perflaw(*options, "--resume", "--", "app.py", "{n}")
    assert "1 of 2 planned runs are complete" in done.stderr
    assert_exactly_the_planned_runs(tmp_path, {1: 1, 2: 1})


@pytest.mark.slow
def test_a_recorder_killed_from_outside_is_resumed_again_and_again(perflaw, app):
    (app / "app.py").write_text("import time, sys\ndef f(n): return n\nf(int(sys.argv[1])); time.sleep(0.2)\n")
    options = ("record", *QUICK, "--resume", "--vary", "n=1,2,3", "--repeat", "2")
    for folders in (1, 3, 4):
        with started_perflaw(app, *options, "--", "app.py", "{n}") as process:
            while len(list(app.glob(".perflaw/default/runs/*/spool"))) == 0 or len(runs(app)) < folders - 1:
                assert process.poll() is None
                time.sleep(0.002)
            process.kill()
    perflaw(*options, "--", "app.py", "{n}")
    made = runs(app)
    assert Counter(one["features"]["n"] for one in made) == {1: 2, 2: 2, 3: 2}
    assert {path.name for path in (app / ".perflaw/default/runs").iterdir()} == {one["id"] for one in made}
    again = perflaw(*options, "--", "app.py", "{n}").stderr
    assert again.startswith("perflaw: 6 of 6 planned runs are complete")
    assert len(again.splitlines()) == 1, "nothing is recorded and nothing said of it"


@pytest.mark.slow
def test_resume_repeats_what_failed_and_other_plans(perflaw, app):
    perflaw("record", *QUICK, "--vary", "n=10,13", "--", "app.py", "{n}", status=1)
    (app / "app.py").write_text(APP.replace("13", "14"))
    done = perflaw("record", *QUICK, "--resume", "--vary", "n=10,13", "--", "app.py", "{n}")
    assert "1 of 2 planned runs are complete" in done.stderr
    assert [one["complete"] for one in runs(app)] == [True, False, True]
    for options, told in ((["--feature", "x=1"], "0 of 2"), (["--repeat", "2"], "2 of 4")):
        done = perflaw("record", *QUICK, "--resume", "--vary", "n=10,13", *options, "--", "app.py", "{n}")
        assert f"{told} planned runs are complete" in done.stderr


def test_resume_leaves_a_run_alone_that_is_being_recorded(perflaw, app):
    (app / "app.py").write_text("import sys\ndef f(): pass\nf(); print('go', flush=True); sys.stdin.read()\n")
    with started_perflaw(app, "record", *QUICK, "--", "app.py", stdin=subprocess.PIPE) as busy:
        assert busy.stdout.readline() == "go\n"
        assert "0 of 1 planned runs" in perflaw("record", *QUICK, "--resume", "--", "app.py").stderr
        busy.communicate(timeout=60)
        assert busy.returncode == 0
    assert len(runs(app)) == 2


def test_after_ctrl_c_the_way_on_is_told(perflaw, app):
    (app / "app.py").write_text(
        "import sys, time\ndef f(): pass\nf(); print('go', flush=True)\nif sys.argv[1] == '2': time.sleep(99)\n"
    )
    with started_perflaw(app, "record", *QUICK, "--vary", "n=1,2,3", "--", "app.py", "{n}") as process:
        assert process.stdout.readline() == process.stdout.readline() == "go\n"
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "1 planned run left: --resume goes on" in said
    assert [one["complete"] for one in runs(app)] == [True, False]
