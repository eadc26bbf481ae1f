"""Call paths with planted groups: random call graphs, groups by edges, calls per path from a heavy tail."""

from dataclasses import dataclass
from itertools import combinations, count, pairwise

import numpy as np

FEWEST_OF_GROUP = 1000
"""Calls that a planted group has at least: below, it could not be told from its neighbour."""


@dataclass(frozen=True)
class Planted:
    """P call paths in G groups, C clusters of durations."""

    paths: tuple
    labels: np.ndarray
    """(P,) group of each path."""
    counts: np.ndarray
    """(P, C) calls."""
    edges: tuple
    """The edges that make the groups."""


def random_paths(rng, most, layers=8, width=5):
    """So many distinct call paths to ``work`` through layers of functions, some of them left out."""
    found = set()
    while len(found) < most:
        taken = rng.random(layers) < rng.random()
        of = rng.integers(width, size=layers)
        found.add(("main", *(f"f{layer}_{of[layer]}" for layer in np.flatnonzero(taken)), "work"))
    return tuple(sorted(found))


def edges_of(path):
    return set(pairwise(path))


def planted(rng, groups=None, most=600, apart=0.1, noise=0.0, fewest=0):
    """Groups by a list of edges (the first that lies on a path decides), distributions ``apart`` in total variation."""
    wanted = int(rng.integers(1, 6)) if groups is None else groups
    for attempt in count():
        if attempt % 20 == 0:
            paths = random_paths(rng, int(np.exp(rng.uniform(np.log(max(4 * wanted, fewest)), np.log(most)))))
        edges, labels = _decided(rng, paths, wanted)
        size = np.ceil(np.exp(rng.normal(np.log(150), 1.7, len(paths)))).astype(int)
        calls = np.bincount(labels, size, wanted)
        if len(calls) == wanted and calls.min() >= FEWEST_OF_GROUP:
            break
    shares = _apart(rng, wanted, int(rng.integers(2, 5)), apart)
    swapped = (size < np.median(size)) & (rng.random(len(paths)) < noise)
    behaves = np.where(swapped, rng.integers(wanted, size=len(paths)), labels)
    counts = np.array([rng.multinomial(n, shares[g]) for n, g in zip(size, behaves, strict=True)])
    return Planted(paths, labels, counts, tuple(edges))


def _decided(rng, paths, wanted):
    every = sorted(set.union(*map(edges_of, paths)))
    edges = [every[i] for i in rng.choice(len(every), min(wanted - 1, len(every)), replace=False)]
    on = [edges_of(path) for path in paths]
    first = [next((i for i, edge in enumerate(edges) if edge in here), wanted - 1) for here in on]
    return edges, np.array(first)


def _apart(rng, groups, clusters, least):
    while True:
        shares = rng.dirichlet(np.ones(clusters), groups)
        if all(np.abs(a - b).sum() / 2 >= least for a, b in combinations(shares, 2)):
            return shares
