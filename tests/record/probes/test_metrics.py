"""Readings of known records are what arithmetic says."""

import pytest

from perflaw.errors import UsageError
from perflaw.record.probes import layout
from perflaw.record.probes.collector import Collector
from perflaw.record.probes.metrics import LiveView, ProbeMetrics
from perflaw.record.probes.tracer import Tracer
from perflaw.types.studies import StudyMetric
from tests.record.probes.fake import FakeArea, what

SECOND = 1_000_000_000


@pytest.fixture
def batch(tmp_path):
    """Ten queries of 1 … 10 µs in a second, with rows; a counter of 30 and 40 executions; a TPT of 5 in 50 µs."""
    area = FakeArea(tmp_path, records=64)
    area.register(1, "query", layout.LAT)
    area.register(2, "work", layout.SNAPSHOT, "rows,size")
    area.register(3, "hits", layout.CNT)
    area.register(4, "page", layout.TPT)
    for number in range(1, 11):
        area.shot(2, SECOND + number * 10_000, number, 100 * number)
        area.lat(1, SECOND + number * 10_000, SECOND + number * 11_000)
    area.write(0, what(3, layout.CNT, 1), SECOND + 200_000, 30)
    area.write(0, what(3, layout.CNT, 1), SECOND + 300_000, 40)
    area.write(0, what(4, layout.TPT, 2), SECOND + 400_000, 5, 50_000)
    collector = Collector([tmp_path])
    collector.look()
    return collector.drain()


def readings(batch, **source):
    metrics = ProbeMetrics([StudyMetric("m", source)])
    metrics.begin(SECOND)
    found = metrics.take(batch)
    if not found:
        found = metrics.flush(batch.at_ns)
    return found, (batch.at_ns - SECOND) / 1e9, metrics


@pytest.mark.parametrize(
    ("source", "total"),
    [
        ({"probe": "query", "rate": "count"}, 10),
        ({"probe": "hits", "rate": "count"}, 70),
        ({"probe": "page", "rate": "count"}, 5),
        ({"probe": "work", "rate": "sum"}, 55),
        ({"probe": "work", "rate": "sum", "field": "size"}, 5500),
        ({"probe": "query", "rate": "sum"}, 55_000),
    ],
)
def test_rates(batch, source, total):
    (reading,), seconds, _ = readings(batch, **source)
    assert reading.value == pytest.approx(total / seconds)
    assert reading.at_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"probe": "query", "mean": "ns"}, 5500),
        ({"probe": "query", "mean": "cycles"}, 5500),
        ({"probe": "query", "max": "ns"}, 10_000),
        ({"probe": "query", "p50": "ns"}, 5500),
        ({"probe": "work", "mean": "size"}, 550),
        ({"probe": "work", "min": "v1"}, 100),
        ({"probe": "work", "p99": "rows"}, 9.91),
    ],
)
def test_statistics(batch, source, value):
    (reading,), _, _ = readings(batch, **source)
    assert reading.value == pytest.approx(value)
    assert reading.n == 10


def test_windows_follow_each_other(batch):
    metrics = ProbeMetrics([StudyMetric("m", {"probe": "query", "rate": "count"})], window_s=1e9)
    metrics.begin(SECOND)
    assert metrics.take(batch) == []  # the window goes on
    (first,) = metrics.flush(2 * SECOND)
    (second,) = metrics.flush(3 * SECOND)
    assert (first.value, first.n, second.value, second.n, second.at_s) == (10, 10, 0, 0, 2)


def test_what_is_missing_is_said(batch):
    _, _, metrics = readings(batch, probe="quary", mean="ns")
    assert "no probe 'quary'" in metrics.missing["m"] and "query" in metrics.missing["m"]
    found, _, metrics = readings(batch, probe="work", mean="lines")
    assert not found and "rows, size" in metrics.missing["m"]


@pytest.mark.parametrize(
    "source",
    [
        {"probe": "q"},
        {"probe": "q", "rate": "speed"},
        {"probe": "q", "mean": "a", "max": "b"},
        {"probe": 7, "mean": "a"},
    ],
)
def test_sources_that_say_nothing(source):
    with pytest.raises(UsageError, match="metric m"):
        ProbeMetrics([StudyMetric("m", source)])


def test_metrics_from_elsewhere_are_not_its_affair(batch):
    assert ProbeMetrics([StudyMetric("wall", {"wall": True})]).take(batch) == []


def test_the_live_view(batch):
    view = LiveView(lambda name: name != "hits")
    Tracer([view.take]).take(batch)
    rows = {row.name: row for row in view.rows(2.0)}
    assert rows.keys() == {"query", "work", "page"}
    assert (rows["query"].rate, rows["query"].mean, rows["query"].most) == (5, 5500, 10_000)
    assert (rows["page"].rate, rows["page"].mean, rows["page"].value) == (2.5, 10_000, "ns")
    assert view.rows(1.0) == []


def test_a_component_downstream_that_fails_is_left_out(batch):
    def broken(records):
        raise OSError("disk full")

    seen = []
    tracer = Tracer([broken, seen.append])
    tracer.take(batch)
    tracer.take(batch)
    assert len(seen) == 2 * len(batch.pieces)
    assert len(tracer.failures) == 1 and "disk full" in tracer.failures[0]
    assert tracer.received[0][[1, 2, 3, 4]].tolist() == [20, 20, 4, 2]


def test_ids_used_twice_are_told(tmp_path):
    area = FakeArea(tmp_path)
    area.register(7, "query", layout.LAT, conflict=1)
    collector = Collector([tmp_path])
    collector.look()
    tracer = Tracer()
    tracer.take(collector.drain())
    assert tracer.conflicts() == ["probe id 7 is used twice: by query and another"]
    metrics = ProbeMetrics([StudyMetric("m", {"probe": "query", "rate": "count"})])
    metrics.take(collector.drain())
    assert "used twice" in metrics.missing["m"]
