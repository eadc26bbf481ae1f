"""What recording costs: the same program plain, under each tracer, and under cProfile, interleaved; prints ratios.

Usage: recorder.py [ROUNDS]. Times are the program's own, measured by itself around its work, so that start-up and the
reading side do not enter; each round runs every way once, and the medians of the ratios to the plain run are printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import time

def leaf(n):
    return n + 1

def branch(n):
    return leaf(n) + leaf(n + 1)

def builtins(items):
    return len(items) + max(items) + min(items)

def main():
    items = list(range(5))
    for i in range(60_000):
        branch(i)
        builtins(items)

begin = time.perf_counter()
main()
print(time.perf_counter() - begin)
"""
CALLS = 4 * 60_000

WAYS = {
    "plain": ["app.py"],
    "perflaw, do-nothing tracer": ["-m", "perflaw", "record", "--tracer", "nothing", "--", "app.py"],
    "perflaw, python tracer": ["-m", "perflaw", "record", "--", "app.py"],
    "cProfile": ["-m", "cProfile", "-o", os.devnull, "app.py"],
}


def seconds(folder: Path, arguments: list[str]) -> float:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return float(done.stdout.split()[0])


def main(rounds: int = 5) -> None:
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "app.py").write_text(PROGRAM)
        for _ in range(rounds):
            for way, arguments in WAYS.items():
                times[way].append(seconds(folder, arguments))
    print(f"Python {sys.version.split()[0]}, {CALLS:,} calls, median of {rounds} interleaved rounds")
    for way, taken in times.items():
        ratio = statistics.median(t / plain for t, plain in zip(taken, times["plain"], strict=True))
        added = statistics.median(t - plain for t, plain in zip(taken, times["plain"], strict=True)) / CALLS * 1e9
        print(f"  {way:28} {ratio:6.2f} x plain   {added:+8.0f} ns a call")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
