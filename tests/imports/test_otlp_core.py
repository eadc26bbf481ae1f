"""The C core's reader of spans in protobuf against the Python one: the same calls, or a refusal by both."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from perflaw.errors import PerflawError
from perflaw.imports import otlp_core
from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file
from perflaw.imports.tracks import MAX_FEATURES, TOO_MANY_FEATURES
from perflaw.record.tree.tables import tabulate
from tests.conftest import examples
from tests.imports.test_traces import assert_both_read_the_same

LIBRARY = core_file(lambda text: None)
VALUES = st.one_of(
    st.sampled_from(["GET", "POST", "", "7", "é"]).map(lambda text: ("string_value", text)),
    st.integers(-5, 2**63 - 1).map(lambda number: ("int_value", number)),
    st.floats().map(lambda number: ("double_value", number)),
    st.booleans().map(lambda truth: ("bool_value", truth)),
    st.just(("array_value", None)),
)
KEYS = st.sampled_from(["items", "http.method", "code.lineno", "code.line.number", "code.filepath", "user id", "0"])
SPANS = st.tuples(
    st.integers(0, 7), st.integers(-1, 8), st.sampled_from("fgh"), st.integers(1, 40), st.integers(0, 30),
    st.dictionaries(KEYS, VALUES, max_size=3), st.integers(0, 9), st.integers(0, 2),
)  # fmt: skip


def message(services):
    data = TracesData()
    for service, spans in services:
        resource = data.resource_spans.add()
        if service:
            told = resource.resource.attributes.add(key="service.name")
            told.value.string_value = service
        scope = resource.scope_spans.add()
        for number, parent, name, start, duration, attributes, status, links in spans:
            span = scope.spans.add(
                trace_id=bytes(16), span_id=bytes([number + 1] * 8), name=name,
                start_time_unix_nano=10**18 + start, end_time_unix_nano=10**18 + start + duration if duration else 0,
            )  # fmt: skip
            if parent >= 0:
                span.parent_span_id = bytes([parent + 1] * 8)
            for key, (kind, value) in attributes.items():
                if key == "code.filepath" and kind != "string_value":
                    continue
                pair = span.attributes.add(key=key)
                if value is None:
                    pair.value.array_value.values.add(int_value=1)
                else:
                    setattr(pair.value, kind, value)
            span.status.code = 2 if status == 2 else 0
            for _ in range(links):
                span.links.add(trace_id=bytes(16), span_id=bytes(8))
    return data.SerializeToString()


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(["", "shop", "bank"]), st.lists(SPANS, max_size=7)), min_size=1, max_size=3))
def test_any_spans_are_read_as_the_python_reader_reads_them(tmp_path, services):
    assert_both_read_the_same(tmp_path / "spans.pb", message(services))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(SPANS, min_size=1, max_size=3), st.data())
def test_damage_is_refused_by_both_or_by_none(tmp_path, spans, data):
    whole = message([("shop", spans)])
    place = data.draw(st.integers(2, len(whole) - 1))
    assert_both_read_the_same(
        tmp_path / "spans.pb",
        whole[:place] + data.draw(st.binary(max_size=2)) + whole[place + data.draw(st.integers(0, 2)) :],
    )


@pytest.mark.parametrize("rest", [1, 2, 3, 4])
def test_a_file_that_ends_within_the_length_of_an_export_is_refused(tmp_path, rest):
    whole = message([("shop", [(0, -1, "f", 1, 30, {}, 0, 0)])])
    (tmp_path / "spans.pb").write_bytes(len(whole).to_bytes(4, "big") + whole + b"\0\0\1\0"[:rest])
    for library in (None, LIBRARY):
        with pytest.raises(PerflawError, match="its protobuf is damaged"):
            read_trace(tmp_path / "spans.pb", library)


def test_the_core_reads_what_is_sound():
    spans = [
        (number, number - 1, "f", number + 1, 30 - 2 * number, {"items": ("int_value", number)}, 2, 0)
        for number in range(8)
    ]
    (process,) = otlp_core.read([message([("shop", spans)])], LIBRARY).processes
    tree = process.tree(LIBRARY, 1)
    assert (tree.calls, process.name, process.first_stamp(), process.last_stamp()) == (
        8,
        "shop",
        10**18 + 1,
        10**18 + 31,
    )
    assert set(process.definitions.features.values()) == {"items", "error"}


def names_by_both(path):
    """Names of features, and how many numbers were left out, which both readers tell alike."""
    found = []
    for library in (None, LIBRARY):
        (process,) = read_trace(path, library).processes
        process.tree(library, 1)
        found.append((list(process.definitions.features.values()), process.notes[TOO_MANY_FEATURES]))
    assert found[0] == found[1]
    return found[0]


def test_texts_that_are_no_categories_take_no_place_of_numbers(tmp_path):
    texts = {f"text {number}": ("string_value", "always") for number in range(200)}
    numbers = {f"n{number}": ("int_value", number) for number in range(200)}
    spans = [(0, -1, "f", 1, 30, texts, 0, 0), (1, 0, "g", 2, 5, numbers, 0, 0)]
    (tmp_path / "spans.pb").write_bytes(message([("shop", spans)]))
    assert names_by_both(tmp_path / "spans.pb") == (list(numbers), 0)


def test_of_too_many_names_the_first_ones_of_the_file_are_kept(tmp_path):
    """After those that perflaw makes itself and the categories."""
    early = {f"early{number}": ("int_value", number) for number in range(150)}
    late = {f"late{number}": ("int_value", number) for number in range(150)}
    kinds = [{"kind": ("string_value", kind)} for kind in "ab"]
    spans = [
        (0, -1, "f", 20, 30, {**early, **kinds[0]}, 2, 1),
        (1, -1, "f", 5, 6, {**late, **kinds[1]}, 0, 0),  # begins first
    ]
    (tmp_path / "spans.pb").write_bytes(message([("shop", spans)]))
    names, left_out = names_by_both(tmp_path / "spans.pb")
    assert names == ["error", "links", "kind.type", *early, *list(late)[: MAX_FEATURES - 153]]
    assert left_out == 153 + 150 - MAX_FEATURES


@pytest.mark.parametrize("framed", [False, True])
def test_spans_beyond_memory_make_the_same_calls(tmp_path, monkeypatch, framed):
    """Runs of a few bytes instead of 8 MB: each trace lies in many runs, its spans in an order of chance, some twice."""
    chance = random.Random(1)
    spans = []
    for trace in range(300):
        for number in range(chance.randint(1, 9)):
            start, parent = chance.randint(0, 50), chance.randint(-1, number - 1)
            parent = 20 if chance.random() < 0.05 else parent  # which is in no trace
            spans.append((trace, number, parent, "fgh"[number % 3], start, chance.randint(1, 40)))
    spans += chance.sample(spans, 20)
    chance.shuffle(spans)
    data = []
    for at in range(0, len(spans), 7):
        exported = TracesData()
        resource = exported.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = ["shop", "bank"][at % 2]
        scope = resource.scope_spans.add()
        for trace, number, parent, name, start, duration in spans[at : at + 7]:
            span = scope.spans.add(
                trace_id=trace.to_bytes(16, "big"), span_id=bytes([number + 1] * 8), name=name,
                start_time_unix_nano=10**18 + start, end_time_unix_nano=10**18 + start + duration,
            )  # fmt: skip
            if parent >= 0:
                span.parent_span_id = bytes([parent + 1] * 8)
            span.attributes.add(key="items").value.int_value = duration
            span.attributes.add(key="kind").value.string_value = name
            span.status.code = 2 * (duration > 38)
        whole = exported.SerializeToString()
        data.append(len(whole).to_bytes(4, "big") * framed + whole)
    (tmp_path / "spans.pb").write_bytes(b"".join(data))
    found = []
    for run_bytes in (otlp_core.RUN_BYTES, 500):
        monkeypatch.setattr(otlp_core, "RUN_BYTES", run_bytes)
        (process,) = read_trace(tmp_path / "spans.pb", LIBRARY).processes
        tree = process.tree(LIBRARY, 1)
        stamps = process.first_stamp(), process.last_stamp()
        definitions = process.definitions
        tables = tabulate("0001", tree, definitions)
        exact = {
            name: sorted(tables[name]) for name in ("components", "component_costs", "calltree", "moments", "links")
        }
        found.append((exact, stamps, +process.notes, definitions.features, definitions.types, tree.calls))
    assert found[0] == found[1]
    assert len(found[0][2]) == 4  # duplicates, orphans and spans that run aside, of both kinds


def test_a_circle_of_spans_beyond_memory_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(otlp_core, "RUN_BYTES", 50)
    spans = [(0, 1, "f", 1, 30, {}, 0, 0), (1, 0, "g", 1, 30, {}, 0, 0)]
    (process,) = otlp_core.read([message([("shop", spans)])], LIBRARY).processes
    with pytest.raises(PerflawError, match="circle"):
        process.tree(LIBRARY, 1)


def test_a_full_disk_is_told(monkeypatch):
    monkeypatch.setattr(otlp_core, "RUN_BYTES", 50)
    with Path("/dev/full").open("r+b", buffering=0) as full:
        monkeypatch.setattr(otlp_core.tempfile, "TemporaryFile", lambda prefix: full)
        with pytest.raises(PerflawError, match="takes its spans: no space left"):
            otlp_core.read([message([("shop", [(number, -1, "f", 1, 30, {}, 0, 0) for number in range(3)])])], LIBRARY)
