"""Borders between clusters of durations on data whose truth is known: found, not invented, found again, and quick.

    python benchmarks/partition.py [--quick]

Mixtures are random (tests/learn/duration_data.py): two to four lognormals, gammas and normals, some after a fixed time, by
a clock of known step. A border is to be found where the density of the logarithm falls to 0.4 of the lower peak with a
tenth of the mass on each side; one that is found is wrong where there is no valley at all (0.95) within 0.05 of the mass.
Bars: precision and recall .98 at 1,000 points, .99 at 10,000, recall .97 from merged histograms; no border in one mode;
precision .95 where calls are autocorrelated; 36 of 40 planted ones stable while durations change; 0.1 s at 10^6 points.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from shared import Bars

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.learn.duration_data import (
    NULLS,
    SCENARIOS,
    SHAPES,
    clocked,
    correlated,
    mixture,
    observed_changing,
    scored,
    several,
    two_modes,
)

from perflaw.learn.modes import find_borders
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.borders import borders_of, distinct_shares, paper_borders
from perflaw.learn.paths.durations import batches_of, histogram_of, independent_calls
from perflaw.learn.paths.stable import stable_borders

Found = Callable[[np.random.Generator, np.ndarray, float], np.ndarray]


def by_paper(y: np.ndarray) -> np.ndarray:
    """Minima of the gradient, of those that match the leftmost."""
    h = histogram_of(y)
    found = paper_borders(h)
    return found[distinct_shares((y[:, None] <= found).mean(axis=0), 0.05)] if found.size else found


WAYS: dict[str, Found] = {
    "durations one by one": lambda _, y, tick: find_borders(y, tick),
    "histogram": lambda _, y, tick: borders_of(histogram_of(y), tick),
    "8 merged histograms": lambda rng, y, tick: borders_of(several(rng, y), tick),
    "histogram, tick not told": lambda _, y, __: borders_of(histogram_of(y), 0.0),
    "the paper's": lambda _, y, __: by_paper(y),
}


def planted(bars: Bars, count: int) -> None:
    """Precision and recall over random mixtures."""
    for n, bar in ((1000, 0.98), (10_000, 0.99)):
        sums = {way: np.zeros(4) for way in WAYS}
        for seed in range(count):
            rng = np.random.default_rng([1, n, seed])
            mixed = mixture(rng)
            y = mixed.drawn(rng, n)
            for way, find in WAYS.items():
                sums[way] += scored(find(rng, y, mixed.tick), mixed)
        for way, (right, wrong, missed, sure) in sums.items():
            precision, recall = right / max(right + wrong, 1), 1 - missed / sure
            words = ""
            if way in list(WAYS)[:3]:
                least = 0.97 if "merged" in way else bar
                words = bars.check(f"precision, {way}, {n}", precision, bar, least=True)
                words += ", " + bars.check(f"recall, {way}, {n}", recall, least, least=True)
            print(f"mixtures, {n:>6} points, {way:<25} precision {precision:.3f} recall {recall:.3f} {words}")


def one_mode(bars: Bars, quick: bool) -> None:
    """Borders where there is none."""
    for n, seeds in ((1000, 50), (10_000, 20), (100_000, 5), (1_000_000, 2)):
        false = 0
        for name, (make, tick) in NULLS.items():
            for seed in range(max(seeds // 5, 1) if quick else seeds):
                rng = np.random.default_rng([2, n, seed, len(name)])
                y = make(rng, n)
                false += borders_of(histogram_of(y), tick).size + borders_of(several(rng, y, 5), tick).size
        print(f"one mode, {n:>7} points: {false} borders {bars.check(f'borders in one mode, {n}', false, 0)}")


def autocorrelated(bars: Bars, count: int) -> None:
    """Precision and recall on AR(1) ranks, half of the series mixtures, half of one mode; with and without deflation."""
    for n in (1000, 10_000, 100_000):
        for phi in (0.5, 0.9, 0.99):
            ours, plain = np.zeros(4), np.zeros(4)
            for seed in range(count if n < 100_000 else count // 5):
                found, naive = one_series(np.random.default_rng([3, n, seed]), n, phi, mixed=seed % 2 == 0)
                ours, plain = ours + found, plain + naive
            precision = ours[0] / (ours[0] + ours[1]) if ours[0] + ours[1] else 1.0
            words = bars.check(f"precision, φ {phi}, {n}", precision, 0.95, least=True)
            print(
                f"AR(1), φ {phi}, {n:>6} points: {ours[0] + ours[1]:.0f} found, precision {precision:.3f} {words}, "
                f"recall {1 - ours[2] / ours[3]:.3f} (as if independent {plain[0] / (plain[0] + plain[1]):.3f}, "
                f"{1 - plain[2] / plain[3]:.3f})"
            )


def one_series(rng: np.random.Generator, n: int, phi: float, *, mixed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one series, deflated and not."""
    if mixed:
        truth = mixture(rng)
        y, tick = clocked(rng, correlated(rng, n, phi, truth.quantile), truth.tick), truth.tick
    else:
        y, tick = correlated(rng, n, phi, list(SHAPES.values())[rng.integers(3)]), 1.0
    h = histogram_of(y)
    both = (borders_of(h, tick, independent_calls(batches_of(y), n)), borders_of(h, tick))
    ours, plain = (scored(found, truth) if mixed else np.array([0, found.size, 0, 0]) for found in both)
    return ours, plain


def found_again(bars: Bars, count: int) -> None:
    """Planted borders that are stable over 20 observations of 1,000 calls while durations change."""
    for paper in (False, True):
        for scenario in SCENARIOS:
            hits = extra = steady = 0
            for seed in range(count):
                rng = np.random.default_rng([4, seed])
                observed, share = observed_changing(rng, two_modes(rng), scenario)
                stable = stable_borders(observed, MiningOptions(paper=paper))
                hit = any(abs(one - share) < 0.05 for one in stable.quantiles)
                hits, extra, steady = hits + hit, extra + len(stable.borders) - hit, steady + stable.stable
            words = "" if paper else bars.check(f"stable, {scenario}", hits / count, 0.9, least=True)
            whose = "the paper's" if paper else "ours"
            print(
                f"stable, {whose}, {scenario}: {hits} of {count} found, {extra} others, {steady} called stable {words}"
            )


def cost(bars: Bars) -> None:
    """CPU time of a million points, histogram included."""
    for name in ("Pareto 1.5", "lognormal σ 1.5"):
        make, tick = NULLS[name]
        y = make(np.random.default_rng(0), 1_000_000)
        taken = []
        for _ in range(5):
            start = time.process_time()
            borders_of(histogram_of(y), tick)
            taken.append(time.process_time() - start)
        best = min(taken)
        print(f"CPU time at 10^6, {name}: {best * 1000:.0f} ms {bars.check(f'CPU time, {name}', best, 0.1)}")


def main() -> None:
    """All of it; status 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    bars = Bars()
    planted(bars, 100 if quick else 300)
    one_mode(bars, quick)
    autocorrelated(bars, 60 if quick else 150)
    found_again(bars, 10 if quick else 40)
    cost(bars)
    bars.leave()


if __name__ == "__main__":
    main()
