"""How long the analysis of variance takes after recording, by the size of the call tree: CPU time, reading not included.

The bar: under 1 s for a tree of 1,000 nodes (the paper's steps 1 and 2 take up to 16,500 s, its steps 3 to 5 under 1 s).
Trees are random: every function is called from many places, and a third of the nodes vary highly.
Usage: variance_speed.py [NODES]...
"""

import sys
import time

import numpy as np

from perflaw.learn.variance.analyse import variance
from perflaw.learn.variance.tree import Options
from perflaw.types import TIME, Component
from perflaw.types.call_trees import LOCAL, CallTree, LinkMoments, NodeMoments, PairMoments

BAR_S = 1.0
DEPTH = 16
"""Ancestors that a descendant is linked to."""


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def random_tree(nodes, roots=1, seed=0, invocations=400):
    """A call tree with the moments of simulated invocations, exact to the integer; ``roots`` of its nodes are called first."""
    rng = np.random.default_rng(seed)
    below = (int(rng.integers(max(1, node - 60), node)) for node in range(roots + 1, nodes + 1))
    parent = [-1, *[0] * roots, *below]
    component = [-1, *(int(c) for c in rng.integers(max(8, nodes // (6 if roots == 1 else 40)), size=nodes))]
    own = [np.zeros(invocations, dtype=np.int64)]
    for _ in range(nodes):
        spread = rng.choice([0.05, 0.1, 1.5])
        own.append(np.maximum(1, rng.lognormal(rng.uniform(3, 8), spread, invocations)).astype(np.int64))
    inclusive = [cost.copy() for cost in own]
    for node in range(nodes, 0, -1):
        if parent[node] >= 0:
            inclusive[parent[node]] += inclusive[node]
    return _tree(parent, component, own, inclusive)


def _tree(parent, component, own, inclusive):
    links, pairs = [], []
    children = [[] for _ in parent]
    calls = len(own[0])
    for node in range(1, len(parent)):
        children[parent[node]].append(node)
        above, x = parent[node], inclusive[node]
        for _ in range(DEPTH):
            if above <= 0:
                break
            y, top = int(x.sum()), inclusive[above]
            links.append((above, node, calls, calls, calls, calls, y, y, int(x @ x), int(x @ top)))
            above = parent[above]
    for node in range(1, len(parent)):
        parts = [(LOCAL, own[node]), *((child, inclusive[child]) for child in children[node])]
        pairs += [(node, i, j, int(a @ b)) for at, (i, a) in enumerate(parts) for j, b in parts[at:]]
    count = max(component) + 1
    moments = NodeMoments(
        np.array([0] + [calls] * (len(parent) - 1)),
        objects([int(x.sum()) for x in inclusive]),
        objects([int(x @ x) for x in inclusive]),
    )
    numbers = [np.array(column) for column in zip(*((row[:4]) for row in links), strict=True)]
    sums = [objects(list(column)) for column in zip(*((row[4:]) for row in links), strict=True)]
    *ends, totals = zip(*pairs, strict=True)
    return CallTree(
        TIME,
        {"time": TIME},
        tuple(Component(f"f{number}") for number in range(count)),
        np.array(parent),
        np.array(component),
        np.arange(len(parent)),
        np.zeros(len(parent), dtype=np.int64),
        {"time": moments},
        PairMoments(*(np.array(column) for column in ends), objects(list(totals))),
        LinkMoments(*numbers, *sums),
    )


def main(sizes):
    worst = 0.0
    print("nodes   links    patterns     τ_S   CPU s")
    for size, roots in ((one, many) for one in sizes for many in (1, one // 3)):
        tree = random_tree(size, roots)
        for pressure in (0.01, 0.4, 1.0):
            start = time.process_time()
            found = variance(tree, Options(pressure=pressure))
            spent = time.process_time() - start
            worst = max(worst, spent if size <= 1000 else 0.0)
            sizes_text = f"{found.extracted[1]} > {found.merged[1]}"
            print(f"{size:5}  {len(tree.links.n):6}  {sizes_text:>11}  {pressure:6}  {spent:6.2f}")
    print(f"1,000 nodes: {worst:.2f} s of {BAR_S:g} s")
    return 0 if worst <= BAR_S else 1


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [300, 1000, 3000]))
