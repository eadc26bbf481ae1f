"""The target's output, exit status, environment and modules are those of a run without us."""

import os
import subprocess
import sys

import pytest

from tests.conftest import PROGRAMS, first

pytestmark = pytest.mark.interpreter


def plainly(tmp_path, *arguments, **options):
    options = {"cwd": tmp_path, "stdin": subprocess.DEVNULL, "timeout": 60, **options}
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, **options)


def assert_same(perflaw, tmp_path, *arguments, **options):
    expected = plainly(tmp_path, *arguments, **options)
    got = perflaw("record", "--", sys.executable, *arguments, status=expected.returncode, **options)
    ours = [line for line in got.stderr.splitlines(keepends=True) if not line.startswith(("perflaw: ", "recorded "))]
    assert got.stdout == expected.stdout
    assert "".join(ours) == expected.stderr


def test_output_and_modules(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "import os, sys\n"
        "ours = [m for m in sys.modules if 'perflaw' in m]\n"
        "assert ours in ([], ['_perflaw_tracer'], ['_perflaw_native']), ours\n"
        "print(__name__, __file__, sys.argv, sys.path, sys.orig_argv[1:], 'sitecustomize' in sys.modules)\n"
        "print({k: v for k, v in os.environ.items() if 'PYTHON' in k or 'PERFLAW' in k})\n"
        "print(sys.modules['__main__'].__dict__['__name__'], sys.flags)\n"
    )
    assert_same(perflaw, tmp_path, "-X", "dev", "app.py", "a", "b")
    assert_same(perflaw, tmp_path, "-O", "-c", "import sys; print(sys.argv, __debug__)", "x")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    assert_same(perflaw, tmp_path, "app.py", env=env)


def test_the_targets_own_sitecustomize_runs(perflaw, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.customized = __file__")
    (tmp_path / "app.py").write_text("import sys; print(customized, sys.modules['sitecustomize'].__file__)")
    assert_same(perflaw, tmp_path, "app.py", env={**os.environ, "PYTHONPATH": str(tmp_path)})


@pytest.mark.parametrize(
    "ending",
    first(
        4,
        [
            "raise ValueError('no')",
            "sys.exit('message')",
            "sys.exit(7)",
            "import threading; threading.Thread(target=lambda: 1 / 0).start()",
            "import warnings; warnings.warn('old')",
            "import atexit; atexit.register(print, 'bye'); exit(3)",
            "import subprocess; print(subprocess.run([sys.executable, '-c', 'import sys; print(list(sys.modules)[-1])'],"
            " capture_output=True).stdout)",
        ],
    ),
)
def test_endings(perflaw, tmp_path, ending):
    (tmp_path / "app.py").write_text(f"import sys\nprint('begun')\n{ending}\n")
    assert_same(perflaw, tmp_path, "app.py")


def test_endless_recursion_ends_in_the_targets_own_error(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "def f(n):\n    f(n + 1)\nfor _ in range(2):\n    try: f(0)\n    except RecursionError: print('deep')\n"
    )
    assert perflaw("record", "--", "app.py").stdout == "deep\ndeep\n"


def test_reading_features_runs_none_of_the_targets_code(perflaw, tmp_path):
    done = perflaw("record", "--", PROGRAMS / "hostile.py")
    assert done.stdout == "cries: []\n"
    dump = perflaw("dump", 1, "--table", "features").stdout
    assert "anything.type - Hostile" in dump
    assert "anything.type - SubList" in dump
    assert "args.len 1.0 -" in dump


def test_a_fork_is_not_recorded_and_does_not_disturb(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "import os\n"
        "def work(n): return sum(range(n))\n"
        "if os.fork() == 0:\n    [work(i) for i in range(1000)]\n    os._exit(0)\n"
        "os.wait(); work(5); print('parent')\n"
    )
    done = perflaw("record", "--", "app.py", env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert done.stdout == "parent\n"
    rows = perflaw("dump", 1, "--table", "components").stdout.splitlines()
    [row] = [line.split() for line in rows if " app.work " in line]
    assert int(row[8]) == 1


def test_standard_input_reaches_every_run(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import sys; print(len(sys.stdin.read()))")
    text = "x" * 300_000
    done = perflaw("record", "--repeat", 2, "--", "app.py", stdin=None, input=text)
    assert done.stdout == "300000\n300000\n"
    (tmp_path / "text").write_text(text)
    with (tmp_path / "text").open() as file:
        assert perflaw("record", "--repeat", 2, "--", "app.py", stdin=file).stdout == "300000\n300000\n"
    features = perflaw("runs", "--json").stdout
    assert features.count('"stdin.bytes": 300000.0') == 4


def test_a_pipe_that_never_ends_does_not_hold_the_recording(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("print('no input wanted')")
    reading, writing = os.pipe()
    try:
        assert perflaw("record", "--", "app.py", stdin=reading).stdout == "no input wanted\n"
    finally:
        os.close(reading)
        os.close(writing)
