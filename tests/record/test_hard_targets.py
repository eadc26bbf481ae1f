"""Programs that would meet a careless recorder: they close files, patch builtins, fork, raise from signal handlers."""

import json
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import first, started_perflaw
from tests.record.test_behaviour_is_kept import assert_same

pytestmark = pytest.mark.interpreter


def component(perflaw, name, run=1):
    lines = perflaw("dump", run, "--table", "components").stdout.splitlines()
    return next((line.split() for line in lines if f" {name} " in line), None)


def calls(perflaw, name):
    found = component(perflaw, name)
    return int(found[8]) if found else 0


def test_a_program_that_closes_every_descriptor_keeps_its_files(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "import os\n"
        "first = os.open('/dev/null', 0); print(first); os.closerange(3, 256)\n"
        "out = open('report.csv', 'w')\n"
        "def row(i): return f'{i},{i * i}\\n'\n"
        "for i in range(100_000): out.write(row(i))\n"
        "out.close(); text = open('report.csv').read(); print(len(text), text[:8])\n"
    )
    assert_same(perflaw, tmp_path, "app.py")
    assert calls(perflaw, "app.row") == 100_000


@pytest.mark.parametrize("error", first(2, ["TimeoutError", "OSError", "ValueError", "KeyError"]))
def test_what_a_signal_handler_raises_reaches_the_program(perflaw, tmp_path, error):
    (tmp_path / "app.py").write_text(
        "import signal\n"
        f"def late(number, frame): raise {error}('late')\n"
        "signal.signal(signal.SIGALRM, late)\n"
        "def step(x): return x + 1\n"
        "def loop():\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.005)\n"
        "    x = 0\n"
        "    while x < 3_000_000: x = step(x)\n"
        "caught = 0\n"
        "for _ in range(30):\n"
        "    try: loop()\n"
        f"    except {error}: caught += 1\n"
        "print(caught)\n"
    )
    assert perflaw("record", "--", "app.py").stdout == "30\n"


@pytest.mark.slow
def test_a_fork_leaves_the_parents_recording_whole(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "import os, sys\n"
        "def a(i): return i\n"
        "def b(i): return i\n"
        "def child(i): return i\n"
        "for i in range(15):\n"
        "    a(i)\n"
        "    pid = os.fork()\n"
        "    if not pid: child(i); os._exit(0)\n"
        "    b(i); os.waitpid(pid, 0); a(i)\n"
    )
    perflaw("record", "--", sys.executable, "-W", "ignore", "app.py")
    assert (calls(perflaw, "app.a"), calls(perflaw, "app.b"), calls(perflaw, "app.child")) == (30, 15, 0)
    assert component(perflaw, "threading._after_fork") is None


def test_patched_builtins_and_clocks_do_not_meet_the_tracer(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "import builtins, os, time\n"
        "def f(i): return i\n"
        "def never(*args, **kwargs): os._exit(99)\n"
        "names = [(builtins, name) for name in ('id len max type float repr sum tuple sorted next set').split()]\n"
        "names += [(time, name) for name in ('monotonic perf_counter_ns sleep').split()]\n"
        "names += [(os, name) for name in ('write open listdir').split()]\n"
        "kept = [getattr(module, name) for module, name in names]\n"
        "for module, name in names: setattr(module, name, never)\n"
        "i = 0\n"
        "while i < 40_000:\n"
        "    f(i); i += 1\n"
        "for (module, name), value in zip(names, kept): setattr(module, name, value)\n"
        "print('untouched')\n"
    )
    assert_same(perflaw, tmp_path, "app.py")
    assert calls(perflaw, "app.f") == 40_000


def test_code_made_again_and_again_is_one_component(recorded, perflaw, tmp_path):
    (tmp_path / "app.py").write_text("for i in range(30):\n    exec('def z(q): return q\\nz(1)', {})\n")
    recorded("--", "app.py")  # asserts the identities of the moments
    assert calls(perflaw, "z") == 30


def test_ctrl_c_ends_the_whole_session(tmp_path):
    with _started(tmp_path, "--repeat", "5") as process:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert [run["complete"] for run in _manifests(tmp_path)] == [False]


def test_a_terminated_recorder_ends_the_target_and_keeps_the_recording(tmp_path):
    with _started(tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    [run] = _manifests(tmp_path)
    assert run["ended"] == "killed by SIGTERM"
    assert run["calls"] >= 9
    assert not list(tmp_path.glob(".perflaw/*/runs/*/spool"))


@contextmanager
def _started(folder, *options):
    (folder / "app.py").write_text(
        "import time\ndef f(): time.sleep(0.001)\nfor _ in range(9): f()\nprint('go', flush=True)\nwhile True: f()\n"
    )
    with started_perflaw(folder, "record", *options, "--", "app.py") as process:
        assert process.stdout.readline() == "go\n"
        yield process


def _manifests(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob(".perflaw/*/runs/*/run.json"))]


@pytest.mark.any_python
def test_a_run_named_twice_counts_once(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("def f(): pass\nf()\n")
    perflaw("record", "--", "app.py")
    assert (
        perflaw("dump", 1, "0001", "--table", "components").stdout == perflaw("dump", 1, "--table", "components").stdout
    )


@pytest.mark.any_python
def test_a_folder_removed_meanwhile_is_told(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import shutil\nshutil.rmtree('.perflaw')\n")
    told = perflaw("record", "--", "app.py", status=2).stderr
    # Whether the recorder had read the tracer's beginning by then is up to the scheduler.
    assert "was removed while the program ran" in told or "cannot be written" in told
    if "the recording is in " in told:
        shutil.rmtree(Path(told.split("the recording is in ")[1].split()[0]).parent)
