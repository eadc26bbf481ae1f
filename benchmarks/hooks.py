"""What recording a compiled program costs an event, every moment and both clocks kept, at depths of 5 and 50 calls.

    python benchmarks/hooks.py [--rounds 5] [--events 20000000] [--uftrace]

The same program runs bare and recorded; what a hook adds is the difference in wall time over the number of events, of
which a call has two. "leaves": one function calls another, again and again, at that depth; "chains": from the top down to
that depth and back, again and again, which changes the moments of every ancestor each time. Bar: 25 ns an event.
"""

from __future__ import annotations

import argparse
import os
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
    long done = 0, chains = atol(words[1]), calls = atol(words[2]);
    for (long at = 0; at < chains; at++) done += TOP(at, calls);
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "%%ld ns %%ld\\n", done, (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
    return count < 3;
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
    parser.add_argument("--uftrace", action="store_true", help="beside it the tracer uftrace, which must be installed")
    asked = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for depth in (5, 50):
            program = built(folder, depth)
            for way, chains, calls in (("leaves", 1, asked.events // 2), ("chains", asked.events // 2 // depth, 1)):
                words = [str(program), str(chains), str(calls)]
                record = [sys.executable, "-m", "perflaw", "record", "--", *words]
                plain = [took(words, folder) for _ in range(asked.rounds)]
                ours = [took(record, folder) for _ in range(asked.rounds)]
                added = (statistics.median(ours) - statistics.median(plain)) / asked.events
                missed |= added > BAR
                peer = _uftrace(program, chains, calls, folder) if asked.uftrace else ""
                print(f"depth {depth:2d}, {way}: perflaw {added:5.1f} ns an event (bar {BAR:.0f}){peer}")
    print(f"{os.cpu_count()} cores: the recorder has one of its own")
    return int(missed)


def _uftrace(program: Path, chains: int, calls: int, folder: Path) -> str:
    """The same by uftrace, of a twentieth of the events: it writes all of them."""
    words = [str(program), str(max(1, chains // 20)), str(max(1, calls // 20))]
    trace = took(["uftrace", "record", "-d", str(folder / "trace"), *words], folder)
    depth = int(program.name.removeprefix("depth"))
    events = 2 * int(words[1]) * (int(words[2]) + depth - 1)
    return f", uftrace {(trace - took(words, folder)) / events:.0f} ns"


if __name__ == "__main__":
    sys.exit(main())
