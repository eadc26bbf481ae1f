"""Full garbage collections against the interpreter's own rule, played through one promotion after the other."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.program.collections import learn_full_collections
from perflaw.learn.program.terms import values
from perflaw.types import CPU, TIME, Collections, Metric
from tests.learn.program_data import run

SLOT = 6000
"""Objects that a collection of the middle generation promotes."""
SIZES = (100.0, 200.0, 400.0, 800.0)


def played(promoted: float, per_slot: float = SLOT) -> tuple[int, float]:
    """Full collections, and the objects that they visit, by CPython's rule."""
    old = pending = since = full = visited = 0
    for _ in range(int(promoted / per_slot)):
        pending += per_slot
        since += 1
        if since > 11 and pending >= old / 4:
            old += pending
            full, visited, pending, since = full + 1, visited + old, 0, 0
    return full, visited


def recorded(n: float, objects: float, *, visit_ns: float = 100.0):
    full, visited = played(objects * n)
    known = Collections(int(objects * n / SLOT), int(objects * n), full, visited, 0, int(visited * visit_ns))
    return replace(run(1, {"n": n}), collections=known)


def learnt(objects: float, sizes=SIZES, metric=CPU):
    runs = [recorded(n, objects) for n in sizes]
    calls = np.array([float(one.collections.promoted // 500) for one in runs])
    own = np.array([one.collections.cpu_ns for one in runs]) + 50.0 * 700.0 * calls
    return learn_full_collections(runs, metric, calls, own, {"n": np.array(sizes)})


@pytest.mark.parametrize("factor", [3, 10, 40, 150])
@pytest.mark.parametrize("objects", [100, 1000])
def test_visited_objects_follow_from_promoted_ones(objects, factor):
    visited = learnt(objects).visited.terms
    n = factor * SIZES[-1]
    # A run ends anywhere between two full collections, so the mean over the time between two of them counts.
    half = max(6.0 * SLOT, objects * n / 8)
    true = np.mean([played(objects * n + shift)[1] for shift in np.linspace(-half, half, 81)])
    [told] = np.array(list(visited.values())) @ values(list(visited), {"n": np.array([n])}, 1)
    assert told == pytest.approx(true, rel=0.15, abs=SLOT * 12)


def test_runs_without_a_full_collection_take_its_cost_from_the_young_ones():
    found = learnt(50)
    assert found.own.sum() == 0
    assert found.unit.terms()[0] == pytest.approx({(): 100.0})
    assert found.unit.forms[0].spread > learnt(1000).unit.forms[0].spread


def test_measured_full_collections_give_the_cost_of_a_visit():
    assert learnt(1000).unit.terms()[0] == pytest.approx({(): 100.0}, rel=0.01)


def test_what_is_not_known_or_not_promoted_gives_nothing():
    runs = [run(1, {"n": n}) for n in SIZES]
    nothing = np.zeros(len(SIZES))
    features = {"n": np.array(SIZES)}
    assert learn_full_collections(runs, CPU, nothing, nothing, features) is None
    idle = [replace(one, collections=Collections(3, 20_000, 0, 0, 0, 0)) for one in runs]
    assert learn_full_collections(idle, TIME, nothing + 40, nothing + 1e6, features) is None
    assert learnt(1000, metric=Metric("allocated_bytes", "bytes")) is None, "bytes are no time"
