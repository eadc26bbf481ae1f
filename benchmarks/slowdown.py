"""The slowdown that is told of compiled programs, against CPU times of plain runs beside it.

    python benchmarks/slowdown.py [ROUNDS]         5 as a rule

`fib` does nearly nothing but calls, so that what a call costs the tracer decides everything; `work` does 0.2 µs in each call.
Each is recorded by injected code and by hooks, in turns with plain runs of the build without hooks. The true slowdown is the
ratio of the CPU times of both in that round. Bar: what is told is within a factor of 2 of it, at the median.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import Bars

from perflaw.store.experiment import open_experiment

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) long work(long n) {
    for (int at = 0; at < 100; at++) n = n * 6364136223846793005 + 1;
    return n;
}
int main(int count, char **words) {
    long size = atol(words[2]), sum = 0;
    if (!strcmp(words[1], "fib")) sum = fib(size);
    else
        while (size--) sum += work(sum);
    return printf("%ld\\n", sum) < 0;
}
"""
SIZES = {"fib": 31, "work": 3_000_000}
FACTOR = 2.0


def cpu_s(command: list[str], folder: Path) -> float:
    """CPU time of a plain run, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int = 5) -> None:
    """Print a line for each program and way."""
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "calls.c").write_text(SOURCE)
        for way, flags in {"injected": (), "hooks": ("-finstrument-functions",)}.items():
            command = ["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", *flags, "calls.c", "-o", way]
            subprocess.run(command, cwd=folder, check=True)
        for program, size in SIZES.items():
            for way in ("injected", "hooks"):
                told, true = [], []
                for _ in range(rounds):
                    plain = cpu_s([str(folder / "injected"), program, str(size)], folder)
                    record = [sys.executable, "-m", "perflaw", "record", "-e", f"{program}-{way}", "--"]
                    subprocess.run(
                        [*record, str(folder / way), program, str(size)], cwd=folder, capture_output=True, check=True
                    )
                    run = open_experiment(f"{program}-{way}", folder).recordings()[-1].run
                    assert run.machine
                    told.append(run.slowdown)
                    true.append(run.machine.cpu_ns / 1e9 / plain)
                ratio = statistics.median(one / other for one, other in zip(told, true, strict=True))
                words = bars.check(f"{program}, {way}: factor", max(ratio, 1 / ratio), FACTOR)
                print(
                    f"{program}, {way}: told {statistics.median(told):.1f}, true {statistics.median(true):.1f},"
                    f" told is {ratio:.2f} of it  {words}",
                    flush=True,
                )
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
