"""The C core's reader of trace-event JSON against the Python one: the same calls, or a refusal by both."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perflaw import bounds
from perflaw.errors import PerflawError
from perflaw.imports import streaming
from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file
from perflaw.imports.tracks import MAX_FEATURES, TOO_MANY_FEATURES
from tests.conftest import examples
from tests.imports.test_traces import assert_both_read_the_same

LIBRARY = core_file(lambda text: None)
NUMBERS = st.sampled_from(
    ["0", "1", "2.5", "7.0015", "7.00150000000000000001", "12.3456", "1e1", "25e-1", "-3", "3.14159265358979", "1.0", "1e300",
     "9" * 20, "0.30000000000000004", "1E+2", "2e-19", '"4.25"', "null", "true", "NaN", '"x"', "[]", "-1", "-1.0"]
)  # fmt: skip
NAMES = st.sampled_from(['"a"', '"b"', r'"\u00e9\n"', '"é"', r'"\ud83d\ude00"', '"f (/x/app.py:3)"', '""', "5", "null"])
PLAIN = st.sampled_from(["1", "2", '"1"', "null", "1.5", r'"\t"'])
ARGUMENTS = st.dictionaries(
    st.sampled_from(["n", "a.b", "ü", "0", "long name"]), NUMBERS | st.just('{"deep":[1,{"x":[]}]}'), max_size=3
).map(lambda pairs: "{" + ",".join(f'"{name}": {value}' for name, value in pairs.items()) + "}")
ARGUMENTS |= ARGUMENTS.map(lambda inner: '{"func_args":' + inner + ',"n":1}')
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from(['"B"', '"E"', '"X"', '"X"', '"X"', '"b"', '"C"', '"M"', '"P"'])},
    optional={
        "name": NAMES, "ts": NUMBERS, "dur": NUMBERS, "pid": PLAIN, "tid": PLAIN, "args": ARGUMENTS,
        "cat": st.just('"z\\\\"'), "id": NUMBERS,
    },
)  # fmt: skip
USUAL = st.builds(
    lambda kind, name, ts, dur, tid: {
        "ph": f'"{kind}"', "name": f'"{name}"', "ts": str(ts / 8), "dur": str(dur / 8), "pid": "1", "tid": str(tid),
    },
    st.sampled_from("XXXBE"), st.sampled_from("abc"), st.integers(0, 60), st.integers(0, 30), st.integers(1, 2),
)  # fmt: skip


def text_of(events):
    return [" {" + " , ".join(f'"{key}":{value}' for key, value in one.items()) + "}\n" for one in events]


def test_begins_and_ends_of_one_moment_stand_in_the_order_of_the_file(tmp_path):
    """Beside complete events that are written as they end."""
    marks = [("X", 1, 2), ("X", 0, 4), ("B", 5, 0), ("E", 5, 0), ("X", 7, 1), ("X", 6, 3)]
    events = [{"ph": kind, "name": "f", "ts": ts, "dur": dur, "pid": 1, "tid": 1} for kind, ts, dur in marks]
    assert_both_read_the_same(tmp_path / "t.json", json.dumps(events).encode())
    (process,) = streaming.read(tmp_path / "t.json", LIBRARY).processes
    assert process.tree(LIBRARY, 1).calls == 5


def test_numbers_beyond_what_a_feature_can_be_are_left_out(tmp_path):
    event = '{"ph": "X", "name": "f", "ts": 1, "dur": 2, "args": {"n": 1e320, "m": 2}}'
    assert_both_read_the_same(tmp_path / "t.json", f"[{event}]".encode())
    for library in (None, LIBRARY):
        (process,) = read_trace(tmp_path / "t.json", library).processes
        process.tree(library, 1)
        assert set(process.definitions.features.values()) == {"m"}


def event(name, ts, pid, numbers):
    return {"ph": "X", "name": name, "ts": ts, "dur": 1, "pid": pid, "args": numbers}


def test_each_process_keeps_its_own_names_of_numbers(tmp_path):
    """As many as a process may have, in two processes; of too many the first ones of the file, whichever call is first."""
    names = [[f"p{pid}n{number}" for number in range(200)] for pid in range(2)]
    more = [f"more{number}" for number in range(100)]
    events = [event("f", 10 - pid, pid, dict.fromkeys(names[pid], 1)) for pid in range(2)]
    events.append(event("g", 2, 0, {**dict.fromkeys(more, 2), names[0][7]: 3}))
    assert_both_read_the_same(tmp_path / "t.json", json.dumps(events).encode())
    for library in (None, LIBRARY):
        found = {}
        for process in read_trace(tmp_path / "t.json", library).processes:
            process.tree(library, 1)
            found[process.pid] = list(process.definitions.features.values()), process.notes[TOO_MANY_FEATURES]
        assert found == {0: (names[0] + more[: MAX_FEATURES - 200], 300 - MAX_FEATURES), 1: (names[1], 0)}


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(USUAL, max_size=12), st.lists(EVENTS, max_size=2), st.integers(1, 99), st.booleans(), st.data())
@example([], [{"ph": '"X"', "name": '"a"', "ts": "7.0015", "dur": "1.00050000000000000000000000001"}], 9, True, None)
def test_any_events_are_read_as_the_python_reader_reads_them(tmp_path, usual, odd, size, is_object, data):
    events = text_of([*usual, *odd])
    text = "[" + ",".join(events) + "]"
    if is_object:
        text = '{"metadata": {"a":[1,"]"]}, "traceEvents":' + text + ', "otherData": "x"}'
    elif data and data.draw(st.booleans()):
        text = text[:-1] + "," * data.draw(st.integers(0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "PIECE", size)
        assert_both_read_the_same(tmp_path / "t.json", text.encode())
        if usual and not odd and any(one["ph"] != '"E"' for one in usual):
            assert streaming.read(tmp_path / "t.json", LIBRARY).processes


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(USUAL, min_size=1, max_size=4), st.data())
def test_damage_is_refused_by_both_or_by_none(tmp_path, usual, data):
    text = '{"traceEvents":[' + ",".join(text_of(usual)) + "]}"
    place = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 3))
    text = (
        text[:place]
        + data.draw(st.sampled_from(["", ",", "]", "}", "[", '"', "\\", "1e9", "\0"]))
        + text[place + length :]
    )
    assert_both_read_the_same(tmp_path / "t.json", text.encode())


def test_files_of_many_runs_are_merged_by_time(tmp_path):
    """More events than a run holds, newest first, of two threads, with numbers: as in one piece."""
    count = 300_000
    with (tmp_path / "t.json").open("w") as file:
        file.write("[")
        for number in range(count, 0, -1):
            file.write(
                f'{{"ph":"X","name":"f{number % 3}","ts":{10 * number},"dur":5,"tid":{number % 2},"args":{{"n":{number}}}}},\n'
            )
        file.write('{"ph":"X","name":"all","ts":0,"dur":1e8,"tid":0}]')
    (process,) = streaming.read(tmp_path / "t.json", LIBRARY).processes
    tree = process.tree(LIBRARY, 1)
    assert tree.calls == count + 1
    assert len(tree.nodes) == 1 + 1 + 3 + 3
    assert not +process.notes
    assert process.last_stamp() == 10**11


def test_a_large_damaged_file_is_refused_by_the_place_of_its_event(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "_SMALL", 1)
    (tmp_path / "t.json").write_text('[{"ph":"X","name":"f","ts":1,"dur":1},{"ph":"X","name":"f","ts":"never"}]')
    with pytest.raises(PerflawError, match="event 3 of traceEvents, after byte 37"):
        read_trace(tmp_path / "t.json", LIBRARY)


def test_more_overlapping_calls_than_tracks_are_refused(tmp_path):
    events = [{"ph": "X", "name": "f", "ts": 10 * number, "dur": 10**6} for number in range(1100)]
    (tmp_path / "t.json").write_text(json.dumps(events))
    for library in (None, LIBRARY):
        with pytest.raises(PerflawError, match=r"overlap"):
            read_trace(tmp_path / "t.json", library).processes[0].tree(library, 1)


@pytest.mark.slow
def test_pieces_of_a_bomb_are_bounded(tmp_path):
    (tmp_path / "bomb").write_bytes(gzip.compress(b" " * (1 << 26)) * 17)
    with pytest.raises(ValueError, match="larger than the 1 GiB"):
        assert max(map(len, bounds.read_pieces(tmp_path / "bomb", 1 << 30))) <= bounds.PIECE
