"""The tracer's packing and the reader's dtype are one layout."""

import importlib
import mmap

import numpy as np
import pytest

from perflaw.record.python.tracers import TARGET_FOLDER
from perflaw.record.tree import records as layout
from perflaw.store import schema


@pytest.fixture
def spool(monkeypatch):
    monkeypatch.syspath_prepend(TARGET_FOLDER)
    return importlib.import_module("_perflaw_spool")


def test_records_are_read_as_they_are_written(spool):
    area = mmap.mmap(-1, 2 * spool.RECORD)
    spool.pack_event(area, 0, -(1 << 62), 1 << 62, 3, -1, 0x7FFFFFFF, spool.ENTER)
    spool.pack_feature(area, spool.RECORD, 2.5, 7, 9, -1, -1, spool.FEATURE)
    first, second = np.frombuffer(area, dtype=layout.RECORD)
    assert tuple(first) == (-(1 << 62), 1 << 62, 3, -1, 0x7FFFFFFF, layout.ENTER)
    assert np.array([second["value"]]).view("<f8")[0] == 2.5
    assert tuple(second)[1:] == (7, 9, -1, -1, layout.FEATURE)
    assert layout.RECORD.itemsize == spool.RECORD


def test_numbers_that_two_sides_share(spool):
    for name in ("ENTER", "EXIT", "YIELD", "RESUME", "FEATURE", "DEAD"):
        assert getattr(spool, name) == getattr(layout, name)
    tracer = importlib.import_module("_perflaw_tracer")
    assert tracer.RESERVOIR == schema.UNIFORM


def test_the_tracers_descriptors_are_not_where_the_target_would_meet_them(spool, tmp_path):
    import os

    first = os.dup(0)
    os.close(first)
    segment = spool.Spool(str(tmp_path)).segment(1)
    after = os.dup(0)
    os.close(after)
    assert after == first
    assert len(segment) == spool.SEGMENT
