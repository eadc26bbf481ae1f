"""Whether recording keeps the shape of a fast function's durations (RQ5 of Brünink & Rosenblum, FSE'16).

    python benchmarks/paths_shape.py [--calls 200000] [--rounds 5]

A compiled function of two or three kinds of work is measured twice at the same time: by our hooks, as `--collect paths`
keeps it, and by two readings of the time-stamp counter written by hand as its first and its last statement. Compared are the
borders between clusters that the learner finds in either, and the share of the calls below each: they agree where
there are as many borders and no share differs by more than 0.05, the distance within which borders match (ε).
What the hooks themselves take lies outside the hand-placed clocks and within ours, less what calibration takes out: the
medians beside each other show what is left of it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.paths.borders import borders_of
from perflaw.learn.paths.durations import cdf, histogram_of, merged, quantile
from perflaw.store.experiment import open_experiment
from perflaw.store.paths import read_observed
from perflaw.types import Histogram

EPSILON = 0.05
SOURCE = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
#define PLAIN __attribute__((no_instrument_function, noinline))
static uint64_t *took, calls, state = 1;
PLAIN static unsigned draw(unsigned most) {
    state = state * 6364136223846793005ull + 1;
    return (unsigned)((state >> 33) % most);
}
PLAIN static void work(unsigned rounds) {
    for (unsigned at = 0; at < rounds; at++) __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void fast(unsigned rounds) {
    uint64_t begin = __rdtsc();
    work(rounds);
    took[calls++] = __rdtsc() - begin;
}
PLAIN static void both(uint64_t *ticks, double *ns) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ticks = __rdtsc();
    *ns = now.tv_sec * 1e9 + now.tv_nsec;
}
PLAIN int main(int count, char **words) {
    unsigned kinds = atoi(words[1]), base[] = {60, 700, 6000};
    uint64_t most = strtoull(words[2], NULL, 10), begin, end;
    double first, last;
    took = calloc(most, sizeof *took);
    both(&begin, &first);
    for (uint64_t at = 0; at < most; at++) {
        unsigned kind = draw(10) < 5 ? 0 : 1 + draw(kinds - 1);
        fast(base[kind] + draw(base[kind] / 4));
    }
    both(&end, &last);
    FILE *file = fopen(words[count - 1], "wb");
    double ns_a_tick = (last - first) / (double)(end - begin);
    fwrite(&ns_a_tick, sizeof ns_a_tick, 1, file);
    fwrite(took, sizeof *took, calls, file);
    return fclose(file);
}
"""


@dataclass(frozen=True)
class Shape:
    """What the learner sees of durations."""

    borders: NDArray[np.float64]
    """Between clusters, ns."""
    shares: NDArray[np.float64]
    """Of the calls, below each."""
    median: float
    """ns."""


def shape_of(histogram: Histogram, tick: float) -> Shape:
    """The borders in a histogram."""
    borders = borders_of(histogram, tick)
    return Shape(borders, cdf(histogram, borders), float(quantile(histogram, [0.5])[0]))


def built(folder: Path) -> Path:
    """The program, with hooks."""
    source, program = folder / "shape.c", folder / "shape"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-finstrument-functions", str(source), "-o", str(program)], check=True)
    return program


def compared(program: Path, kinds: int, calls: int, experiment: str, folder: Path) -> tuple[Shape, Shape]:
    """Ours, and by hand, of one run."""
    hand = folder / f"{experiment}.bin"
    words = [str(program), str(kinds), str(calls), str(hand)]
    record = [sys.executable, "-m", "perflaw", "record", "-e", experiment, "--collect", "paths", "--", *words]
    subprocess.run(record, cwd=folder, check=True, capture_output=True)
    (observed,) = read_observed(open_experiment(experiment, folder).recordings(), ["fast"])
    ours = merged([one.paths[0] for one in observed.observations])
    data = hand.read_bytes()
    ns_a_tick = float(np.frombuffer(data[:8], np.float64)[0])
    ticks = np.frombuffer(data[8:], np.uint64)
    step = observed.platforms[0].tick  # both read one counter
    return shape_of(ours, step), shape_of(histogram_of(ticks * ns_a_tick), step)


def agree(ours: Shape, hand: Shape) -> bool:
    """Whether they have the same borders."""
    return len(ours.borders) == len(hand.borders) and bool((abs(ours.shares - hand.shares) <= EPSILON).all())


def told(shape: Shape) -> str:
    """In words."""
    pairs = zip(shape.borders, shape.shares, strict=True)
    return f"median {shape.median:.0f} ns, " + ", ".join(
        f"{border:.0f} ns ({share:.1%} below)" for border, share in pairs
    )


def main() -> int:
    """Print a line a run; 1 where the borders of any disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    good = runs = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = built(folder)
        for kinds in (2, 3):
            for turn in range(asked.rounds):
                ours, hand = compared(program, kinds, asked.calls, f"kinds{kinds}-{turn}", folder)
                good, runs = good + agree(ours, hand), runs + 1
                print(f"{kinds} kinds, ours:    {told(ours)}\n         by hand: {told(hand)}")
    print(f"the same borders in {good} of {runs} runs")
    return int(good < runs)


if __name__ == "__main__":
    sys.exit(main())
