"""Specifications as tables, JSON, Prometheus rules, OTLP and a pytest file; the graph of call paths."""

import json
import math
import subprocess
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import yaml
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from perflaw.check.spec_location import reviewable
from perflaw.errors import DataError
from perflaw.learn.paths.durations import clusters
from perflaw.report.documents import mine_document
from perflaw.report.mine.call_path_graph import MAX_NODES, call_path_graph
from perflaw.report.mine.exports import CALLS, RATIO, mine_otlp, mine_prometheus, mine_pytest
from perflaw.report.mine.page import MAX_BARS, box, histogram_data
from perflaw.report.mine.text import assertions, condition_text, merge_text, mine_text
from perflaw.types import PathGroup, PathSpec
from perflaw.types.documents import dumps
from perflaw.types.specifications import MergeStep, MinedSpec, SpecFile

from . import specs_factory

SPECS = [one.spec for one in specs_factory.specs().specs]


def told(specs, steps=()):
    """The document of specifications and merge steps, as it is printed and read again."""
    return json.loads(dumps(mine_document(SpecFile(tuple(map(MinedSpec, specs))), steps)))


def test_the_table_is_the_papers():
    text = mine_text(told(SPECS[:1]))
    rows = [line.split() for line in text.splitlines()]
    assert ["31", "%", "semop", "4,004", "70", "ms", "3", "2", "yes"] in rows
    assert ["1", "all", "other", "callers:", "2,000", "99", "%", "1", "%"] in rows
    assert ["proc_mutex_sysv_release"] in rows
    assert ["2", "e1", "and", "not", "e2", "1,000", "41", "%", "59", "%"] in rows
    assert ["3", "not", "e1", "and", "e2", "1,000", "35", "%", "65", "%"] in rows
    assert "e1  child_main -> proc_mutex_sysv_acquire" in text
    assert assertions(SPECS[0])[1].endswith(": 41 % t <= 70 ms, 59 % t > 70 ms")


@pytest.mark.parametrize("columns", [60, 80])
def test_tables_stay_in_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    document = told(SPECS, specs_factory.steps())
    text = mine_text(document, every=True) + merge_text(document)
    assert max(map(len, text.splitlines())) <= columns


def test_tables_do_not_drive_the_terminal():
    document = told(SPECS, specs_factory.steps())
    text = mine_text(document, every=True) + merge_text(document)
    assert text.isprintable() or (set(text) - {"\n"} and all(c.isprintable() or c == "\n" for c in text))
    assert "(inseparable)" in text
    assert "(quarantined)" in text
    assert "unknown: 1 call path with 4 calls" in text
    assert "not compared, missing on one side (gone, new or inlined): gone" in text
    assert "every function's calls are of one kind" in mine_text(told(SPECS[1:2]))
    nothing = replace(SPECS[1], points=0, notes=("too short: its calls take …", "0 calls"))
    text = " ".join(mine_text(told([SPECS[1], nothing])).split())
    assert f"nothing is specified of {nothing.component}: calls take less than 1 µs" in text
    assert mine_text(told([])) == "no specification: no function was called often enough\n"


def test_a_group_that_only_lacks_callers_is_all_the_others():
    """The callers are named, not what they are not."""

    def condition(paths, excluded, own):
        expression = (tuple((edge, False) for edge in excluded),)
        groups = (
            PathGroup("a", own, (1.0,), (30,), 30.0, expression),
            PathGroup("b", tuple(place for place in range(len(paths)) if place not in own), (1.0,), (10,), 10.0, ((),)),
        )
        counts = tuple((10 + place,) for place in range(len(paths)))
        spec = replace(SPECS[1], component="load", groups=groups, paths=paths, path_counts=counts)
        return condition_text(groups[0], spec, {})

    ways = (("m", "item", "load"), ("m", "page", "load"), ("m", "find", "load"), ("m", "sort", "load"))
    told = condition(ways, [("find", "load"), ("sort", "load")], (0, 1))
    assert told == "all other callers: page, item"
    deep = (("m", "a", "open", "load"), ("m", "b", "open", "load"))
    assert condition(deep, [("a", "open")], (1,)) == "all other callers of open: b"
    assert condition((*deep, ("m", "load")), [("a", "open")], (2,)) == "all other callers: m"
    many = tuple(("m", name, "load") for name in "abcdefg")
    assert condition(many, [("g", "load")], tuple(range(6))) == "all other callers: f, e, d, c and 2 more"


