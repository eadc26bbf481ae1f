"""Recordings of Java's Flight Recorder (``gold/make.py`` made them): their calls and numbers are those of ``jfr print``."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import defaultdict
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.errors import DataError, PerflawError, UsageError
from perflaw.imports import jfr
from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file, import_trace
from perflaw.store.experiment import open_experiment
from tests.conftest import assert_identities, examples
from tests.imports.test_traces import moments_of, tables_of

GOLD = Path(__file__).parent / "gold"
LIBRARY = core_file(lambda text: None)
WHOLE = gzip.decompress((GOLD / "shop.jfr.gz").read_bytes())
PATHS = {
    "shop.Order": ("shop.Order",),
    "shop.Pay": ("shop.Order", "shop.Pay"),
    "jdk.ThreadSleep": ("shop.Order", "shop.Pay", "jdk.ThreadSleep"),
    "jdk.FileRead": ("shop.Order", "jdk.FileRead"),
}


def told(path):
    """Path of names → calls and ns, as JDK's own reader tells them; the numbers of the orders."""
    sums = defaultdict(lambda: [0, 0])
    orders = []
    for name, values in json.loads(path.read_text()):
        sums[PATHS[name]][0] += 1
        sums[PATHS[name]][1] += round(Decimal(values["duration"].removeprefix("PT").removesuffix("S")) * 10**9)
        if name == "shop.Order":
            orders.append({key: float(values[key]) for key in ("items", "gift", "euro", "debt", "shelf", "kind")})
    return {path: tuple(found) for path, found in sums.items()}, orders


def assert_is_told(recording, reference):
    sums, orders = told(reference)
    for library in (None, LIBRARY):
        trace = read_trace(recording, library)
        (process,) = trace.processes
        (tables,) = tables_of(trace, library)
        assert {path: row[:2] for path, row in moments_of(tables).items()} == sums
        assert (trace.tool, trace.lost, trace.epoch) == ("JFR", "", True)
        assert process.notes[jfr.INSTANTS] > 0  # jdk.CPULoad
        numbers = defaultdict(dict)
        for row in tables["features"]:
            numbers[row[:2]][row[2]] = row[3]
        found = [one for one in numbers.values() if "items" in one]
        assert sorted(sorted(one.items()) for one in found) == sorted(sorted(one.items()) for one in orders)
    return trace


def test_calls_and_numbers_are_those_that_the_jdk_tells():
    trace = assert_is_told(GOLD / "shop.jfr.gz", GOLD / "shop.jfr.json")
    first = min(values["startTime"] for _, values in json.loads((GOLD / "shop.jfr.json").read_text()))
    assert abs(trace.first() / 1e9 - datetime.fromisoformat(first[:26] + "+00:00").timestamp()) < 1e-3


def test_a_recording_becomes_a_run(tmp_path):
    experiment = open_experiment("imported", tmp_path)
    import_trace(experiment, GOLD / "shop.jfr.gz", {}, lambda text: None)
    (recording,) = experiment.recordings()
    assert_identities(recording.tables())
    assert (recording.run.target, recording.run.complete) == ("shop", True)


def test_samples_are_refused():
    with pytest.raises(UsageError, match="sampled stacks"):
        read_trace(GOLD / "samples.jfr.gz", LIBRARY)


def test_chunks_follow_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(jfr, "_EVENTS", 7)
    (tmp_path / "two.jfr").write_bytes(WHOLE + WHOLE)
    (process,) = read_trace(tmp_path / "two.jfr", LIBRARY).processes
    assert process.tree(LIBRARY, 1).calls == 2 * 60


def test_a_chunk_that_is_not_finished_is_told(tmp_path):
    (tmp_path / "cut.jfr").write_bytes(WHOLE + WHOLE[:5000])
    trace = read_trace(tmp_path / "cut.jfr", LIBRARY)
    assert trace.lost == jfr.UNFINISHED
    assert trace.processes[0].tree(LIBRARY, 1).calls == 60
    (tmp_path / "cut.jfr").write_bytes(WHOLE[:5000])
    with pytest.raises(DataError, match="no call in it"):
        read_trace(tmp_path / "cut.jfr", LIBRARY)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_damage_is_read_or_refused_in_words(tmp_path_factory, place, patch):
    path = tmp_path_factory.mktemp("damaged") / "shop.jfr"
    path.write_bytes(WHOLE[:place] + patch + WHOLE[place + len(patch) :])
    try:
        (process,) = read_trace(path, LIBRARY).processes
        process.tree(LIBRARY, 1)
    except PerflawError as error:
        assert str(path) in str(error)


@pytest.mark.slow
def test_a_recording_made_anew(tmp_path):
    told = importlib.util.spec_from_file_location("make", GOLD / "make.py")
    make = importlib.util.module_from_spec(told)
    told.loader.exec_module(make)
    make.jfr(tmp_path)
    assert_is_told(tmp_path / "shop.jfr.gz", tmp_path / "shop.jfr.json")
