"""The Python API over recordings of known cost: it answers what the command line prints."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape
from types import SimpleNamespace

import pytest

import perflaw
from perflaw.api.answers import Answer
from perflaw.errors import PerflawError, StoreError, UsageError
from perflaw.notices import PerflawWarning
from perflaw.report.annotation_parts import part_html
from perflaw.report.law_words import features_text
from perflaw.types import Breakpoint
from perflaw.types.documents import dumps
from perflaw.types.recordings import Component


@pytest.fixture
def here(shifted, monkeypatch):
    monkeypatch.chdir(shifted)
    return shifted


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        (lambda one: one.annotate(), ["annotate"]),
        (lambda one: one.annotate(at={"n": 1e5}), ["annotate", "--at", "n=1e5"]),
        (lambda one: one.trend(), ["trend"]),
        (lambda one: one.variance(), ["variance"]),
        (lambda one: one.predict(n=1e5), ["predict", "default", "n=1e5"]),
        (lambda one: perflaw.load("same").check("perf.law"), ["check", "perf.law", "-e", "same"]),
    ],
)
def test_it_answers_as_the_command_line(perflaw_run, here, answer, command):
    given = answer(perflaw.load())
    assert json.loads(dumps(given.document)) == json.loads(perflaw_run(*command, "--json", cwd=here).stdout)
    assert "<table>" in given._repr_html_()
    if command == ["trend"]:  # nothing varies there
        with pytest.raises(IndexError):
            given.plot()
        return
    assert given[0] is given.nouns[0]
    ET.fromstring(given.plot()._repr_svg_())


@pytest.fixture
def perflaw_run(request):
    return request.getfixturevalue("perflaw")


def test_what_stands_in_a_terminal_is_what_prints(perflaw_run, here):
    one = perflaw.load()
    assert one.show() == perflaw_run("show", cwd=here).stdout
    assert repr(one.predict(n=1e5)) == perflaw_run("predict", "default", "n=1e5", cwd=here).stdout


def test_a_notebook_shows_what_is_predicted_and_what_an_experiment_holds(here):
    one = perflaw.load()
    assert "<th>at " not in one.annotate()._repr_html_()
    shown = one.annotate(at={"n": 1e5})
    assert "<th>at n = 100,000</th>" in shown._repr_html_()
    assert all(len(row) == len(shown.headings) for row in shown.rows)
    assert one._repr_html_() == one.runs._repr_html_()
    explained = one.variance(one.variance().document["patterns"][0]["nodes"][0]["component"])
    assert explained._repr_html_() == f"<pre>{escape(repr(explained))}</pre>", "not the table of all patterns"


def test_a_notebook_shows_a_noun_alone_by_its_row_and_picture(monkeypatch):
    import IPython
    from IPython.core.formatters import HTMLFormatter

    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": HTMLFormatter()}))
    nouns = [Component("first"), Component("second")]
    picture = SimpleNamespace(_repr_svg_=lambda: "<svg/>")
    answer = Answer(nouns, {}, "", ["name"], [["<1>"], ["<2>"]], lambda place: picture)
    assert answer[1] is nouns[1], "without IPython"
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    show = shell.display_formatter.formatters["text/html"]
    assert show(nouns[1]) is None
    assert answer[-1] is nouns[1]
    assert "<td>&lt;2&gt;</td>" in show(nouns[1])
    assert show(nouns[1]).endswith("<svg/>")
    assert show(Component("second")) is None, "equal, but of no answer"
    assert list(answer) == nouns
    assert "&lt;1&gt;" in show(nouns[0])
    with pytest.raises(IndexError):
        answer[2]


def test_a_notebook_shows_what_is_inside_an_annotation_in_words(here, monkeypatch):
    import IPython
    from IPython.core.formatters import HTMLFormatter

    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": HTMLFormatter()}))
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    show = shell.display_formatter.formatters["text/html"]
    laws = perflaw.load().annotate(at={"n": 1e5})
    row = next(place for place, one in enumerate(laws.nouns) if one.run_law and one.run_law.predictions)
    untaken = laws.nouns[row].run_law
    assert show(untaken) is None, "nothing was taken out of the answer"
    one = laws[row]
    name = f"<th>{escape(one.component.name)}</th>"
    law = show(one.run_law)
    assert name in law
    assert "<td>time per run</td>" in law
    assert "<th>one new run (95 %)</th>" in law
    assert escape(features_text(one.run_law.predictions[0].features)) in law
    ET.fromstring(law[law.index("<svg") :])
    scope = show(one.scopes[0])
    assert "<td>share of these calls</td><td>100 %</td>" in scope
    assert name in scope
    told = show(one.predicted)
    assert "<td>n = 100,000</td>" in told
    assert "<svg" not in told
    assert show(one.run_law.predictions[0]).count("<tr>") == 2
    point = Breakpoint("n", 512.0, 400.0, 600.0)
    assert show(point) is None, "of no annotation"
    assert "<td>n = 512</td><td>400–600</td>" in part_html(replace(one, breakpoints=(point,)), point)


def test_tables_have_a_row_for_each_run_function_and_invocation(here):
    one = perflaw.load()
    runs = one.runs
    assert len(runs) == 6
    assert sorted(set(runs["n"])) == [200, 800, 1600]
    assert {row["component"] for row in one.invocations} <= set(one.components["name"])
    assert set(one.components["run"]) == set(runs["id"])
    frame = runs.to_pandas()
    assert list(frame["calls"]) == list(runs["calls"])
    assert "<td>" in runs._repr_html_()
    assert len(perflaw.load("default", "1").runs) == 1


@pytest.mark.parametrize("name", ["polars", "pyarrow"])
def test_a_missing_library_is_named(here, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=f"pip install {name}"):
        getattr(perflaw.load().runs, "to_polars" if name == "polars" else "to_arrow")()


def test_wrong_names_are_told(here):
    with pytest.raises(StoreError, match="no recordings"):
        perflaw.load("nowhere")
    with pytest.raises(PerflawError, match="no feature 'm'"):
        perflaw.load().predict(m=3)
    with pytest.raises(UsageError, match="not measured"):
        perflaw.load().annotate("gc")
    with pytest.raises(AttributeError):
        perflaw.nothing  # noqa: B018 (reading it has to fail)


def test_remarks_are_warnings(here, monkeypatch):
    monkeypatch.setattr("perflaw.store.experiment.outdated", lambda runs: {"0001": "app.py"})
    with pytest.warns(PerflawWarning, match=r"older version of app\.py"):
        assert len(perflaw.load().runs) == 5


RECORDED = """
import perflaw
from perflaw.api.answers import Answer
from perflaw.errors import UsageError


