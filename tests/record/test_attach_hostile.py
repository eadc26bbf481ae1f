"""Compiled programs that do not hold still while they are attached to: threads and children that come and go, exec, stops."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from perflaw.errors import TargetError
from perflaw.record.attach.process import native_program
from tests.conftest import attach_for_a_while
from tests.record.test_attach_compiled import attached, recordings, running, wait_until
from tests.record.test_hooks import built, calls


@pytest.fixture(scope="module")
def restless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("restless"), "restless.c", "-O2")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


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
