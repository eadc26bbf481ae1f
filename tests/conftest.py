"""What all tests share: the command line as a person runs it, and the identities that every recording must keep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perflaw.store.experiment import Recording, open_experiment
from perflaw.store.schema import Tables
from perflaw.store.tables import read_tables

PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def perflaw(tmp_path: Path) -> Run:
    """Run ``perflaw`` in the test's folder; fails the test on another exit status than expected.

    Every recording that comes of it is checked for the identities of its moments.
    """
    checked: set[Path] = set()

    def run(*arguments: object, status: int = 0, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "perflaw", *map(str, arguments)]
        options = {"cwd": tmp_path, "stdin": subprocess.DEVNULL, "timeout": 120, **options}
        done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        if arguments[0] == "record":
            for folder in sorted(Path(str(options["cwd"])).glob(".perflaw/*/runs/*/run.json")):
                if folder not in checked:
                    assert_identities(read_tables(folder.parent))
                    checked.add(folder)
        else:  # a recorded program may show tracebacks of its own
            assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def recorded(perflaw: Run, tmp_path: Path) -> Callable[..., list[Recording]]:
    """Record a program and give all recordings of the experiment."""

    def record(*arguments: object, experiment: str = "default", status: int = 0) -> list[Recording]:
        perflaw("record", "-e", experiment, *arguments, status=status)
        return open_experiment(experiment, tmp_path).recordings()

    return record


def assert_identities(tables: Tables) -> None:
    """ΣΣP == ΣX² on every node with a completed call, weights add up to calls, parents stand before children."""
    squares: dict[int, int] = {}
    for node, i, j, total in tables["pairs"]:
        squares[node] = squares.get(node, 0) + (total if i == j else 2 * total)
    waiting = {row[0] for row in tables["components"] if row[1] == "(waiting)"}
    for node, _, n, sum_x, sum_xx, low, high, _ in tables["moments"]:
        if n:
            assert squares[node] == sum_xx
            assert n * sum_xx - sum_x**2 >= 0
            assert n * low <= sum_x <= n * high
    assert all(row[1] < row[0] for row in tables["calltree"])
    weights: dict[int, float] = {}
    for row in tables["invocations"]:
        weights[row[2]] = weights.get(row[2], 0.0) + row[9]
    calls = {row[0]: row[7] for row in tables["components"] if row[0] not in waiting}
    for number, count in calls.items():
        assert weights.get(number, 0.0) == pytest.approx(count)
