"""Programs that forbid themselves system calls (seccomp) while they are recorded: they live, and what was before is kept."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflaw.store.experiment import open_experiment
from tests.conftest import PROGRAMS, Run, first
from tests.record.test_attach import calls
from tests.record.test_hooks import HOOKS, built

WORDS = {
    "killed": r"would end it for a call that a recording makes, \w+",
    "trapped": r"would end it for a call that a recording makes, \w+",
    "refused": r"lets it (open no files|read no clocks), which a recording does",
    "strict": "allows nothing but reading and writing",
}


def check(perflaw: Run, folder: Path, command: list[str], way: str, leaf: str) -> None:
    """The command gives what it gives without a recorder, and its first thousand calls are kept, with the reason."""
    plain = subprocess.run([*command, way], capture_output=True, text=True)
    assert not plain.returncode, plain.stderr
    recorded = perflaw("record", "--", *command, way, cwd=folder)
    assert recorded.stdout == plain.stdout
    [recording] = open_experiment("default", folder).recordings()
    if way == "free":
        assert recording.run.complete
        assert calls(recording)[leaf] == 21_000
    else:
        expected = f"recording stopped early: the program's filter of system calls \\(seccomp\\) {WORDS[way]}$"
        assert re.fullmatch(expected, recording.run.ended), recording.run.ended
        assert calls(recording)[leaf] == 1000
        assert 0.5 < recording.run.slowdown < 1000


@pytest.mark.parametrize("flags", first(1, ["-O2", f"-O2 {HOOKS}"]), ids=["injected", "hooks"])
@pytest.mark.parametrize("way", ["free", *WORDS])
def test_a_compiled_program_goes_on(perflaw: Run, tmp_path: Path, flags: str, way: str) -> None:
    program = built(tmp_path, "filtering.c", *flags.split())
    check(perflaw, tmp_path, [str(program)], way, "leaf")


@pytest.mark.interpreter
@pytest.mark.parametrize("way", ["free", "killed", "refused"])
def test_a_python_program_goes_on(perflaw: Run, tmp_path: Path, way: str) -> None:
    check(perflaw, tmp_path, [sys.executable, str(PROGRAMS / "filtering.py")], way, "filtering.leaf")
