"""Unmodified compiled programs whose calls Frida tells of: the same calls as by injected code, or a refusal by name."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from perflaw.errors import TargetError
from perflaw.record.compiled.inject import frida
from perflaw.record.plan import make_plan
from perflaw.record.session import record_all
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import TracerChoice
from perflaw.store.experiment import Recording, open_experiment
from tests.record.test_hooks import built, calls, opened, paths, recorded
from tests.record.test_inject import UNRECORDED

FEATURES = """
struct job { long size; struct job *next; };
__attribute__((noinline)) long by_pointer(struct job *job, int steps) { return job->size + steps; }
__attribute__((noinline)) double by_number(double scale, int steps) { return scale * steps; }
int main(void) {
    double sum = 0;
    for (int at = 0; at < 40; at++) {
        struct job job = {at * 3, 0};
        sum += by_pointer(&job, at) + by_number(0.5 * at, at);
    }
    return sum < 0;
}
"""
SIGNALS = """
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static sigjmp_buf back;
static void caught(int number) { (void)number; siglongjmp(back, 1); }
__attribute__((noinline)) void step(volatile int *at) { *at += 1; }
int main(int count, char **words) {
    volatile int steps = 0;
    signal(SIGSEGV, caught);
    for (int at = 0; at < 20; at++)
        if (!sigsetjmp(back, 1)) {
            step((volatile int *)&steps);
            *(volatile int *)8 = 1;
        }
    if (count > 1) signal(SIGSEGV, SIG_DFL), step((volatile int *)&steps), *(volatile int *)8 = 1;
    return steps != 20;
}
"""


EXCEPTIONS = """
#define APART __attribute__((noinline, noclone))
__attribute__((section("far"))) APART void thrower(int number) { if (number % 2) throw number; }
APART int calls_first(int number) { thrower(number); return number + 1; }
APART void jumps_first(int number) { thrower(number); }
APART int within(int number) {
    try { jumps_first(number + 1); } catch (int) { }
    try { return calls_first(number); } catch (int) { return number; }
}
int main() { int sum = 0; for (int at = 0; at < 30; at++) sum += within(at); return sum != 450; }
"""


def compiled(folder: Path, source: str, compiler: str = "gcc") -> Path:
    language = "c++" if compiler == "g++" else "c"
    (folder / "program.c").write_text(source)
    subprocess.run([compiler, "-O2", "-g", "-x", language, "program.c", "-o", "program"], cwd=folder, check=True)
    return folder / "program"


def refused(recording: Recording) -> str:
    return recording.run.words["inject"]


def test_exceptions_pass_what_is_recorded_and_what_they_could_not_pass_is_refused(tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, compiled(tmp_path, EXCEPTIONS, "g++"), native="frida")
    assert recording.run.tracer.startswith("frida: ")
    assert paths(recording) == {"/main": 1, "/main/within": 30, "/main/within/thrower": 30}
    assert opened(recording) == 30  # calls that an exception ended
    assert "calls_first (a call in its first bytes, which Frida" in refused(recording)
    assert "jumps_first (it begins with a jump, which Frida" in refused(recording)


def test_functions_with_a_loop_back_to_their_first_instructions_are_refused(tmp_path: Path) -> None:
    chosen = ("step", "to_first", "to_second", "nested", "ping", "pong")
    (recording,) = recorded(tmp_path, built(tmp_path, "heads.c", "-O2"), 20, select=chosen, native="frida")
    assert calls(recording) == {"step": 20, "ping": 80, "pong": 60}
    assert "nested, to_first, to_second (a loop back to its first instructions, each turn of" in refused(recording)


def test_arguments_are_features_but_for_those_in_vector_registers(tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, compiled(tmp_path, FEATURES), native="frida")
    found = {(row[1], row[2]) for row in recording.tables()["features"]}
    names = {name for _, name in found}
    assert {"job.size", "steps", "returned"} <= names
    assert "scale" not in names
    assert sorted(calls(recording).values()) == [1, 40, 40]


def test_it_is_refused_where_frida_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frida, "find_spec", lambda name: None)
    settings = RecordSettings(native="frida")
    with pytest.raises(TargetError, match="not installed") as refusal:
        TracerChoice("auto", lambda text: None).for_command((str(compiled(tmp_path, FEATURES)),), settings)
    assert refusal.value.next_command == "pip install 'perflaw[frida]'"
    assert importlib.util.find_spec("frida"), "the tests need it"


def test_a_program_whose_handlers_may_jump_is_refused(tmp_path: Path) -> None:
    settings = RecordSettings(native="frida")
    with pytest.raises(TargetError, match="a handler that jumps out of Frida's code can crash the program"):
        TracerChoice("auto", lambda text: None).for_command((str(built(tmp_path, "jumps.c", "-O1")),), settings)


@pytest.fixture
def harmless_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs below have handlers and jumps, but no handler jumps while another function begins."""
    monkeypatch.setattr(frida, "leaves_handlers_by_jumps", lambda program: False)


