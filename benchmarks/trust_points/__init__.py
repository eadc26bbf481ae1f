"""What the points of trust.py are made of: a planted truth, how perflaw is asked, and whether its answer is right."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What perflaw tells of one recording."""

    told: str
    """The part of the answer that is judged, for the reader of a wrong one."""
    right: bool


@dataclass(frozen=True, slots=True)
class Point:
    """One planted truth."""

    item: int
    """Number of the point; several points may share one."""
    planted: str
    """The truth, in a few words."""
    ask: Callable[[Path, int], Answer]
    """Makes the program in an empty folder, records it, asks and judges; the number may seed what is drawn."""


def write_program(folder: Path, source: str, name: str = "prog.py") -> Path:
    """Write a program to the folder."""
    program = folder / name
    program.write_text(textwrap.dedent(source).lstrip())
    return program


def perflaw(folder: Path, *arguments: str, status: int | None = 0) -> str:
    """What a perflaw command prints in a folder; ``status`` is what it must exit with, None for any."""
    command = [sys.executable, "-m", "perflaw", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if status is not None and done.returncode != status:
        raise RuntimeError(f"perflaw {' '.join(arguments)} exits with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_s(command: list[str], folder: Path) -> float:
    """CPU time of a command, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
