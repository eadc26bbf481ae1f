"""What the benchmarks share: interpreters, cached environments, commands, and a table of figures beside their bars."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "programs"
CACHE = ROOT / "build" / "bench"
VERSIONS = ("3.11", "3.12", "3.13")


def pythons(versions: Sequence[str] = VERSIONS) -> dict[str, str]:
    """Interpreters to measure, by version: those of the asked ones that are found here."""
    found = {}
    for version in versions:
        shown = subprocess.run(["sh", ROOT / "scripts" / "python.sh", version], capture_output=True, text=True)
        if python := shown.stdout.strip():  # it may be a shell script of pyenv's, which would be timed as well
            told = subprocess.run([python, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
            found[version] = told.stdout.strip()
    return found


def environment(version: str, packages: Sequence[str], name: str) -> str:
    """The interpreter of a virtual environment that holds ``packages``; made once, under build/, which git ignores."""
    folder = CACHE / f"{name}-{version}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = "\n".join(packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {', '.join(packages)} for Python {version}", file=sys.stderr)
        subprocess.run([pythons([version])[version], "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *packages], check=True)
        stamp.write_text(wanted)
    return str(python)


def recorded(*arguments: str, links: bool = True, report: Path | None = None) -> list[str]:
    """A command that records; see recorder_process.py for what may differ from ``perflaw record``."""
    if links and not report:
        return [sys.executable, "-m", "perflaw", "record", *arguments]
    script = str(Path(__file__).parent / "recorder_process.py")
    return [sys.executable, script, str(report or os.devnull), "16" if links else "0", "record", *arguments]


def told(report: Path) -> dict[str, float]:
    """What recorder_process.py reported of the recorder's process."""
    found: dict[str, float] = json.loads(report.read_text())
    return found


@dataclass(slots=True)
class Bars:
    """Figures that must not be above a bar, or below it where ``least`` says so; missing one is told and kept."""

    missed: list[str] = field(default_factory=list)

    def check(self, what: str, figure: float, bar: float, *, least: bool = False) -> str:
        """The words that stand beside the figure."""
        fine = figure >= bar if least else figure <= bar
        if not fine:
            self.missed.append(f"{what}: {figure:.4g}, the bar is {bar:g}")
        return f"{'≥' if least else '≤'} {bar:g} {'ok' if fine else 'MISSED'}"

    def leave(self) -> None:
        """Exit with status 1 if a bar was missed, and say which."""
        for line in self.missed:
            print(f"missed: {line}")
        sys.exit(1 if self.missed else 0)


def median_ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """Ratio of medians of what was measured in the same rounds."""
    return statistics.median(values) / statistics.median(base)
