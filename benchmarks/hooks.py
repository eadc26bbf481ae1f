"""What recording a compiled program costs an event, every moment and both clocks kept, at depths of 5 and 50 calls.

    python benchmarks/hooks.py [--rounds 5] [--events 20000000] [--uftrace]

The same program runs bare and recorded; what a hook adds is the difference in wall time over the number of events, of
which a call has two. "leaves": one function calls another, again and again, at that depth; "chains": from the top down to
that depth and back, again and again, which changes the moments of every ancestor each time. Bar: 25 ns an event.

With --uftrace, Debian's uftrace does the same in turns, with the values of both arguments of the leaf, which perflaw reads of
some calls: bars are 25 ns a call of the leaf and half of what uftrace adds, both in CPU time, which other programs disturb
less, and a recording that does not grow with the calls.
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

from shared import Bars

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) long leaf(long x, long at) { return x * 3 + at; }
#define LEVEL(n, next) __attribute__((noinline)) long level##n(long x, long calls) { return next(x, calls) + n; }
__attribute__((noinline)) long level0(long x, long calls) {
    for (long at = 0; at < calls; at++) x += leaf(x, at);
    return x;
}
%s
__attribute__((no_instrument_function)) int main(int count, char **words) {
    struct timespec begin, end, unspent, spent;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &unspent);
    long done = 0, chains = atol(words[1]), calls = atol(words[2]);
    for (long at = 0; at < chains; at++) done += TOP(at, calls);
    clock_gettime(CLOCK_MONOTONIC, &end);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    fprintf(stderr, "%%ld ns %%ld %%ld\\n", done, (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec,
            (spent.tv_sec - unspent.tv_sec) * 1000000000L + spent.tv_nsec - unspent.tv_nsec);
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


def took(command: list[str], folder: Path, on_cpu: bool = False) -> int:
    """Nanoseconds that the program says its calls took, or its thread spent on the CPU."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(next(line for line in done.stderr.splitlines() if " ns " in line).split()[-1 if on_cpu else -2])


def main() -> int:
    """Print a line a depth; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--uftrace", action="store_true", help="beside it the tracer uftrace, which must be installed")
    asked = parser.parse_args()
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for depth in (5, 50):
            program = built(folder, depth)
            for way, chains, calls in (("leaves", 1, asked.events // 2), ("chains", asked.events // 2 // depth, 1)):
                words = [str(program), str(chains), str(calls)]
                record = [sys.executable, "-m", "perflaw", "record", "--", *words]
                plain, ours = zip(
                    *((took(words, folder), took(record, folder)) for _ in range(asked.rounds)), strict=True
                )
                added = (statistics.median(ours) - statistics.median(plain)) / asked.events
                verdict = bars.check(f"depth {depth}, {way}: ns an event", added, BAR)
                print(f"depth {depth:2d}, {way}: perflaw {added:5.1f} ns an event, {verdict}")
        if asked.uftrace:
            compare(built(folder, 5), asked.events // 2, asked.rounds, folder, bars)
    print(f"{os.cpu_count()} cores: the recorder has one of its own")
    bars.leave()
    return 0


def compare(program: Path, calls: int, rounds: int, folder: Path, bars: Bars) -> None:
    """A leaf with two arguments, by perflaw and by uftrace: CPU time that a call takes more, and bytes kept."""
    ours, theirs, sizes = [], [], []
    for number in range(rounds):
        words, fewer = ([str(program), "1", str(count)] for count in (calls, calls // 20))  # uftrace writes all of them
        kept, trace = folder / ".perflaw" / f"round{number}", folder / f"trace{number}"
        record = [sys.executable, "-m", "perflaw", "record", "-e", kept.name, "--", *words]
        ours.append((took(record, folder, True) - took(words, folder, True)) / calls)
        peer = ["uftrace", "record", "--no-libcall", "-A", "leaf@arg1,arg2", "-d", str(trace), *fewer]
        theirs.append((took(peer, folder, True) - took(fewer, folder, True)) / (calls // 20))
        sizes.append((size(kept), 20 * size(trace)))
        shutil.rmtree(trace)
    added, peer_added = statistics.median(ours), statistics.median(theirs)
    ours_kept, peer_kept = (statistics.median(kept) for kept in zip(*sizes, strict=True))
    verdict = bars.check("ns a call", added, 25.0)
    ratio = bars.check("of uftrace's", added / peer_added, 0.5)
    print(f"a call with two arguments: perflaw {added:.1f} ns, {verdict}; uftrace {peer_added:.1f} ns")
    print(f"of what uftrace adds: {added / peer_added:.2f}, {ratio}")
    verdict = bars.check("bytes kept", ours_kept, 1e6)
    print(f"kept of {calls:,} calls: perflaw {ours_kept:,.0f} bytes, {verdict}; uftrace {peer_kept:,.0f}")


def size(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    sys.exit(main())
