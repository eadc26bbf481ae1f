"""What counting lines adds to a program, against coverage.py's C tracer in the same run: lines.py [ROUNDS] [VERSION...].

The programs of programs/lines.py run plainly, under `perflaw record --collect lines` (calls are recorded as well) and
under `coverage run` with COVERAGE_CORE=ctrace, in turn. Each times many chunks of work itself, by the CPU of its thread,
so that start-up and saving do not enter; added is the lower quartile over all chunks of a way less the plain one's: what
else runs on a machine only ever adds. coverage tells lines that ran from lines that did not, perflaw counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import PROGRAMS, VERSIONS, Bars, environment, pythons, recorded

PACKAGES = ("coverage==7.17.3",)
WORK = ("loops", "text", "calls", "dense")
CHUNKS, BAR = 24, 1.5
PROGRAM = str(PROGRAMS / "lines.py")
COVERAGE = "coverage, C tracer"


def commands(python: str, which: str) -> dict[str, list[str]]:
    """The command of each way; the number of chunks is to follow."""
    target = [python, PROGRAM, which]
    return {
        "plain": target,
        "perflaw, calls alone": recorded("--tracer", "native", "--", *target),
        "perflaw, lines": recorded("--tracer", "native", "--collect", "lines", "--", *target),
        COVERAGE: [python, "-m", "coverage", "run", PROGRAM, which],
    }


def chunks(command: list[str], folder: Path) -> list[float]:
    """CPU of each chunk in ms, after a first one in which functions are met for the first time."""
    env = {**os.environ, "COVERAGE_CORE": "ctrace"}
    command = [*command, str(CHUNKS + 1)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return [int(word) / 1e6 for word in done.stdout.split()][1:]


def quiet(taken: list[float]) -> float:
    """The lower quartile."""
    return sorted(taken)[len(taken) // 4]


def measure(python: str, which: str, rounds: int) -> dict[str, float]:
    """CPU of a chunk in ms, by way."""
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(rounds):
            for way, command in commands(python, which).items():
                taken.setdefault(way, []).extend(chunks(command, Path(name)))
    return {way: quiet(times) for way, times in taken.items()}


def main(rounds: int = 3, *versions: str) -> None:
    bars = Bars()
    for version in pythons(versions or VERSIONS):
        python = environment(version, PACKAGES, "lines")
        for which in WORK:
            taken = measure(python, which, rounds)
            plain = taken.pop("plain")
            theirs = taken[COVERAGE] - plain
            print(f"Python {version}, {which}: {plain:.1f} ms of CPU plain; added to it:")
            for way, one in taken.items():
                ratio = (one - plain) / theirs
                words = bars.check(f"{version} {which}", ratio, BAR) if way == "perflaw, lines" else ""
                print(f"  {way:22} {one - plain:8.1f} ms  {one / plain:5.2f} x plain  {ratio:5.2f} x coverage  {words}")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
