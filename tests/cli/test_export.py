"""``perflaw export``: each file is read by the tool that it is for, or by the reader of its format."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess

import duckdb
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace

from perflaw.imports.protobuf import fields, varint
from perflaw.imports.registry import read_trace
from perflaw.store.experiment import open_experiment
from perflaw.store.profiles import read_profile

PROGRAM = """
def leaf(n):
    return sum(range(n))

def f(n):
    return leaf(n) + leaf(2 * n)

for n in range(1, 31):
    f(100 * n)
"""


@pytest.fixture
def recording(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    perflaw("record", "--", "app.py")
    (recording,) = open_experiment("default", tmp_path).recordings()
    return recording


def own(recording):
    """Function → its own time without that in which others had the CPU, ns."""
    profile = read_profile([recording])
    raw = sum(row[3] for row in recording.tables()["component_costs"] if row[1] == "time")
    found = dict(zip([one.name for one in profile.components], profile.function_own["time"].tolist(), strict=True))
    assert abs(sum(found.values()) + profile.queued - raw) < 1
    return found


def test_every_format_has_the_sums_of_the_recording(perflaw, recording, tmp_path):
    whole = sum(own(recording).values())
    stacks = dict(line.rsplit(" ", 1) for line in perflaw("export", "--to", "collapsed").stdout.splitlines())
    assert {path.split(";")[-2:] == ["app.f", "app.leaf"] for path in stacks if path.endswith("leaf")} == {True}
    assert abs(sum(map(int, stacks.values())) - whole) <= len(stacks)

    shown = json.loads(perflaw("export", "--to", "speedscope").stdout)
    (profile,) = shown["profiles"]
    assert profile["unit"] == "nanoseconds"
    assert sum(profile["weights"]) == profile["endValue"] == sum(map(int, stacks.values()))
    frames = [frame["name"] for frame in shown["shared"]["frames"]]
    assert {";".join(frames[one] for one in sample) for sample in profile["samples"]} == set(stacks)

    metrics = ParseDict(json.loads(perflaw("export", "--to", "otlp").stdout), MetricsData())
    (scope,) = metrics.resource_metrics[0].scope_metrics
    time = next(one for one in scope.metrics if one.name == "perflaw.own.time")
    points = {point.attributes[0].value.string_value: point for point in time.sum.data_points}
    assert time.unit == "ns"
    assert abs(points["app.leaf"].as_int - own(recording)["app.leaf"]) <= 1
    longest = points["app.leaf"].exemplars
    assert 1 <= len(longest) <= 8
    waited = read_profile([recording]).queued  # the longest calls contain it
    assert sum(one.as_int for one in longest) <= points["app.leaf"].as_int + waited


def test_prometheus_accepts_its_text_and_pprof_its_messages(perflaw, recording, tmp_path):
    text = perflaw("export", "--to", "prometheus").stdout
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert 'function="app.leaf"' in text
    assert [
        line.split()[-1] for line in text.splitlines() if line.startswith("perflaw_calls_total") and "leaf" in line
    ] == ["60"]

    # The messages of a profile, by field number of profile.proto: texts, functions, samples that sum to the own time.
    perflaw("export", "--to", "pprof", "-o", "p.pb.gz")
    parts = list(fields(gzip.decompress((tmp_path / "p.pb.gz").read_bytes())))
    texts = [value.decode() for key, value in parts if key == 6]
    kinds = [texts[dict(fields(value))[1]] for key, value in parts if key == 1]
    names = {dict(fields(value))[1]: texts[dict(fields(value))[2]] for key, value in parts if key == 5}
    assert texts[0] == ""
    assert kinds[:2] == ["calls", "time"]
    sums = {}
    for key, value in parts:
        if key == 2:
            path, values = (packed(inner) for _, inner in fields(value))
            sums[names[path[0]]] = sums.get(names[path[0]], 0) + values[1]
    assert abs(sums["app.leaf"] - own(recording)["app.leaf"]) <= 2


def test_perfetto_reads_its_trace(perflaw, recording, tmp_path):
    """By Perfetto's own messages: sums of the call tree, the longest calls at their times; and by our importer."""
    perflaw("export", "--to", "perfetto", "-o", "p.pftrace")
    trace = PerfettoTrace.FromString((tmp_path / "p.pftrace").read_bytes())
    assert trace.SerializeToString()  # all required fields are there
    tracks = {
        one.track_descriptor.uuid: one.track_descriptor for one in trace.packet if one.HasField("track_descriptor")
    }
    names = {uuid: one.name or one.process.process_name for uuid, one in tracks.items()}
    assert all(one.parent_uuid in tracks for one in tracks.values() if one.HasField("name"))
    slices, stacks = [], {}
    for packet in trace.packet:
        if packet.HasField("track_event"):
            event, stack = packet.track_event, stacks.setdefault(packet.track_event.track_uuid, [])
            if event.type == event.TYPE_SLICE_BEGIN:
                stack.append((event, packet.timestamp))
            else:
                assert event.type == event.TYPE_SLICE_END
                begun, at = stack.pop()
                assert packet.timestamp >= at
                slices.append((names[event.track_uuid], len(stack), begun, packet.timestamp - at))
    assert not any(stacks.values())

    sums = [one for one in slices if one[0] == "call tree: time"]
    notes = {one.name: {told.name: told.int_value for told in one.debug_annotations} for _, _, one, _ in sums}
    assert {name: notes[name]["calls"] for name in ("app.f", "app.leaf")} == {"app.f": 30, "app.leaf": 60}
    whole = sum(own(recording).values())
    assert abs(sum(took for _, depth, _, took in sums if not depth) - whole) <= len(sums)
    (leaf,) = [one for one in sums if one[2].name == "app.leaf"]
    assert abs(leaf[3] - own(recording)["app.leaf"]) <= 2
    assert leaf[2].source_location.file_name.endswith("app.py")

    longest = [one for one in slices if one[0] == "app.f" and not one[1]]
    assert 1 <= len(longest) <= 8
    assert {one.name for place, depth, one, _ in slices if place == "app.f" and depth} == {"app.leaf"}
    functions = {row[0]: row[1] for row in recording.tables()["components"]}
    took = sorted(row[5] for row in recording.tables()["worst"] if functions[row[2]] == "app.f")
    assert sorted(one[3] for one in longest) == took
    assert "app.f" in longest[0][2].debug_annotations[0].string_value

    read = read_trace(tmp_path / "p.pftrace")
    assert {one.name.split(":")[0] for one in read.processes} == {"app.py"}
    assert sum(one.tree(None, 1).calls for one in read.processes) == len(slices)


def packed(data):
    place, values = 0, []
    while place < len(data):
        value, place = varint(data, place)
        values.append(value)
    return values


def test_tables_and_wrong_use(perflaw, recording, tmp_path):
    perflaw("export", "--to", "csv", "-o", "c")
    perflaw("export", "--to", "parquet", "-o", "p")
    with (tmp_path / "c" / "components.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["name"]: row["calls"] for row in rows}["app.leaf"] == "60"
    found = duckdb.sql(
        f"SELECT calls FROM '{tmp_path / 'p' / 'components.parquet'}' WHERE name = 'app.leaf'"
    ).fetchall()
    assert found == [(60,)]
    assert not list((tmp_path / "c").glob("*.parquet"))

    assert "a file for each table" in perflaw("export", "--to", "csv", status=2).stderr
    assert "not measured" in perflaw("export", "--to", "collapsed", "--metric", "joules", status=2).stderr
