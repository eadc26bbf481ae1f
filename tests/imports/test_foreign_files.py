"""Files that other tools wrote (``gold/make.py`` made them): their calls and numbers are those of the tools' own readers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from perflaw.errors import DataError, PerflawError
from perflaw.imports.benchmark_lines import parse_path
from perflaw.imports.formats import ForeignFile
from perflaw.imports.protobuf import fields
from perflaw.imports.registry import read_benchmarks, read_trace
from perflaw.store.experiment import open_experiment
from tests.imports.test_traces import moments_of, tables_of

GOLD = Path(__file__).parent / "gold"
ORDERS = 10


def sums(trace):
    """Path of names → calls and ns."""
    (tables,) = tables_of(trace)
    return {path: row[:2] for path, row in moments_of(tables).items()}


def features_of(trace):
    """Names of features → how many calls have each."""
    (tables,) = tables_of(trace)
    return Counter(row[2] for row in tables["features"])


def reference():
    """The spans of OTLP in protobuf, by protobuf's own reader."""
    data = TracesData.FromString((GOLD / "otlp.pb").read_bytes())
    return [one for resource in data.resource_spans for scope in resource.scope_spans for one in scope.spans]


def total(name):
    found = [one.end_time_unix_nano - one.start_time_unix_nano for one in reference() if one.name == name]
    return len(found), sum(found)


@pytest.mark.parametrize("name", ["otlp.pb", "otlp.json", "zipkin.json"])
def test_spans_of_opentelemetry(name):
    trace = read_trace(GOLD / name)
    found = sums(trace)
    assert set(found) == {("order",), ("order", "pay"), ("mail",), ("batch",)}
    for path, (calls, ns) in found.items():
        expected = total(path[-1])
        assert calls == expected[0]
        if name.startswith("otlp"):
            assert ns == expected[1]
        else:
            assert abs(ns - expected[1]) <= 2000 * calls  # Zipkin has µs
    assert sorted(trace.processes[0].notes.values()) in ([ORDERS], [0, ORDERS])  # mails outlive their orders


def test_attributes_errors_and_links_are_features():
    """Numbers and truth values of each span; ``error`` where some spans of a name failed; how many spans caused one."""
    found = features_of(read_trace(GOLD / "otlp.pb"))
    assert found == {"items": ORDERS, "gift": ORDERS, "euro": ORDERS, "error": ORDERS, "links": 1}
    assert found == features_of(read_trace(GOLD / "otlp.json"))


def test_texts_with_few_values_are_categories(tmp_path):
    """A method is one; what is the same everywhere, or different in each span, is none."""
    spans = [
        {
            "traceId": "t", "id": str(number), "name": "get", "timestamp": 100 * number, "duration": 50,
            "tags": {"http.method": ("GET", "PUT")[number % 2], "zone": "a", "request": f"r{number}"},
        }
        for number in range(1, 51)
    ]  # fmt: skip
    (tmp_path / "z.json").write_text(json.dumps(spans))
    (tables,) = tables_of(read_trace(tmp_path / "z.json"))
    assert Counter((row[2], row[4]) for row in tables["features"]) == {
        ("http_method.type", "GET"): 25,
        ("http_method.type", "PUT"): 25,
    }


def test_exports_of_the_collector_stand_after_their_lengths(tmp_path):
    data = (GOLD / "otlp.pb").read_bytes()
    framed = len(data).to_bytes(4, "big") + data
    (tmp_path / "framed").write_bytes(framed)
    assert sums(read_trace(tmp_path / "framed")) == sums(read_trace(GOLD / "otlp.pb"))


def test_jaeger_has_the_same_spans(tmp_path):
    """Its JSON, from the same spans as its collector stores them."""
    spans = [
        {
            "traceID": one.trace_id.hex(), "spanID": one.span_id.hex(), "operationName": one.name,
            "references": [
                *([{"refType": "CHILD_OF", "traceID": one.trace_id.hex(), "spanID": one.parent_span_id.hex()}]
                  if one.parent_span_id else []),
                *({"refType": "FOLLOWS_FROM", "traceID": link.trace_id.hex(), "spanID": link.span_id.hex()}
                  for link in one.links),
            ],
            "startTime": one.start_time_unix_nano // 1000,
            "duration": (one.end_time_unix_nano - one.start_time_unix_nano) // 1000,
            "tags": [
                *({"key": pair.key, "type": "int64", "value": pair.value.int_value}
                  for pair in one.attributes if pair.key == "items"),
                *([{"key": "error", "type": "bool", "value": True}] if one.status.code == 2 else []),
            ],
            "processID": "p1",
        }
        for one in reference()
    ]  # fmt: skip
    document = {"data": [{"traceID": "t", "spans": spans, "processes": {"p1": {"serviceName": "shop"}}}]}
    (tmp_path / "jaeger.json").write_text(json.dumps(document))
    trace = read_trace(tmp_path / "jaeger.json")
    assert {path: calls for path, (calls, _) in sums(trace).items()}[("order", "pay")] == ORDERS
    assert features_of(trace) == {"items": ORDERS, "error": ORDERS, "links": 1}
    assert trace.processes[0].name == "shop"


