"""`perflaw attach` of a compiled program: calls are recorded, results stay right, and the code is as before in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from perflaw.record.attach import directory, native_session, patching
from perflaw.record.attach.directory import left_behind
from perflaw.record.attach.injection import start_thread
from perflaw.record.attach.process import native_program
from perflaw.record.attach.stopping import Stop
from perflaw.record.build import build, hooks
from perflaw.record.compiled.inject import choice
from perflaw.record.compiled.inject.tables import ModulePatches, module_patches
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import Recording, open_experiment
from tests.conftest import attach_for_a_while, attached_perflaw, first
from tests.record.test_hooks import built, calls, paths

RETURNING = ("fibonacci", "catcher", "thrower", "lander", "floating")


def recordings(folder: Path) -> list[Recording]:
    return open_experiment("default", folder).recordings()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("busy"), "busy.cc", "-O2", "-pthread")


@contextmanager
def running(program: Path, word: str = "3") -> Iterator[subprocess.Popen[str]]:
    """The program; what it checks itself was right in the end, unless it was killed."""
    command = [str(program), word]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
            if process.poll() is None:
                assert process.communicate("", timeout=60)[0] == "0 wrong\n"
                assert process.returncode == 0
        finally:
            process.kill()


def code(process: subprocess.Popen[str]) -> bytes:
    """The code of the program as it is in the memory of the process."""
    for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
        span, rights, *_, name = line.split()
        if rights == "r-xp" and name == str(process.args[0]):  # type: ignore[index]
            first, end = (int(one, 16) for one in span.split("-"))
            with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory:
                memory.seek(first)
                return memory.read(end - first)
    raise AssertionError("no code")


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_program_is_recorded_again_and_again(busy: Path, tmp_path: Path) -> None:
    with running(busy) as process:
        before, mapped = code(process), []
        for _ in range(4):
            said = attach_for_a_while(tmp_path, process.pid)
            assert "recorded by injected code" in said
            assert code(process) == before
            wait_until(lambda: directory.free_agent(process.pid, directory.build_of(build(hooks()))) > 0)
            mapped.append(Path(f"/proc/{process.pid}/maps").read_text().count(" r-xp "))
        assert directory.agents(process.pid) == 1
        assert len(set(mapped)) == 1  # no further library and no further stubs
    found = recordings(tmp_path)
    assert len(found) == 4
    for recording in found:
        counted = calls(recording)
        assert all(counted.get(name, 0) > 0 for name in RETURNING)
        assert any(path.endswith("/catcher/thrower") for path in paths(recording))
        assert not any(path.endswith(("/thrower/catcher", "/fibonacci/floating")) for path in paths(recording))


def test_functions_that_were_open_before_are_roots_and_are_no_calls(busy: Path, tmp_path: Path) -> None:
    with running(busy) as process:
        attach_for_a_while(tmp_path, process.pid)
    [recording] = recordings(tmp_path)
    assert recording.run.words["earlier"].split("; ")[0] == "work"
    assert "work" not in calls(recording)
    found = paths(recording)
    assert {path.split("/")[1] for path in found} == {"work"}
    assert any(path.endswith("/work/catcher/thrower") for path in found)


def test_a_compiled_program_with_python_built_in_is_recorded_as_what_it_is(
    busy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.c").touch()
    library = tmp_path / "libpython3.99.so"  # as far as the recorder knows
    subprocess.run(["gcc", "-shared", "-o", library, tmp_path / "empty.c"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    with running(busy) as process:
        monkeypatch.delenv("LD_PRELOAD")
        said = attach_for_a_while(tmp_path, process.pid)
    assert "busy has Python built in: its compiled functions are recorded, and not its Python ones" in said
    assert calls(recordings(tmp_path)[0]).get("fibonacci", 0) > 0


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_what_was_open_before_ends_when_it_has_returned(tmp_path: Path, compiler: str) -> None:
    with running(built(tmp_path, "returning.c", "-O2", compiler=compiler)) as process:
        with attached(process, tmp_path) as recorder:
            process.stdin.write("\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            assert process.stdout.readline() == "returned\n"  # type: ignore[union-attr]
            recorder.send_signal(signal.SIGINT)
            said = recorder.communicate(timeout=60)[1].decode()
        assert not recorder.returncode, said
        assert process.communicate("\n", timeout=60)[0] == "0 wrong\n"
    [recording] = recordings(tmp_path)
    assert recording.run.words["earlier"] == "main; outer; inner"
    assert paths(recording) == {"/main/outer/inner/first_leaf": 1, "/main/outer/second_leaf": 1}


@pytest.mark.slow
def test_an_agent_of_another_build_is_left_alone(busy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(busy) as process:
        program = native_program(process.pid)
        assert program
        for build_number, loaded in (("1", 1), ("2", 2), ("1", 2)):
            monkeypatch.setattr(native_session, "build_of", lambda _, number=build_number: number * 16)
            native_session.record_native(open_experiment("default", tmp_path), program, RecordSettings(), {}, 0.5)
            assert directory.agents(process.pid) == loaded
    found = recordings(tmp_path)
    assert [recording.run.words["agent"].split()[0] for recording in found] == ["loaded", "loaded", "used"]
    assert all(calls(recording).get("fibonacci", 0) > 0 for recording in found)


@pytest.mark.slow
def test_only_chosen_functions_are_changed(busy: Path, tmp_path: Path) -> None:
    with running(busy) as process:
        attach_for_a_while(tmp_path, process.pid, "--select", "floating")
    [recording] = recordings(tmp_path)
    assert set(calls(recording)) == {"floating"}


CHAIN = r"""
#include <stdio.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone, aligned(4096)))
APART long inner(long number) { return number * 3 + 1; }
APART long middle(long number) { return inner(number) + 1; }
APART long outer(long number) { return middle(number) + 1; }
int main(void) {
    long wrong = 0;
    alarm(120);
    puts("ready");
    fflush(stdout);
    for (long at = 0; wrong < 10; at++) {
        wrong += outer(at) != at * 3 + 3;
        if (at % 10000 == 0) usleep(100);
    }
    return 1;
}
"""


def test_jumps_are_written_in_batches_and_record_only_when_all_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the first calls of a function with its jump would be those of a wrong caller, which has none yet."""
    (tmp_path / "chain.c").write_text(CHAIN)
    subprocess.run(["gcc", "-O2", "-g", "chain.c", "-o", "chain"], cwd=tmp_path, check=True)
    stop, batches = patching.all_stopped, list[int]()

    def stop_later(pid: int) -> AbstractContextManager[Stop]:
        batches.append(pid)
        time.sleep(0.05)
        return stop(pid)

    monkeypatch.setattr(patching, "_PAGES", 1)
    monkeypatch.setattr(patching, "all_stopped", stop_later)
    with serving(tmp_path / "chain") as pid:
        program = native_program(pid)
        assert program
        native_session.record_native(open_experiment("default", tmp_path), program, RecordSettings(), {}, 0.3)
    assert len(batches) >= 6  # three functions, twice
    [recording] = recordings(tmp_path)
    counted = calls(recording)
    assert {path.removeprefix("/main") for path in paths(recording)} == {
        "/outer",
        "/outer/middle",
        "/outer/middle/inner",
    }
    # What is open when the recording begins or ends is no call, those within it may be.
    assert counted["outer"] <= counted["middle"] <= counted["inner"] <= counted["outer"] + 2


