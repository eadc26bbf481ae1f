"""What each stub is to measure next: where the time goes, then functions by the use of more data, shared out over hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from perflaw.mine.fleet.ledger import Coverage, Service, StubState
from perflaw.mine.knowledge import MOST_LEVELS, Knowledge
from perflaw.mine.messages import Measurement, Request
from perflaw.record.tree.path_tables import LEAST_SHARE, wilson
from perflaw.types import PathSpec

MIN_UTILITY: Final = 0.1
"""Use of more data from which on a function is measured again."""
FUNCTIONS: Final = 4
"""Functions that one stub measures by turns."""
COPIES: Final = 2
"""Stubs that measure one function at a time: one alone would say nothing about other hosts."""
MAX_CALLERS: Final = 8
"""Callers whose calls are recorded beside a function's."""
ENOUGH_TRIALS: Final = 2
"""Measurements without a call after which a function is not measured any more."""
SAMPLES_S: Final = 2.0
PATHS_S: Final = 2.0


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
    """Functions that were above it in the samples, the nearest levels first."""


def hot_functions(samples: Iterable[Measurement], allow: Sequence[str]) -> list[HotFunction]:
    """Functions that may be measured and certainly take at least half a percent, the hottest first (§3.1); then named ones."""
    leaves: Counter[str] = Counter()
    knowledge = Knowledge()
    for one in samples:
        knowledge.add_samples(one.stacks)
        knowledge.idle.update(one.idle)
        for path, count in one.stacks.items():
            leaves[path[-1]] += count
    total = max(leaves.total(), 1)
    hot = []
    for name, count in leaves.items():
        share = wilson(count / total, total)
        if share >= LEAST_SHARE and name not in knowledge.idle and is_allowed(name, allow):
            hot.append(HotFunction(name, share, nearest_callers(knowledge, name, allow)))
    # What the allow-list names in full is measured also where samples have not found it.
    found = {one.name for one in hot}
    hot += [HotFunction(name, 0.0, ()) for name in allow if name not in found and not set(name) & set("*?[")]
    return sorted(hot, key=lambda one: (-one.share, one.name))


def nearest_callers(knowledge: Knowledge, name: str, allow: Sequence[str]) -> tuple[str, ...]:
    """Callers of a function that may be recorded, as many levels of them as there is room for; at least one level.

    Functions further up are on the way to everything, and would tell nothing apart.
    """
    found: dict[str, None] = {}
    for level in range(1, MOST_LEVELS + 1):
        new = [one for one in knowledge.callers(name, level) if one not in found and is_allowed(one, allow)]
        if found and len(found) + len(new) > MAX_CALLERS:
            break
        found.update(dict.fromkeys(new))
    return tuple(found)[:MAX_CALLERS]


def plan(
    service: Service,
    stubs: Sequence[StubState],
    samples: Iterable[Measurement],
    coverage: Sequence[Coverage],
    specs: Mapping[str, PathSpec],
) -> dict[str, list[Wanted]]:
    """What each of these stubs is to measure; ``specs`` are what is known so far, by function."""
    wanted = {stub.id: [_samples(stub)] for stub in stubs}
    known = {(one.component, one.host): one.calls for one in coverage}
    ranked = []
    tried = Counter(one.component for one in coverage for _ in range(one.measurements) if not one.calls)
    called = {one.component for one in coverage if one.calls}
    for hot in hot_functions(samples, service.allow):
        if tried[hot.name] >= ENOUGH_TRIALS and hot.name not in called:
            continue  # a program's first function takes time, but is not called while it is measured
        spec = specs.get(hot.name)
        utility = spec.utility if spec else 1.0
        if utility >= MIN_UTILITY:
            ranked.append((utility * max(hot.share, LEAST_SHARE), utility, hot))
    ranked.sort(key=lambda one: (-one[0], one[2].name))
    for _, utility, hot in ranked:
        free = [stub for stub in stubs if len(wanted[stub.id]) <= FUNCTIONS]
        free.sort(key=lambda stub: (known.get((hot.name, stub.host), 0), len(wanted[stub.id]), stub.id))
        for stub in free[:COPIES]:
            number = stub.version * 100 + len(wanted[stub.id])
            request = Request(number, "paths", (hot.name,), hot.callers, PATHS_S)
            calls = known.get((hot.name, stub.host), 0)
            had = f"{calls:,} calls known on {stub.host}" if calls else f"never measured on {stub.host}"
            why = f"{100 * hot.share:.1f} % of the time" if hot.share else "the allow-list names it"
            wanted[stub.id].append(Wanted(request, f"{why}, {had}", utility))
    return wanted


def _samples(stub: StubState) -> Wanted:
    return Wanted(Request(stub.version * 100, "samples", seconds=SAMPLES_S), "where the time goes", 1.0)


def is_allowed(name: str, allow: Sequence[str]) -> bool:
    """Whether an allow-list permits to measure a function."""
    return any(fnmatchcase(name, pattern) for pattern in allow)
