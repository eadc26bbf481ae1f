"""What recording adds to a call, against cProfile in the same run: overhead.py [ROUNDS].

Programs of nothing but calls (programs/calls.py) run plainly and under each way of recording, in turn. Each run times
many chunks of work itself, so start-up and saving do not enter; added is the lower quartile over all chunks of a way
less the plain one's: what else runs on a machine only ever adds. Wall clock is what counts: it has what the program
waits for the recorder, chunk for chunk. CPU, of the program's thread alone, says what of it is the tracer's. On one
core the program waits for all of the recorder's work.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from shared import PROGRAMS, Bars, pythons, recorded, told

CALLS = {"calls": 300_000, "mix": 192_000}
"""Programs, and calls in a chunk of each."""
CHUNKS, TWIN_CHUNKS = 16, 1
PROGRAM = str(PROGRAMS / "calls.py")
BARS = {"native": 0.9, "native without links": 0.6}
EXCLUDED_NS = 5


@dataclass(slots=True)
class Taken:
    """What a way took, in ns a call, one of each a chunk; of the recorder, one a run."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    recorder: list[float] = field(default_factory=list)

    def above(self, plain: Taken) -> tuple[float, float]:
        """Wall clock and CPU added."""
        return quiet(self.wall) - quiet(plain.wall), quiet(self.cpu) - quiet(plain.cpu)


def quiet(taken: list[float]) -> float:
    """The lower quartile."""
    return sorted(taken)[len(taken) // 4]


def commands(python: str, which: str, report: Path) -> dict[str, list[str]]:
    """The command of each way; the number of chunks is to follow."""
    target = ["--", python, PROGRAM, which]
    ways = {
        "plain": [python, PROGRAM, which],
        "do-nothing": recorded("--tracer", "nothing", *target),
        "native": recorded("--tracer", "native", *target, report=report),
        "native without links": recorded("--tracer", "native", *target, links=False, report=report),
        "excluded": recorded("--tracer", "native", "--select", "calls.chunk", *target),
        "twin": recorded("--tracer", "python", *target),
        "cProfile": [python, "-m", "cProfile", "-o", os.devnull, PROGRAM, which],
    }
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    return ways | {f"{way}, one core": [*pinned, *ways[way]] for way in ("plain", "native", "cProfile")}


def chunks(command: list[str], count: int, folder: Path) -> list[tuple[float, float]]:
    """(wall, CPU) ns a call in each chunk after a first one, in which functions are met for the first time."""
    command = [*command, str(count + 1)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return [tuple(map(float, word.split("/"))) for word in done.stdout.split()][1:]


def measure(python: str, which: str, rounds: int) -> dict[str, Taken]:
    taken: dict[str, Taken] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, report = Path(name), Path(name) / "report"
        ways = commands(python, which, report)
        for _ in range(rounds):
            chunks(ways["native"], 1, folder)
            fixed = told(report)["cpu_s"]  # starting and saving, and two chunks
            for way, command in ways.items():
                count = TWIN_CHUNKS if way == "twin" else CHUNKS
                one = taken.setdefault(way, Taken())
                for wall, cpu in chunks(command, count, folder):
                    one.wall.append(wall)
                    one.cpu.append(cpu)
                if way in BARS:
                    one.recorder.append((told(report)["cpu_s"] - fixed) * 1e9 / CALLS[which] / (count - 1))
    return taken


def show(version: str, which: str, taken: dict[str, Taken], bars: Bars) -> None:
    print(f"Python {version}, {which}: {quiet(taken['plain'].wall):.0f} ns a call plain; added to it:")
    print(f"  {'':22} {'ns':>8} {'x cProfile':>10} {'CPU ns':>8} {'x cProfile':>10}")
    for way, one in taken.items():
        if way.startswith("plain"):
            continue
        core = ", one core" if way.endswith("one core") else ""
        wall, cpu = one.above(taken["plain" + core])
        their_wall, their_cpu = taken["cProfile" + core].above(taken["plain" + core])
        words = bars.check(f"{version} {which} {way}", wall / their_wall, BARS[way]) if way in BARS else ""
        if way == "excluded" and version != "3.11":
            words = bars.check(f"{version} {which} {way}, ns of CPU", cpu, EXCLUDED_NS)
        recorder = f"; the recorder {statistics.median(one.recorder):.0f} ns of CPU a call" if one.recorder else ""
        print(f"  {way:22} {wall:8.1f} {wall / their_wall:10.2f} {cpu:8.1f} {cpu / their_cpu:10.2f}  {words}{recorder}")


def main(rounds: int = 5) -> None:
    bars = Bars()
    for version, python in pythons().items():
        for which in CALLS:
            show(version, which, measure(python, which, rounds), bars)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
