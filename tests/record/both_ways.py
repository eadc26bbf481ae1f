"""Run a program untraced and recorded: what it prints and how it ends must be equal, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from perflaw.store.experiment import Recording, open_experiment
from tests.conftest import assert_identities

OURS = (b"perflaw: ", b"recorded ", b"not recorded")
"""How the recorder's own lines begin, which stand behind the program's."""


@dataclass(frozen=True)
class Both:
    """What came of it."""

    stdout: str
    """What the program printed, either way."""
    status: int
    """How it ended, either way: exit status, or 128 and the signal."""
    recordings: list[Recording]
    """Of the program, then of its children."""

    def calls(self, run: int = 0) -> dict[str, int]:
        """Completed calls by the function's name within its module."""
        rows = self.recordings[run].tables()["components"]
        return {row[1].partition(".")[2]: row[7] for row in rows if row[5] == "own"}

    def open(self, run: int = 0) -> dict[str, int]:
        """The same of calls that have not ended."""
        rows = self.recordings[run].tables()["components"]
        return {row[1].partition(".")[2]: row[8] for row in rows if row[8]}


def run_both_ways(
    folder: Path, command: tuple[object, ...], *, tracer: str = "native", options: tuple[str, ...] = (), **how: object
) -> Both:
    """Run ``python *command`` in ``folder`` both ways; ``how`` is for subprocess.run. Identities hold in all recordings."""
    target = [sys.executable, *map(str, command)]
    ways = [[], [sys.executable, "-m", "perflaw", "record", "--tracer", tracer, "-e", "both", *options, "--"]]
    how = {"cwd": folder, "stdin": subprocess.DEVNULL, "timeout": 60, **how}
    plain, traced = (subprocess.run([*way, *target], capture_output=True, **how) for way in ways)
    said = b"".join(line for line in traced.stderr.splitlines(keepends=True) if not line.startswith(OURS))
    status = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
    assert (traced.returncode, traced.stdout, said) == (status, plain.stdout, plain.stderr), f"{plain}\n{traced}"
    recordings = open_experiment("both", folder).recordings()
    for recording in recordings:
        assert recording.run.tracer.startswith(tracer)
        assert_identities(recording.tables())
    return Both(plain.stdout.decode(errors="replace"), status, recordings)
