"""Full garbage collections: how many objects they will visit at a size that was not run, and what that costs.

CPython collects its oldest generation after eleven collections of the middle one, and only if the objects that have
reached the oldest generation since are a quarter of those that were there (``Modules/gcmodule.c``,
``gc_collect_generations``). How many objects full collections visit follows from how many are promoted, which is an exact
count of a run, also of one that was too short for any full collection. Small runs seldom have one; large ones spend a
third of their time there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.tree import Name
from perflaw.learn.program.counts import CountLaw, learn_counts
from perflaw.learn.program.terms import ONE, TermSum, product, restricted, values
from perflaw.learn.program.units import FittedForm, UnitLaw
from perflaw.types import CPU, TIME, Metric, Run

Array = NDArray[np.float64]

SLOTS: Final = 12.0
"""Collections of the middle generation from one full collection to the next, that one included, at least."""
YOUNGEST: Final = {False: 700.0, True: 2000.0}
"""New objects that set off a collection of the youngest generation: up to Python 3.12, and since 3.13."""
BY_YOUNG: Final = 2.0
"""Cost of visiting an object in a full collection, relative to the cost of young collections for each new object.

Measured with ``gc.callbacks`` in plain runs that build large structures: lark 2.3, docutils 2.0, PyYAML 1.9, SymPy 1.7."""
CACHED: Final = 50_000.0
"""Objects up to which a visit is cheap, because they lie in a cache."""
UNCACHED: Final = 2.0
"""How many times dearer a visit is beyond that."""
SPREAD: Final = (0.2, 0.4)
"""Standard deviation of the logarithm of the cost of a visit: where full collections were measured, and where not."""
FAR: Final = 1000.0
"""Largest multiple of the data at which the rules change over."""


@dataclass(frozen=True, slots=True, eq=False)
class FullCollections:
    """The full collections of a program: a count law of visited objects, and what a visit costs."""

    own: Array
    """(R,) their cost in each run."""
    visited: CountLaw
    """Objects that they visit in a run."""
    unit: UnitLaw
    """Cost of visiting one."""


def learn_full_collections(
    runs: Sequence[Run], metric: Metric, calls: Array, own: Array, features: Mapping[str, Array]
) -> FullCollections | None:
    """The full collections of R runs; ``calls`` and ``own`` (R,) are those of all collections together.

    None for another metric than CPU or wall time, where a run does not tell of its collections, or where no object is
    promoted within reach.
    """
    if metric not in (CPU, TIME):
        return None
    known = [run.collections for run in runs if run.collections is not None]
    if len(known) < len(runs) or not known:
        return None
    counts = np.array([(one.middle, one.promoted, one.full, one.visited) for one in known], dtype=np.float64)
    middle, promoted, full, visited = counts.T
    # A collection waits for nothing: of its wall time, too, what it was off the CPU for is no cost.
    cost = np.array([one.cpu_ns or one.wall_ns for one in known], dtype=np.float64)
    cost = np.minimum(cost, own)
    if middle.sum() == 0:
        return None
    # Objects are promoted in steps of several thousand, so their number has no clear law in small runs. Collections of young
    # objects are many, and have one. Each promotes a part of its objects, and small runs tell the mean of that part.
    [law], _ = learn_counts(calls[:, None], features)
    versions = [tuple(int(part) for part in run.python.split(".")[:2] if part.isdigit()) for run in runs]
    youngest = YOUNGEST[all(version >= (3, 13) for version in versions)]
    about = calls - calls.mean()
    slope = max(float(about @ promoted / max(float(about @ about), 1e-300)), 0.0)
    each_slot = float(slope * (calls - full).sum() / middle.sum())
    between = SLOTS * (each_slot or float(promoted.sum() / middle.sum()))
    objects = {key: slope * c for key, c in law.terms.items()}
    objects[ONE] = objects.get(ONE, 0.0) + float(promoted.mean() - slope * calls.mean())
    terms = _visited_terms(objects, between, features)
    if not terms:
        return None
    young = float((own - cost).sum() / (youngest * max(float((calls - full).sum()), 1.0)))
    each = float(cost.sum() / visited.sum()) if visited.sum() else BY_YOUNG * young / UNCACHED
    cached = not full.sum() or visited.sum() / full.sum() < CACHED
    unit = UnitLaw((FittedForm.constant(each * (UNCACHED if cached else 1.0), SPREAD[not full.sum()]),))
    growing = {key: c for key, c in law.terms.items() if key}
    return FullCollections(cost, CountLaw(terms, law.learnt, follows=(law, growing)), unit)


def _visited_terms(promoted: TermSum, between: float, features: Mapping[str, Array]) -> TermSum:
    """Objects visited, from those promoted: none at first, then by their square, then in proportion.

    While fewer than four times ``between`` objects are alive, a full collection takes place whenever ``between`` more have
    been promoted, and visits all objects. Beyond that, one takes place whenever their number has grown by a quarter. Half
    a collection is taken off, because a run ends anywhere between two.
    """
    square = {key: c / (2.0 * between) for key, c in product(promoted, promoted).items()}
    square[ONE] = square.get(ONE, 0.0) - between / 8.0
    # Both rules give the same where four times as many are alive.
    straight = {key: 5.0 * c for key, c in promoted.items()}
    straight[ONE] = straight.get(ONE, 0.0) + (8.0 - 1.0 / 8.0 - 20.0) * between
    names = {base.text for key in promoted for factor, _ in key for base in factor.walk() if isinstance(base, Name)}
    ends = {name: np.array([x.min(), FAR * x.max()]) for name, x in features.items()}
    if len(names) != 1:
        within = {name: np.full(1, 10.0 * x.max()) for name, x in features.items()}
        [most] = np.array(list(promoted.values())) @ values(list(promoted), within, 1)
        return {} if most < between else square if most < 4.0 * between else straight
    [name] = names
    grid = {name: np.geomspace(max(ends[name][0], 1e-9), ends[name][1], 4000)}
    counts = np.array(list(promoted.values())) @ values(list(promoted), grid, 4000)
    first, second = (int(np.argmax(counts >= many * between)) for many in (1.0, 4.0))
    if counts[-1] < between:
        return {}
    out = restricted(square, name, ">", float(grid[name][first])) if first else dict(square)
    if counts[-1] < 4.0 * between:
        return out
    limit = float(grid[name][second])
    return {**restricted(out, name, "<=", limit), **restricted(straight, name, ">", limit)} if second else straight
