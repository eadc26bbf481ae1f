"""``perflaw variance`` on real recordings: the oracle's numbers, planted causes, null data, files and messages."""

import contextlib
import json
import subprocess
from fractions import Fraction

import pytest
from click.testing import CliRunner

from perflaw.cli.variance import command
from perflaw.errors import PerflawError
from tests.conftest import PROGRAMS, first, run_perflaw
from tests.learn.variance_data import ORACLE


class Folder:
    """A folder with experiments; ``perflaw`` runs there, but in this process where it only reads."""

    def __init__(self, path):
        self.path = path
        self.module = "listing1."  # what names of its functions begin with

    def record(self, name, tracer, *arguments):
        run_perflaw(self.path, "record", "--tracer", tracer, "--clock", "fake", "-e", name, *arguments)

    def variance(self, *arguments):
        with contextlib.chdir(self.path):
            done = CliRunner().invoke(command, [*map(str, arguments)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def document(self, *arguments):
        return json.loads(self.variance(*arguments, "--json"))


@pytest.fixture(scope="module", params=["native", "python", "hooks"])
def listing1(request, tmp_path_factory):
    """The experiments A, B and C, and A and B together, of the program in Python and in C."""
    folder, program, tracer = Folder(tmp_path_factory.mktemp("listing1")), PROGRAMS / "listing1.py", request.param
    if tracer == "hooks":
        program, tracer, folder.module = folder.path / "listing1", "auto", ""
        flags = ["-O1", "-g", "-finstrument-functions"]
        subprocess.run(["gcc", *flags, str(PROGRAMS / "listing1.c"), "-o", str(program)], check=True)
    for variant in "ABC":
        folder.record(variant, tracer, "--", program, variant)
    folder.record("both", tracer, "--vary", "v=A,B", "--", program, "{v}")
    return folder


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    """Servers of 600 requests: one in a hundred is slow, or all are alike; any may have to wait."""
    folder = Folder(tmp_path_factory.mktemp("requests"))
    folder.record("blind", "python", "--", PROGRAMS / "requests.py", "slow")
    for kind in ("slow", "alike", "sized"):
        folder.record(kind, "auto", "--metric", "cpu", "--", PROGRAMS / "requests.py", kind)
    return folder


def close(value):
    return pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("variant", first(1, "ABC"))
def test_a_recording_gives_the_numbers_of_the_oracle(listing1, variant):
    found, expected = listing1.document("-e", variant, f"{listing1.module}f")["function"], ORACLE[variant]
    variance = float(Fraction(expected["var"]))
    assert [part["component"] for part in found["parts"]] == [None, *(f"{listing1.module}g{i}" for i in range(1, 6))]
    assert found["covariance"] == [[close(float(c)) for c in row] for row in expected["C"]]
    assert [part["cf_net"] for part in found["parts"]] == [close(float(phi) / variance) for phi in expected["phi"]]
    assert [part["cf_self"] for part in found["parts"]] == [
        close(float(expected["C"][i][i]) / variance) for i in range(6)
    ]
    assert [[one["parts"], one["variance"], one["minimal"]] for one in found["blocks"]] == [
        [members, close(float(of)), minimal] for members, of, minimal in expected["blocks"]
    ]
    assert (found["n"], found["mean"]) == (16, 81 if variant == "C" else 72)
    assert found["cov"] == close(variance**0.5 / found["mean"])
    assert not found["high"]
    assert sum(part["cf_net"] for part in found["parts"]) == close(1)


def test_sources_lie_at_any_depth(listing1):
    sources = listing1.document("-e", "B", "f")["function"]["sources"]
    paths = [[step["component"].removeprefix("listing1.") for step in one["path"]] for one in sources]
    assert paths == [["g2"], ["g1", "a1"], ["g3"]]
    assert [one["split"]["mechanism"] for one in sources] == ["called or not", "cost per call", "trip count"]
    assert sources[2]["split"]["trips"] == close(25)
    assert sources[1]["cf_net"] == close(100 / 388)


def test_the_budget_sums_to_one_and_names_lines(listing1):
    budget = listing1.document("-e", "B", "f")["budget"]
    assert sum(row["share"] for row in budget) == close(1)
    by_name = {row["component"]: row for row in budget}
    assert by_name[f"{listing1.module}a1"]["estimated"]
    assert [step["line"] > 0 for step in by_name[f"{listing1.module}a1"]["path"]] == [True, True]
    assert by_name[f"{listing1.module}f"]["path"] == []


def test_runs_are_merged_before_the_analysis(listing1):
    both = listing1.document("-e", "both", "f")["function"]
    assert (both["n"], both["mean"]) == (32, 72)
    assert both["cov"] == close(316**0.5 / 72)
    alone = listing1.document("-e", "both", "f", "1")["function"]
    assert (alone["n"], alone["cov"]) == (16, close(244**0.5 / 72))


def test_deadlines(listing1):
    found = listing1.document("-e", "B", "f", "--deadline", "81ns", "--probability", "0.25")["function"]
    [deadline], [bound] = found["deadlines"], found["bounds"]
    assert deadline["chebyshev"] == 1.0
    assert deadline["observed"] == close(8 / 16)
    assert deadline["low"] < 8 / 16 < deadline["high"]
    assert bound["chebyshev"] == close(72 + 388**0.5 / 0.25**0.5)
    assert bound["observed"] == 82


@pytest.mark.parametrize("metric", first(1, ["cpu", "events"]))
def test_a_planted_cause_is_found_first(requests, metric):
    found = requests.document("-e", "slow", "--metric", metric)
    pattern = found["patterns"][0]
    names = {node["id"]: node["component"] for node in pattern["nodes"]}
    assert (pattern["root"], found["function"]["component"]) == ("requests.handle", "requests.handle")
    first = pattern["contributions"][0]
    assert "requests.parse" in [names[one] for one in first["segment"]]
    assert first["cf_net"] > 0.9
    assert "requests.parse" in [step["component"] for step in found["budget"][0]["path"]]


def test_what_drives_a_part_is_an_argument(requests):
    [by_value] = requests.document("-e", "slow", "parse", "--metric", "cpu")["function"]["drivers"]
    assert (by_value["of"], by_value["feature"]) == ("calls of requests.token", "tokens")
    assert by_value["r2"] > 0.99
    [by_law] = requests.document("-e", "sized", "parse", "--metric", "cpu")["function"]["drivers"]
    assert (by_law["of"], by_law["feature"]) == ("calls of requests.token", "tokens")
    assert by_law["r2"] > 0.99
    assert "parse" not in requests.variance("-e", "alike", "parse", "--metric", "cpu").split("follow tokens")[1:]


def test_wall_time_is_told_as_off_the_cpu(requests):
    """On the fake clock nothing tells whether the program waited or others had its CPU."""
    found = requests.document("-e", "slow", "--metric", "time")
    [root] = [node for node in found["patterns"][0]["nodes"] if node["parent"] is None]
    assert (root["component"], root["type"], root["cause"]) == ("requests.handle", "Task", "unknown")
    assert (found["function"]["cause"], found["function"]["off_for"]) == ("unknown", {})
    assert found["function"]["off_cpu"] > 0.7
    screen = requests.variance("-e", "slow", "handle")
    assert "work, waiting or interference: unknown" in screen


def test_without_cpu_time_the_cause_is_unknown_or_told_by_events(requests):
    found = requests.document("-e", "blind")["function"]
    assert found["off_cpu"] is None
    assert found["cause"] == "work"


@pytest.mark.parametrize("metric", ["cpu", "events"])
def test_null_data_has_no_task(requests, metric):
    found = requests.document("-e", "alike", "--metric", metric)
    assert not [node for pattern in found["patterns"] for node in pattern["nodes"] if node["type"] == "Task"]
    assert found["budget"] == []


def test_null_data_by_wall_time_is_no_work(requests):
    nodes = [node for one in requests.document("-e", "alike")["patterns"] for node in one["nodes"]]
    assert {node["cause"] for node in nodes if node["type"] == "Task"} == {"unknown"}


@pytest.mark.parametrize("columns", [60, 80])
def test_everything_fits_the_terminal(requests, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in ((), ("handle",), ("handle", "--deadline", "20us"), ("--cov", "0.01", "--trim", "0")):
        lines = requests.variance("-e", "slow", *arguments).splitlines()
        assert lines
        assert max(map(len, lines)) <= columns, max(lines, key=len)


def field_names(value, free=("features", "covs", "further", "off_for")):
    """Names of all fields; mappings by feature or metric have names of the person's own."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in free:
                yield from field_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from field_names(inner)


def test_every_field_is_described(requests):
    described = (PROGRAMS.parents[1] / "docs" / "json.md").read_text()
    described = described[described.index("## `perflaw.variance/1`") :].split("\n## ")[0]
    found = requests.document("-e", "slow", "handle", "--deadline", "20us", "--against", "sized")
    assert {name for name in field_names(found) if f"`{name}`" not in described} == {"schema", "complete"}


def test_two_recordings_are_compared(requests):
    found = requests.document("-e", "sized", "--metric", "cpu", "--against", "alike")["changes"]
    assert [(one["component"], one["what"], one["old"]) for one in found] == [("requests.parse", "appeared", None)]
    found = requests.document("-e", "alike", "--metric", "cpu", "--against", "sized")["changes"]
    assert [(one["component"], one["what"], one["new"]) for one in found] == [("requests.parse", "went", None)]
    found = requests.document("-e", "slow", "--metric", "cpu", "--against", "slow")["changes"]
    assert {one["what"] for one in found} == {"stays"}
    text = requests.variance("-e", "slow", "--metric", "cpu", "--against", "sized")
    assert "appeared  requests.handle: none > CoV" in text
    assert max(map(len, text.splitlines())) <= 80


def test_graph_and_trace_are_written(requests, tmp_path):
    dot, trace = tmp_path / "patterns.dot", tmp_path / "calls.json"
    requests.variance("-e", "slow", "--metric", "cpu", "--dot", dot)
    assert dot.read_text().startswith("digraph variance {")
    assert "style=dashed, constraint=false" in dot.read_text()
    requests.variance("-e", "slow", "handle", "--perfetto", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert spans[0]["name"] == "requests.handle"
    assert spans[0]["dur"] >= max(span["dur"] for span in spans)
    assert_nested([span for span in spans if span["tid"] == 1])
    assert spans[0]["args"]["shorter_calls_left_out"] == spans[0]["args"]["calls"] - len(
        [span for span in spans if span["tid"] == 1]
    )
    rows = [event["args"]["name"].split()[0] for event in events if event["ph"] == "M"]
    assert rows[:8] == ["longest"] * 8
    assert set(rows[8:]) == {"random"}


def assert_nested(spans):
    """Within the first; each within those that have not ended, as Perfetto stacks them."""
    open_until = []
    for span in spans:
        while open_until and open_until[-1] <= span["ts"] + 1e-6:
            open_until.pop()
        end = span["ts"] + span["dur"]
        assert not open_until or end <= open_until[-1] + 1e-6
        open_until.append(end)
    assert len(spans) > 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.such"], "there is no component 'nothing.such'"),
        (["f", "g1"], "two components"),
        (["--deadline", "soon"], "--deadline soon"),
        (["--deadline", "5"], "a time needs its unit"),
        (["--metric", "events", "--deadline", "20ms"], "is not a number"),
        (["--metric", "heat"], "not measured"),
        (["1", "99"], "no run 0099"),
    ],
)
def test_wrong_use_is_refused(listing1, arguments, words):
    with pytest.raises(PerflawError, match=words):
        listing1.variance("-e", "A", *arguments)
