"""What ``--collect paths`` adds to the cost of recording: the same programs with and without it, in turns, in one run.

    python benchmarks/paths_cost.py [--rounds 5] [--events 4000000]

Ratios (median over rounds): the target's wall time, the target's CPU time, and the recorder's CPU time. The target writes
the same events either way, so its CPU time should not differ; its wall time does where it has to wait for the recorder
(one core, or rings that are full). The recorder's CPU time is what it costs; ns a call say how much.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

C_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#define PLAIN __attribute__((no_instrument_function))
__attribute__((noinline)) long leaf(long x) { return x * 3 + 1; }
__attribute__((noinline)) long quick(long x) { return leaf(x); }
__attribute__((noinline)) long slow(long x) {
    for (int at = 0; at < 40; at++) __asm__ volatile("" : "+r"(x));
    return leaf(x);
}
__attribute__((noinline)) long handle(long x) { return x & 1 ? quick(x) : slow(x); }
PLAIN int main(int count, char **words) {
    struct timespec begin, end;
    struct rusage used;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    long done = 0, events = atol(words[count - 1]);
    for (long at = 0; at < events / 6; at++) done += handle(at);
    clock_gettime(CLOCK_MONOTONIC, &end);
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "took %ld %ld %ld\\n", (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec,
            (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000L +
                (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000L, done);
    return 0;
}
"""
PYTHON_SOURCE = """
import sys, time
def leaf(x): return x * 3 + 1
def quick(x): return leaf(x)
def slow(x):
    for _ in range(20): x += 1
    return leaf(x)
def handle(x): return quick(x) if x & 1 else slow(x)
def run(times):
    for x in range(times): handle(x)
begin, used = time.perf_counter_ns(), time.process_time_ns()
run(int(sys.argv[1]) // 6)
print("took", time.perf_counter_ns() - begin, time.process_time_ns() - used, file=sys.stderr)
"""


@dataclass(frozen=True)
class Cost:
    """Of one recording, ns."""

    wall: int
    """The target's loop."""
    cpu: int
    """The target's, in it."""
    recorder: int
    """The recorder's CPU time, all of it less the target's."""


def programs(folder: Path) -> dict[str, list[str]]:
    """Name → command without its last argument, the number of events."""
    source, script = folder / "calls.c", folder / "calls.py"
    source.write_text(C_SOURCE)
    script.write_text(PYTHON_SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-finstrument-functions", str(source), "-o", str(folder / "calls")], check=True)
    return {"C": [str(folder / "calls")], "Python": [sys.executable, str(script)]}


def measured(command: list[str], options: list[str], folder: Path) -> Cost:
    """One recording."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    record = [sys.executable, "-m", "perflaw", "record", *options, "--", *command]
    done = subprocess.run(record, cwd=folder, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, cpu = map(int, next(line for line in done.stderr.splitlines() if line.startswith("took ")).split()[1:3])
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, round(spent * 1e9) - cpu)


def main() -> int:
    """Print a line a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=4_000_000)
    asked = parser.parse_args()
    ways = {"without": [], "with": ["--collect", "paths"], "both clocks": ["--metric", "cpu", "--collect", "paths"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for language, command in programs(folder).items():
            words = [*command, str(asked.events)]
            found: dict[str, list[Cost]] = {way: [] for way in ways}
            for options in ways.values():
                measured(words, options, folder)  # builds what is to be built, warms what is to be warm
            for _ in range(asked.rounds):
                for way, options in ways.items():
                    found[way].append(measured(words, options, folder))
            _tell(language, found, asked.events)
    print(f"{os.cpu_count()} cores: the recorder has one of its own where there are two")
    return 0


def _tell(language: str, found: dict[str, list[Cost]], events: int) -> None:
    plain = found.pop("without")
    for way, costs in found.items():
        pairs = list(zip(costs, plain, strict=True))
        wall, cpu, recorder = (
            statistics.median(getattr(a, field) / getattr(b, field) for a, b in pairs)
            for field in ("wall", "cpu", "recorder")
        )
        added = statistics.median((a.recorder - b.recorder) / (events / 2) for a, b in pairs)
        print(
            f"{language:7s} paths, {way:11s}: target's wall {wall:.2f}x, CPU {cpu:.2f}x; recorder's CPU {recorder:.2f}x, "
            f"{added:+.0f} ns a call"
        )


if __name__ == "__main__":
    sys.exit(main())