def test_a_server_span_that_shares_its_identity_lies_within_the_client_span(tmp_path):
    spans = [
        {"traceId": "t", "id": "1", "name": "get", "kind": "CLIENT", "timestamp": 100, "duration": 50},
        {
            "traceId": "t",
            "id": "1",
            "name": "serve",
            "kind": "SERVER",
            "timestamp": 110,
            "duration": 30,
            "shared": True,
        },
        {"traceId": "t", "id": "2", "parentId": "1", "name": "select", "timestamp": 115, "duration": 5},
    ]
    (tmp_path / "z.json").write_text(json.dumps([spans]))
    found = sums(read_trace(tmp_path / "z.json"))
    assert found == {("get",): (1, 50_000), ("get", "serve"): (1, 30_000), ("get", "serve", "select"): (1, 5000)}


def test_perfetto(perflaw, tmp_path):
    """Two threads with 20 frames each: the times that ``make.py`` plants, to the ns."""
    trace = read_trace(GOLD / "perfetto.pftrace")
    blocks = 2 * sum(1000 * frame for frame in range(1, 21))
    assert sums(trace) == {("frame",): (40, blocks + 40 * 1500), ("frame", "block"): (40, blocks)}
    assert features_of(trace) == {"rows": 40}
    perflaw("import", str(GOLD / "perfetto.pftrace"))
    (recording,) = open_experiment("default", tmp_path).recordings()
    assert (recording.run.target, recording.run.pid, recording.run.complete) == ("encoder", 42, True)


def test_calls_that_the_package_speedscope_wrote():
    found = sums(read_trace(GOLD / "orders.speedscope.json", None))
    assert {path: row[0] for path, row in found.items()} == {("work",): 10, ("work", "leaf"): 20}
    assert found["work",][1] >= found["work", "leaf"][1] >= sum(3 * 200_000 * n for n in range(1, 11))


