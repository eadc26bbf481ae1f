"""The tracer's packing and the reader's dtype are one layout."""

import importlib.util
import mmap
from pathlib import Path

import numpy as np

from perflaw.collect import layout, reservoir
from perflaw.collect.launch import TARGET_FOLDER
from perflaw.store import merge


def tracer():
    spec = importlib.util.spec_from_file_location("tracer_under_test", Path(TARGET_FOLDER) / "_perflaw_tracer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_records_are_read_as_they_are_written():
    module = tracer()
    area = mmap.mmap(-1, 2 * module.RECORD)
    module._event(area, 0, -(1 << 62), 1 << 62, 3, -1, 0x7FFFFFFF, module.ENTER)
    module._feature(area, module.RECORD, 2.5, 7, 9, -1, -1, module.FEATURE)
    first, second = np.frombuffer(area, dtype=layout.RECORD)
    assert tuple(first) == (-(1 << 62), 1 << 62, 3, -1, 0x7FFFFFFF, layout.ENTER)
    assert np.array([second["value"]]).view("<f8")[0] == 2.5
    assert tuple(second)[1:] == (7, 9, -1, -1, layout.FEATURE)
    assert layout.RECORD.itemsize == module.RECORD


def test_numbers_that_two_sides_share():
    module = tracer()
    for name in ("ENTER", "EXIT", "YIELD", "RESUME", "FEATURE"):
        assert getattr(module, name) == getattr(layout, name)
    assert module.RESERVOIR == reservoir.UNIFORM == merge.UNIFORM
    assert reservoir.PER_STRATUM == merge.PER_STRATUM
