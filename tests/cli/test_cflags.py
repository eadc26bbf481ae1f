"""``perflaw --cflags``: where perflaw.h is."""

import subprocess

import pytest

from perflaw.errors import UsageError
from perflaw.record import build


def test_a_compiler_finds_the_header(perflaw, tmp_path):
    flags = perflaw("--cflags").stdout.split()
    (tmp_path / "app.c").write_text("#include <perflaw.h>\nint main(void) { return 0; }\n")
    subprocess.run(["gcc", *flags, "-fsyntax-only", "app.c"], cwd=tmp_path, check=True)


def test_a_damaged_installation_says_so(monkeypatch, tmp_path):
    from perflaw.cli.main import cli

    monkeypatch.setattr(build, "sources_folder", lambda: tmp_path)
    with pytest.raises(UsageError, match=r"no perflaw\.h: the installation is damaged"):
        cli.main(["--cflags"], standalone_mode=False)
