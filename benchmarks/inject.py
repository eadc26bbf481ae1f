"""What recording a call of a compiled function costs: by injected code, by hooks, by Frida and by uftrace, in the same run.

    python benchmarks/inject.py [--rounds 5] [--calls 20000000]

One program, three builds: as it is, for hooks (-finstrument-functions), and for uftrace (-pg). A hot loop calls a function with
a struct behind a pointer and a number as arguments; its features are sampled, as always. The program measures the CPU time of
its own thread, so that waiting for the recorder does not count; what is printed is the time beyond that of the bare program,
the lowest of all rounds. The floor is what two readings of the TSC and
two records of 32 bytes take. Bars a call: injected 30 ns, hooks 25 ns, and half of uftrace's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
#define APART __attribute__((noinline, noclone))
struct job { long size, done; };
APART long work(struct job *job, long number) { job->done += number; return job->size + number; }
__attribute__((no_instrument_function)) int main(int count, char **words) {
    struct timespec begin, end;
    struct job job = {atol(words[1]), 0};
    long calls = job.size, sum = 0;
    work(&job, 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (long at = 0; at < calls; at++) sum += work(&job, at);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    fprintf(stderr, "%ld took %ld ns\\n", sum, (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
    static volatile unsigned long long records[1 << 10][4];
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (long at = 0; at < 2 * calls; at++) {
        volatile unsigned long long *record = records[at & 1023];
        record[0] = __rdtsc();
        record[1] = record[2] = record[3] = (unsigned long long)at;
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    fprintf(stderr, "floor: %ld ns\\n", (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
    return count < 2;
}
"""
BUILDS = {"bare": (), "injected": (), "hooks": ("-finstrument-functions",), "frida": (), "uftrace": ("-pg",)}
FEWER = ("frida", "uftrace")
"""Ways that are slow; a tenth of the calls suffices."""
BARS = {"injected": 30.0, "hooks": 25.0}


def took(command: list[str], folder: Path) -> tuple[int, int]:
    """Nanoseconds that the program says its calls took, and the floor."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    calls, floor = (
        int(next(line for line in done.stderr.splitlines() if word in line).split()[-2])
        for word in (" took ", "floor: ")
    )
    return calls, floor


def main() -> int:
    """Print a line a way; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20_000_000)
    options = parser.parse_args()
    perflaw = [sys.executable, "-m", "perflaw", "record", "--select", "work"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hot.c").write_text(SOURCE)
        for way, flags in BUILDS.items():
            subprocess.run(["gcc", "-O2", "-g", *flags, "hot.c", "-o", way], cwd=folder, check=True)
        starts = {
            "bare": [],
            "injected": [*perflaw, "--"],
            "hooks": [*perflaw, "--"],
            "frida": [*perflaw, "--native=frida", "--"],
            "uftrace": ["uftrace", "record", "-d", "uftrace.data"],
        }
        lowest: dict[str, float] = {}
        for _ in range(options.rounds):
            for way, start in starts.items():
                calls = options.calls if way not in FEWER else options.calls // 10
                spent, floor = took([*start, os.fspath(folder / way), str(calls)], folder)
                lowest[way] = min(spent / calls, lowest.get(way, float("inf")))
                lowest["floor"] = min(floor / calls, lowest.get("floor", float("inf")))
    added = {way: spent - lowest["bare"] for way, spent in lowest.items() if way not in ("bare", "floor")}
    bars = {way: min(bar, added["uftrace"] / 2) for way, bar in BARS.items()} | dict.fromkeys(FEWER, float("inf"))
    for way, spent in added.items():
        print(f"{way:9} {spent:6.1f} ns a call beyond {lowest['bare']:.1f} ns   bar {bars[way]:.1f}")
    print(f"floor     {lowest['floor']:6.1f} ns a call; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    return any(spent > bars[way] for way, spent in added.items())


if __name__ == "__main__":
    sys.exit(main())
