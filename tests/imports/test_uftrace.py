"""Data of the real uftrace: the same calls as by our own hooks, on the same program; and any records by a plain recount."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file, import_trace
from perflaw.imports.uftrace import Tasks, parse_dump
from perflaw.record.tree.tables import tabulate
from perflaw.store.experiment import Recording, open_experiment
from tests.conftest import assert_identities, first
from tests.record.test_hooks import HOOKS, built, calls, paths, recorded

QUIET = ("--no-event", "--no-libcall")
"""Functions of the program alone: nothing of the kernel and of libraries."""


def traced(folder: Path, options: tuple[str, ...], *command: object) -> Path:
    """A folder of uftrace."""
    data = folder / "data"
    words = ["uftrace", "record", *options, "-d", str(data), *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return data


def imported(folder: Path, data: Path) -> list[Recording]:
    experiment = open_experiment("imported", folder)
    import_trace(experiment, data, {}, lambda text: None)
    for recording in experiment.recordings():
        assert_identities(recording.tables())
    return experiment.recordings()


@pytest.fixture(scope="module")
def jumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("jumps"), "jumps.c", "-O1", HOOKS)


@pytest.mark.parametrize(("way", "number"), first(3, [
    ("threads", 200), ("tail", 300), ("inlined", 5), ("longjmp", 5), ("nested", 5), ("landing", 5), ("forks", 3),
]))  # fmt: skip
def test_calls_are_those_that_our_own_hooks_count(jumps: Path, tmp_path: Path, way: str, number: int) -> None:
    """Those of libraries are left out here, but recorded: without them uftrace does not follow longjmp."""
    ours = recorded(tmp_path, jumps, way, number)
    theirs = imported(tmp_path, traced(tmp_path, ("--no-event",), jumps, way, number))
    known = {name for one in ours for name in calls(one) | dead(one)}
    assert sorted(by_caller(one, known) for one in theirs) == sorted(by_caller(one, known) for one in ours)
    for count in (calls, dead):
        expected = [sorted(count(one).items()) for one in ours]
        assert sorted(sorted((k, v) for k, v in count(one).items() if k in known) for one in theirs) == sorted(expected)
    assert all(one.run.target == "jumps" and one.run.complete for one in theirs)


def dead(recording: Recording) -> Counter[str]:
    """Calls that did not end, by function."""
    return Counter({row[1]: row[8] for row in recording.tables()["components"] if row[8]})


def by_caller(recording: Recording, known: set[str]) -> list[tuple[str, int]]:
    """Of recursion an imported trace folds at another depth, for it has no call sites: so by function and caller."""
    pairs: Counter[str] = Counter()
    for path, count in paths(recording).items():
        caller, name = path.split("/")[-2:]
        if name in known:
            pairs[f"{caller}/{name}"] += count
    return sorted(pairs.items())


def test_names_and_exceptions_of_cpp(tmp_path: Path) -> None:
    program = built(tmp_path, "throws.cc", "-O2", HOOKS)
    (ours,) = recorded(tmp_path, program)
    (theirs,) = imported(tmp_path, traced(tmp_path, QUIET, program))
    expected = Counter({name.partition("<")[0]: count for name, count in calls(ours).items()})  # it leaves <int> out
    assert calls(theirs) == expected


def test_a_program_for_gprof_with_libraries_the_kernel_and_arguments(tmp_path: Path) -> None:
    program = built(tmp_path, "jumps.c", "-O0", "-pg")
    (recording,) = imported(tmp_path, traced(tmp_path, ("-a",), program, "threads", 20))
    counted = calls(recording)
    assert (counted["leaf"], counted["outer"], counted["pthread_create"]) == (320, 160, 8)
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    sampled = {row[1] for row in tables["invocations"] if names[row[2]] == "outer"}
    assert {row[2:4] for row in tables["features"] if row[1] in sampled} == {("arg1", 2.0)}
    assert all("linux:sched-" not in name for name in names.values())


def test_a_dumped_file_is_read_as_well(jumps: Path, tmp_path: Path) -> None:
    data = traced(tmp_path, ("--no-event",), jumps, "threads", 20)
    dumped = subprocess.run(["uftrace", "dump", "--chrome", "-d", data], capture_output=True, check=True).stdout
    (tmp_path / "dumped.json").write_bytes(dumped)
    (recording,) = imported(tmp_path, tmp_path / "dumped.json")
    assert (calls(recording)["outer"], calls(recording)["leaf"]) == (160, 320)
    assert (recording.run.target, recording.run.tracer.split(":")[1].strip()) == ("jumps", "uftrace in dumped.json")


def test_without_uftrace_it_says_what_to_do(perflaw, tmp_path: Path) -> None:
    data = tmp_path / "uftrace.data"
    data.mkdir()
    (data / "info").write_text("x")
    (data / "1.dat").write_text("x")
    said = perflaw("import", "uftrace.data", status=2, env={**os.environ, "PATH": str(tmp_path)}).stderr
    assert "uftrace dump --chrome -d uftrace.data" in said
    assert "cannot read its data" in perflaw("import", "uftrace.data", status=2).stderr


MOVES = st.lists(st.one_of(st.sampled_from("abc"), st.just("end"), st.integers(0, 5)), max_size=60)


@settings(deadline=None)
@given(MOVES)
def test_whatever_is_jumped_over_is_dead(moves: list[str | int]) -> None:
    """A letter begins a call, a number cuts the stack to that height, as longjmp would."""
    stack: list[str] = []
    ended: Counter[str] = Counter()
    text, died = [], 0
    for stamp, move in enumerate(moves, 1):
        if isinstance(move, int):
            died += max(0, len(stack) - move)
            del stack[move:]
        elif move == "end":
            if stack:
                ended["/" + "/".join(stack)] += 1
                text.append(f"7.{stamp:09d}  5: [exit ] {stack.pop()}(aa) depth: {len(stack)}")
        elif len(stack) < 6:
            text.append(f"7.{stamp:09d}  5: [entry] {move}(aa) depth: {len(stack)}")
            stack.append(move)
    trace = parse_dump(text, Tasks({}, {}))
    assert not trace.lost
    for process in trace.processes:
        assert not process.notes
        tables = tabulate("1", process.tree(core_file(lambda words: None), 1), process.definitions)
        assert_identities(tables)
        rows = {row[1]: (row[7], row[8]) for row in tables["components"]}
        by_name: Counter[str] = Counter()
        for path, count in ended.items():
            by_name[path[-1]] += count
        assert {name: count for name, (count, _) in rows.items() if count} == by_name
        assert sum(dead for _, dead in rows.values()) == died + len(stack)


def test_lost_records_make_a_run_incomplete(tmp_path: Path) -> None:
    lines = ["1.000000001  9: [lost ] 5 records(0)", "1.000000002  9: [entry] f(a) depth: 0"]
    trace = parse_dump(lines, Tasks({}, {9: "program"}))
    assert "lost records" in trace.lost
    assert [(process.name, process.pid) for process in trace.processes] == [("program", 9)]
    assert trace.first() == 1_000_000_002


def test_numbers_with_leading_zeros_are_read(tmp_path: Path) -> None:
    lines = ["1.000000002  9: [entry] f(a) depth: 0", "  args[0] d32: 0007", "1.000000003  9: [exit ] f(a) depth: 0"]
    assert parse_dump(lines, Tasks({}, {9: "program"})).processes


def test_traces_of_the_real_tool_are_recognised(jumps: Path, tmp_path: Path) -> None:
    trace = read_trace(traced(tmp_path, QUIET, jumps, "inlined"))
    assert (trace.tool, trace.tick_ns, len(trace.processes)) == ("uftrace", 1, 1)
