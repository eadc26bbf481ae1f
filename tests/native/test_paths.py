"""Durations by call path: the C core gives what its Python twin gives, and both what plain lists of durations give."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.call_tree import to_tables
from perflaw.record.tree.core import Core
from perflaw.record.tree.path_builder import FEWEST, MOST_OBSERVATIONS, SHORTEST_NS, WHOLE, FunctionPaths, whole_log
from perflaw.record.tree.records import CHANGE, ENTER, EXIT
from tests.conftest import first
from tests.native.rings import RingFile
from tests.native.streams import Piece, Program
from tests.native.test_core import METRICS, shared_folder, steps
from tests.record.tree_objects import from_tables

Paths = dict[int, FunctionPaths]


def paths_of_core(library, folder, pieces: list[Piece], with_cpu: bool = True) -> Paths:
    core, rings = Core(library, 0, METRICS), {}
    core.collect_paths(with_cpu)
    for number, events in pieces:
        if number not in rings:
            room = sum(len(some) for ring, some in pieces if ring == number)
            rings[number] = RingFile(folder / f"{number}.ring", 1 << max(room, 1).bit_length())
            core.attach(rings[number].path)
        rings[number].append(events)
        while core.step(1000) or core.asks():
            pass
    return from_tables(core.finish()).paths


def paths_of_twin(pieces: list[Piece], with_cpu: bool = True) -> Paths:
    builder = TreeBuilder(0, METRICS)
    builder.collect_paths(with_cpu)
    for ring, events in pieces:
        builder.feed(ring, events)
    tree = builder.finish()
    assert from_tables(to_tables(tree)).paths == tree.paths
    return tree.paths


@shared_folder
@given(taken=st.lists(steps, max_size=200), with_cpu=st.booleans())
def test_random_programs_give_what_the_twin_gives(library, tmp_path, taken, with_cpu):
    program = Program(more=True)
    for step in taken:
        program.step(*step)
    core = paths_of_core(library, tmp_path, program.pieces, with_cpu)
    assert core == paths_of_twin(program.pieces, with_cpu)
    if not with_cpu:
        assert not any(piece.clock for one in core.values() for piece in one.pieces)


class Calls:
    """Calls of function 2 by two paths (from 1 and from 3), of durations from 0 to seconds, some of them off the CPU."""

    def __init__(self, seed: int, count: int, gap_ns: int) -> None:
        random = Random(seed)
        self.now, self.frame, self.random = 0, 0, random
        self.events: list[tuple[int, ...]] = []
        self.durations: dict[int, list[int]] = {}
        """Caller → durations of the calls, in order; callers in order of their first one, as their nodes are."""
        for _ in range(count):
            caller = random.choice((1, 1, 1, 3))
            lasts = random.choice((0, 1, 2, 4, random.randrange(1 << random.randrange(1, 31))))
            self._call(caller, lasts, gap_ns)

    def _event(self, kind: int, frame: int, code: int, value: int | None = None) -> None:
        self.events.append((self.now if value is None else value, frame, code, 0, -1, kind))

    def _call(self, caller: int, lasts: int, gap_ns: int) -> None:
        self.frame += 2
        self._event(ENTER, self.frame, caller)
        self._event(ENTER, self.frame + 1, 2)
        if self.random.random() < 1e-3:
            self._event(CHANGE, 0, 1, lasts // 3)
        self.now += lasts
        self._event(EXIT, self.frame + 1, 2)
        self._event(EXIT, self.frame, caller)
        self.now += gap_ns
        self.durations.setdefault(caller, []).append(lasts)


@pytest.mark.parametrize(
    ("seed", "count", "gap_ns"), first(1, [(1, 999, 10**6), (2, 2500, 10**5), (3, 70_000, 30_000)])
)
def test_long_programs_give_what_the_twin_gives(library, tmp_path, seed, count, gap_ns):
    calls = Calls(seed, count, gap_ns)
    core = paths_of_core(library, tmp_path, [(1, calls.events)])
    assert core == paths_of_twin([(1, calls.events)])
    assert_counts(core[2], calls)


def assert_counts(paths: FunctionPaths, calls: Calls) -> None:
    """No call is lost, and each is in its bucket."""
    assert sum(seen.points for seen in paths.seen) == sum(map(len, calls.durations.values()))
    assert len(paths.seen) <= MOST_OBSERVATIONS
    if len(paths.seen) > 1:
        assert all(seen.points >= FEWEST and seen.end - seen.begin >= SHORTEST_NS for seen in paths.seen)
    nodes = sorted({piece.node for piece in paths.pieces} - {WHOLE})
    for node, durations in zip(nodes, calls.durations.values(), strict=True):
        pieces = [piece for piece in paths.pieces if piece.node == node and piece.clock == 0]
        coarsest = min(piece.scale for piece in pieces)
        counted: Counter[int] = Counter()
        for piece in pieces:
            for index, count in piece.buckets.items():
                counted[index >> piece.scale - coarsest] += count
        exact = Counter((whole_log(x) - (x & (x - 1) == 0)) >> 10 - coarsest for x in durations if x)
        assert counted == exact
        assert sum(piece.zeros for piece in pieces) == durations.count(0)


def test_batches_are_of_the_durations_in_their_order(library, tmp_path):
    calls = Calls(4, 600, 10**5)
    pieces = paths_of_core(library, tmp_path, [(1, calls.events)])[2].pieces
    whole, piece = [one for one in pieces if one.clock == 0][:2]
    assert whole.node == WHOLE and whole.levels[0][0] == 600
    logs = np.array([whole_log(x) for x in next(iter(calls.durations.values()))])
    for level, (batches, total, squares) in enumerate(piece.levels):
        sums = logs[: len(logs) >> level << level].reshape(-1, 1 << level).sum(axis=1)
        assert (batches, total, squares) == (len(sums), sums.sum(), (sums**2).sum())


@settings(deadline=None)
@given(st.integers(1, (1 << 50) - 1))
def test_whole_logarithms_are_exact(x):
    log = whole_log(x)
    assert 1 << log <= x**1024 < 1 << log + 1
