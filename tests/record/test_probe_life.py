"""Probes in threads, forks, signal handlers, around main, in killed programs: every record is accounted for."""

import subprocess

import numpy as np
import pytest

from perflaw.record.probes import layout
from tests.record.probe_areas import areas, probe_of, thread_of
from tests.record.probe_programs import C, built, produced, run

THREAD_SANITIZER = ("-fsanitize=thread", "-g", "-O1")


@pytest.fixture
def life(tmp_path):
    """Run ``life`` in one of its ways."""

    def live(*words, build=(C,), **options):
        return run(built("life.c", *build), *words, folder=tmp_path / "areas", **options)

    return live


def test_threads_have_rings_and_leave_them(life):
    [area], _ = life("threads", 24, 8)
    assert produced(area) == 24 * 12, "10 records, and one of 3 executions and one of the 2 that were left"
    assert sorted(area.of(2)) == sorted([(3,), (2,)] * 24)
    used = [ring for ring in area.rings if ring["state"]]
    assert len(used) <= 8, "a thread takes the ring of one that has ended"
    assert {int(ring["state"]) for ring in used} == {layout.ENDED}
    assert all(one["fields"][0] for one in area.all if probe_of(one) == 1) is False
    for ring, records in zip(area.rings, area.records, strict=True):
        assert not len(records) or ring["thread"] == thread_of(records[-1])
    by_thread = {}
    for one in area.all:
        by_thread.setdefault(thread_of(one), []).append(int(one["fields"][0]))
    assert all(values[:10] == list(range(10)) for values in by_thread.values())


def test_old_records_are_overwritten_and_counted(life):
    [area], _ = life("threads", 6, 1, PERFLAW_PROBES_RECORDS="16")
    assert area.head["ring_records"] == 16
    assert int(area.rings[0]["head"]) == produced(area) == 6 * 12
    assert len(area.all) == 16


def test_threads_without_a_ring_count_what_they_lose(life):
    [area], _ = life("threads", 16, 16, PERFLAW_PROBES_RINGS="1")
    assert area.head["rings"] == 1
    assert produced(area) >= 16 * 12  # an execution without a ring cannot be put together with others to one record
    assert produced(area) <= 16 * 15


def test_senseless_sizes_are_not_taken(life):
    [area], _ = life("threads", 1, 1, PERFLAW_PROBES_RINGS="x", PERFLAW_PROBES_RECORDS="100")
    assert (area.head["rings"], area.head["ring_records"]) == (layout.RINGS, layout.RING_RECORDS)


def test_a_fork_has_an_area_of_its_own(life):
    found, _ = life("fork")
    assert sorted(produced(area) for area in found) == [5, 6, 7]
    assert all({thread_of(one) for one in area.all} == {int(area.head["pid"])} for area in found)
    assert all(area.probes() == found[0].probes() for area in found)


def test_a_fork_that_tells_nobody(life):
    """``clone`` without the C library: the kernel empties what such a child must not use."""
    found, _ = life("bare")
    assert sorted(produced(area) for area in found) == [5, 6, 7]


def test_threads_of_a_forks_child_that_begin_at_once(tmp_path):
    """One of them makes the child's area: what the others lose meanwhile is counted."""
    for turn in range(25):
        options = {"PERFLAW_PROBES_RECORDS": "64"}
        found, _ = run(built("../probed.c", C), 3, 4, 1500, "together", folder=tmp_path / str(turn), **options)
        assert [produced(area) for area in found] == [4 * (2 * 1500 + 1)] * 3


def test_a_child_of_vfork_writes_as_its_parent(life):
    [area], _ = life("vfork")
    assert produced(area) == len(area.all) == 8
    assert [value for (value,) in area.of(1)] == [0, 1, 2, 0, 1, 0, 1, 2]


def test_exec_begins_an_area_of_its_own(life):
    first, second = sorted(life("x")[0], key=lambda area: area.name.count("."))
    assert second.name == f"{first.name}.1"
    assert (produced(first), produced(second)) == (3, 7)


def test_before_and_after_main(life):
    [area], _ = life("a", EARLY="1")
    assert produced(area) == 6 + 3 + 4
    assert len(area.of(1)) == 13


@pytest.mark.parametrize("build", [(C,), (C, "-O0"), (C, *THREAD_SANITIZER)], ids=["O2", "O0", "TSan"])
def test_a_signal_handlers_probe_never_tears_a_record(life, build):
    [area], said = life("signals", 50_000, build=build, PERFLAW_PROBES_RECORDS=str(1 << 17))
    assert produced(area) == int(said)
    for probe in (1, 3):
        values = np.array([value for (value,) in area.of(probe)])
        assert (np.diff(values) > 0).all(), "in order, none twice"
    assert len(area.of(1)) == 50_000


def test_a_probe_within_a_probe_is_counted_as_lost(life):
    [area], _ = life("nested", build=(C, "-DPERFLAW_CLOCK_NS"))
    assert area.of(1) == [(0,), (1,), (0,), (1,)]
    assert area.of(3) == []
    assert int(area.rings[0]["lost_nested"]) == 1
    assert produced(area) == 5


def test_threads_under_the_sanitizer(life):
    [area], _ = life("threads", 32, 16, build=(C, *THREAD_SANITIZER), TSAN_OPTIONS="halt_on_error=1")
    assert produced(area) == 32 * 12


def test_what_a_killed_program_recorded_is_there(life):
    [area], _ = life("k", 1000, status=-9)
    assert [value for (value,) in area.of(1)] == list(range(1000))


def test_errno_is_the_programs(life):
    _, said = life("errno")
    assert said == "77\n"


def test_it_is_switched_from_outside(tmp_path):
    """Enabled, subsampled and disabled while the program runs."""
    from perflaw.record.probes.areas import AttachedArea as Reader

    folder = tmp_path / "areas"
    environment = {"PERFLAW_PROBES": str(folder)}
    with subprocess.Popen(
        [built("life.c"), "demand"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as program:

        def again():
            program.stdin.write("go\n")
            program.stdin.flush()
            assert program.stdout.readline() == "done\n"
            return [executions for executions, _ in areas(folder)[0].of(6)]

        assert again() == []
        area = Reader(next(folder.iterdir()))
        area.enable([6])
        assert again() == [1] * 6
        area.subsample([6], 4)
        assert again() == [1] * 6 + [4]
        assert again() == [1] * 6 + [4, 4, 4], "two were left of the time before"
        area.enable([6], False)
        assert again() == [1] * 6 + [4, 4, 4]
        area.close()
        program.stdin.close()
    assert program.returncode == 0
