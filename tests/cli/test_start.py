"""The command line starts quickly and imports nothing heavy before it must."""

import subprocess
import sys

import click

from perflaw.cli.main import VERBS, cli

HEAVY = {"numpy", "scipy", "duckdb", "_duckdb", "rich", "plotly", "lark"}


def loaded(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_help_imports_nothing_heavy():
    code = "from perflaw.cli.main import cli\ntry: cli(['--help'])\nexcept SystemExit: pass"
    assert not loaded(code) & HEAVY
    assert not loaded("import perflaw") & (HEAVY | {"click"})


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
