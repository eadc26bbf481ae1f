"""Groups of call paths and the edges that tell them: how often the number is right, how many edges, how much CPU.

Call paths of random call graphs (4 to 600 of them), 1 to 5 groups decided by edges, 2 to 4 clusters of durations; calls
per path from a lognormal tail (median 150, a tenth of the paths under 17, a hundredth over 7,800); groups differ by 10 %
of the calls at least, and have 1,000 calls at least. Bars: the right number of groups in 95 %, one group in 95 % where
there is one behaviour, at most 4 edges and 0.1 s at 600 paths.
Usage: grouping.py [CASES] [SEED]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from shared import Bars

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.learn.path_data import planted

from perflaw.learn.paths.edges import edge_table, exact_columns, soft_columns
from perflaw.learn.paths.grouping import group_paths, paper_groups


def timed(run, *arguments):
    start = time.process_time()
    found = run(*arguments)
    return found, time.process_time() - start


def number(labels):
    return len(set(labels[labels >= 0].tolist()))


def groups(cases, seed, planted_groups=None, apart=0.1):
    """Share of the cases with the right number, of ours and of the paper's way; the most CPU of ours."""
    right = paper = 0
    most = 0.0
    for case in range(cases):
        made = planted(np.random.default_rng([seed, case]), groups=planted_groups, apart=apart)
        labels, spent = timed(group_paths, made.counts, made.counts.sum(axis=1).astype(float))
        wanted = len(set(made.labels.tolist()))
        right, most = right + (number(labels) == wanted), max(most, spent)
        paper += case < cases // 10 and number(paper_groups(made.counts)) == wanted
    return right / cases, paper / max(cases // 10, 1), most


def edges(cases, seed, noise, paths=600):
    """Edges and CPU, soft and exact, at so many paths."""
    rows = []
    for case in range(cases):
        made = planted(np.random.default_rng([seed, 1, case]), most=paths, noise=noise, fewest=paths)
        labels = group_paths(made.counts, made.counts.sum(axis=1).astype(float))
        known = np.flatnonzero(labels >= 0)
        calls = made.counts[known].sum(axis=1).astype(float)
        columns = edge_table([made.paths[i] for i in known])
        soft, soft_s = timed(soft_columns, columns.rows, labels[known], calls, 0.02, 8)
        exact, exact_s = timed(exact_columns, columns.rows, labels[known], calls)
        rows.append((len(soft.chosen), soft_s, len(exact.chosen), exact_s, exact.enough))
    return np.array(rows, dtype=float)


def main(cases=200, seed=1):
    bars = Bars()
    print("groups             right   paper's way   CPU s at most")
    for name, wanted, apart in (("1 to 5, 10 % apart", None, 0.1), ("1 to 5, 20 % apart", None, 0.2), ("1", 1, 0.1)):
        right, paper, most = groups(cases, seed, wanted, apart)
        told = bars.check(f"right number, {name}", right, 0.95, least=True)
        print(f"{name:18}  {right:5.1%}  {paper:6.0%}        {most:.2f}   {told}")
    print("\n600 paths     edges (median, most)   CPU s (median, most)")
    for noise in (0.0, 0.02, 0.1):
        found = edges(max(cases // 10, 3), seed, noise)
        for place, kind in ((0, "soft"), (2, "exact")):
            some = found[:, place], found[:, place + 1]
            figures = [f"{np.median(one):.3g}, {one.max():.3g}" for one in some]
            print(f"noise {noise:4.0%} {kind:5}  {figures[0]:12}  {figures[1]:18}")
        print(f"           proven to be the fewest: {found[:, 4].mean():.0%}")
        bars.check(f"soft edges, noise {noise:.0%}", found[:, 0].max(), 4)
        bars.check(f"soft CPU s, noise {noise:.0%}, median", float(np.median(found[:, 1])), 0.1)
    bars.leave()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
