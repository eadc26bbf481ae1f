"""Areas found, attached, drained in turn; what is none is refused; processes come and go."""

import os
import subprocess
import time

import numpy as np
import pytest

from perflaw.errors import StoreError
from perflaw.record.probes import layout
from perflaw.record.probes.areas import AttachedArea, area_files
from perflaw.record.probes.collector import Collector, Sender, as_message, from_message
from perflaw.record.probes.decoding import decode, executions
from perflaw.record.probes.rings import RecordAccount, TickClock, clock_of, moment
from perflaw.wire.channel import Message, WireError
from tests.record.probes.fake import FakeArea, drain_all, what


def gone():
    """A process id that is nobody's."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_no_ring_keeps_others_waiting(tmp_path):
    area = FakeArea(tmp_path, records=1024)
    for number in range(900):
        area.lat(1, number, number + 1, ring=0)
    area.lat(2, 0, 5, ring=1)
    collector = Collector([tmp_path], most=100)
    collector.look()
    first = collector.drain()
    assert [(piece.ring, len(piece.records)) for piece in first.pieces] == [(0, 100), (1, 1)]
    assert sum(batch.count for batch in drain_all(collector)) == 800


def test_a_turn_is_bounded_and_the_next_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("perflaw.record.probes.collector.TURN", 50)
    area = FakeArea(tmp_path, records=64)
    for ring in range(4):
        for number in range(40):
            area.lat(1, number, number + 1, ring=ring)
    collector = Collector([tmp_path])
    collector.look()
    turns = [[(piece.ring, len(piece.records)) for piece in collector.drain().pieces] for _ in range(4)]
    assert [sum(count for _, count in turn) for turn in turns] == [50, 50, 50, 10]
    assert [turn[0][0] for turn in turns[:2]] == [0, 2]  # the next turn begins where the last one ended


def test_every_kind_of_loss_is_counted(tmp_path):
    area = FakeArea(tmp_path)
    for number in range(40):  # of 16 places
        area.lat(1, number, number + 1)
    area.ring(0)[0]["lost_nested"] = 3
    area.head["lost_no_ring"] = 5
    batch = drain_all(Collector([tmp_path]))[-1]
    assert batch.tally == RecordAccount(48, 15, 33)


def test_a_process_that_has_gone_is_drained_to_its_last_record_and_its_area_removed(tmp_path):
    area = FakeArea(tmp_path, pid=gone())
    for number in range(16):
        area.lat(1, number, number + 1)
    batches = drain_all(Collector([tmp_path]))
    assert batches[-1].tally == RecordAccount(16, 16, 0)
    assert batches[-1].sources[0].gone
    assert not area.path.exists()


def test_threads_that_come_and_go_share_a_ring(tmp_path):
    area = FakeArea(tmp_path)
    for thread in (11, 12, 13):
        area.take_ring(0, thread)
        area.lat(1, 0, 5, thread=thread)
        area.ring(0)[0]["state"] = layout.ENDED
    (batch, *_) = drain_all(Collector([tmp_path]))
    assert decode(batch.pieces[0], batch.sources[0]).thread.tolist() == [11, 12, 13]


def test_rings_and_areas_that_appear_later_are_taken(tmp_path):
    first = FakeArea(tmp_path)
    collector = Collector([tmp_path])
    collector.look()
    first.lat(1, 0, 1)
    second = FakeArea(tmp_path, name=f"{os.getpid()}.7.1")
    second.lat(2, 0, 1, ring=0)
    assert sum(batch.count for batch in drain_all(collector)) == 2
    assert len(collector.sources) == 2


def test_only_the_processes_asked_for(tmp_path):
    FakeArea(tmp_path).lat(1, 0, 1)
    FakeArea(tmp_path, pid=gone()).lat(1, 0, 1)
    assert sum(batch.count for batch in drain_all(Collector([tmp_path], [os.getpid()]))) == 1


@pytest.mark.parametrize("left", [0, layout.HEAD_BYTES, layout.ring_offset(0, 16) + 100, layout.ring_offset(1, 16)])
def test_an_area_that_its_owner_truncates_ends_nothing(tmp_path, left):
    area, other = FakeArea(tmp_path), FakeArea(tmp_path, pid=os.getppid())
    area.register(2, "query", layout.LAT)
    for ring in (0, 1):
        area.lat(2, 0, 5, ring=ring)
    collector = Collector([tmp_path])
    assert drain_all(collector)[0].tally == RecordAccount(2, 2, 0)
    area.lat(2, 5, 9, ring=1)
    os.truncate(area.path, left)
    other.lat(2, 0, 5)
    batch = drain_all(collector)[-1]
    sources = {one.pid: one for one in batch.sources.values()}
    assert sources[os.getpid()].tally.lost > 0
    assert sources[os.getppid()].tally == RecordAccount(1, 1, 0)
    assert [probe.name for probe in sources[os.getpid()].probes] == ["query"]
    for attached in collector.areas():
        attached.enable_all()
        attached.subsample([2], 9)
    assert area.path.stat().st_size == left
    assert bool(other.head["enable_all"][0])


def damage(area, name, value):
    area.head[name] = value
    area.data.flush()
    return area.path


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("magic", 1, "first bytes"),
        ("version", 9, "version 9"),
        ("rings", 0, "cannot be"),
        ("rings", 1 << 30, "cannot be"),
        ("rings", 400, "shorter"),
        ("ring_records", 12, "cannot be"),
        ("ring_records", 1 << 31, "cannot be"),
        ("clock", 7, "clock 7"),
    ],
)
def test_damaged_areas_are_refused(tmp_path, name, value, why):
    path = damage(FakeArea(tmp_path), name, value)
    with pytest.raises(StoreError, match=why):
        AttachedArea(path)
    collector = Collector([tmp_path])
    assert drain_all(collector)[0].count == 0
    assert why in collector.refused[path]


def test_files_that_are_none(tmp_path):
    for name, text in (("12.13", b""), ("12.14", b"x" * 5000), ("notes.txt", b"?"), (".new-1-2", b"?")):
        (tmp_path / name).write_bytes(text)
    (tmp_path / "12.15").symlink_to("/etc/passwd")
    (tmp_path / "99.1").mkdir()
    assert [path.name for path in area_files([tmp_path, tmp_path / "none"])] == ["12.13", "12.14", "12.15", "99.1"]
    assert drain_all(Collector([tmp_path]))[0].count == 0


def test_the_counter_of_this_machine_becomes_ns():
    now = moment()
    if now is not None:  # on other machines the header writes ns
        first = moment()
        time.sleep(0.02)
        clock = clock_of(False, *first, moment())
        ticks, ns = moment()
        assert abs(int(clock.ns(np.array([ticks], np.uint64))[0]) - ns) < 100_000
        assert 0.05 < clock.ns_per_tick < 5


def test_ticks_and_lengths():
    clock = TickClock(1000, 50, 0.5)
    assert clock.ns(np.array([1000, 3000], np.uint64)).tolist() == [50, 1050]
    assert clock.lengths(np.array([7, 8])).tolist() == [4, 4]
    assert clock_of(True, 5, 6, None) == TickClock()


def test_batches_survive_the_way(tmp_path):
    area = FakeArea(tmp_path)
    area.register(1, "query", layout.LAT)
    area.register(2, "work", layout.SNAPSHOT, "rows,size", "B")
    area.shot(2, 3, 100, 200)
    area.lat(1, 0, 5)
    collector = Collector([tmp_path])
    collector.look()
    sent, known = collector.drain(), {}
    document, payload = as_message(sent, known)
    got = from_message(Message("batch", document, payload), known)
    assert (got.sources, got.at_ns) == (sent.sources, sent.at_ns)
    assert got.pieces[0].records.tobytes() == sent.pieces[0].records.tobytes()
    area.lat(1, 6, 9)
    document, payload = as_message(after := collector.drain(), sent.sources)
    assert document["sources"][0].keys() == {"number", "tally"}  # the rest is known
    there = from_message(Message("batch", document, payload), got.sources)
    assert there.sources == after.sources


def test_times_of_other_hosts_are_moved_and_their_numbers_kept_apart(tmp_path):
    FakeArea(tmp_path).lat(1, 0, 5)
    collector = Collector([tmp_path])
    collector.look()
    got = from_message(Message("batch", *as_message(collector.drain(), {})), {}, Sender("db1:7471", 1 << 20, 1000))
    (piece,), source = got.pieces, got.sources[1 << 20]
    assert (source.number, source.host, piece.source) == (1 << 20, "db1:7471", 1 << 20)
    assert decode(piece, source).at.tolist() == [1005]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"sources": [], "pieces": [[0, 0, 1]], "at_ns": 0},
        {"sources": [], "pieces": [], "at_ns": 0},
        {"sources": [{"number": 0}], "pieces": [], "at_ns": 0},
        {"sources": 7, "pieces": [], "at_ns": 0},
    ],
)
def test_batches_that_do_not_hold_together_are_refused(document):
    with pytest.raises(WireError):
        from_message(Message("batch", document, b"x" * 64), {})


def test_executions(tmp_path):
    area = FakeArea(tmp_path)
    area.register(1, "lat", layout.LAT)
    area.register(3, "tpt", layout.TPT)
    area.entries["every"][1] = 10
    area.lat(1, 0, 5)
    area.write(0, what(3, layout.TPT, 2), 9, 7, 70)
    (batch, *_) = drain_all(Collector([tmp_path]))
    assert executions(decode(batch.pieces[0], batch.sources[0])).tolist() == [10, 7]
