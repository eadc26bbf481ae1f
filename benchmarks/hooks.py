"""What recording a compiled program costs an event, every moment and both clocks kept, at depths of 5 and 50 calls.

    python benchmarks/hooks.py [--rounds 5] [--events 20000000]

The same program runs bare, recorded by perflaw, and under uftrace where that is installed; what a hook adds is the
difference in wall time over the number of events, of which a call has two. Bar: 25 ns an event.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) long leaf(long x) { return x * 3 + 1; }
#define LEVEL(n, next) __attribute__((noinline)) long level##n(long x, long calls) { return next(x, calls) + n; }
__attribute__((noinline)) long level0(long x, long calls) {
    for (long at = 0; at < calls; at++) x += leaf(x);
    return x;
}
%s
__attribute__((no_instrument_function)) int main(int count, char **words) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    long done = TOP(1, atol(words[1]));
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "%%ld ns %%ld\\n", done, (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
    return count < 2;
}
"""
BAR = 25.0


def built(folder: Path, depth: int) -> Path:
    """A program that calls a leaf from a depth."""
    levels = "\n".join(f"LEVEL({n}, level{n - 1})" for n in range(1, depth - 1))
    source, program = folder / f"depth{depth}.c", folder / f"depth{depth}"
    source.write_text(SOURCE % f"{levels}\n#define TOP level{depth - 2}")
    subprocess.run(["gcc", "-O2", "-g", "-finstrument-functions", str(source), "-o", str(program)], check=True)
    return program


def took(command: list[str], folder: Path) -> int:
    """Nanoseconds that the program says its calls took."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(next(line for line in done.stderr.splitlines() if " ns " in line).split()[-1])


def main() -> int:
    """Print a line a depth; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=20_000_000)
    asked = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for depth in (5, 50):
            program, calls = built(folder, depth), str(asked.events // 2)
            record = [sys.executable, "-m", "perflaw", "record", "--", str(program), calls]
            plain = [took([str(program), calls], folder) for _ in range(asked.rounds)]
            ours = [took(record, folder) for _ in range(asked.rounds)]
            added = (statistics.median(ours) - statistics.median(plain)) / asked.events
            missed |= added > BAR
            peer = _uftrace(program, calls, plain, folder, asked)
            print(f"depth {depth:2d}: perflaw {added:5.1f} ns an event (bar {BAR:.0f}){peer}")
    print(f"{os.cpu_count()} cores: the recorder has one of its own")
    return int(missed)


def _uftrace(program: Path, calls: str, plain: list[int], folder: Path, asked: argparse.Namespace) -> str:
    if not shutil.which("uftrace"):
        return ""
    few = str(int(calls) // 20)  # it writes every event
    trace = [took(["uftrace", "record", "-d", str(folder / "trace"), str(program), few], folder) for _ in range(3)]
    return f", uftrace {(statistics.median(trace) * 20 - statistics.median(plain)) / asked.events:.0f} ns"


if __name__ == "__main__":
    sys.exit(main())
