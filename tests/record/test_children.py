"""Python processes that a recorded program starts are runs of their own, however it starts them."""

import pytest

pytestmark = pytest.mark.interpreter

KIDS = """
import multiprocessing, os, subprocess, sys
def work(n): return sum(range(n))
def body(n): return [work(i) for i in range(n)]
if __name__ == "__main__":
    way = sys.argv[1]
    if way == "fork":
        pid = os.fork()
        if not pid: body(10); os._exit(0)
        os.waitpid(pid, 0)
    elif way == "subprocess":
        subprocess.run([sys.executable, "other.py", "--token", "x"], check=True)
    else:
        process = multiprocessing.get_context(way).Process(target=body, args=(10,))
        process.start(); process.join()
    body(5)
"""


@pytest.mark.parametrize("way", ["fork", "subprocess", "spawn"])
def test_a_child_is_a_run_of_its_own(recorded, tmp_path, way):
    (tmp_path / "kids.py").write_text(KIDS)
    (tmp_path / "other.py").write_text("from kids import body\nbody(10)\n")
    program, child = recorded("--tracer", "native", "--feature", "n=10", "--", "kids.py", way)
    assert (program.run.parent, child.run.parent) == ("", program.run.id)
    assert child.run.features == program.run.features
    assert child.run.target == ("other.py" if way == "subprocess" else "kids.py")
    assert "x" not in child.run.command
    calls = [{row[1]: row[7] for row in one.tables()["components"]} for one in (program, child)]
    assert [one["kids.work"] for one in calls] == [5, 10]


def test_the_closing_line_counts_them(perflaw, tmp_path):
    (tmp_path / "kids.py").write_text(KIDS)
    (tmp_path / "other.py").write_text("from kids import body\nbody(10)\n")
    done = perflaw("record", "--tracer", "native", "--", "kids.py", "subprocess")
    assert "recorded 1 run of kids.py and 1 child process, " in done.stderr
    assert "(child" in perflaw("runs").stdout


def test_a_child_of_another_python_is_left_in_peace(perflaw, tmp_path, monkeypatch):
    """An extension is of one interpreter: elsewhere nothing is loaded, and nothing is said."""
    (tmp_path / "app.py").write_text(
        "import os, subprocess, sys\n"
        "from pathlib import Path\n"
        "env = {'PERFLAW_TARGET_TRACER': '_perflaw_native', 'PERFLAW_TARGET_TRACER_FILE': '/x/_perflaw_native-3.0.0-0.so',\n"
        "       'PERFLAW_TARGET_SPOOL': 'spool', 'PERFLAW_TARGET_PARENT': '1', 'PYTHONPATH': sys.argv[1]}\n"
        'code = \'import os, sys; print(os.environ.get("PYTHONPATH"), [m for m in sys.modules if "perflaw" in m])\'\n'
        "done = subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True)\n"
        "print(done.stdout, done.stderr)\n"
    )
    from perflaw.record.python.tracers import TARGET_FOLDER

    assert perflaw("record", "--tracer", "nothing", "--", "app.py", TARGET_FOLDER).stdout == "None []\n \n"
