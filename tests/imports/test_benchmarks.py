"""Results of other benchmark tools: files that the tools themselves wrote, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.errors import DataError, UsageError
from perflaw.imports.benchmarks import split_benchmarks
from perflaw.imports.formats import ForeignFile
from perflaw.imports.google_benchmark import parse_name
from perflaw.imports.registry import read_benchmarks

GOLD = Path(__file__).parent / "gold"
SORT = """
import pytest

@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize("kind", ["random", "sorted"])
def test_sort(benchmark, n, kind):
    benchmark.extra_info["bytes"] = 8 * n
    benchmark.pedantic(sorted, ([i * 7919 % n for i in range(n)],), rounds=4)

@pytest.mark.parametrize("a,b", [(1, 2.5), (3, None), (4, [1, 2]), (5, True)])
def test_mixed(benchmark, a, b):
    benchmark.pedantic(len, ("abc",), rounds=2)

def test_plain(benchmark):
    benchmark.pedantic(len, ("abc",), rounds=2)
"""
ASV = """
class Sort:
    params = [[100, 1000, 10_000], ["random", "it's"]]
    param_names = ["n", "kind"]
    def setup(self, n, kind):
        self.numbers = list(range(n))
    def time_sort(self, n, kind):
        sorted(self.numbers)
    def mem_list(self, n, kind):
        return self.numbers
    def track_length(self, n, kind):
        if n == 1000 and kind == "random":
            raise ValueError
        return len(self.numbers)
def time_plain():
    pass
"""


def run(*command, cwd):
    """Run one of the tools; pytest-benchmark measures nothing where it believes itself beside others."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    how = {"cwd": cwd, "env": environment, "stdin": subprocess.DEVNULL, "timeout": 240}
    done = subprocess.run(command, capture_output=True, text=True, **how)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def pytest_file(tmp_path_factory):
    """What pytest-benchmark writes, rounds included."""
    folder = tmp_path_factory.mktemp("pytest_benchmark")
    (folder / "test_sort.py").write_text(SORT)
    said = run(
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--benchmark-json=out.json",
        "--benchmark-save-data", "--benchmark-autosave", "test_sort.py", cwd=folder,
    )  # fmt: skip
    assert (folder / "out.json").exists(), said
    return folder / "out.json"


@pytest.fixture(scope="module")
def asv_file(tmp_path_factory):
    """What asv writes, samples included."""
    folder = tmp_path_factory.mktemp("asv")
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / "suite.py").write_text(ASV)
    settings = {"version": 1, "project": "demo", "repo": ".", "branches": ["main"], "environment_type": "existing"}
    settings |= {"benchmark_dir": "benchmarks", "results_dir": "results", "pythons": ["same"]}
    (folder / "asv.conf.json").write_text(json.dumps(settings))
    said = run("git", "init", "-q", "-b", "main", cwd=folder) + run("git", "add", "-A", cwd=folder)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    said += run("git", *identity, "commit", "-qm", "suite", cwd=folder)
    commit = run("git", "rev-parse", "HEAD", cwd=folder).strip()
    said += run(sys.executable, "-m", "asv", "machine", "--yes", "--config", "asv.conf.json", cwd=folder)
    said += run(
        sys.executable, "-m", "asv", "run", "--python=same", "--quick", "--record-samples",
        f"--set-commit-hash={commit}", cwd=folder,
    )  # fmt: skip
    found = list(folder.glob("results/*/*-existing*.json"))
    assert found, said
    return found[0]


def read(path):
    return read_benchmarks(ForeignFile.open(Path(path)))


def by_name(path, response=None, features=None, by=None):
    return {one.name: one for one in split_benchmarks(read(path), response, features, by)}


def test_pytest_benchmark(pytest_file):
    found = by_name(pytest_file)
    names = [f"test_sort.py::test_sort[kind={kind}]" for kind in ("random", "sorted")]
    mixed = [f"test_sort.py::test_mixed[b={value}]" for value in ("2.5", "None", "[1, 2]", "True")]
    assert list(found) == [*names, *mixed, "test_sort.py::test_plain"]
    one = found[names[0]]
    assert one.features.keys() == {"n"}
    assert one.features["n"].tolist() == [100, 1000, 10_000]
    assert (one.runs, one.dropped, one.unit) == (None, 0, "ns")
    stats = [benchmark["stats"] for benchmark in json.loads(pytest_file.read_text())["benchmarks"][:3]]
    assert one.response == pytest.approx([each["median"] * 1e9 for each in stats])
    assert by_name(pytest_file, "mean")[names[0]].response == pytest.approx([each["mean"] * 1e9 for each in stats])
    assert found["test_sort.py::test_plain"].features == {}


