"""The slowdown that is told of compiled programs, against CPU times of plain runs beside it.

    python benchmarks/slowdown.py [ROUNDS]         5 as a rule

`fib` does nearly nothing but calls, so that what a call costs the tracer decides everything; `work` does 0.1 µs in each
call; `sort` is the C library's with a comparison of ours; `words` is C++ (a map of strings, a tree with virtual functions);
`sqlite` is Debian's shell with all functions of its library. Each is recorded by injected code, and all but the last by
hooks, in turns with plain runs of the build without hooks. The true slowdown is the ratio of the CPU times of both in that
round. Bars: the number that is told is within a factor of 2 of it, at the median, and the interval that is told holds it in
19 of 20 rounds.
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

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) long work(long n) {
    for (int at = 0; at < 100; at++) n = n * 6364136223846793005 + 1;
    return n;
}
unsigned seed = 7;
unsigned next() { return seed = seed * 1103515245 + 12345; }
__attribute__((noinline)) int compare(const void *one, const void *other) {
    int x = *(const int *)one, y = *(const int *)other;
    return (x > y) - (x < y);
}
long sort(long size) {
    int *numbers = (int *)malloc(size * sizeof *numbers);
    for (long at = 0; at < size; at++) numbers[at] = next() >> 4;
    qsort(numbers, size, sizeof *numbers, compare);
    return numbers[size / 2];
}
struct Tree {
    virtual ~Tree() {}
    virtual long sum() const = 0;
};
struct Leaf : Tree {
    long value;
    Leaf(long value) : value(value) {}
    long sum() const override { return value; }
};
struct Node : Tree {
    Tree *left, *right;
    Node(Tree *left, Tree *right) : left(left), right(right) {}
    long sum() const override { return left->sum() + right->sum(); }
};
__attribute__((noinline)) Tree *grow(int depth) {
    if (!depth || (next() >> 16) % 7 == 0) return new Leaf(seed >> 20);
    Tree *left = grow(depth - 1);
    return new Node(left, grow(depth - 1));
}
__attribute__((noinline)) void count(std::map<std::string, int> &words, const std::string &word) { words[word]++; }
long words(long size) {
    std::map<std::string, int> counted;
    while (size--) count(counted, std::to_string(next() % 5000));
    Tree *tree = grow(18);
    long sum = 0;
    for (int again = 0; again < 10; again++) sum += tree->sum();
    return sum + counted.size();
}
int main(int count, char **arguments) {
    long size = atol(arguments[2]), sum = 0;
    if (!strcmp(arguments[1], "fib")) sum = fib(size);
    else if (!strcmp(arguments[1], "sort")) sum = sort(size);
    else if (!strcmp(arguments[1], "words")) sum = words(size);
    else
        while (size--) sum += work(sum);
    return printf("%ld\n", sum) < 0;
}
"""
SIZES = {"fib": 31, "work": 1_000_000, "sort": 300_000, "words": 200_000}
SQL = (
    "with recursive c(x) as (select 1 union all select x + 1 from c where x < 200000)"
    " select count(*), sum(x * x), group_concat(x % 7) from c;"
)
FACTOR = 2.0
OUTSIDE = 0.05


def cpu_s(command: list[str], folder: Path) -> float:
    """CPU time of a plain run, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int = 5) -> None:
    """Print a line for each program and way."""
    bars, held = Bars(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "calls.cc").write_text(SOURCE)
        without = "-finstrument-functions-exclude-file-list=/usr"
        for way, flags in {"injected": (), "hooks": ("-finstrument-functions", without)}.items():
            command = ["g++", "-O1", "-g", "-fno-optimize-sibling-calls", *flags, "calls.cc", "-o", way]
            subprocess.run(command, cwd=folder, check=True)
        cases = [
            (
                f"{program}, {way}",
                [str(folder / "injected"), program, str(size)],
                [str(folder / way), program, str(size)],
            )
            for program, size in SIZES.items()
            for way in ("injected", "hooks")
        ]
        shell = ["sqlite3", ":memory:", SQL]
        for number, (case, plainly, recorded) in enumerate([*cases, ("sqlite, injected", shell, shell)]):
            told, true, bounds = [], [], []
            for _ in range(rounds):
                plain = statistics.median(cpu_s(plainly, folder) for _ in range(3))
                record = [sys.executable, "-m", "perflaw", "record", "-e", f"case{number}"]
                if recorded is shell:
                    record += ["--select", "*"]
                subprocess.run([*record, "--", *recorded], cwd=folder, capture_output=True, check=True)
                run = open_experiment(f"case{number}", folder).recordings()[-1].run
                assert run.machine
                told.append(run.slowdown)
                bounds.append((run.slowdown_low, run.slowdown_high))
                true.append(run.machine.cpu_ns / 1e9 / plain)
            within = [low <= truth <= high for (low, high), truth in zip(bounds, true, strict=True)]
            held += within
            low, high = (statistics.median(ends) for ends in zip(*bounds, strict=True))
            ratio = statistics.median(one / other for one, other in zip(told, true, strict=True))
            words = bars.check(f"{case}: factor", max(ratio, 1 / ratio), FACTOR)
            print(
                f"{case}: told {statistics.median(told):.1f} ({low:.1f} to {high:.1f}), true {statistics.median(true):.1f},"
                f" within in {sum(within)} of {rounds} rounds, told is {ratio:.2f} of it  {words}",
                flush=True,
            )
    print(
        f"within: {sum(held)} of {len(held)}  {bars.check('outside of the interval', 1 - sum(held) / len(held), OUTSIDE)}"
    )
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
