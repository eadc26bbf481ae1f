"""The nested spans of the worst invocations, by the C core and its twin: against a plain reference, and their bounds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflaw.record.tree.call_tree import CallSpan, LongestCall, RecordedTree
from perflaw.record.tree.records import DEAD, ENTER, EXIT, RESUME, YIELD, TreeLimits
from tests.conftest import examples, first
from tests.native.test_core import Program, assert_parity, steps

TIMES = st.integers(100, 1000)
PLAIN = st.recursive(
    st.tuples(st.integers(1, 4), TIMES, st.just([])),
    lambda calls: st.tuples(st.integers(1, 4), TIMES, st.lists(calls, max_size=5)),
    max_leaves=40,
)
"""Calls: function, own time before each callee and at the end, callees."""
ours = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Reference:
    """Remembers every invocation with everything in it."""

    def __init__(self):
        self.clock, self.frame, self.events = 0, 0, []
        self.calls: list[tuple[int, int, list[tuple[int, int, int]]]] = []
        """In order of completion: function, time, and (depth, start, time) of all within, callers first."""

    def call(self, call):
        code, own, callees = call
        self.frame += 1
        frame, start, within = self.frame, self.clock, []
        self.events.append((start, frame, code, 0, -1, ENTER))
        for callee in callees:
            self.clock += own
            begun = self.clock - start
            below = self.call(callee)
            within += [(1, begun, self.clock - start - begun)]
            within += [(depth + 1, begun + at, time) for depth, at, time in below]
        self.clock += own
        self.events.append((self.clock, frame, code, -1, -1, EXIT))
        self.calls.append((code, self.clock - start, within))
        return within


def told(spans):
    depths = []
    for span in spans:
        depths.append(depths[span.parent] + 1 if span.parent >= 0 else 1)
    return [(depth, span.started, span.time) for depth, span in zip(depths, spans, strict=True)]


@ours
@given(calls=st.lists(PLAIN, min_size=1, max_size=4))
def test_the_worst_and_all_that_is_in_them(library, tmp_path, calls):
    reference = Reference()
    for call in calls:
        reference.call(call)
    tree = assert_parity(library, tmp_path, [(1, reference.events)])
    for code in {code for code, _, _ in reference.calls}:
        numbered = [(-time, at, within) for at, (of, time, within) in enumerate(reference.calls, 1) if of == code]
        worst = sorted(sorted(numbered)[:8], key=lambda one: one[1])
        assert [(-one.time, one.sequence, told(one.spans)) for one in tree.worst[code]] == worst


def assert_nested(tree: RecordedTree) -> None:
    """Spans lie within their parents and beside each other, callers first; what is left out is shorter."""
    for some in tree.worst.values():
        assert len(some) <= 8
        for one in some:
            ends = {-1: 0}
            for place, span in enumerate(one.spans):
                above = one.spans[span.parent] if span.parent >= 0 else CallSpan(0, -1, 0, one.time)
                assert -1 <= span.parent < place
                assert max(above.started, ends.get(span.parent, 0)) <= span.started
                assert span.time > 0
                assert span.started + span.time <= above.started + above.time
                ends[span.parent] = span.started + span.time


@ours
@given(taken=st.lists(steps, max_size=200))
def test_spans_nest_whatever_a_program_does(library, tmp_path, taken):
    program = Program(more=True)
    for step in taken:
        program.step(*step)
    assert_nested(assert_parity(library, tmp_path, program.pieces))


def rounds(times: list[int], per_round: int) -> list:
    """Function 1 calls function 2 which calls function 3 for so long; so often in one invocation of function 1."""
    events, clock, frame = [], 0, 1
    for at, time in enumerate(times):
        if at % per_round == 0:
            events.append((clock, 1, 1, 0, -1, ENTER))
        events += [
            (clock, 2, 2, 0, -1, ENTER),
            (clock, 3, 3, 0, -1, ENTER),
            (clock := clock + time, 3, 3, -1, -1, EXIT),
        ]
        events.append((clock := clock + 1, 2, 2, -1, -1, EXIT))
        frame += 1
        if at % per_round == per_round - 1:
            events.append((clock := clock + 5, 1, 1, -1, -1, EXIT))
    return events


@pytest.mark.parametrize("per_round", first(1, [20000, 2000, 700, 200]))
def test_of_many_the_longest_stay(library, tmp_path, per_round):
    random = Random(per_round)
    times = [random.randrange(1, 1 << random.randrange(2, 30)) for _ in range(20000)]
    tree = assert_parity(library, tmp_path, [(1, rounds(times, per_round))])
    assert_nested(tree)
    longest = max(tree.worst[1], key=lambda one: one.time)
    sums = [sum(times[at : at + per_round]) for at in range(0, len(times), per_round)]
    at = sums.index(max(sums)) * per_round
    expected = sorted([*times[at : at + per_round], *(time + 1 for time in times[at : at + per_round])], reverse=True)
    kept = sorted((span.time for span in longest.spans), reverse=True)
    assert kept == [time for time in expected[:256] if time > longest.time >> 10 or time in kept]
    assert len(kept) > 20


@pytest.mark.slow
def test_a_hot_callee_leaves_the_others_their_place(library, tmp_path):
    """One call in a thousand takes long: it is there with what it called, whatever else there was."""
    times = [3] * 50000
    times[777] = times[31000] = 4000
    tree = assert_parity(library, tmp_path, [(1, rounds(times, 50000))])
    [one] = tree.worst[1]
    assert sorted((span.time for span in one.spans), reverse=True)[:4] == [4001, 4001, 4000, 4000]
    assert len(one.spans) == 256


def test_generators_and_what_died(library, tmp_path):
    """Segments are spans of whoever resumed them; what a dead frame called is its caller's."""
    events = [
        (0, 1, 1, 0, -1, ENTER), (10, 2, 2, 0, -1, ENTER), (15, 3, 3, 0, -1, ENTER), (18, 3, 3, -1, -1, EXIT),
        (20, 2, 2, -1, -1, YIELD), (30, 2, 2, 0, -1, RESUME), (35, 2, 2, -1, -1, EXIT),
        (40, 4, 4, 0, -1, ENTER), (41, 5, 3, 0, -1, ENTER), (44, 5, 3, -1, -1, EXIT), (50, 1, 0, -1, -1, DEAD),
        (60, 1, 1, -1, -1, EXIT),
    ]  # fmt: skip
    tree = assert_parity(library, tmp_path, [(1, events)])
    node = {(one.parent, one.code): number for number, one in enumerate(tree.nodes)}
    gen, dead = node[1, 2], node[1, 4]
    [one] = tree.worst[1]
    assert one.spans == (
        CallSpan(gen, -1, 10, 10), CallSpan(node[gen, 3], 0, 15, 3), CallSpan(gen, -1, 30, 5),
        CallSpan(node[dead, 3], -1, 41, 3),
    )  # fmt: skip
    assert 2 not in tree.worst, "it was suspended"
    assert 4 not in tree.worst, "it never completed"


def test_bounded_memory_keeps_what_takes_most(library, tmp_path):
    """Three functions with as many spans: the one of least total time gives its spans up."""
    events, clock = [], 0
    for code, time in ((1, 50), (2, 10), (3, 30)):
        for _ in range(3):
            events.append((clock, 9, code, 0, -1, ENTER))
            for _ in range(10):
                events += [(clock, 8, 4, 0, -1, ENTER), (clock := clock + time, 8, 4, -1, -1, EXIT)]
            events.append((clock, 9, code, -1, -1, EXIT))
    tree = assert_parity(library, tmp_path, [(1, events)], limits=TreeLimits(spans=80))
    kept = {code: sum(len(one.spans) for one in some) for code, some in tree.worst.items()}
    assert kept == {1: 30, 2: 0, 3: 0, 4: 0}
    assert all(isinstance(one, LongestCall) and one.time for some in tree.worst.values() for one in some)