def test_rounds_of_pytest_benchmark_share_a_run(pytest_file):
    one = by_name(pytest_file, "data")["test_sort.py::test_sort[kind=sorted]"]
    assert one.response.shape == (12,)
    assert one.runs.tolist() == ["0"] * 4 + ["1"] * 4 + ["2"] * 4
    assert one.features["n"].tolist() == [100] * 4 + [1000] * 4 + [10_000] * 4


def test_numbers_attached_are_features_on_demand(pytest_file):
    one = by_name(pytest_file, features=["bytes", "n"])["test_sort.py::test_sort[kind=random]"]
    assert one.features["bytes"].tolist() == [800, 8000, 80_000]


def test_a_parameter_may_tell_series_apart(pytest_file):
    found = by_name(pytest_file, by="n")
    assert found["test_sort.py::test_sort[kind=random, n=1000]"].features == {}


@pytest.mark.slow
def test_asv(asv_file):
    found = by_name(asv_file)
    one = found["suite.Sort.time_sort[kind=random]"]
    assert one.features["n"].tolist() == [100, 1000, 10_000]
    results = json.loads(asv_file.read_text())["results"]
    assert one.response == pytest.approx([1e9 * value for value in results["suite.Sort.time_sort"][0][::2]])
    assert one.unit == "ns"
    assert found["suite.Sort.mem_list[kind=it's]"].unit == "bytes"
    failed = found["suite.Sort.track_length[kind=random]"]
    assert (failed.response.tolist(), failed.dropped, failed.unit) == ([100, 10_000], 1, "")
    assert found["suite.time_plain"].features == {}


@pytest.mark.slow
def test_samples_of_asv_share_a_run(asv_file):
    one = by_name(asv_file, "samples")["suite.Sort.time_sort[kind=it's]"]
    assert one.response.size >= 3
    assert (one.response > 1).all()


@pytest.mark.slow
def test_asv_without_its_list_of_benchmarks(asv_file, tmp_path):
    (tmp_path / "copy.json").write_text(asv_file.read_text())
    found = by_name(tmp_path / "copy.json")
    one = found["suite.Sort.time_sort[param2=random]"]
    assert one.unit == "ns"
    assert one.features["param1"].tolist() == [100, 1000, 10_000]


def test_google_benchmark():
    found = by_name(GOLD / "google_benchmark.json")
    assert list(found) == ["sum", "fill", "create<std::vector<int>>"]
    one = found["sum"]
    assert one.features["n"].tolist() == [float(4**k) for k in range(4, 9) for _ in range(3)]
    assert (one.runs, one.unit) == (None, "ns")
    assert found["fill"].features["rows"].tolist() == [1, 3]
    assert found["create<std::vector<int>>"].features["threads"].tolist() == [2]
    rows = json.loads((GOLD / "google_benchmark.json").read_text())["benchmarks"]
    micro = [row["real_time"] * 1000 for row in rows if row["run_name"].startswith("fill")]
    assert found["fill"].response == pytest.approx(micro)
    assert by_name(GOLD / "google_benchmark.json", "cpu_time")["sum"].response[0] == rows[0]["cpu_time"]


def test_aggregates_alone():
    one = by_name(GOLD / "google_aggregates.json")["sum"]
    rows = json.loads((GOLD / "google_aggregates.json").read_text())["benchmarks"]
    assert one.response.tolist() == [row["real_time"] for row in rows if row.get("aggregate_name") == "median"]


def test_counters_of_google_benchmark():
    path = GOLD / "google_benchmark.json"
    one = by_name(path, "bytes")["sum"]
    assert (one.response == 4 * one.features["n"]).all()
    assert one.unit == ""
    assert by_name(path, features=["bytes"])["sum"].features.keys() == {"bytes"}


