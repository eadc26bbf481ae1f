"""Compiled programs by the hooks of -finstrument-functions: calls that are known, however they end."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from perflaw.errors import TargetError
from perflaw.record.plan import make_plan
from perflaw.record.session import record_all
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import TracerChoice
from perflaw.store.experiment import Recording, open_experiment
from perflaw.store.tables import read_table
from tests.conftest import assert_identities, first

PROGRAMS = Path(__file__).parents[1] / "programs"
HOOKS = "-finstrument-functions"


def built(folder: Path, source: str, *flags: str, compiler: str = "gcc") -> Path:
    program = folder / Path(source).stem
    if source.endswith(".cc"):
        compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
    command = [compiler, *flags, "-g", str(PROGRAMS / source), "-o", str(program), "-pthread"]
    subprocess.run(command, check=True, capture_output=True)
    return program


def build_id_of(source: str, variant: str) -> str:
    """An option for a build id of this variant of this source alone, because what is learnt of a build is kept."""
    digest = hashlib.sha256((PROGRAMS / source).read_bytes() + variant.encode()).hexdigest()[:40]
    return f"-Wl,--build-id=0x{digest}"


def recorded(
    folder: Path,
    *command: object,
    clock: str = "real",
    fails: bool = False,
    select: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    native: str = "auto",
    collect: tuple[str, ...] = (),
) -> list[Recording]:
    settings = RecordSettings(select, exclude, clock=clock, native=native, collect=collect)
    experiment = open_experiment("hooks", folder)
    plan = make_plan(tuple(map(str, command)), {}, 1, {})
    for attempt in record_all(experiment, plan, TracerChoice("auto", lambda text: None), settings):
        assert attempt.error is None, attempt.error
    recordings = experiment.recordings()
    for recording in recordings:
        assert_identities(recording.tables())
        assert recording.run.complete != fails or recording.run.parent
    return recordings


def calls(recording: Recording) -> Counter[str]:
    """Completed calls by function, those that did not end left out."""
    return Counter({row[1]: row[7] for row in recording.tables()["components"] if row[7]})


def opened(recording: Recording) -> int:
    return recording.run.lost.open_invocations


def paths(recording: Recording) -> Counter[str]:
    """Completed calls by their path of functions."""
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]} | {-1: ""}
    path = {}
    for node, parent, component, *_ in tables["calltree"]:
        path[node] = f"{path[parent]}/{names[component]}" if node else ""
    counted: Counter[str] = Counter()
    for node, metric, n, *_ in tables["moments"]:
        if metric == "time" and n:
            counted[path[node]] += n
    return counted


@pytest.fixture(scope="module", params=["gcc -O0", "gcc -O2", "gcc -O3", "clang -O2"])
def jumps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, level = request.param.split()
    return built(tmp_path_factory.mktemp("jumps"), "jumps.c", level, HOOKS, compiler=compiler)


def test_invocations_that_longjmp_leaves_are_dead(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "longjmp", 4)
    assert calls(recording) == {"survivor": 4, "leaf": 4}
    assert opened(recording) == 1 + 2 + 3 + 4
    assert set(paths(recording)) == {"/survivor", "/survivor/leaf"}


def test_longjmp_into_the_middle_of_a_recursion(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "nested", 5)
    assert calls(recording)["nested"] == 5 * 4
    assert calls(recording)["leaf"] == 5 * 4
    assert opened(recording) == 5 * 3


def test_what_follows_a_jump_reaches_deeper_than_what_it_left(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "landing", 5)
    assert paths(recording) == {"/landing": 5, "/landing/big": 5}
    assert opened(recording) == 5


def test_a_handler_that_jumps_out_of_a_hook_does_not_end_the_recording(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "escape", 300)
    assert calls(recording)["escape"] == 300
    assert calls(recording)["leaf"] > 300


def test_longjmp_to_where_nothing_is_recorded(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "nowhere", 6)
    assert paths(recording) == {"/leaf": 1}
    assert opened(recording) == 6 * 5


def test_tail_calls_and_deep_recursion(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "tail", 2000)
    assert calls(recording) == {"tail": 2001, "leaf": 2}
    assert opened(recording) == 0


@pytest.mark.parametrize(("way", "expected"), [
    ("roomy", {"/roomy": 3, "/roomy/leaf": 3}),
    ("inlined", {"/outer": 1, "/outer/inlined": 1, "/outer/inlined/leaf": 3}),
    ("seven", {"/seven": 3, "/leaf": 3}),
])  # fmt: skip
def test_frames_that_share_or_change_their_place(
    jumps: Path, tmp_path: Path, way: str, expected: dict[str, int]
) -> None:
    (recording,) = recorded(tmp_path, jumps, way)
    assert paths(recording) == expected


def test_threads_are_counted_exactly(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "threads", 3000)
    assert calls(recording) == {"outer": 24000, "inlined": 24000, "leaf": 48000}


def test_forked_children_are_runs_of_their_own(jumps: Path, tmp_path: Path) -> None:
    program, *children = recorded(tmp_path, jumps, "forks", 3)
    assert calls(program)["leaf"] == 4
    assert sorted(calls(child)["leaf"] for child in children) == [5, 6, 7]
    assert all(child.run.parent == program.run.id for child in children)


def test_what_it_becomes_by_exec_is_a_run_too(jumps: Path, tmp_path: Path) -> None:
    counted = sorted(calls(one)["leaf"] for one in recorded(tmp_path, jumps, "exec", 4, fails=True))
    assert counted == [2, 4]


def test_signal_handlers_at_any_moment(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "signals")
    assert calls(recording)["leaf"] == 200000
    assert opened(recording) == 0


def test_handlers_on_a_stack_of_their_own_are_left_out_and_said(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "other_stack")
    assert paths(recording) == {"/leaf": 10}
    assert recording.run.lost.missed_calls == 10
    assert "stack" in recording.run.words["stacks"]


@pytest.mark.parametrize(("way", "ended"), [("exit", "exit status 7"), ("_exit", "without"), ("kill", "SIGKILL")])
def test_what_completed_is_kept_however_it_ends(jumps: Path, tmp_path: Path, way: str, ended: str) -> None:
    (recording,) = recorded(tmp_path, jumps, way, 50, fails=True)
    assert calls(recording)["leaf"] == 50
    assert ended in recording.run.ended


def test_a_program_that_has_used_up_its_descriptors_is_told_so(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "greedy", 50, fails=True)
    assert recording.run.ended == ("recording stopped early: the program has used up its file descriptors (ulimit -n)")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_exceptions_of_cpp(tmp_path: Path, level: str) -> None:
    (recording,) = recorded(tmp_path, built(tmp_path, "throws.cc", level, HOOKS))
    counted = calls(recording)
    assert counted["app::Catcher::try_one"] == 30 == counted["thrower"] == counted["middle<int>"]
    assert counted["leaf"] == 30
    assert opened(recording) == 0
    assert paths(recording)["/main/app::Catcher::try_one/leaf"] == 10


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_exceptions_of_cpp_by_clang(tmp_path: Path, level: str) -> None:
    """It calls no hook where an exception ends a function: those calls did not end, and nothing comes to lie in them."""
    (recording,) = recorded(tmp_path, built(tmp_path, "throws.cc", level, HOOKS, compiler="clang"))
    counted = calls(recording)
    assert counted["app::Catcher::try_one"] == 30
    assert counted["thrower"] == counted["middle<int>"] == 20 == opened(recording)
    assert counted["Guard::~Guard"] == 30
    assert paths(recording)["/main/app::Catcher::try_one/leaf"] == 10


def test_clean_up_reaches_deeper_than_what_threw(tmp_path: Path) -> None:
    for compiler in ("gcc", "clang"):
        folder = tmp_path / compiler
        folder.mkdir()
        program = built(folder, "cleanup.cc", "-O2", HOOKS, compiler=compiler)
        (recording,) = recorded(folder, program)
        found = paths(recording)
        assert found["/main/catcher/holder/Large::~Large"] == found["/main/catcher"] == 5
        assert found["/main/catcher/deep"] == 5


def test_after_inlining_clang_tells_of_real_calls_alone(tmp_path: Path) -> None:
    program = built(tmp_path, "jumps.c", "-O2", f"{HOOKS}-after-inlining", compiler="clang")
    (recording,) = recorded(tmp_path, program, "inlined")
    assert paths(recording) == {"/outer": 1, "/outer/leaf": 3}


def test_places_of_functions_and_calls(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "roomy")
    text = (PROGRAMS / "jumps.c").read_text().splitlines()
    lines = {row[1]: (row[2], row[3], row[4], row[6]) for row in recording.tables()["components"]}
    at = next(number for number, line in enumerate(text, 1) if "void roomy" in line)
    assert lines["roomy"] == (str(PROGRAMS / "jumps.c"), at, "c", "size")
    called = {row[4] for row in recording.tables()["calltree"] if row[5] == 2}
    assert called == {next(number for number, line in enumerate(text[at:], at + 1) if "leaf();" in line)}


def test_a_stripped_program_is_recorded_by_its_symbols_or_places(tmp_path: Path) -> None:
    program = built(tmp_path, "jumps.c", "-O1", HOOKS, build_id_of("jumps.c", "hooks"))
    subprocess.run(["strip", str(program)], check=True)
    (recording,) = recorded(tmp_path, program, "inlined")
    assert sum(calls(recording).values()) == 5
    assert all(re.fullmatch(r"jumps\+0x[0-9a-f]+", name) for name in calls(recording))


def test_the_fake_clock_is_exact(tmp_path: Path) -> None:
    program = built(tmp_path, "listing1.c", "-O1", HOOKS)
    (recording,) = recorded(tmp_path, program, "B", clock="fake")
    tables = recording.tables()
    name = {row[0]: row[1] for row in tables["components"]}
    component = {row[0]: row[2] for row in tables["calltree"]}
    moments = {name[component[row[0]]]: row[2:5] for row in tables["moments"] if row[1] == "time" and row[0]}
    n, total, squares = moments["f"]
    assert (n, total / n, squares / n - (total / n) ** 2) == (16, 72, 388)


def skipped_calls(folder: Path, program: Path, *words: str) -> int:
    """Calls within ``work``, which alone is selected, of functions whose hooks were called. It prints what it prints alone."""
    alone = subprocess.run([program, *words], capture_output=True, check=True).stdout
    options = ("--select", "work", "--collect", "paths", "--", str(program), *words)
    done = subprocess.run(
        [sys.executable, "-m", "perflaw", "record", *options], cwd=folder, capture_output=True, check=True
    )
    assert done.stdout == alone
    (recording,) = open_experiment("default", folder).recordings()
    assert calls(recording) == {"work": 5}
    ((nested,),) = read_table(recording.folder, "path_observations", ("nested",))
    return int(nested)


@pytest.mark.parametrize(("compiler", "flags"), first(4, [
    ("gcc", ("-O0",)), ("gcc", ("-O1",)), ("gcc", ("-O2",)), ("gcc", ("-O2", "-fno-plt")), ("gcc", ("-O3", "-no-pie")),
    ("clang", ("-O0",)), ("clang", ("-O2",)), ("clang", ("-O2", "-fno-plt")),
]))  # fmt: skip
def test_hooks_of_functions_that_are_not_selected_are_taken_out(
    compiler: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    program = built(tmp_path, "skipped.c", *flags, HOOKS, compiler=compiler)
    # Of the 5 * 3900 calls within, what was inlined too, only the first of each function call hooks.
    assert 0 < skipped_calls(tmp_path, program, "600") < 10


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_hooks_that_a_selected_function_may_share_where_it_was_inlined_stay(compiler: str, tmp_path: Path) -> None:
    program = built(tmp_path, "skipped.c", "-O2", HOOKS, compiler=compiler)
    (recording,) = recorded(tmp_path, program, "600", select=("add", "work"))
    assert calls(recording) == {"work": 5, "add": 5 * 300}


def test_hooks_are_called_and_counted_where_other_threads_execute_the_code(tmp_path: Path) -> None:
    program = built(tmp_path, "skipped.c", "-O1", "-fno-inline", HOOKS)
    assert skipped_calls(tmp_path, program, "600", "threads") == 5 * (600 + 600 + 2 * 1200 + 300)


def test_the_program_behaves_as_without_us(jumps: Path, tmp_path: Path) -> None:
    plain, ways = built(tmp_path, "jumps.c", "-O2"), ("longjmp", "nested", "tail", "inlined")
    expected = [subprocess.run([plain, way], capture_output=True, check=True).stdout for way in ways]
    command = [sys.executable, "-m", "perflaw", "record", "--vary", f"way={','.join(ways)}", "--", str(jumps), "{way}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"".join(expected)


@pytest.mark.parametrize(("flags", "words"), [
    (("-O1",), "-finstrument-functions"),
    (("-O1", HOOKS, "-static"), "statically"),
])  # fmt: skip
def test_programs_that_have_no_usable_hooks(tmp_path: Path, flags: tuple[str, ...], words: str) -> None:
    program = built(tmp_path, "jumps.c", *flags)
    plan = make_plan((str(program),), {}, 1, {})
    (attempt,) = record_all(
        open_experiment("x", tmp_path), plan, TracerChoice("auto", lambda text: None), RecordSettings(native="hooks")
    )
    assert isinstance(attempt.error, TargetError)
    assert words in str(attempt.error)
