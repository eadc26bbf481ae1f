"""Where memory or threads run out while a recording is kept, it is there all the same, or a message says that it is not."""

import _thread
import errno
import os
from pathlib import Path

import pytest

from perflaw.errors import StoreError
from perflaw.record import saving
from perflaw.store import tables
from perflaw.store.schema import COLUMNS, table_of
from perflaw.store.tables import engine, read_table, write_tables

TABLES = {name: table_of(name, ()) for name in COLUMNS}


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, None])
def test_tables_are_written_without_a_second_thread(monkeypatch, tmp_path, error):
    """None: the thread ends before it runs any of its code, as it does without memory."""

    def start(*arguments):
        if error:
            raise error

    monkeypatch.setattr(_thread, "start_new_thread", start)
    write_tables(tmp_path, TABLES)
    assert {path.stem for path in tmp_path.iterdir()} == set(TABLES)


def test_a_failure_in_the_second_thread_is_told(monkeypatch, tmp_path):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(_thread, "start_new_thread", lambda work, arguments: work(*arguments))  # it is the faster one
    monkeypatch.setattr(tables, "_write_table", fail)
    with pytest.raises(MemoryError):
        write_tables(tmp_path, TABLES)


def test_after_an_error_of_the_engine_it_is_begun_anew(monkeypatch, tmp_path):
    def fail(*arguments):
        raise engine().FatalException("the database has been invalidated")

    with monkeypatch.context() as patched:
        patched.setattr(tables, "_write_table", fail)
        before = tables.connect()
        with pytest.raises(OSError, match="invalidated"):
            write_tables(tmp_path, TABLES)
    assert tables.connect() is not before
    write_tables(tmp_path, TABLES)
    assert len(read_table(tmp_path, "components")) == 0


class Failing:
    """Something to write that finds too little memory a number of times."""

    def __init__(self, times):
        self.times = times

    def write(self, folder):
        self.times -= 1
        if self.times >= 0:
            raise MemoryError


def test_what_lacks_memory_is_written_at_the_second_attempt(tmp_path):
    (tmp_path / "run" / "spool").mkdir(parents=True)
    assert saving._save(None, tmp_path / "run", Failing(1)) == tmp_path / "run"


def test_what_cannot_be_written_anywhere_is_told_to_be_lost(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(StoreError, match=r"the recording is lost \(there is not enough memory\)"):
        saving._save(None, tmp_path / "run", Failing(3))


def test_an_error_that_the_disk_tells_late_is_told(monkeypatch, tmp_path):
    """Writing succeeds, and only at the end the disk says that data could not be kept."""

    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(OSError, match="Input/output"):
        write_tables(tmp_path, TABLES)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
