"""Debuggers and samplers of others beside the recorder: each shows what it shows without it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from perflaw.store.experiment import open_experiment
from tests.conftest import started_perflaw

pytestmark = [pytest.mark.interpreter, pytest.mark.slow]

APP = """
def work(n):
    if n > 1:
        return n * 2
    return n
def main():
    return sum(work(n) for n in range(50))
"""
WAITS = APP + "import sys\nmain()\nprint('ready', flush=True)\ndef idle(): sys.stdin.readline()\nidle()\n"


def both(folder: Path, *arguments: str) -> tuple[str, str]:
    """What a command prints without the recorder and with it."""
    shown = []
    for before in ([], [sys.executable, "-m", "perflaw", "record", "--tracer", "native", "--"]):
        command = [*before, sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout + done.stderr
        shown.append(done.stdout)
    return shown[0], shown[1]


def calls(folder: Path) -> int:
    """Calls of ``work`` in all recordings."""
    recordings = open_experiment("default", folder).recordings()
    rows = [row for one in recordings for row in one.tables()["components"]]
    return sum(row[7] for row in rows if row[1] == "app.work")


def test_debugpy(tmp_path):
    (tmp_path / "app.py").write_text(APP + "print(main())\n")
    plain, recorded = both(tmp_path, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", "127.0.0.1:0", "app.py")
    assert plain == recorded == "2449\n"


def test_a_sampler_sees_the_stack_of_a_recorded_program(tmp_path):
    (tmp_path / "app.py").write_text(WAITS)
    sampler = Path(sys.executable).parent / "py-spy"
    arguments = ("record", "--tracer", "native", "--", sys.executable, "app.py")
    with started_perflaw(tmp_path, *arguments, stdin=subprocess.PIPE) as recorder:
        assert recorder.stdout
        assert recorder.stdout.readline() == "ready\n"
        program = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()[0]
        deadline = time.monotonic() + 20
        while "idle (app.py" not in (seen := dump(sampler, program)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert "<module> (app.py" in seen
        assert "idle (app.py" in seen
        recorder.communicate("\n", timeout=60)
    assert recorder.returncode == 0
    assert calls(tmp_path) == 50


def dump(sampler: Path, program: str) -> str:
    """The stacks of a process as py-spy sees them."""
    return subprocess.run([sampler, "dump", "--pid", program], capture_output=True, text=True, timeout=60).stdout
