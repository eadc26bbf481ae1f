"""The probes of Python programs: the same names, the same kind of area."""

import subprocess
import sys

import pytest

from perflaw.record.probes import layout
from perflaw.record.probes.areas import AttachedArea as Reader
from tests.record.probe_areas import areas, count_of, probe_of, thread_of, type_of
from tests.record.probe_programs import produced

pytestmark = pytest.mark.interpreter

TABLE = """
from perflaw.probes import *
PERFLAW_PROBE(7, "query")
PERFLAW_PROBE(8, "rows", "rows")
PERFLAW_FIELDS(8, "rows,bytes")
SET_PERFCNTR(1, 0x2e, 0x41)
for at in range(10):
    with CNT_PROBE(1, 4), TPT_PROBE(3, 3), LLC_PROBE(4), FLT_PROBE(5), CTXSW_PROBE(6, 5), PERFCNTR_PROBE(9, 1, 1):
        LAT_PROBE_BEGIN(7, 1)
        LAT_PROBE_END(7)
    SNAPSHOT_PROBE(8, 1, at, -at)
    SNAPSHOT_PROBE(10, 1)
    SNAPSHOT_PROBE(11, 2, 1, 2, 3, 4, 5, at)
"""
BOTH_WAYS = """
from perflaw.probes import *
for kind in ("CNT", "LAT", "TPT", "LLC", "FLT", "CTXSW", "PERFCNTR"):
    begin, end = globals()[f"{kind}_PROBE_BEGIN"], globals()[f"{kind}_PROBE_END"]
    probe = list(globals()).index(f"{kind}_PROBE")
    begin(probe, 1), end(probe), end(probe)
    with globals()[f"{kind}_PROBE"](probe): pass
"""
THREADS = """
import threading
from perflaw.probes import *
def work():
    for at in range(50):
        SNAPSHOT_PROBE(1, 1, at)
        with CNT_PROBE(2, 7): pass
for group in range(4):
    running = [threading.Thread(target=work) for _ in range(6)]
    [one.start() for one in running]
    [one.join() for one in running]
    del running
"""
FORK = """
import os
from perflaw.probes import *
PERFLAW_PROBE(1, "one")
def snap(times):
    for at in range(times): SNAPSHOT_PROBE(1, 1, at)
snap(3)
if not os.fork():
    snap(5)
    os._exit(0)
os.wait()
snap(3)
"""
SIGNAL = """
import signal
from perflaw.probes import *
from perflaw.probes import writer
append = writer.Ring.append
def interrupted(*words):
    if words[3:] and words[4] == (2,): signal.raise_signal(signal.SIGUSR1)
    append(*words)
writer.Ring.append = interrupted
signal.signal(signal.SIGUSR1, lambda *words: SNAPSHOT_PROBE(3, 1, 1))
for at in range(5): SNAPSHOT_PROBE(1, 1, at)
"""
TROUBLE = """
from perflaw.probes import *
for wrong in (-1, 1024, "query", 2.5):
    try: PERFLAW_PROBE(wrong, "x")
    except ValueError as error: print(error)
try: SNAPSHOT_PROBE(1, 1, *range(7))
except ValueError as error: print(error)
try: SET_PERFCNTR(8, 1, 1)
except ValueError as error: print(error)
PERFLAW_PROBE(5, "one"); PERFLAW_PROBE(5, "another")
PERFLAW_PROBE(6, "same"); PERFLAW_PROBE(6, "same")
with LAT_PROBE(7): pass
with CNT_PROBE(7): pass
LAT_PROBE_END(9)
"""


