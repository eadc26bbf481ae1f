"""Every probe of Table 1, by two compilers, in C and in C++, with and without sanitizers: the records that must be there."""

import numpy as np
import pytest

from perflaw.record.probes import layout
from perflaw.record.probes.areas import AttachedArea as Reader
from tests.conftest import first
from tests.record.probe_areas import count_of, cpu_of, probe_of, thread_of, type_of
from tests.record.probe_programs import CXX, C, built, run

CLANG, CLANGXX = ("clang", "-std=c11"), ("clang++", "-std=c++17", "-x", "c++")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
BUILDS = {
    "gcc c99": (("gcc", "-std=c99", "-masm=intel"),),
    "gcc -O0": (C, "-O0"),
    "gcc -O3 -flto static": (C, "-O3", "-flto", "-static"),
    "gcc no pie": (C, "-no-pie", "-fno-pie", "-Wl,--gc-sections", "-ffunction-sections"),
    "clang": (CLANG,),
    "clang -O0": (CLANG, "-O0"),
    "g++": (CXX,),
    "clang++": (CLANGXX,),
    "g++ c++20": (("g++", "-std=c++20", "-x", "c++"), "-Os", "-fvisibility=hidden"),
    "gcc sanitized": (C, *SANITIZE),
    "g++ sanitized": (CXX, *SANITIZE),
    "instrumented": (C, "-finstrument-functions", "-O1"),
}
NAMES = {
    1: ("", "CNT"), 3: ("", "TPT"), 4: ("", "LLC"), 5: ("", "FLT"), 6: ("", "CTXSW"), 7: ("query", "LAT"),
    8: ("rows", "SNAPSHOT"), 9: ("", "PERFCNTR"), 10: ("", "SNAPSHOT"), 11: ("", "SNAPSHOT"), 12: ("", "LAT"),
    1023: ("a name that is far longer than the 47 letters th", ""),
}  # fmt: skip


@pytest.mark.parametrize("build", first(6, map(pytest.param, BUILDS.values())), ids=BUILDS)
def test_all_of_them(build, tmp_path):
    [area], _ = run(built("table.c", *build), 10, folder=tmp_path / "areas")
    assert area.probes() == {**NAMES, 1023: (NAMES[1023][0][:47], "")}, "those as well that were never executed"
    assert area.of(1) == [(4,), (4,), (2,)], "every fourth, and what was left at the end"
    assert len(area.of(7)) == 10
    assert [executions for executions, _ in area.of(3)] == [3, 3, 3, 1]
    assert sum(cycles for _, cycles in area.of(3)) < sum(cycles for (cycles,) in area.of(7)), "it lies within"
    assert all(4 <= minor <= 20 and major == 0 for minor, major in area.of(5)[1:])
    assert len(area.of(6)) == 2
    assert area.of(8) == [(at, -at % 2**64) for at in range(10)]
    assert area.of(10) == [()] * 10
    assert area.of(11) == [(1, 2, 3, 4, 5, at) for at in range(1, 10, 2)]
    assert bytes(area.entries["fields"][8]) == b"rows,bytes"
    assert [int(area.entries["every"][at]) for at in (1, 3, 7)] == [4, 3, 0]
    assert not area.entries["conflict"].any()


def test_what_else_a_record_says(tmp_path):
    [area], _ = run(built("table.c"), 10, folder=tmp_path / "areas")
    pid = int(area.head["pid"])
    assert area.name.startswith(f"{pid}.")
    for one in area.all:
        assert layout.TYPES[type_of(one)] == NAMES[probe_of(one)][1]
        assert thread_of(one) == pid
        assert cpu_of(one) < 1024
        assert count_of(one) <= layout.FIELDS
    assert (np.diff(area.all["timestamp"].astype("i8")) >= 0).all()
    assert area.head["clock"] == layout.TSC
    assert area.head["language"] == b"c"
    assert area.head["tsc0"] < area.all["timestamp"][0]


def test_cycles_are_of_the_clock(tmp_path):
    """A LAT record ends where its timestamp is, and began where another probe's was."""
    [area], _ = run(built("table.c"), 3, folder=tmp_path / "areas")
    for one in area.all:
        if type_of(one) == layout.LAT:
            assert 0 < one["fields"][0] < one["timestamp"] - area.head["tsc0"]


@pytest.mark.parametrize("build", [(C,), (CXX, "-DPERFLAW_CLOCK_NS")], ids=["cycles", "no cycles"])
def test_other_machines_have_nanoseconds(build, tmp_path):
    [area], _ = run(built("table.c", *build), 2, folder=tmp_path / "areas")
    nanoseconds = "-DPERFLAW_CLOCK_NS" in build
    assert area.head["clock"] == (layout.NANOSECONDS if nanoseconds else layout.TSC)
    assert area.head["language"] == (b"c++" if nanoseconds else b"c")
    if nanoseconds:
        assert area.head["tsc0"] <= area.all["timestamp"][0] < area.head["tsc0"] + 60 * 10**9


@pytest.mark.parametrize(
    ("enable", "found"),
    [
        ("", set()),
        ("query", {7}),
        ("1,rows", {1, 8}),
        ("10", {10}),
        ("quer,queryx,70,nothing,,", set()),
        ("11,*", None),
    ],
)
def test_only_what_is_enabled_records(enable, found, tmp_path):
    [area], _ = run(built("table.c"), 3, folder=tmp_path / "areas", enable=enable)
    everything = {1, 3, 5, 7, 8, 10, 11}
    assert {probe_of(one) for one in area.all} == (everything if found is None else found)
    assert len(area.probes()) == len(NAMES)
    assert bool(area.head["enable_all"]) == (found is None)


def test_hardware_counters_are_refused_with_the_reason(tmp_path):
    """Where this machine has them, they are read; here or there, each execution is a record or a refusal."""
    [area], _ = run(built("table.c"), 10, folder=tmp_path / "areas")
    for probe in (4, 9):
        assert len(area.of(probe)) + area.entries["refused"][probe] == 10
    if area.entries["refused"].any():
        assert area.head["refusal"].decode().startswith("perf_event_open: ")
        assert "(errno " in area.head["refusal"].decode()


def test_a_c_library_that_does_not_tell_the_cpu(tmp_path):
    """Older ones, or one that was told not to: the kernel is asked."""
    [area], _ = run(built("table.c"), 2, folder=tmp_path / "areas", GLIBC_TUNABLES="glibc.pthread.rseq=0")
    assert all(cpu_of(one) < 1024 for one in area.all)
    assert len(area.of(7)) == 2


def test_left_out_by_the_compiler(tmp_path):
    found, _ = run(built("table.c", C, "-DPERFLAW_PROBES_OFF", "-Wno-unused-function"), 3, folder=tmp_path / "areas")
    assert not found


def test_the_collector_reads_it(tmp_path):
    run(built("table.c"), 3, folder=tmp_path / "areas")
    [path] = (tmp_path / "areas").iterdir()
    area = Reader(path)
    named = {probe.id: (probe.name, probe.type) for probe in area.probes()}
    area.close()
    assert named[7] == ("query", "LAT")
    assert len(named) == len(NAMES)