def attached(process: subprocess.Popen[str], folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """A recorder of the process in the background, which has begun to record."""
    before = code(process)
    command = [sys.executable, "-m", "perflaw", "attach", str(process.pid), "--seconds", "100", *options]
    recorder = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)
    wait_until(lambda: code(process) != before and any(folder.glob(".perflaw/*/runs/*/spool/recorded")))
    return recorder


@pytest.mark.slow
def test_the_jumps_of_a_killed_recorder_harm_nobody_and_the_next_one_takes_them_back(
    busy: Path, tmp_path: Path
) -> None:
    with running(busy) as process:
        before = code(process)
        with attached(process, tmp_path) as recorder:
            recorder.kill()
        wait_until(lambda: len(left_behind(process.pid)) > 0)
        assert code(process) != before
        attach_for_a_while(tmp_path, process.pid)
        assert code(process) == before
    [recording] = recordings(tmp_path)
    assert all(calls(recording).get(name, 0) > 0 for name in RETURNING)


def targets(pid: int) -> list[int]:
    """Where the stubs of a process jump to, which stands in the page before them."""
    found, ours = [], range(0)
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
        spans = [range(*(int(one, 16) for one in words[0].split("-"))) for words in lines]
        for words, span in zip(lines, spans, strict=True):
            if words[1] == "r-xp" and "libperflaw_hooks" in words[-1]:
                ours = span
        for words, before, span in zip(lines[1:], spans, spans[1:], strict=False):
            if words[1] == "r-xp" and len(words) == 5 and before.stop == span.start:
                memory.seek(span.start - 4096)
                found.append(int.from_bytes(memory.read(8), "little"))
    return [word for word in found if word in ours]