@pytest.mark.parametrize(
    ("text", "name", "parameters"),
    [
        ("f", "f", {}),
        ("f/1/2", "f", {"arg1": 1, "arg2": 2}),
        ("f/n:8/min_time:0.5/min_warmup_time:1/iterations:3/repeats:2/process_time/manual_time", "f", {"n": 8}),
        ("F<a::b>/g/-3/threads:4", "F<a::b>/g", {"n": -3, "threads": 4}),
        ("7/f/x:y", "7/f/x:y", {}),
    ],
)
def test_names_of_google_benchmark(text, name, parameters):
    assert parse_name(text) == (name, parameters)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "file.json:1:2: not JSON"),
        ("{}", "an empty object"),
        ("[1, 2]", "a list of 2"),
        ('{"schema": "perflaw.fit/1"}', "schema perflaw.fit/1"),
        ('{"a": 1, "b": 2}', "unknown tool, an object with a, b"),
        ("[" * 100_000, "100 deep"),
        ('{"machine_info": {}, "benchmarks": 3}', "benchmarks: a list was expected, not 3"),
        ('{"machine_info": {}, "benchmarks": []}', "no results"),
        (
            '{"machine_info": {}, "benchmarks": [{"fullname": "f", "params": {}, "stats": {"mean": "x"}}]}',
            r"benchmarks\[0\].stats.mean: a number was expected, not 'x'",
        ),
        ('{"machine_info": {}, "benchmarks": [{"fullname": 3}]}', "benchmarks.0..fullname: a text was expected, not 3"),
        ('{"context": {}, "benchmarks": [{"name": "f", "real_time": 1, "cpu_time": 1, "time_unit": "h"}]}', "not 'h'"),
        (
            '{"context": {}, "benchmarks": [{"name": "f", "real_time": true, "cpu_time": 1}]}',
            "a number was expected, not true",
        ),
        ('{"commit_hash": "", "version": 1, "results": {}}', "version 1"),
        (
            '{"commit_hash": "", "version": 2, "result_columns": ["result", "params"], "results": {"f": [[1, 2], [["1"]]]}}',
            "1 numbers",
        ),
        ('{"commit_hash": "", "version": 2, "result_columns": [], "results": {"f": [1]}}', "result and params"),
        ('{"commit_hash": "", "version": 2, "result_columns": [], "results": {}}', "no results"),
        ("test fold ... bench:  1.2.3 ns/iter", "not a trace"),
        ("BenchmarkSort-8   100   1.2.3 ns/op", "not a trace"),
        ("fold   time:   [. ns . ns . ns]", "not a trace"),
    ],
)
def test_what_cannot_be_read(text, says):
    with pytest.raises(DataError, match=says):
        read_benchmarks(ForeignFile(Path("file.json"), text.encode()))


def test_names_that_are_not_there(pytest_file):
    for response, features, by in (("speed", None, None), (None, ["m"], None), (None, None, "m")):
        with pytest.raises(UsageError):
            by_name(pytest_file, response, features, by)


KEYS = [
    "benchmarks", "machine_info", "context", "results", "commit_hash", "version", "result_columns", "fullname", "params",
    "stats", "median", "data", "extra_info", "name", "run_name", "run_type", "real_time", "cpu_time", "time_unit",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_read_or_refused(value):
    text = json.dumps(value)
    try:
        found = split_benchmarks(read_benchmarks(ForeignFile(Path("x.json"), text.encode())), None, None, None)
    except (DataError, UsageError):
        return
    assert all(np.isfinite(one.response).all() for one in found)


def test_only_brackets_begin_json():
    texts = {' \n{"a": 1}': True, "[": True, "n,t\n1,2\n": False, "": False}
    assert {text: ForeignFile(Path("x"), text.encode()).is_json for text in texts} == texts


def test_a_trace_is_sent_to_import():
    with pytest.raises(UsageError, match=r"a trace .*perflaw import t\.json"):
        read_benchmarks(ForeignFile(Path("t.json"), b'{"traceEvents": []}'))


@pytest.mark.slow
def test_fit_from_the_command_line(perflaw, pytest_file, asv_file):
    gold = GOLD / "google_benchmark.json"
    done = perflaw("fit", gold, "--at", "n=1e6", "--json")
    documents = {document["series"]: document for document in map(json.loads, done.stdout.splitlines())}
    assert "google-benchmark, 19 results in 3 series: real_time in ns" in done.stderr
    assert "left out: 1 result without a number" in done.stderr
    assert documents["sum"]["unit"] == "ns"
    assert documents["sum"]["law"]["predictions"][0]["features"] == {"n": 1e6}
    assert documents["sum"]["law"]["slope"]["n"] == pytest.approx(1, abs=0.2)
    text = perflaw("fit", "-", stdin=os.open(asv_file, os.O_RDONLY)).stdout
    assert "suite.time_plain" in text
    assert "no feature 'm'" in perflaw("fit", pytest_file, "--at", "m=1", status=2).stderr
    assert "--run" in perflaw("fit", pytest_file, "--run", "n", status=2).stderr
