"""Every form of command that a person types, real programs run each time."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from perflaw.errors import TargetError
from perflaw.record.launch import understand
from tests.conftest import first

pytestmark = pytest.mark.interpreter

APP = "import sys\ndef f(n): return sum(range(n))\nprint(f(int(sys.argv[1])))\n"


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(APP)
    (tmp_path / "tool").write_text(f"#!{sys.executable}\n{APP}")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "long").write_text(f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n{APP}")
    (tmp_path / "long").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "name"),
    first(
        6,
        [
            (["app.py", "5"], "app.f"),
            (["./app.py", "5"], "app.f"),
            (["-m", "app", "5"], "app.f"),
            (["-m", "pack", "5"], "pack.f"),
            (["pack", "5"], "pack.f"),
            ([sys.executable, "app.py", "5"], "app.f"),
            ([sys.executable, "-X", "utf8", "-W", "ignore", "-u", "app.py", "5"], "app.f"),
            ([sys.executable, "-um", "pack", "5"], "pack.f"),
            ([sys.executable, "-c", APP, "5"], "__main__.f"),
            (["./tool", "5"], "tool.f"),
            (["./long", "5"], "long.f"),
        ],
    ),
)
def test_forms(perflaw, app, command, name):
    done = perflaw("record", "--", *command)
    assert done.stdout == "10\n"
    assert f" {name} " in perflaw("dump", 1, "--table", "components").stdout
    run = json.loads(perflaw("runs", "--json").stdout)["runs"][0]
    assert run["features"] == {"argv1": 5.0}
    assert run["complete"]


def test_a_console_script_of_another_environment(perflaw, app):
    environment = app / "other"
    venv.create(environment, with_pip=False)
    site = next((environment / "lib").glob("python*/site-packages"))
    (site / "shipped.py").write_text(
        "import sys\ndef main(): return helper(int(sys.argv[1]))\ndef helper(n): print(n)\n"
    )
    script = environment / "bin" / "shipped"
    script.write_text(f"#!{environment}/bin/python\nimport sys\nfrom shipped import main\nsys.exit(main())\n")
    script.chmod(0o755)
    assert perflaw("record", "--", script, "7").stdout == "7\n"
    components = perflaw("dump", 1, "--table", "components").stdout
    assert " shipped.helper " in components, "the package of the script itself is the person's own code"


@pytest.mark.slow
@pytest.mark.any_python
def test_another_python_than_ours(perflaw, app):
    script = Path(__file__).parents[2] / "scripts" / "python.sh"
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for version in {"3.11", "3.12", "3.13"} - {ours}:
        python = subprocess.run(["sh", script, version], capture_output=True, text=True).stdout.strip()
        if python:
            assert perflaw("record", "-e", version, "--", python, "app.py", 5).stdout == "10\n"
            assert f'"python": "{version}.' in perflaw("runs", "-e", version, "--json").stdout


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ((), "no command"),
        (("missing.py",), "missing.py: no such file"),
        (("nowhere-to-be-found",), "no such file or command"),
        (("/bin/ls",), "a compiled program"),
        ((sys.executable, "-I", "app.py"), "option -I"),
        ((sys.executable, "-Sm", "app"), "option -S"),
        ((sys.executable,), "without a script"),
        ((sys.executable, "-m"), "-m without a module"),
        ((sys.executable, "missing.py"), "missing.py: no such file"),
        (("loop.py",), "loop.py: cannot be read"),
        ((sys.executable, "loop.py"), "loop.py: cannot be read"),
        (("./bare",), "not a Python program"),
    ],
)
@pytest.mark.any_python
def test_what_cannot_be_recorded(app, monkeypatch, command, what):
    monkeypatch.chdir(app)
    (app / "loop.py").symlink_to("loop.py")  # unreadable even to root
    (app / "bare").write_text("#!/bin/sh")
    (app / "bare").chmod(0o755)
    with pytest.raises(TargetError) as error:
        understand(command)
    assert what in str(error.value)
    assert error.value.why
    assert error.value.next_command


@pytest.mark.any_python
def test_a_shell_script_is_no_python_program(app, monkeypatch):
    monkeypatch.chdir(app)
    (app / "run.sh").write_text("#!/bin/sh\necho\n")
    (app / "run.sh").chmod(0o755)
    with pytest.raises(TargetError, match="not a Python program"):
        understand(("./run.sh",))


@pytest.mark.any_python
def test_an_old_python_is_refused(app, monkeypatch):
    monkeypatch.chdir(app)
    old = app / "python2"
    old.write_text("#!/bin/sh\necho cpython 3.8.18\n")
    old.chmod(0o755)
    with pytest.raises(TargetError, match=r"cpython 3\.8\.18"):
        understand(("./python2", "app.py"))