def test_a_handler_that_interrupts_the_first_instructions_of_a_function_returns_to_them(tmp_path: Path) -> None:
    with (
        running(built(tmp_path, "interrupted.c", "-O2", "-pthread")) as process,
        attached(process, tmp_path) as recorder,
    ):
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        assert process.stdout.readline() == "returned\n"  # type: ignore[union-attr]
        recorder.send_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", first(1, ["gcc", "clang"]))
def test_a_loop_back_to_the_first_instructions_is_one_call(compiler: str, tmp_path: Path) -> None:
    """One thread is in such a loop all the time, and what it is in is left as it is; others come and go."""
    with running(built(tmp_path, "heads.c", "-O2", compiler=compiler), "serve") as process:
        before = code(process)
        for _ in range(2):
            said = attach_for_a_while(tmp_path, process.pid, "--exclude", "main", s=0.6)
            assert "spin (a thread was in its first instructions, or in a loop back to them" in said.replace("\n", " ")
            assert code(process) == before
    for recording in recordings(tmp_path):
        counted = calls(recording)
        rounds = counted["round_of_all"]
        assert rounds > 100
        each = {
            "step": 1,
            "last": 1,
            "length": 1,
            "tail": 1,
            "ping": 4,
            "pong": 3,
            "to_first": 11,
            "to_second": 1,
            "nested": 1,
        }
        # A round may be open when the recording begins, and when it ends.
        assert all(abs(counted[name] - times * rounds) <= 2 * times for name, times in each.items()), counted


def test_what_completed_is_kept_when_the_program_is_killed(busy: Path, tmp_path: Path) -> None:
    with running(busy) as process, attached_perflaw(tmp_path, process.pid) as recorder:
        process.send_signal(signal.SIGKILL)
        process.wait()
        recorder.communicate(timeout=60)
        assert recorder.returncode == 0
    [recording] = recordings(tmp_path)
    assert calls(recording)["fibonacci"] > 0


def test_ctrl_c_ends_the_recording_and_keeps_it(busy: Path, tmp_path: Path) -> None:
    with running(busy) as process:
        before = code(process)
        attach_for_a_while(tmp_path, process.pid)
        assert code(process) == before
    [recording] = recordings(tmp_path)
    assert calls(recording)["fibonacci"] > 0


