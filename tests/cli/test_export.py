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

from perflaw.imports.protobuf import fields, varint
from perflaw.store.experiment import open_experiment

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
    """Function → its own time, ns."""
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    return {names[row[0]]: row[3] for row in tables["component_costs"] if row[1] == "time"}


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
    assert sum(one.as_int for one in longest) <= points["app.leaf"].as_int


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