def test_many_functions_are_cut_unless_asked_for():
    many = [SPECS[1]] * 40 + [SPECS[0]] * 12
    assert "22 more functions, 2 more specifications (--all lists all)" in mine_text(told(many))
    assert "more functions" not in mine_text(told(many), every=True)


def test_the_document_keeps_the_contract():
    document = json.loads(dumps(mine_document(specs_factory.specs(), specs_factory.steps())))
    assert document["schema"] == "perflaw.mine/1"
    spec = document["specs"][0]
    assert {"component", "borders", "groups", "stable", "observations"} <= spec.keys()
    assert spec["borders"] == [70e6]
    assert {"paths", "distribution", "expression"} <= spec["groups"][0].keys()
    assert spec["groups"][1]["terms"] == [[
        {"edge": list(specs_factory.E1), "on_path": True}, {"edge": list(specs_factory.E2), "on_path": False},
    ]]  # fmt: skip
    assert len(document["merges"]) == 4


def test_prometheus_takes_the_rules(tmp_path):
    rules = tmp_path / "rules.yml"
    rules.write_text(mine_prometheus(specs_factory.specs()))
    done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 19 rules found" in done.stdout
    assert "histogram_fraction(0, 70000000, " in rules.read_text()
    empty = tmp_path / "none.yml"
    empty.write_text(mine_prometheus(SpecFile((MinedSpec(SPECS[1]),))))
    assert subprocess.run(["promtool", "check", "rules", empty], capture_output=True).returncode == 0


@pytest.mark.parametrize(("share", "calls", "alarmed"), [(0.80, 500, True), (0.97, 500, False), (0.80, 2, False)])
def test_prometheus_raises_an_alert_where_a_share_is_off(tmp_path, share, calls, alarmed):
    rules = mine_prometheus(SpecFile(specs_factory.specs().specs[:1]))
    # Without native histograms in tests of rules, what is recorded is given: the alerts are left.
    found = yaml.safe_load(rules)
    found["groups"] = [{**one, "rules": [rule for rule in one["rules"] if "alert" in rule]} for one in found["groups"]]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(found))
    who = '{code_function_name="semop", spec_group="g1", clock="time"'
    alert = {
        "exp_labels": {
            "code_function_name": "semop",
            "spec_group": "g1",
            "clock": "time",
            "border": "70000000",
            "severity": "warning",
        },
        "exp_annotations": {"summary": "semop, group g1: 19% off the 99 % of calls up to 70 ms"},
    }
    test = {
        "rule_files": ["rules.yml"],
        "tests": [{
            "interval": "1m",
            "input_series": [
                {"series": f'{RATIO}{who}, border="70000000"}}', "values": f"{share}x60"},
                {"series": f"{CALLS}{who}}}", "values": f"{calls}x60"},
            ],
            "alert_rule_test": [{
                "eval_time": "45m", "alertname": "PerformanceSpecificationViolated", "exp_alerts": [alert] if alarmed else [],
            }],
        }],
    }  # fmt: skip
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_otlp_is_what_the_protocol_says_and_names_no_path():
    file = specs_factory.specs()
    document = json.loads(dumps(mine_otlp(file)))
    request = ParseDict(document, ExportMetricsServiceRequest())
    [metric] = request.resource_metrics[0].scope_metrics[0].metrics
    assert (metric.name, metric.unit) == ("perflaw.call.duration", "ns")
    points = metric.exponential_histogram.data_points
    assert [{a.key: a.value.string_value for a in one.attributes}["spec_group"] for one in points] == [
        "g1",
        "g2",
        "g3",
    ]
    for point, histogram in zip(points, file.specs[0].histograms, strict=True):
        assert point.count == point.zero_count + sum(point.positive.bucket_counts)
        base = 2 ** (2**-point.scale)
        upper = base ** (point.positive.offset + 1 + np.arange(len(point.positive.bucket_counts)))
        below = sum(n for n, bound in zip(point.positive.bucket_counts, upper, strict=True) if bound <= 70e6)
        assert below == pytest.approx(clusters(histogram, [70e6])[0], abs=1)
    assert "child_main" not in json.dumps(document)
    with pytest.raises(DataError, match="no durations"):
        mine_otlp(SpecFile((MinedSpec(SPECS[0]),)))