def test_an_evented_profile_of_speedscope(tmp_path):
    events = [("O", 0, 0), ("O", 1, 10), ("C", 1, 30), ("O", 1, 30), ("C", 1, 35), ("C", 0, 40)]
    profile = {"type": "evented", "name": "main", "unit": "microseconds", "startValue": 0, "endValue": 40}
    profile["events"] = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    frames = [{"name": "f", "file": "a.js", "line": 3}, {"name": "g"}]
    document = {"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [profile]}
    (tmp_path / "s.json").write_text(json.dumps({**document, "shared": {"frames": frames}}))
    assert sums(read_trace(tmp_path / "s.json")) == {("f",): (1, 40_000), ("f", "g"): (2, 25_000)}


@given(st.binary(max_size=200), st.integers(0, 4000))
def test_damaged_bytes_are_told_as_such(tmp_path_factory, data, place):
    """Whatever stands in a file, the answer is calls or an error that names the file."""
    path = tmp_path_factory.getbasetemp() / "damaged"
    for gold in ("otlp.pb", "perfetto.pftrace"):
        whole = (GOLD / gold).read_bytes()
        for damaged in (whole[:place] + data + whole[place + len(data) :], whole[:place]):
            path.write_bytes(damaged)
            try:
                read_trace(path)
            except PerflawError as error:
                assert str(path) in str(error)


@given(st.binary(max_size=60))
def test_any_message_is_read_or_refused(data):
    with contextlib.suppress(ValueError):
        assert sum(1 for _ in fields(data)) <= len(data)


def benchmarks(name):
    return {
        (case.benchmark, *case.parameters.items()): case
        for case in read_benchmarks(ForeignFile.open(GOLD / name)).cases
    }


def test_hyperfine(perflaw):
    cases = benchmarks("hyperfine.json")
    results = json.loads((GOLD / "hyperfine.json").read_text())["results"]
    for n, result in zip((1.0, 2.0, 3.0), results, strict=True):
        case = cases["sleep 0.00{n}", ("n", n)]
        assert case.responses["time"] == tuple(seconds * 1e9 for seconds in result["times"])
    said = perflaw("fit", str(GOLD / "hyperfine.json"), "--at", "n=2")
    assert "3 results in 1 series: time in ns" in said.stderr
    assert " ms" in said.stdout


def test_benchmarks_of_go():
    cases = benchmarks("go_bench.txt")
    assert len(cases) == 7
    case = cases["Sort", ("n", 1000.0), ("kind", "random")]
    assert len(case.responses["ns/op"]) == 2
    assert case.responses["B/op"] == (8216.0, 8216.0)
    assert set(case.extra) == {"B/op", "allocs/op"}


def test_benchmarks_of_rust():
    text = (GOLD / "rust_bench.txt").read_text()
    cases = benchmarks("rust_bench.txt")
    assert set(cases) == {("fold_100",), ("fold_10000",)}
    assert f"{cases['fold_10000',].responses['time'][0]:,.2f} ns/iter" in text


def test_criterion(tmp_path):
    """Its text: a long name stands on a line of its own; the estimate is the middle of the three."""
    text = (
        "sum/fold/100            time:   [1.0000 ns 2.0000 ns 3.0000 ns]\n"
        "                        change: [-1% +1% +2%] (p = 0.5 > 0.05)\n"
        "                        No change in performance detected.\n"
        "a group with a long name/and a long function/10000\n"
        "                        time:   [1.0000 µs 2.5000 µs 3.0000 µs]\n"
        "                        thrpt:  [1 Melem/s 2 Melem/s 3 Melem/s]\n"
    )
    (tmp_path / "c.txt").write_text(text)
    cases = read_benchmarks(ForeignFile.open(tmp_path / "c.txt")).cases
    assert [(case.benchmark, dict(case.parameters), case.responses["time"]) for case in cases] == [
        ("sum/fold", {"n": 100.0}, (2.0,)),
        ("a group with a long name/and a long function", {"n": 10000.0}, (2500.0,)),
    ]


JUNIT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">
<testcase classname="t" name="test_wait[1]" time="0.009" /><testcase classname="t" name="test_wait[16-fast]" time="1,000.5" />
<testcase classname="t" name="test_fails" time="0.1"><failure message="&gt;">text</failure></testcase></testsuite></testsuites>
"""


def test_durations_of_junit(tmp_path):
    (tmp_path / "j.xml").write_text(JUNIT)
    cases = read_benchmarks(ForeignFile.open(tmp_path / "j.xml")).cases
    assert [(case.benchmark, dict(case.parameters), case.responses) for case in cases] == [
        ("t.test_wait", {"n": 1.0}, {"time": (9e6,)}),
        ("t.test_wait", {"n": 16.0, "case": "fast"}, {"time": (1000.5e9,)}),
        ("t.test_fails", {}, {}),
    ]
    for damaged, why in ((JUNIT[:150], "not XML"), ("<testsuites>&a;</testsuites>", "not XML")):
        with pytest.raises(DataError, match=why):
            read_benchmarks(ForeignFile(Path("j.xml"), damaged.encode()))
    with pytest.raises(DataError):
        read_benchmarks(ForeignFile(Path("j.xml"), b"<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>"))


def test_durations_that_pytest_wrote(tmp_path):
    (tmp_path / "test_n.py").write_text("import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=out.xml", "test_n.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    cases = read_benchmarks(ForeignFile.open(tmp_path / "out.xml")).cases
    assert [dict(case.parameters) for case in cases] == [{"n": 1.0}, {"n": 2.0}]


@given(st.text("abcn=/0123456789.-", max_size=40))
def test_any_name_of_a_benchmark_is_parsed(name):
    parse_path(name)


def test_the_text_that_criterion_wrote():
    """Its estimates are the middle ones of each line; all else that it writes is passed over."""
    cases = read_benchmarks(ForeignFile.open(GOLD / "criterion.txt")).cases
    found = {case.parameters["n"]: case.responses["time"][0] for case in cases}
    assert found == pytest.approx({100: 70.295, 1000: 2704.2, 10000: 8147.0})
