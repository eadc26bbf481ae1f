"""Whether recording keeps the shape of a fast function's durations, and what a call costs (RQ5 of Brünink & Rosenblum, FSE'16).

    python benchmarks/paths_shape.py [--calls 200000] [--rounds 5]

A compiled function of two or three kinds of work reads the time-stamp counter in its first and its last statement, and so
does its caller before and after each call. It runs as it is, and recorded by ``--collect paths``: by hooks of the compiler,
and by code that is injected into the plain build. Compared are the borders between clusters that the learner finds in what
was recorded, in the function's own readings at the same time, and in those of the plain run: they agree where there are as
many borders and no share of the calls below one differs by more than 0.05, the distance within which borders match (ε). The
cost of a call is the median of the caller's readings beyond that of the plain run. Bar: the function's own readings at the
same time give the same borders in every run; a plain run is another one, in which a busy machine may itself change speed.
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
BUILDS = {"injected": (), "hooks": ("-finstrument-functions",)}
SOURCE = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
#define PLAIN __attribute__((no_instrument_function, noinline))
static uint64_t *took, *outside, calls, state = 1;
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
    outside = calloc(most, sizeof *outside);
    both(&begin, &first);
    for (uint64_t at = 0; at < most; at++) {
        unsigned kind = draw(10) < 5 ? 0 : 1 + draw(kinds - 1);
        unsigned rounds = base[kind] + draw(base[kind] / 4);
        uint64_t called = __rdtsc();
        fast(rounds);
        outside[at] = __rdtsc() - called;
    }
    both(&end, &last);
    FILE *file = fopen(words[count - 1], "wb");
    double ns_a_tick = (last - first) / (double)(end - begin);
    fwrite(&ns_a_tick, sizeof ns_a_tick, 1, file);
    fwrite(took, sizeof *took, calls, file);
    fwrite(outside, sizeof *outside, calls, file);
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


def built(folder: Path) -> dict[str, Path]:
    """The program for each way to record it."""
    source, programs = folder / "shape.c", {}
    source.write_text(SOURCE)
    for way, flags in BUILDS.items():
        programs[way] = folder / way
        subprocess.run(["gcc", "-O2", "-g", *flags, str(source), "-o", str(programs[way])], check=True)
    return programs


def by_hand(file: Path, step: float) -> tuple[Shape, Shape]:
    """What the function itself has read, and what its caller has."""
    data = file.read_bytes()
    ns_a_tick = float(np.frombuffer(data[:8], np.float64)[0])
    inside, outside = np.frombuffer(data[8:], np.uint64).reshape(2, -1) * ns_a_tick
    return shape_of(histogram_of(inside), step), shape_of(histogram_of(outside), step)


def recorded(way: str, program: Path, words: list[str], experiment: str, folder: Path) -> tuple[Shape, float]:
    """What is recorded, and the step of the clock, which is that of all readings."""
    record = [
        sys.executable,
        "-m",
        "perflaw",
        "record",
        "-e",
        experiment,
        "--collect",
        "paths",
        "--select",
        "fast",
        "--",
    ]
    subprocess.run([*record, str(program), *words], cwd=folder, check=True, capture_output=True)
    (observed,) = read_observed(open_experiment(experiment, folder).recordings(), ["fast"])
    step = observed.platforms[0].tick
    return shape_of(merged([one.paths[0] for one in observed.observations]), step), step


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
    """Print some lines a run; 1 where the borders of any disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    good: dict[str, int] = dict.fromkeys(BUILDS, 0)
    undisturbed: dict[str, int] = dict.fromkeys(BUILDS, 0)
    costs: dict[str, list[float]] = {way: [] for way in BUILDS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = built(folder)
        for turn in range(2 * asked.rounds):
            hand, kinds = folder / "hand.bin", 2 + turn % 2
            words = [str(kinds), str(asked.calls), str(hand)]
            for way, program in programs.items():
                ours, step = recorded(way, program, words, f"{way}{turn}", folder)
                inside, outside = by_hand(hand, step)
                subprocess.run([str(programs["injected"]), *words], check=True)
                plain, plain_outside = by_hand(hand, step)
                good[way] += agree(ours, inside)
                undisturbed[way] += agree(ours, plain)
                costs[way].append(outside.median - plain_outside.median)
                print(
                    f"{kinds} kinds, {way}: {told(ours)}\n  by hand, recorded: {told(inside)}\n  by hand, plain: {told(plain)}"
                )
    for way in BUILDS:
        told_of = (
            f"those of its own clocks in {good[way]} of {2 * asked.rounds} runs, of a plain run in {undisturbed[way]}"
        )
        cost = f"{np.median(costs[way]):.0f} ns a call (of all runs {min(costs[way]):.0f} to {max(costs[way]):.0f})"
        print(f"{way}: the borders are {told_of}; {cost}")
    return int(min(good.values()) < 2 * asked.rounds)


if __name__ == "__main__":
    sys.exit(main())
