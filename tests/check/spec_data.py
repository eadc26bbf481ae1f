"""A made-up service of which call paths are observed: durations of known modes, runs that differ as runs do."""

import numpy as np

from perflaw.types import Observed, Platform
from tests.learn.observing import observe

HOST = Platform("here", "build", 20.0)
ROOT = ("main", "serve")
PATHS = {
    "db.load": [(*ROOT, "view.item", "db.load"), (*ROOT, "view.list", "db.load"), (*ROOT, "view.search", "db.load")],
    "view.item": [(*ROOT, "view.item")],
    "view.search": [(*ROOT, "view.search")],
    "db.lock": [(*ROOT, "view.item", "db.lock"), (*ROOT, "view.list", "db.save", "db.lock")],
}
QUICK, SLOW = 100e3, 2e6
SHARES = {"db.load": [0.05, 0.05, 0.6], "view.item": [0.1], "view.search": [0.5], "db.lock": [0.02, 0.4]}
"""Function → share of slow calls by each of its paths."""


def observed(seed, runs=3, calls=4000, planted=None, scale=1.0, host=HOST, noise=0.01, first=1, functions=tuple(PATHS)):
    """What so many runs show; ``planted`` is {(function, path's place): share of slow calls}; a mapping by function."""
    found = {}
    for number, name in enumerate(functions):
        rng = np.random.default_rng([seed, number])
        observations = []
        for run in range(first, first + runs):
            # Runs differ: in speed by some per cent, in shares by ``noise``.
            speed = scale * np.exp(rng.normal(0, 0.02))
            path = rng.integers(len(PATHS[name]), size=calls)
            share = np.array([(planted or {}).get((name, i), s) for i, s in enumerate(SHARES[name])])
            share = np.clip(share + rng.normal(0, noise, share.size), 0.0, 1.0)
            slow = rng.random(calls) < share[path]
            values = np.where(slow, SLOW, QUICK) * np.exp(rng.normal(0, 0.25, calls)) * speed
            ends = run * 10**12 + np.cumsum(values).astype(np.int64)
            observations += observe(values, path, ends, every=1000, run=f"{run:04d}")
        shares = {"db.load": 0.5, "view.search": 0.2, "view.item": 0.1, "db.lock": 0.05}
        found[name, "time"] = Observed(
            name, "time", "ns", tuple(PATHS[name]), tuple(observations), (host,), 100.0, shares[name]
        )
    return found
