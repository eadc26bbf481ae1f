"""What the benchmarks share: interpreters, cached environments, commands, and a table of figures beside their bars."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import stats

from perflaw.record.attach.priority import hastened, urgent

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "programs"
CACHE = ROOT / "build" / "bench"
BLOCKS = 20
SAMPLE_NS = 5_000_000
"""CPU time in which a cost is measured."""
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


class Worker:
    """A program that works without pause; for a line it prints the units of work done and the CPU time, ns, of one moment.

    One that works in one thread does so before other programs, where the system permits that: more would take all processors.
    """

    def __init__(self, command: Sequence[str | Path], *, is_first: bool = False) -> None:
        self.is_first = is_first
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line()

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def _done(self) -> tuple[int, int]:
        """Units done so far, and the CPU time that they took, ns."""
        assert self.process.stdin
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        units, cpu = map(int, self._line().split())
        return units, cpu

    def run(self, *, on: bool) -> None:
        """Let it work, or stop it."""
        self.process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    def cost(self) -> float:
        """CPU time of a unit, ns; it works only meanwhile."""
        threads = [int(task.name) for task in Path(f"/proc/{self.process.pid}/task").iterdir()]
        with urgent(), hastened(threads if self.is_first else []):
            self.run(on=True)
            units, cpu = more, later = self._done()
            while later < cpu + SAMPLE_NS:
                time.sleep(SAMPLE_NS / 4e9)
                more, later = self._done()
            self.run(on=False)
        return (later - cpu) / (more - units)

    def end(self) -> str:
        """What it says at its end."""
        self.run(on=True)
        return self.process.communicate()[0].strip()


def change_beside(
    cost: Callable[[], float], control: Callable[[], float], rounds: int, act: Callable[[], None], times: int = 1
) -> Change:
    """How much more a round costs after ``act``, beside a control that is left alone.

    Rounds of both alternate, so that what the machine does meanwhile cancels; of those behind, each of the ``times`` that
    ``act`` is called has its share. Half of a processor core may be another machine's, which doubles what a round costs while
    that one works. So what is compared is the tenth of the rounds of a block that cost least: what slows a program down for
    good slows these down as well. The interval is Student's, over BLOCKS blocks before and as many behind.
    """
    costs: list[tuple[float, float]] = []

    def measure(count: int) -> None:
        costs.extend((cost(), control()) if number % 2 else (control(), cost())[::-1] for number in range(count))

    def blocks() -> np.ndarray:
        tenths = [np.quantile(block, 0.1, axis=0) for block in np.array_split(costs, BLOCKS)]
        costs.clear()
        return np.array([np.log(one / other) for one, other in tenths])

    measure(rounds)
    before = blocks()
    for number in range(times):
        act()
        measure(rounds * (number + 1) // times - len(costs))
    behind = blocks()
    error = np.sqrt((before.var(ddof=1) + behind.var(ddof=1)) / BLOCKS) * stats.t.ppf(0.975, 2 * BLOCKS - 2)
    change = behind.mean() - before.mean()
    return Change(*(float(np.expm1(one)) for one in (change, change - error, change + error)))


def median_ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """Ratio of medians of what was measured in the same rounds."""
    return statistics.median(values) / statistics.median(base)
