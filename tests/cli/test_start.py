"""The command line starts quickly and imports nothing heavy before it must."""

import os
import subprocess
import sys
import textwrap

import click
import pytest

from perflaw.cli.main import BLAS_THREADS, VERBS, cli
from tests.conftest import PROGRAMS, run_perflaw

HEAVY = {"numpy", "scipy", "duckdb", "_duckdb", "rich", "lark"}


def loaded(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_help_imports_nothing_heavy():
    code = "from perflaw.cli.main import cli\ntry: cli(['--help'])\nexcept SystemExit: pass"
    assert not loaded(code) & HEAVY
    assert not loaded("import perflaw") & (HEAVY | {"click"})


def test_annotate_imports_no_more_than_it_needs(tmp_path):
    """Importing a part of SciPy takes as long as the laws of a small recording."""
    code = f"import os; os.chdir({str(tmp_path)!r})\nfrom perflaw.cli.main import cli\n"
    run_perflaw(tmp_path, "record", "--clock", "fake", "--", PROGRAMS / "known.py", 100)
    modules = loaded(f"{code}try: cli(['annotate'])\nexcept SystemExit: pass")
    assert "perflaw.learn.annotations.annotate" in modules
    assert not modules & {"numpy.f2py", "numpy.testing", "scipy", "duckdb", "lark"}
    assert not {one for one in modules if one.startswith(("perflaw.report.trend", "perflaw.report.mine"))}
    assert not modules & {"perflaw.types.verdicts", "perflaw.learn.annotations.paper"}


@pytest.mark.parametrize(
    ("verb", "chosen", "seen"), [("annotate", "", "1"), ("annotate", "2", "2"), ("record", "", "")]
)
def test_verbs_that_start_no_program_use_one_thread_of_blas(monkeypatch, verb, chosen, seen):
    """What a person chose stays, and nothing stays set behind the verb."""
    for name in BLAS_THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if name != "numpy"})
    if chosen:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
    with click.Context(cli) as context:
        cli.get_command(context, verb)
        assert os.environ.get("OPENBLAS_NUM_THREADS", "") == seen
    assert os.environ.get("OPENBLAS_NUM_THREADS", "") == chosen


def test_a_recorder_uses_one_thread_of_blas_and_its_program_as_many_as_it_chooses(monkeypatch, tmp_path):
    """Threads of BLAS that wait in a loop would be a tenth of the CPU time of a short recording."""
    for name in BLAS_THREADS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "app.py").write_text(
        "import os\nopen('seen', 'w').write(os.environ.get('OPENBLAS_NUM_THREADS', 'none'))\n"
    )
    code = f"""
        import os
        os.chdir({str(tmp_path)!r})
        from perflaw.cli.main import cli
        cli(['record', '--', 'app.py'], standalone_mode=False)
        from threadpoolctl import threadpool_info
        assert [one["num_threads"] for one in threadpool_info() if one["internal_api"] == "openblas"] == [1]
    """
    loaded(textwrap.dedent(code))
    assert (tmp_path / "seen").read_text() == "none"


def test_recording_counts_of_compiled_programs_imports_no_more_than_it_needs(tmp_path):
    """No laws, no call paths, and no tracers of Python programs."""
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-O0", "--coverage", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    code = f"import os; os.chdir({str(tmp_path)!r})\nfrom perflaw.cli.main import cli\n"
    modules = loaded(f"{code}cli(['record', '--collect', 'lines', '--', './app'], standalone_mode=False)")
    assert "perflaw.record.compiled.gcov" in modules
    unneeded = {
        "laws.tree",
        "types.laws",
        "types.trends",
        "record.tree.path_builder",
        "record.python.tracers",
        "cli.probes",
    }
    assert not modules & {f"perflaw.{name}" for name in unneeded}


def test_every_verb_has_help_and_a_short_line():
    for name, short in VERBS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.short_help == short
        assert command.help
        assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option))
        names = [parameter.name for parameter in command.params]
        assert len(names) == len(set(names)), f"an option of {name} stands there twice"


def test_version_and_unknown_verb(perflaw):
    assert perflaw("--version").stdout.startswith("perflaw, version ")
    assert "No such command" in perflaw("frobnicate", status=2).stderr


def test_debug_shows_the_traceback_and_keeps_the_status(perflaw, tmp_path):
    for command in (
        ["--debug", "fit", "none.csv", "--response", "y"],
        ["fit", "--debug", "none.csv", "--response", "y"],
    ):
        done = subprocess.run([sys.executable, "-m", "perflaw", *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.strip().splitlines()[-1].startswith("perflaw: ")
