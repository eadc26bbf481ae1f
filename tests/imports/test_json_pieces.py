"""JSON in pieces: the same values as of the whole text, wherever it is cut; and formats that are read so, in bounded memory."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.bounds import read_json
from perflaw.imports import registry
from perflaw.imports.json_pieces import JsonPieces
from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file
from tests.conftest import examples
from tests.imports.test_foreign_files import GOLD
from tests.imports.test_traces import moments_of, tables_of

LIBRARY = core_file(lambda text: None)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def pieces(data, size):
    return JsonPieces(data[place : place + size] for place in range(0, len(data), size))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES), st.dictionaries(st.text(max_size=3), VALUES), st.integers(1, 9), st.sampled_from([None, 1]))
def test_values_are_those_of_the_whole_text(items, members, size, indent):
    for told in (items, members):
        text = json.dumps(told, indent=indent, ensure_ascii=bool(indent))
        whole = read_json(text, exact=True)
        read = pieces(text.encode(), size)
        if told is items:
            assert [read.value() for _ in read.items()] == whole
        else:
            assert {key: read.value() for key in read.members()} == whole
        assert read.next() == ""
        assert pieces(text.encode(), size).value() == whole


@pytest.mark.parametrize(
    "text", ["[1,]", "[1 2]", "[", "[1", '{"a"}', '{"a":1,}', "{1:2}", '["\\ud8', "[tru]", "[" * 99999]
)
@pytest.mark.parametrize("size", [1, 100])
def test_damage_is_an_error(text, size):
    with pytest.raises(ValueError):
        read = pieces(text.encode(), size)
        for _ in read.items() if text[0] == "[" else read.members():
            read.value()


def speedscope(shared_first):
    names = ["f", "g"]
    events = [("O", 0, 10), ("O", 1, 12), ("C", 1, 15.5), ("O", 1, 16), ("C", 1, 17), ("C", 0, 20)]
    profile = {"type": "evented", "name": "t", "unit": "microseconds", "startValue": 0, "endValue": 20}
    profile["events"] = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    shared = {"shared": {"frames": [{"name": name, "file": "a.py", "line": 3} for name in names]}}
    document = {"$schema": "https://www.speedscope.app/file-format-schema.json", **(shared if shared_first else {})}
    return json.dumps({**document, "profiles": [profile, profile], "name": "app", **shared}).encode()


FILES = {
    "otlp.json": (GOLD / "otlp.json").read_bytes(),
    "lines.json": (GOLD / "otlp.json").read_bytes() + b"\n" + (GOLD / "otlp.json").read_bytes().replace(b"order", b"other"),
    "zipkin.json": (GOLD / "zipkin.json").read_bytes(),
    "shared.json": b"""[{"traceId": "t", "id": "3", "parentId": "2", "name": "query", "timestamp": 13, "duration": 2},
        {"traceId": "t", "id": "2", "shared": true, "kind": "SERVER", "name": "get", "timestamp": 12, "duration": 4},
        {"traceId": "t", "id": "2", "kind": "CLIENT", "name": "call", "timestamp": 10, "duration": 9, "tags": {"n": "7"}}]""",
    "jaeger.json": json.dumps({"data": [{"traceID": "t", "spans": [
        {"traceID": "t", "spanID": str(number), "operationName": "f", "startTime": 10 - number, "duration": 9, "processID": "p",
         "references": [], "tags": [{"key": "n", "value": number}]} for number in range(3)
    ], "processes": {"p": {"serviceName": "shop"}}}]}).encode(),
    "speedscope.json": speedscope(False),
    "frames first.json": speedscope(True),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_pieces_is_read_as_the_whole_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    monkeypatch.setattr(registry, "_read_pieces", lambda path, library: None)
    whole = read_trace(path)
    monkeypatch.undo()
    monkeypatch.setattr(JsonPieces, "of", lambda path: pieces(path.read_bytes(), 7))
    monkeypatch.setattr(registry.ForeignFile, "open", None)  # it would read the whole file
    in_pieces = read_trace(path, LIBRARY)
    assert (in_pieces.tool, in_pieces.tick_ns, in_pieces.first()) == (whole.tool, whole.tick_ns, whole.first())
    assert [(one.name, +one.notes) for one in in_pieces.processes] == [
        (one.name, +one.notes) for one in whole.processes
    ]
    for one, other in zip(tables_of(in_pieces), tables_of(whole), strict=True):
        assert moments_of(one) == moments_of(other)
        for table in ("components", "links", "pairs"):
            assert list(one[table]) == list(other[table])
        assert Counter(row[2:] for row in one["features"]) == Counter(row[2:] for row in other["features"])
