"""Tables are written by another process: what crashes there is written again, and nothing that is known is lost."""

import os
import pickle
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from perflaw.errors import StoreError
from perflaw.record import saving, writer
from perflaw.record.saving import RunTables
from perflaw.record.writer import Writer, WriterCrashedError
from perflaw.store import tables


@dataclass(frozen=True)
class Marking:
    """Writes its process id; crashes as often as there are files ``crash-N``, and raises an error if it has one."""

    error: Exception | None = None

    def write(self, folder: Path) -> None:
        for crash in sorted(folder.glob("crash-*")):
            crash.unlink()
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.error:
            raise self.error
        (folder / "written").write_text(str(os.getpid()))


@pytest.fixture(autouse=True)
def without_duckdb(monkeypatch):
    """As in a recorder, DuckDB is not open in this process, and it is not opened in the other, which takes long."""
    tables.connect.cache_clear()
    monkeypatch.setattr(writer, "connect", _never_open)


def _never_open() -> None:
    pass


_never_open.cache_info = lambda: type("Info", (), {"currsize": 0})  # type: ignore[attr-defined]  # as a cached function has it


def by(folder: Path) -> int:
    return int((folder / "written").read_text())


def test_another_process_writes_all_jobs(tmp_path):
    with Writer() as ours:
        ours.write(Marking(), tmp_path)
        first = by(tmp_path)
        ours.write(Marking(), tmp_path)
        assert by(tmp_path) == first != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_crash_is_told_and_the_next_job_has_a_fresh_process(tmp_path):
    (tmp_path / "crash-1").touch()
    with Writer() as ours:
        with pytest.raises(WriterCrashedError, match="SIGSEGV"):
            ours.write(Marking(), tmp_path)
        ours.write(Marking(), tmp_path)
    assert by(tmp_path) != os.getpid()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError(), ValueError("a fault")])
def test_what_a_job_raises_there_is_raised_here(tmp_path, error):
    with Writer() as ours:
        with pytest.raises(type(error)) as raised:
            ours.write(Marking(error), tmp_path)
        assert str(raised.value) == str(error)
        ours.write(Marking(), tmp_path)


def test_without_another_process_this_one_writes(tmp_path, monkeypatch):
    def refuse() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refuse)
    with Writer() as ours:
        ours.start()
        ours.write(Marking(), tmp_path)
        assert ours.cpu_ns() == 0
    assert by(tmp_path) == os.getpid()


def test_a_process_that_cannot_begin_to_work_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "WAIT_S", 0.01)
    monkeypatch.setattr(writer, "_live", lambda jobs, answers: (signal.pause(), os._exit(0)))
    with Writer() as ours:
        ours.write(Marking(), tmp_path)
    assert by(tmp_path) == os.getpid()


def test_it_ends_with_the_recorder(tmp_path):
    """Also where the recorder is killed: the process sees the end of its pipe."""
    reading, writing = os.pipe()
    recorder = os.fork()
    if not recorder:
        ours = Writer()
        ours.write(Marking(), tmp_path)
        os.write(writing, b"w")
        signal.pause()
    os.close(writing)
    assert os.read(reading, 1) == b"w"
    os.kill(recorder, signal.SIGKILL)
    os.waitpid(recorder, 0)
    process = os.pidfd_open(by(tmp_path)) if Path(f"/proc/{by(tmp_path)}").exists() else -1
    if process >= 0:
        from select import select

        assert select([process], [], [], 10)[0]
    assert os.read(reading, 1) == b""  # it does not hold what its parent had open


def test_a_recording_that_crashed_is_written_again_and_that_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(RunTables, "write", lambda self, folder: Marking().write(folder))
    (tmp_path / "crash-1").touch()
    with Writer() as ours, pytest.warns(match="SIGSEGV and was written again; nothing of it is lost"):
        assert saving._save(ours, tmp_path, RunTables(None, {}, None)) == tmp_path
    assert (tmp_path / "written").exists()


def test_a_recording_that_always_crashes_is_lost_and_that_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(RunTables, "write", lambda self, folder: os.kill(os.getpid(), signal.SIGABRT))
    with Writer() as ours, pytest.raises(StoreError, match=r"the recording is lost .*SIGABRT"):
        saving._save(ours, tmp_path, RunTables(None, {}, None))


def test_errors_of_jobs_can_be_sent():
    error = StoreError("what", "why", "next")
    sent = pickle.loads(pickle.dumps(error))
    assert (sent.what, sent.why, sent.next_command) == ("what", "why", "next")