def test_the_pytest_file_is_python_without_call_paths():
    file = specs_factory.specs()
    text = mine_pytest(replace(file, specs=tuple(reviewable(file.specs, ()))), "default")
    compile(text, "test_performance.py", "exec")
    assert "('semop', 'time', 'g1'" in text
    assert "startup_children" not in text  # on call paths alone, in no expression


def graph_of(paths, labels, edges=()):
    groups = tuple(
        PathGroup(f"g{label}", tuple(i for i, one in enumerate(labels) if one == label), (1.0,), (1,), 1.0,
                  tuple(((edge, True),) for edge in edges))
        for label in sorted(set(labels))
    )  # fmt: skip
    counts = tuple((10 * (len(paths) - i),) for i in range(len(paths)))
    return call_path_graph(PathSpec("z", "time", "ns", (), (), groups, tuple(paths), counts, (), True, 1, 1, 0.0))


def test_calls_have_the_behaviours_of_all_paths_through_them():
    graph = graph_of([("a", "b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")], [0, 1, 1], [("b", "c")])
    names = {place: node.names for place, node in enumerate(graph.nodes)}
    lines = {(names[line.source], names[line.target]): line.groups for line in graph.lines}
    assert lines == {
        (("a",), ("b",)): (0, 1), (("b",), ("c",)): (0,), (("c",), ("z",)): (0, 1),
        (("b",), ("z",)): (1,), (("a",), ("c",)): (1,),
    }  # fmt: skip
    assert graph.nodes[-1].layer == max(node.layer for node in graph.nodes)


def test_ways_without_a_choice_are_one_node_and_large_graphs_are_cut():
    chain = graph_of([("a", "b", "c", "d", "z")], [0])
    assert [node.names for node in chain.nodes] == [("a", "b", "c", "d"), ("z",)]
    rng = np.random.default_rng(1)
    paths = sorted({("main", *(f"f{layer}_{rng.integers(30)}" for layer in range(6)), "z") for _ in range(600)})
    large = graph_of(paths, [0] * len(paths))
    assert len(large.nodes) <= MAX_NODES
    assert large.left > 500
    back = graph_of([("a", "b", "a2", "b", "z"), ("a", "z")], [0, 1])
    assert len(back.nodes) >= 2


def test_nothing_stands_on_anything_else():
    rng = np.random.default_rng(2)
    for _ in range(20):
        count = int(rng.integers(2, 60))
        paths = sorted(
            {
                ("main", *(f"f{layer}_{rng.integers(5)}" for layer in np.flatnonzero(rng.random(5) < 0.7)), "z")
                for _ in range(count)
            }
        )
        graph = graph_of(paths, [i % 3 for i in range(len(paths))])
        spots = [(node.layer, node.place) for node in graph.nodes]
        spots += [(layer, place) for line in graph.lines for place, layer in line.bends]
        for layer in {layer for layer, _ in spots}:
            row = sorted(place for own, place in spots if own == layer)
            assert all(b - a > 0.999 for a, b in pairwise(row))


def test_bars_hold_every_call_and_borders_stand_where_they_are():
    data = histogram_data(specs_factory.specs().specs[0])
    assert [sum(bars) for bars in data["groups"]] == [200, 100, 100]
    assert len(data["groups"][0]) <= MAX_BARS
    border = data["borders"][0]
    assert border["text"] == "70 ms"
    assert math.isclose(border["at"], math.log2(70e6))
    place = (border["at"] - data["low"]) / data["width"]
    assert sum(data["groups"][0][: math.floor(place)]) == 198
    assert histogram_data(MinedSpec(SPECS[0])) is None


def test_boxes_are_tukeys():
    made = box([0.1, 0.9, 0.9, 0.95, 1.0], [0.5] * 5)
    assert made["outliers"] == [0.1]
    assert made["whiskers"] == [0.9, 1.0]
    assert box([], []) is None


def test_functions_without_a_model_on_one_side_are_named():
    text = merge_text(told([], [MergeStep("0002", (), (), ("app.f",))]))
    assert "not compared, without borders or callers on one side: app.f" in " ".join(text.split())