@pytest.fixture
def live(tmp_path):
    """Run a text; the areas that it leaves, and what it printed."""

    def run(text, enable="*", **environment):
        folder = tmp_path / "areas"
        variables = {"PERFLAW_PROBES": str(folder), "PERFLAW_PROBES_ENABLE": enable, **environment}
        done = subprocess.run([sys.executable, "-c", text], env=variables, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return areas(folder) if folder.exists() else [], done.stdout

    return run


def test_all_of_table_1(live):
    [area], _ = live(TABLE)
    assert area.probes()[7] == ("query", "LAT")
    assert {name for _, name in area.probes().values()} == set(layout.TYPES.values())
    assert area.of(1) == [(4,), (4,), (2,)]
    assert [executions for executions, _ in area.of(3)] == [3, 3, 3, 1]
    assert len(area.of(7)) == len(area.of(5)) == 10
    assert len(area.of(6)) == 2
    assert area.of(8) == [(at, -at % 2**64) for at in range(10)]
    assert area.of(10) == [()] * 10
    assert area.of(11) == [(1, 2, 3, 4, 5, at) for at in range(1, 10, 2)]
    for probe in (4, 9):
        assert len(area.of(probe)) + area.entries["refused"][probe] == 10
    assert [int(area.entries["every"][at]) for at in (1, 3, 7)] == [4, 3, 0]
    assert (area.head["clock"], area.head["language"]) == (layout.NANOSECONDS, b"python")
    for one in area.all:
        assert thread_of(one) == area.head["pid"]
        assert layout.TYPES[type_of(one)] == area.probes()[probe_of(one)][1]
        assert count_of(one) <= layout.FIELDS


def test_begin_and_end_do_what_with_does(live):
    [area], _ = live(BOTH_WAYS)
    for probe, (_, kind) in area.probes().items():
        assert len(area.of(probe)) + area.entries["refused"][probe] == 2, kind


def test_a_disabled_probe_writes_nothing(live):
    [area], _ = live(TABLE, enable="rows")
    assert {probe_of(one) for one in area.all} == {8}


def test_threads(live):
    [area], _ = live(THREADS)
    assert produced(area) == len(area.all) == 24 * (50 + 8)
    assert sum(executions for (executions,) in area.of(2)) == 24 * 50
    used = [ring for ring in area.rings if ring["state"]]
    assert len(used) <= 6
    assert {int(ring["state"]) for ring in used} == {layout.ENDED}


def test_threads_without_a_ring(live):
    [area], _ = live(THREADS, PERFLAW_PROBES_RINGS="1", PERFLAW_PROBES_RECORDS="64")
    assert produced(area) >= 24 * 50
    assert len(area.all) == 64


def test_forks(live):
    found, _ = live(FORK)
    assert sorted(produced(area) for area in found) == [5, 6]
    assert all(area.probes() == {1: ("one", "SNAPSHOT")} for area in found)


def test_a_probe_in_a_handler_within_a_probe(live):
    [area], _ = live(SIGNAL)
    assert area.of(1) == [(at,) for at in range(5)]
    assert area.of(3) == []
    assert int(area.rings[0]["lost_nested"]) == 1


def test_wrong_use(live):
    [area], said = live(TROUBLE)
    assert said.splitlines() == [
        *(f"ids of probes are whole numbers from 0 to 1023, not {wrong}" for wrong in ("-1", "1024", "'query'", "2.5")),
        "a SNAPSHOT_PROBE has at most 6 values, not 7",
        "numbers of counters are 0 to 7, not 8",
    ]
    assert area.entries["conflict"].nonzero()[0].tolist() == [5, 7]
    assert area.head["conflicts"] == 2
    assert area.probes()[5][0] == "one"


def test_no_place_for_an_area(live, tmp_path):
    live(TABLE, PERFLAW_PROBES="/dev/null")
    live(TABLE, PERFLAW_PROBES="/proc/nothing")


def test_counters_are_read_where_there_are_any(live, tmp_path):
    """A made up counter: 3, 8, 15, …"""
    made = """
import os, struct
from perflaw.probes import kinds
def made(kind, config):
    file = os.memfd_create("counter")
    os.write(file, b"".join(struct.pack("=Q", at * (at + 2)) for at in range(1, 99)))
    os.lseek(file, 0, 0)
    return file
kinds.perf_event_open = made
"""
    [area], _ = live(made + TABLE)
    assert area.of(9) == [(4 * at + 5,) for at in range(10)], "8 - 3, 24 - 15, …"
    assert area.of(4) == [(4 * at + 5,) * 2 for at in range(10)]


def test_the_collector_reads_it(live, tmp_path):
    live(TABLE)
    [path] = (tmp_path / "areas").iterdir()
    area = Reader(path)
    assert {probe.id: probe.name for probe in area.probes()}[8] == "rows"
    area.close()


def test_it_imports_the_standard_library_alone():
    code = "import sys; before = set(sys.modules); import perflaw.probes; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    tops = {name.split(".")[0] for name in done.stdout.split()}
    assert tops <= sys.stdlib_module_names | {"perflaw"}
    assert not {"ctypes", "resource", "numpy"} & tops