def work(n):
    return sum(step(i) for i in range(n))


def step(i):
    return i


@perflaw.record("calls", select=["app.*"])
def outer(docs, n):
    return work(n) if n < 5 else outer(docs, 4)


before = work(3)
with perflaw.record("part", features={"n": 7}, select=["app.*"], metrics=["cpu"]) as recording:
    work(7)
    try:
        with perflaw.record("part"):
            pass
    except UsageError as error:
        print(error)
work(11)
print(recording.summary)
print({row["name"]: row["calls"] for row in recording.load().components if row["name"].startswith("app.")})
print(recording.load().runs["n"], recording.load().recordings[0].run.features)
outer("abc", 9)
print(perflaw.load("calls").recordings[0].run.features, len(perflaw.load("calls").runs))
try:
    with perflaw.record("part", select=["app.*"]):
        raise KeyError("ours")
except KeyError as error:
    print("raised", error, len(perflaw.load("part").runs))
try:
    with perflaw.record("part", metrics=["nonsense"]):
        pass
except Exception as error:
    print(type(error).__name__, "nonsense" in str(error))
"""


def test_a_part_of_a_running_program_is_recorded(tmp_path):
    """One process does all of it, for starting recorders takes the time of this test."""
    (tmp_path / "app.py").write_text(RECORDED)
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    refused, summary, calls, features, called, raised, wrong = done.stdout.splitlines()
    assert "is being recorded already" in refused
    assert summary.startswith("recorded 1 run of app.py, ")
    assert json.loads(calls.replace("'", '"'))["app.step"] == 7
    assert features == "[7.0] {'n': 7.0}"
    assert called == "{'docs_len': 3.0, 'n': 9.0} 1"
    assert raised == "raised 'ours' 2"
    assert wrong == "TargetError True"