def test_a_program_that_frida_cannot_attach_to_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise PermissionError("the system says no")

    monkeypatch.setattr(frida, "_attached", fails)
    command = [str(compiled(tmp_path, FEATURES))]
    choice, settings = TracerChoice("auto", lambda text: None), RecordSettings(native="frida")
    (attempt,) = record_all(open_experiment("frida", tmp_path), make_plan(tuple(command), {}, 1, {}), choice, settings)
    assert "(exit status 0): Frida cannot be attached: the system says no" in str(attempt.error)


@pytest.mark.slow
@pytest.mark.usefixtures("harmless_handlers")
def test_calls_that_longjmp_leaves_and_those_after_them(tmp_path: Path) -> None:
    jumps = built(tmp_path, "jumps.c", "-O2", "-fno-optimize-sibling-calls")
    for way, number, counts, left in (
        ("longjmp", 4, {"survivor": 4, "leaf": 4}, 10),
        ("nested", 5, {"nested": 20, "leaf": 20}, 15),
        ("landing", 5, {"landing": 5, "big": 5}, 5),
        ("tail", 20000, {"tail": 20001, "leaf": 2}, 0),
    ):
        (tmp_path / way).mkdir()
        (recording,) = recorded(tmp_path / way, jumps, way, number, native="frida", exclude=UNRECORDED)
        assert calls(recording) == counts, way
        assert opened(recording) == left, way


@pytest.mark.slow
@pytest.mark.usefixtures("harmless_handlers")
def test_threads_signals_and_children(tmp_path: Path) -> None:
    jumps = built(tmp_path, "jumps.c", "-O2", "-fno-optimize-sibling-calls")
    for way in ("threads", "signals", "forks", "exec"):
        (tmp_path / way).mkdir()
    (recording,) = recorded(tmp_path / "threads", jumps, "threads", 3000, native="frida", select=("leaf",))
    assert calls(recording) == {"leaf": 48000}
    (recording,) = recorded(tmp_path / "signals", jumps, "signals", native="frida", exclude=UNRECORDED)
    assert calls(recording)["leaf"] == 200000
    program, *children = recorded(tmp_path / "forks", jumps, "forks", 3, native="frida", exclude=UNRECORDED)
    assert calls(program)["leaf"] == 4
    assert sorted(calls(child)["leaf"] for child in children) == [5, 6, 7]
    found = recorded(tmp_path / "exec", jumps, "exec", 4, native="frida", fails=True, exclude=UNRECORDED)
    assert sorted(calls(one)["leaf"] for one in found) == [2, 4]


@pytest.mark.slow
@pytest.mark.usefixtures("harmless_handlers")
def test_signals_of_faults_are_the_programs_own(tmp_path: Path) -> None:
    program = compiled(tmp_path, SIGNALS)
    for name in ("caught", "killed"):
        (tmp_path / name).mkdir()
    (recording,) = recorded(tmp_path / "caught", program, native="frida", exclude=("main",))
    assert calls(recording)["step"] == 20
    (recording,) = recorded(tmp_path / "killed", program, "die", native="frida", fails=True, exclude=("main",))
    assert calls(recording)["step"] == 21
    assert "SIGSEGV" in recording.run.ended
