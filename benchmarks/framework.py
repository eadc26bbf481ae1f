"""Slowdown of real programs on frameworks from PyPI, recorded and under other profilers: framework.py [ROUNDS].

Whole commands are timed, from start to the file that each profiler saves, in turn: flask answers requests of its test
client and renders templates, sqlglot parses and optimizes queries. perflaw records by its default choice (the person's
own functions, and those of libraries that they call), and once every function of every library, as the others do.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import PROGRAMS, Bars, environment, pythons, recorded

PACKAGES = ("flask==3.1.0", "sqlglot==26.16.4", "viztracer==1.0.3")
WORKLOADS = {"flask_app.py": "1500", "sqlglot_app.py": "80"}
OTHERS = ("cProfile", "viztracer")
ALL = "perflaw, all functions"


def commands(python: str, program: str, size: str, folder: Path) -> dict[str, list[str]]:
    target = [str(PROGRAMS / program), size]
    return {
        "plain": [python, *target],
        "perflaw": recorded("--tracer", "native", "--", python, *target),
        ALL: recorded("--tracer", "native", "--select", "*", "--", python, *target),
        "cProfile": [python, "-m", "cProfile", "-o", str(folder / "profile"), *target],
        "viztracer": [python, "-m", "viztracer", "--quiet", "-o", str(folder / "trace.json"), *target],
    }


def seconds(command: list[str], folder: Path) -> tuple[float, str]:
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return time.perf_counter() - begin, done.stderr.strip()


def measure(python: str, program: str, size: str, rounds: int) -> dict[str, float]:
    """Median of seconds by way; the outputs are looked at elsewhere (packages.py)."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for way, command in commands(python, program, "1", folder).items():
            seconds(command, folder)  # compiles what is imported, and the tracer
            times[way] = []
        for turn in range(rounds):
            for way, command in commands(python, program, size, folder).items():
                if way == ALL and turn:
                    continue  # no bar, and long
                taken, words = seconds(command, folder)
                times[way].append(taken)
                if way.startswith("perflaw"):
                    print(f"    {words}", file=sys.stderr)
    return {way: statistics.median(taken) for way, taken in times.items()}


def main(rounds: int = 3) -> None:
    bars = Bars()
    for version in pythons(("3.11", "3.13")):
        python = environment(version, PACKAGES, "framework")
        for program, size in WORKLOADS.items():
            taken = measure(python, program, size, rounds)
            print(f"Python {version}, {program} {size}: {taken['plain']:.2f} s plain")
            bar = min(taken[other] for other in OTHERS) / taken["plain"]
            for way, wall in taken.items():
                slowdown = wall / taken["plain"]
                words = bars.check(f"{version} {program} {way}", slowdown, round(bar, 3)) if way == "perflaw" else ""
                print(f"  {way:24} {slowdown:6.2f} x plain  {words}")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
