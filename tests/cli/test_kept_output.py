"""``perflaw record --keep-output``: what programs print is kept, seen as ever, and on a terminal there is progress."""

import os
import pty
import re
import subprocess
import sys

import pytest

from perflaw.record.output_tee import FIRST, LAST
from tests.conftest import started_perflaw

QUICK = ("--tracer", "python")


@pytest.mark.slow
def test_output_is_kept_at_both_ends_and_seen_whole(perflaw, tmp_path):
    lines = (FIRST + LAST) // 10 + 50_000
    (tmp_path / "app.py").write_text(
        f"import sys\ndef f(): pass\nf()\nfor i in range({lines}): print(f'{{i:09}}')\nprint('oops', file=sys.stderr)\n"
    )
    done = perflaw("record", *QUICK, "--keep-output", "--", "app.py")
    whole = "".join(f"{i:09}\n" for i in range(lines))
    assert done.stdout == whole
    assert done.stderr.startswith("oops\n")
    folder = tmp_path / ".perflaw/default/runs/0001"
    kept = (folder / "stdout.txt").read_text()
    missing = len(whole) - FIRST - LAST
    assert kept == whole[:FIRST] + f"\n[… {missing} bytes left out …]\n" + whole[-LAST:]
    assert (folder / "stderr.txt").read_text() == "oops\n"
    assert not list(folder.glob("*.part"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


def test_a_reader_that_has_gone_is_felt_by_the_program(tmp_path):
    (tmp_path / "app.py").write_text("def f(): pass\nf()\nprint('first', flush=True)\nwhile True: print('x' * 1000)\n")
    with started_perflaw(tmp_path, "record", *QUICK, "--keep-output", "--", "app.py") as process:
        assert process.stdout.readline() == "first\n"
        process.stdout.close()
        assert process.wait(60) == 1
        assert "BrokenPipeError" in process.stderr.read()


def test_a_child_that_lives_on_is_heard_to_the_end(perflaw, tmp_path):
    saved = "glob.glob('.perflaw/default/runs/*/run.json')"  # is written when the output has been kept
    late = f"import glob, time\nwhile not {saved}: time.sleep(0.05)\ntime.sleep(0.5); print('late')"
    (tmp_path / "app.py").write_text(
        "import subprocess, sys\ndef f(): pass\nf(); print('early', flush=True)\n"
        f"subprocess.Popen([sys.executable, '-c', {late!r}])\n"
    )
    done = perflaw(
        "record", *QUICK, "--keep-output", "--", "app.py", stdin=subprocess.DEVNULL
    )  # read until all close it
    assert done.stdout == "early\nlate\n", "after the recorder has gone"
    assert (tmp_path / ".perflaw/default/runs/0001/stdout.txt").read_text() == "early\n"


def on_a_terminal(folder, *arguments):
    """What a person sees of ``perflaw`` on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "perflaw", *arguments]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        try:
            while block := os.read(ours, 1 << 16):
                seen += block
        except OSError:  # the other side was closed
            pass
        os.close(ours)
    assert process.returncode == 0, seen.decode()
    return seen.decode()


def test_progress_and_the_time_left_on_a_terminal(tmp_path):
    (tmp_path / "app.py").write_text(
        "import sys, time\ndef f(): time.sleep(0.6)\nf()\nprint(sys.stdout.isatty(), sys.argv[1])\n"
    )
    seen = on_a_terminal(tmp_path, "record", *QUICK, "--keep-output", "--vary", "n=1,2,3", "--", "app.py", "{n}")
    assert re.search(r"recording .* about .* left · run 2 of 3", seen)
    assert [f"True {n}\r\n" in seen for n in (1, 2, 3)] == [True] * 3, "shown on a terminal, a program has one"
    assert "\r\r\n" not in seen
    assert (tmp_path / ".perflaw/default/runs/0002/stdout.txt").read_text() == "True 2\n"
