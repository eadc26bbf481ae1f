"""Received and lost are what was produced, however writer and reader alternate; what is received is whole and in order."""

import mmap
import os
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.record.probes import layout
from perflaw.record.probes.rings import RingFile, RingReader

CAPACITY = 16


class Writer:
    """A ring in a file in memory, and the thread that writes it."""

    def __init__(self):
        descriptor = os.memfd_create("ring")
        weakref.finalize(self, os.close, descriptor)
        os.truncate(descriptor, layout.ring_bytes(CAPACITY))
        data = np.frombuffer(mmap.mmap(descriptor, 0), np.uint8)
        self.head = data[: layout.RING_HEAD_BYTES].view(layout.RING)
        self.records = data[layout.RING_HEAD_BYTES :].view(layout.RECORD)
        self.file = RingFile(descriptor, 0, CAPACITY)

    def write(self, count):
        for _ in range(count):
            at = int(self.head["head"][0])
            self.records[at % CAPACITY]["timestamp"] = at
            self.head["head"] = at + 1


STEPS = st.lists(
    st.one_of(st.tuples(st.just("write"), st.integers(0, 40)), st.tuples(st.just("take"), st.integers(1, 20)))
)


@given(STEPS)
def test_every_record_is_received_or_lost(steps):
    writer = Writer()
    ring, got = RingReader(writer.file), []
    for step, number in steps:
        if step == "write":
            writer.write(number)
        else:
            got += ring.take(number)["timestamp"].tolist()
    while len(taken := ring.take(100, quiet=True)):
        got += taken["timestamp"].tolist()
    tally = ring.tally()
    assert tally.produced == tally.received + tally.lost == int(writer.head["head"][0])
    assert tally.received == len(got)
    assert got == sorted(set(got))
    assert got[-1:] == ([tally.produced - 1] if tally.produced else [])


@given(st.integers(0, CAPACITY - 2), st.integers(1, 3 * CAPACITY))
def test_what_the_writer_reaches_during_the_copy_is_lost(before, during):
    """The writer goes on between the copy and the second look at its head: the records that it reached do not count."""
    writer = Writer()
    ring = RingReader(writer.file)
    writer.write(before)
    copied = ring._copied

    def copy_and_write(first, count):
        taken = copied(first, count)
        writer.write(during)
        return taken

    ring._copied = copy_and_write
    got = ring.take(100)["timestamp"].tolist()
    safe = before + during - CAPACITY + 1
    assert got == [number for number in range(before) if number >= safe]
    assert ring.overwritten + ring.received == before


def test_a_full_ring_is_whole_when_nobody_writes():
    writer = Writer()
    writer.write(CAPACITY)
    assert len(RingReader(writer.file).take(100, quiet=True)) == CAPACITY
    ring = RingReader(writer.file)
    assert ring.take(100)["timestamp"].tolist() == list(range(1, CAPACITY))  # the first may be at work
    assert ring.tally().lost == 1


def test_a_reader_that_comes_later_answers_for_what_follows():
    writer = Writer()
    writer.write(5)
    writer.head["lost_nested"] = 3
    ring = RingReader(writer.file, from_now=True)
    writer.write(2)
    writer.head["lost_nested"] = 4
    assert ring.take(100)["timestamp"].tolist() == [5, 6]
    assert (ring.tally().produced, ring.tally().received, ring.tally().lost) == (3, 2, 1)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_at_most_so_many_are_taken(most):
    writer = Writer()
    writer.write(10)
    assert len(RingReader(writer.file).take(most)) == min(most, 10)


@pytest.mark.parametrize("head", [1 << 60, 2, (1 << 64) - 1])
def test_a_head_that_cannot_be_ends_the_reading_and_is_counted(head):
    writer = Writer()
    writer.write(5)
    ring = RingReader(writer.file)
    assert len(ring.take(100)) == 5
    writer.head["head"], writer.head["lost_nested"] = head, (1 << 64) - 1
    assert len(ring.take(100)) == 0
    assert (ring.tally().produced, ring.tally().received, ring.tally().lost) == (5 + CAPACITY, 5, CAPACITY)


@pytest.mark.parametrize("left", [0, 64, 100, layout.RING_HEAD_BYTES, layout.RING_HEAD_BYTES + 7 * layout.RECORD_BYTES])
def test_a_ring_whose_file_was_truncated_is_lost_from_there_on(left):
    writer = Writer()
    ring = RingReader(writer.file)
    writer.write(5)
    assert len(ring.take(100)) == 5
    writer.write(10)
    os.truncate(writer.file.descriptor, left)
    assert len(ring.take(100)) == 0
    tally = ring.tally()
    assert (tally.received, tally.lost) == (5, tally.produced - 5)
    assert tally.lost >= 10


def test_a_number_that_is_read_in_two_halves_is_read_again():
    """While 0x00ff becomes 0x0100, half of each may be seen: 0x01ff or 0x0000."""
    readings = iter([0x01FF, 0x0100, 0x0000, 0x0100, 0x0101, 0x0102])
    halves = type("Halves", (RingFile,), {"_number": lambda self, name: next(readings)})
    assert halves(-1, 0, CAPACITY).counter("head", 0x00FF) == 0x0101
