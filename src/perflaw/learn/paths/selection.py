"""Call paths of recordings that recorded different callers.

A call path has the functions that were recorded, so that paths of two recordings compare only after functions that one of them
did not record are left out. Where that hides the callers that tell call paths apart, the recordings with fewer callers are no
models of call paths (§3.4), and their calls are left out instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.mine import mine
from perflaw.types import Observed, PathSpec
from perflaw.types.specifications import CallPath

Selection = tuple[str, ...]
"""What ``PathSpec.selected`` has: texts of patterns, each of which a recorded function matches."""
Part = TypeVar("Part")
REPLICATES = 3
"""Runs that have to show a group of call paths, for it to be known how much they vary."""
FEWER_CALLERS = "recorded fewer of the callers that tell call paths apart: their calls are left out"
"""End of a note."""


def literal_pattern(name: str) -> str:
    """The pattern that matches this name alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


def is_recorded(name: str, selected: Selection) -> bool:
    """Whether a function was recorded; names may contain spaces, as those of C++ do.

    >>> is_recorded("a.f", ("a.f a.g",)), is_recorded("a.h", ("a.f a.g",)), is_recorded("a.h", ("a.* b.*", ""))
    (True, False, True)
    """
    literal = literal_pattern(name)
    return all(
        not text or f" {literal} " in f" {text} " or any(fnmatchcase(name, pattern) for pattern in text.split())
        for text in selected
    )


def without_functions(path: CallPath, names: frozenset[str]) -> CallPath:
    """The path without some functions, with recursion folded; the function itself stays.

    >>> without_functions(("main", "helper", "main", "work"), frozenset({"helper"}))
    ('main', 'work')
    """
    kept: list[str] = []
    for name in path[:-1]:
        if name not in names and kept[-1:] != [name]:
            kept.append(name)
    return (*kept, path[-1])


def callers_on(paths: Iterable[CallPath]) -> frozenset[str]:
    """All functions on call paths, but for the last ones."""
    return frozenset(name for path in paths for name in path[:-1])


@dataclass(frozen=True, slots=True)
class Pool(Generic[Part]):
    """Parts that make a model together."""

    parts: list[Part]
    """The parts."""
    left_out: frozenset[str] = frozenset()
    """Functions to be left out of their call paths, because some of the parts did not record them."""
    waiting: str = ""
    """Note on callers that tell more groups apart, but that too few runs recorded for these groups to count; empty without."""


def best_pool(
    parts: Sequence[Part],
    about: Callable[[Part], tuple[Selection, Sequence[CallPath]]],
    model: Callable[[list[Part], frozenset[str]], PathSpec],
    runs: Callable[[list[Part]], int] = lambda _: REPLICATES,
) -> Pool[Part]:
    """The parts that make the best model together.

    ``about`` gives what a part recorded and its paths; ``model`` a model of some parts without these functions. The callers of
    each part, and those that all have in common, are tried with all parts that recorded at least these. A model of fewer than
    ``REPLICATES`` ``runs``, where their number is known, says little about how much runs vary, so models of as many come
    first. Among these the model that explains most groups is the best one; if there are several, the one of most calls.
    """
    known = [about(part) for part in parts]
    names = callers_on(path for _, paths in known for path in paths)
    # Recordings that differ by functions on no call path are alike.
    recorded = [frozenset(name for name in names if is_recorded(name, selected)) for selected, _ in known]
    candidates = dict.fromkeys([frozenset.intersection(*recorded), *recorded])
    if len(candidates) == 1:
        return Pool(list(parts))
    best: tuple[tuple[bool, int, int, int], Pool[Part]] | None = None
    waiting: tuple[int, int] = (0, 0)
    for chosen in candidates:
        own = callers_on(
            path for here, (_, paths) in zip(recorded, known, strict=True) if here == chosen for path in paths
        )
        pool = [part for part, here in zip(parts, recorded, strict=True) if here >= own]
        spec = model(pool, names - chosen)
        groups = sum(not group.standing for group in spec.groups)
        number = runs(pool)
        score = (number >= REPLICATES, groups, spec.points, len(spec.paths))
        if best is None or score > best[0]:
            best = (score, Pool(pool, names - chosen))
        if number < REPLICATES:
            waiting = max(waiting, (groups, number))
    assert best
    (_, shown, *_), chosen_pool = best
    groups, number = waiting
    if groups <= shown:
        return chosen_pool
    recorded_by = "1 run has" if number == 1 else f"{number} runs have"
    apart = f"callers that only {recorded_by} recorded tell {groups} groups of call paths apart"
    return replace(chosen_pool, waiting=f"{apart}: they count from {REPLICATES} runs on")


def with_like_callers(observed: Observed, options: MiningOptions) -> Observed:
    """What was observed with callers that compare; a note says where calls that were recorded with too few are left out."""
    return of_pool(observed, selections_that_compare(observed, options))


def selections_that_compare(observed: Observed, options: MiningOptions) -> Pool[str] | None:
    """The selections of recorded callers that make the best model together; None if there is but one."""
    if len({one.selected for one in observed.observations}) < 2:
        return None
    used = {
        selected: {place for one in observed.observations if one.selected == selected for place in one.paths}
        for selected in dict.fromkeys(one.selected for one in observed.observations)
    }
    return best_pool(
        list(used),
        lambda selected: ((selected,), [observed.paths[place] for place in used[selected]]),
        lambda pool, left_out: mine(_only(observed, pool, left_out), options, None),
        lambda pool: len({one.run for one in observed.observations if one.selected in pool}),
    )


def of_pool(observed: Observed, pool: Pool[str] | None) -> Observed:
    """What was observed with the callers of a pool of selections; a note says where calls are left out."""
    if pool is None:
        return observed
    kept = _only(observed, pool.parts, pool.left_out)
    if pool.waiting:
        kept = replace(kept, notes=(*kept.notes, pool.waiting))
    if len(kept.observations) == len(observed.observations):
        return kept
    less = len(observed.observations) - len(kept.observations)
    return replace(kept, notes=(*kept.notes, f"{less} of {len(observed.observations)} {FEWER_CALLERS}"))


def _only(observed: Observed, selections: Sequence[str], left_out: frozenset[str]) -> Observed:
    """What was observed with these selections, without some functions on call paths."""
    return replace(
        observed,
        paths=tuple(without_functions(path, left_out) for path in observed.paths),
        observations=tuple(one for one in observed.observations if one.selected in selections),
    )
