"""What each stub is to measure next: where the time goes, then functions by the use of more data, shared out over hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import sqrt
from typing import Final

from perflaw.mine.fleet.ledger import Coverage, Service, StubState
from perflaw.mine.messages import Measurement, Request
from perflaw.types import PathSpec

MIN_SHARE: Final = 0.005
"""Share of the samples, at its lower bound, from which on a function is worth measuring."""
_Z: Final = 1.96
MIN_UTILITY: Final = 0.1
"""Use of more data from which on a function is measured again."""
FUNCTIONS: Final = 4
"""Functions that one stub measures by turns."""
COPIES: Final = 2
"""Stubs that measure one function at a time: one alone would say nothing about other hosts."""
MAX_CALLERS: Final = 8
"""Callers whose calls are recorded beside a function's."""
SAMPLES_S: Final = 2.0
PATHS_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """One measurement that a stub is to make, and why."""

    request: Request
    """The request; its number is its place in the stub's instructions."""
    why: str
    """The reason in words."""
    utility: float
    """Expected use, 0 to 1."""


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A function that takes a part of the time."""

    name: str
    """Its name."""
    share: float
    """Lower bound of its share of the samples."""
    callers: tuple[str, ...]
    """Functions that were above it in the samples, those of most samples first."""


def hot_functions(samples: Sequence[Measurement], allow: Sequence[str]) -> list[HotFunction]:
    """Functions that may be measured and certainly take at least half a percent, the hottest first (§3.1)."""
    leaves: Counter[str] = Counter()
    above: dict[str, Counter[str]] = {}
    for one in samples:
        for path, count in one.stacks.items():
            leaves[path[-1]] += count
            callers = above.setdefault(path[-1], Counter())
            for caller in set(path[:-1]):
                callers[caller] += count
    total = leaves.total()
    hot = []
    for name, count in leaves.items():
        share = wilson_low(count, total)
        if share >= MIN_SHARE and _allowed(name, allow):
            known = [one for one, _ in above[name].most_common() if one != name and _allowed(one, allow)]
            hot.append(HotFunction(name, share, tuple(known[:MAX_CALLERS])))
    return sorted(hot, key=lambda one: (-one.share, one.name))


def wilson_low(count: int, total: int) -> float:
    """Lower bound of a share (Wilson, 1927), 95 %.

    >>> round(wilson_low(10, 100), 3)
    0.055
    """
    if not total:
        return 0.0
    share, square = count / total, _Z * _Z
    middle = share + square / (2 * total)
    return (middle - _Z * sqrt(share * (1 - share) / total + square / (4 * total * total))) / (1 + square / total)


def plan(
    service: Service,
    stubs: Sequence[StubState],
    samples: Sequence[Measurement],
    coverage: Sequence[Coverage],
    specs: Mapping[str, PathSpec],
) -> dict[str, list[Wanted]]:
    """What each of these stubs is to measure; ``specs`` are what is known so far, by function."""
    wanted = {stub.id: [_samples(stub)] for stub in stubs}
    known = {(one.component, one.host): one.calls for one in coverage}
    ranked = []
    for hot in hot_functions(samples, service.allow):
        spec = specs.get(hot.name)
        utility = spec.utility if spec else 1.0
        if utility >= MIN_UTILITY:
            ranked.append((utility * hot.share, utility, hot))
    ranked.sort(key=lambda one: (-one[0], one[2].name))
    for _, utility, hot in ranked:
        free = [stub for stub in stubs if len(wanted[stub.id]) <= FUNCTIONS]
        free.sort(key=lambda stub: (known.get((hot.name, stub.host), 0), len(wanted[stub.id]), stub.id))
        for stub in free[:COPIES]:
            number = stub.version * 100 + len(wanted[stub.id])
            request = Request(number, "paths", (hot.name,), hot.callers, PATHS_S)
            calls = known.get((hot.name, stub.host), 0)
            had = f"{calls:,} calls known on {stub.host}" if calls else f"never measured on {stub.host}"
            wanted[stub.id].append(Wanted(request, f"{hot.share:.1%} of the time, {had}", utility))
    return wanted


def _samples(stub: StubState) -> Wanted:
    return Wanted(Request(stub.version * 100, "samples", seconds=SAMPLES_S), "where the time goes", 1.0)


def _allowed(name: str, allow: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in allow)
