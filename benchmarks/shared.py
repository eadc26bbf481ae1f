"""What the benchmarks share: interpreters, cached environments, commands, and a table of figures beside their bars."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "programs"
CACHE = ROOT / "build" / "bench"
BLOCKS = 10
CPUCLOCK_SCHED = 2
"""The kernel's number of the clock that counts all CPU time of a process."""
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


def cpu_ns_of(pid: int) -> int:
    """CPU time of a process to the nanosecond, that of threads included that have ended."""
    return time.clock_gettime_ns(~pid << 3 | CPUCLOCK_SCHED)


@dataclass(frozen=True, slots=True)
class Change:
    """Relative change of a cost, with its interval at 95 %."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:+.2%} ({self.low:+.2%} to {self.high:+.2%})"

    def verdict(self, bars: Bars, what: str, bar: float) -> str:
        """Whether the bar is kept or missed, or the interval is too wide to say."""
        if self.low <= bar < self.high:
            bars.missed.append(f"{what}: {self}, which does not decide about {bar:.0%}")
            return f"≤ {bar:.0%} not decided"
        return bars.check(what, self.estimate, bar)


def change_beside(
    cost: Callable[[], float], control: Callable[[], float], rounds: int, act: Callable[[], None]
) -> Change:
    """How much more a round costs after ``act``, beside a control that is left alone.

    Rounds of both alternate, so that what the machine does meanwhile cancels in the ratio of a pair. The interval is
    Student's, of the difference of the means of medians of BLOCKS blocks of pairs, because neighbouring pairs are alike.
    """

    def blocks() -> np.ndarray:
        ratios = []
        for number in range(rounds):
            measured = [cost(), control()] if number % 2 else [control(), cost()][::-1]
            ratios.append(np.log(measured[0] / measured[1]))
        return np.array([np.median(block) for block in np.array_split(ratios, BLOCKS)])

    before = blocks()
    act()
    after = blocks()
    error = np.sqrt((before.var(ddof=1) + after.var(ddof=1)) / BLOCKS) * stats.t.ppf(0.975, 2 * BLOCKS - 2)
    change = after.mean() - before.mean()
    return Change(*(float(np.expm1(one)) for one in (change, change - error, change + error)))


def median_ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """Ratio of medians of what was measured in the same rounds."""
    return statistics.median(values) / statistics.median(base)
