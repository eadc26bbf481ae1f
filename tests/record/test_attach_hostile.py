"""Compiled programs that do not hold still while they are attached to: threads and children that come and go, exec, stops."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from perflaw.errors import TargetError
from perflaw.record.attach import injection, patching
from perflaw.record.attach.native_session import record_native
from perflaw.record.attach.process import native_program, tracer_of
from perflaw.record.attach.seccomp import action
from perflaw.record.attach.stopping import all_stopped
from perflaw.record.settings import RecordSettings
from perflaw.store.experiment import open_experiment
from tests.conftest import attach_for_a_while
from tests.record.test_attach_compiled import attached, recordings, running, wait_until
from tests.record.test_hooks import built, calls


@pytest.fixture(scope="module")
def restless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("restless"), "restless.c", "-O2")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["threads", pytest.param("children", marks=pytest.mark.slow)])
def test_threads_and_children_may_begin_and_end_at_any_moment(restless: Path, tmp_path: Path, way: str) -> None:
    """Children are of fork, vfork and posix_spawn; some begin while jumps are written or taken back, and all are right."""
    with running(restless, way) as process:
        for _ in range(3):
            attach_for_a_while(tmp_path, process.pid)
    found = recordings(tmp_path)
    assert len([one for one in found if not one.run.parent]) == 3
    for recording in found:
        counted = calls(recording)
        assert counted["leaf"] >= 100 * counted["work"] > 0


def test_what_is_attached_to_becomes_another_program(restless: Path, tmp_path: Path) -> None:
    with running(restless, "exec") as process:
        with attached(process, tmp_path) as recorder:
            time.sleep(0.2)
            process.stdin.write("\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            assert process.stdout.readline() == "ready\n"  # type: ignore[union-attr]
            said = recorder.communicate(timeout=60)[1].decode()
        assert not recorder.returncode, said
    [recording] = recordings(tmp_path)
    assert calls(recording)["leaf"] > 0


def test_a_program_that_is_stopped_while_it_is_recorded_stays_stopped(restless: Path, tmp_path: Path) -> None:
    with running(restless, "threads") as process:
        with attached(process, tmp_path) as recorder:
            time.sleep(0.3)
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: state(process.pid) == "T")
            recorder.send_signal(signal.SIGINT)
            said = recorder.communicate(timeout=60)[1].decode()
        assert not recorder.returncode, said
        assert state(process.pid) == "T"
        process.send_signal(signal.SIGCONT)
    [recording] = recordings(tmp_path)
    assert calls(recording)["leaf"] > 0


def test_programs_that_cannot_be_attached_to_are_refused_with_the_reason(tmp_path: Path) -> None:
    static = built(tmp_path, "restless.c", "-O2", "-static")
    with running(static, "threads") as process, pytest.raises(TargetError, match="linked statically"):
        native_program(process.pid)
    program = built(tmp_path, "restless.c", "-O2")
    with running(program, "threads") as process:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(process.pid) == "T")
        with pytest.raises(TargetError, match="stopped by a signal"):
            native_program(process.pid)
        process.send_signal(signal.SIGCONT)


def test_a_program_in_another_namespace_of_processes_is_refused(restless: Path) -> None:
    assert os.geteuid() == 0, "this test needs root, because only root makes namespaces of processes: sudo make test"
    command = ["unshare", "--pid", "--fork", "--kill-child", restless, "threads"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outer:
        assert outer.stdout.readline() == "ready\n"  # type: ignore[union-attr]
        [pid] = map(int, Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split())
        with pytest.raises(TargetError, match="another namespace of processes"):
            native_program(pid)
        assert outer.communicate("")[0] == "0 wrong\n"


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("confined"), "confined.c", "-O2", "-pthread")


def refused(folder: Path, pid: int, words: str) -> None:
    program = native_program(pid)
    assert program
    folder.mkdir(exist_ok=True)
    with pytest.raises(TargetError, match=words):
        record_native(open_experiment("default", folder), program, RecordSettings(), {}, 0.2)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("killed", "seccomp.* would end it at mprotect"),
        ("trapped", "seccomp.* would end it at mprotect"),
        ("refused", "may not have memory for code: Operation not permitted"),
        ("small files", "ulimit -f"),
        ("little memory", "ulimit -v"),
    ],
)
def test_a_program_that_may_do_little_is_refused_and_goes_on(
    confined: Path, tmp_path: Path, way: str, words: str
) -> None:
    with running(confined, way) as process:
        time.sleep(0.1)  # it confines itself once it is ready
        refused(tmp_path, process.pid, words)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_service_that_lets_no_memory_become_code_is_recorded(confined: Path, tmp_path: Path) -> None:
    """systemd's MemoryDenyWriteExecute, which Debian's redis-server and others have, permits no memory that was written."""
    with running(confined, "no new code") as process:
        time.sleep(0.1)
        for _ in range(2):
            attach_for_a_while(tmp_path, process.pid)
    for recording in recordings(tmp_path):
        assert calls(recording)["leaf"] > 0


@pytest.mark.slow
def test_a_second_recorder_says_that_another_one_is_there(confined: Path, tmp_path: Path) -> None:
    with running(confined) as process:
        with attached(process, tmp_path) as recorder:
            refused(tmp_path / "second", process.pid, "another perflaw records them")
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=60)
        attach_for_a_while(tmp_path, process.pid)
    assert [calls(recording)["leaf"] > 0 for recording in recordings(tmp_path)] == [True, True]


def test_a_program_of_which_a_debugger_traces_one_thread_is_refused_and_goes_on(confined: Path) -> None:
    with running(confined, "thread") as process:
        tasks = Path(f"/proc/{process.pid}/task")
        wait_until(lambda: len([*tasks.iterdir()]) == 2)
        [thread] = {int(task.name) for task in tasks.iterdir()} - {process.pid}
        seize = f"import ctypes; assert ctypes.CDLL(None).ptrace(0x4206, {thread}, None, None) == 0; print(); input()"
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        with subprocess.Popen([sys.executable, "-c", seize], text=True, **pipes) as tracer:  # type: ignore[call-overload]
            tracer.stdout.readline()
            words = f"process {tracer.pid} traces it already"
            with pytest.raises(TargetError, match=words):
                native_program(process.pid)
            # It may also come while the threads are being stopped, and none of them must stay stopped.
            for _ in range(5):
                with pytest.raises(TargetError, match=words), all_stopped(process.pid):
                    pass
                assert not tracer_of(process.pid)
            tracer.communicate("\n")


def test_a_thread_that_has_ended_is_not_taken_for_the_program(
    confined: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    monkeypatch.setattr(injection, "_threads", lambda pid: iter([ended.pid, pid]))
    with running(confined) as process:
        program = native_program(process.pid)
        assert program
        record_native(open_experiment("default", tmp_path), program, RecordSettings(), {}, 0.2)
    [recording] = recordings(tmp_path)
    assert calls(recording)["leaf"] > 0


def test_only_where_a_handler_returns_a_function_is_left_out() -> None:
    """The kernel puts flags and segments behind the place; what is a place of code by chance has none."""
    place, flags, segments = 0x401003, 0x246, 0x002B000000000033
    words = np.array([place, 0, place, 0x244, segments, place, flags, segments, place, flags], np.int64)
    assert patching._interrupted_places(words).tolist() == [place]
    assert not len(patching._interrupted_places(np.array([place], np.int64)))


def test_a_program_of_32_bits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pause.s").write_text(".globl _start\n_start: mov $29, %eax\nint $0x80\n")
    for command in ("as --32 -o pause.o pause.s", "ld -m elf_i386 -o pause pause.o"):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    with subprocess.Popen([tmp_path / "pause"]) as process:
        with pytest.raises(TargetError, match="it is a 32-bit program"):
            native_program(process.pid)
        process.kill()


def test_filters_of_system_calls_are_evaluated_as_the_kernel_does() -> None:
    """A filter on the third argument's bits, by every kind of instruction that it needs: load, and, test, store, return."""
    rows = [
        (0x20, 0, 0, 0), (0x15, 0, 7, 10),  # other calls than mprotect: allowed
        (0x20, 0, 0, 32), (0x54, 0, 0, 4),  # A = the lower half of the third argument & PROT_EXEC
        (0x02, 0, 0, 3), (0x60, 0, 0, 3), (0x07, 0, 0, 0), (0x87, 0, 0, 0),  # by memory and X
        (0x45, 1, 0, 4), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x80000000),
    ]  # fmt: skip
    program = b"".join(struct.pack("<HBBI", *row) for row in rows)
    assert action(program, 10, (0, 4096, 5)) == 0x80000000
    assert action(program, 10, (0, 4096, 3)) == 0x7FFF0000
    assert action(program, 9, (0, 4096, 5)) == 0x7FFF0000
