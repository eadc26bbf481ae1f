"""``--metric``: what can be asked for, what is refused and how, and laws of other costs than time."""

import json
import os
import re
import subprocess
from importlib.metadata import EntryPoint

import pytest

from perflaw.errors import UsageError
from perflaw.record import metrics
from perflaw.record.metrics import MetricPlugin, metric_names, metric_settings
from perflaw.store.experiment import open_experiment
from tests.conftest import PROGRAMS, costs_of

ROOT = PROGRAMS.parents[1]
PLUGIN = MetricPlugin("queries", "queries", __file__, "queries_total")
NO_LIBRARY = MetricPlugin("missing", "queries", "/no/such.so", "queries_total")
OTHER_NAME = MetricPlugin("another", "queries", __file__, "queries_total")
NO_PLUGIN = "queries"


@pytest.fixture
def plugins(monkeypatch):
    names = {
        "queries": "PLUGIN",
        "missing": "NO_LIBRARY",
        "misnamed": "OTHER_NAME",
        "text": "NO_PLUGIN",
        "gone": "GONE",
    }
    points = [EntryPoint(name, f"{__name__}:{value}", metrics.GROUP) for name, value in names.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [one for one in points if one.group == group])


def test_names_and_groups_of_names():
    assert metric_settings(("time,cpu", "memory", "cpu"), "auto") == ("cpu", "allocated_bytes", "allocated_blocks")
    assert metric_settings((), "auto") == ()


def test_a_plugin_is_told_to_the_tracer(plugins):
    found = metric_settings(("queries,gc",), "native")
    assert found == (f"plugin:queries:queries:{__file__}:queries_total", "gc")
    assert metric_names(found) == ["queries", "gc"]


@pytest.mark.parametrize(
    ("asked", "wish", "words"),
    [
        ("heat", "auto", "there are time, cpu, events, allocated_bytes"),
        ("heat", "auto", "queries"),
        ("", "auto", "no such metric"),
        ("gc", "python", "that tracer measures time, cpu, events"),
        ("queries", "python", "that tracer measures time, cpu, events"),
        ("missing", "auto", "its library /no/such.so is missing"),
        ("misnamed", "auto", "calls itself 'another'"),
        ("text", "auto", "is a str and no MetricPlugin"),
        ("gone", "auto", "AttributeError"),
    ],
)
def test_what_cannot_be_measured_is_refused(plugins, asked, wish, words):
    with pytest.raises(UsageError, match=words):
        metric_settings((asked,), wish)


def test_an_unknown_metric_ends_in_one_line(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("print('must not run')\n")
    done = perflaw("record", "--metric", "heat", "--", "app.py", status=2)
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "there are time, cpu, events" in line


@pytest.fixture
def sizes(perflaw):
    options = ("--tracer", "python", "--clock", "fake", "--metric", "cpu")
    for size in (10, 20, 40, 80, 160):
        perflaw("record", *options, "--feature", f"n={size}", "--", PROGRAMS / "sleepy.py", size)


def law_of(perflaw, metric, component):
    document = json.loads(perflaw("annotate", "--metric", metric, "--json").stdout)
    [one] = [one for one in document["annotations"] if one["component"] == component]
    return one


@pytest.mark.slow
def test_laws_of_other_costs_than_time(perflaw, sizes):
    found = law_of(perflaw, "cpu", "sleepy.main")
    assert (found["metric"], found["unit"]) == ("cpu", "ns")
    assert found["total"] == sum(500 * n + 7 for n in (10, 20, 40, 80, 160))
    assert found["scopes"][0]["law"]["family"] == "linear"
    events = law_of(perflaw, "events", "sleepy.main")
    assert events["unit"] == "calls"
    assert events["total"] == sum(2 * n + 1 for n in (10, 20, 40, 80, 160))
    assert events["scopes"][0]["law"]["coefficient"] == pytest.approx(2, rel=0.01)
    sleep = law_of(perflaw, "cpu", "sleepy.sleep")
    assert sleep["total"] == 0
    assert sleep["scopes"][0]["law"]["family"] == "constant"


@pytest.mark.slow
def test_what_a_person_sees(perflaw, sizes, tmp_path):
    assert "cpu per run" in perflaw("annotate", "--metric", "cpu").stdout
    assert "cpu per call" in perflaw("annotate", "--metric", "cpu", "--calls").stdout
    assert "calls" in perflaw("annotate", "--metric", "events").stdout
    assert "sleepy.main.cpu(n)" in perflaw("annotate", "--metric", "cpu", "--text").stdout
    perflaw("report", "--metric", "cpu", "-o", "page.html")
    assert '"metric":"cpu"' in (tmp_path / "page.html").read_text().replace(" ", "")
    assert (
        "not measured in run 0001: it has time, cpu, events" in perflaw("annotate", "--metric", "gc", status=2).stderr
    )


def test_the_plugin_of_the_documentation_measures(perflaw, tmp_path):
    """As docs/metrics.md has it: its C code compiled, its module, and an entry point as pip installs one."""
    page = (ROOT / "docs" / "metrics.md").read_text()
    source, module = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("c", "python"))
    (tmp_path / "queries.c").write_text(source)
    (tmp_path / "my_metrics.py").write_text(module)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", "queries.so", "queries.c"], cwd=tmp_path, check=True)
    (tmp_path / "my_metrics-1.dist-info").mkdir()
    (tmp_path / "my_metrics-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-metrics\nVersion: 1\n"
    )
    entry = "[perflaw.metrics]\nqueries = my_metrics:queries\n"
    (tmp_path / "my_metrics-1.dist-info" / "entry_points.txt").write_text(entry)
    (tmp_path / "app.py").write_text(
        f"import ctypes\nclient = ctypes.CDLL({str(tmp_path / 'queries.so')!r})\n"
        "def ask(n):\n    for _ in range(n): client.count_query()\n"
        "def page(): ask(2); ask(3)\npage()\n"
    )
    perflaw("record", "--metric", "queries", "--", "app.py", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    [recording] = open_experiment("default", tmp_path).recordings()
    found = costs_of(recording, "queries")
    assert {name: found[name][2] for name in ("app.ask", "app.page")} == {"app.ask": 5, "app.page": 5}
    assert {name: found[name][0] for name in ("app.ask", "app.page")} == {"app.ask": 2, "app.page": 1}
