"""Observed functions with planted behaviours, and models with given groups, for tests of mining."""

from dataclasses import replace

import numpy as np

from perflaw.types import Observed, PathGroup, PathSpec, Platform
from tests.learn.observing import observe

FAST, SLOW = 7.0, 11.0
"""Logarithms of two kinds of durations."""

SEMOP = (
    ("main", "mpm_run", "startup", "acquire", "semop"),
    ("main", "mpm_run", "child", "acquire", "semop"),
    ("main", "mpm_run", "startup", "listen", "acquire", "semop"),
    ("main", "mpm_run", "child", "accept", "acquire", "semop"),
    ("main", "mpm_run", "startup", "release", "semop"),
    ("main", "mpm_run", "child", "release", "semop"),
)
"""Call paths like those of the paper's Figure 1."""
QUICK = (0.41, 0.35, 0.41, 0.35, 0.99, 0.99)
"""Share of the quick calls on each (Table 1)."""


def observed(
    seed, quick=QUICK, paths=SEMOP, n=20_000, host="here", build="b", scale=1.0, sticky=0.0, probe_ns=0.0, nested=0
):
    """``sticky``: chance that a call is of the kind of the last one, whatever its path."""
    rng = np.random.default_rng(seed)
    path = rng.integers(0, len(paths), n)
    fresh = rng.random(n) >= sticky
    last = np.maximum.accumulate(np.where(fresh, np.arange(n), 0))
    draw = rng.random(n)[last]
    slow = draw > np.array(quick)[path]
    y = scale * np.exp(np.where(slow, SLOW, FAST) + 0.2 * rng.standard_normal(n))
    seen = observe(y, path, np.arange(1, n + 1) * 1_000_000 + seed * 10**12)
    if nested:
        seen = tuple(_with_nested(one, nested) for one in seen)
    return Observed("semop", "time", "ns", tuple(paths), seen, (Platform(host, build, 1.0),), probe_ns, 0.3)


def _with_nested(one, nested):
    return replace(one, nested=nested * sum(int(h.counts.sum()) for h in one.paths.values()))


def model(groups, component="f", build="b", borders=(100.0,), quantiles=(0.5,), host="here"):
    """A model from groups, each {call path: calls (C,)}."""
    paths = tuple(sorted(path for group in groups for path in group))
    counts = {path: tuple(calls) for group in groups for path, calls in group.items()}
    return PathSpec(
        component=component,
        metric="time",
        unit="ns",
        borders=borders,
        quantiles=quantiles,
        groups=tuple(_group(number, paths, group) for number, group in enumerate(groups)),
        paths=paths,
        path_counts=tuple(counts[path] for path in paths),
        unknown=(),
        stable=True,
        observations=3,
        points=sum(map(sum, counts.values())),
        utility=0.1,
        platforms=(Platform(host, build, 1.0),),
    )


def _group(number, paths, group):
    counts = tuple(sum(column) for column in zip(*group.values(), strict=True))
    share = tuple(calls / sum(counts) for calls in counts)
    return PathGroup(str(number), tuple(map(paths.index, sorted(group))), share, counts, float(sum(counts)), ())