LIBRARY = "__attribute__((noinline)) int key_and_lock(int number) { return number * 7 % 1000; }\n"
SERVER = r"""
#include <stdio.h>
#include <unistd.h>
int key_and_lock(int number);
__attribute__((noinline)) static int answer(int number) { return key_and_lock(number) + 1; }
int main(void) {
    char end;
    long wrong = 0;
    alarm(120);
    puts("ready");
    fflush(stdout);
    while (read(0, &end, 0) == 0 && wrong < 10) {
        for (int number = 0; number < 1000; number++) wrong += answer(number) != number * 7 % 1000 + 1;
        usleep(1000);
    }
    return wrong != 0;
}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose library is stripped, and loaded by a link."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "library.c").write_text(LIBRARY)
    (folder / "server.c").write_text(SERVER)
    subprocess.run(["gcc", "-O2", "-s", "-shared", "-fPIC", "library.c", "-o", "libkeys.so.1"], cwd=folder, check=True)
    (folder / "libkeys.so").symlink_to("libkeys.so.1")
    command = ["gcc", "-O2", "-g", "server.c", "-L.", "-lkeys", f"-Wl,-rpath,{folder}", "-o", "server"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "server"


def test_libraries_are_followed_that_the_program_opens_and_closes(tmp_path: Path) -> None:
    """Two libraries in turns, at the same place."""
    libraries = [tmp_path / f"lib{name}.so" for name in ("one", "two")]
    for name, library in zip(("one", "two"), libraries, strict=True):
        inner = f"__attribute__((noinline)) int plug_{name}(int number) {{ return number * (number != 77) + 7; }}\n"
        work = f"int plug_work(int number) {{ return plug_{name}(number) | (number == 77); }}\n"
        (tmp_path / f"{name}.c").write_text(inner + work)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"{name}.c", "-o", library], cwd=tmp_path, check=True)
    program = built(tmp_path, "opening.c", "-O2")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([program, *libraries], text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "ready\n"
        with attached(process, tmp_path, "--select", "plug_*") as recorder:
            for _ in range(3):
                process.stdin.write("\n")
                process.stdin.flush()
                assert process.stdout.readline() == "called\n"
            process.stdin.close()
            assert process.stdout.readline() == "mapped\n"
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=60)
        assert recorder.returncode == 0
        libraries[0].unlink()
        assert process.stdout.read() == "0 wrong\n"
    [recording] = recordings(tmp_path)
    assert calls(recording) == {"plug_caller": 3, "plug_work": 15, "plug_one": 10, "plug_two": 5}


def started(pid: int, program: Path) -> list[int]:
    """The children of a process that run this program."""
    found = []
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{child}/exe").readlink() == program:
                found.append(child)
    return found


def test_a_launched_program_goes_on_at_a_short_branch_when_its_recorder_is_killed(server: Path, tmp_path: Path) -> None:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "perflaw", "record", "--", str(server)]
    with subprocess.Popen(command, cwd=tmp_path, **quiet) as recorder:
        wait_until(lambda: any(map(targets, started(recorder.pid, server))))
        (pid,) = started(recorder.pid, server)
        recording = targets(pid)
        recorder.kill()
    wait_until(lambda: targets(pid) != recording)
    os.kill(pid, signal.SIGTERM)


@contextmanager
def serving(program: Path) -> Iterator[int]:
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process.pid
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.slow
def test_all_functions_of_libraries_are_recorded_but_none_of_ours(server: Path, tmp_path: Path) -> None:
    with serving(server) as pid:
        for _ in range(2):
            attach_for_a_while(tmp_path, pid, "--select", "*", s=0.05)
    for recording in recordings(tmp_path):
        assert {"answer", "key_and_lock"} == set(calls(recording))


def test_libraries_are_decoded_before_the_program_waits_for_them(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, decoded = [False], []

    def start(*arguments: object) -> object:
        started[0] = True
        return start_thread(*arguments)  # type: ignore[arg-type]

    def patches(module: Path) -> ModulePatches:
        decoded.append((module.name, started[0]))
        return module_patches(module)

    monkeypatch.setattr(native_session, "start_thread", start)
    monkeypatch.setattr(choice, "module_patches", patches)
    with serving(server) as pid:
        program = native_program(pid)
        assert program
        settings = RecordSettings(select=("key_and*",))
        native_session.record_native(open_experiment("default", tmp_path), program, settings, {}, 0.3)
    assert ("libkeys.so.1", False) in decoded
    assert not any(is_started for _, is_started in decoded)
    [recording] = recordings(tmp_path)
    assert set(calls(recording)) == {"key_and_lock"}
