"""What a run spent where: its call tree, functions, call sites, the page, and the way from there to laws."""

import json
import re

import pytest

from perflaw.report.profile import next_command, show_text
from perflaw.store.experiment import open_experiment
from perflaw.store.profiles import newest_execution, read_profile
from tests.conftest import PROGRAMS, run_perflaw


def record_tree(folder):
    options = ["--clock", "fake", "--select", "profiled.*", "--metric", "memory", "--vary", "n=10,20"]
    run_perflaw(folder, "record", *options, "--", PROGRAMS / "profiled.py", "{n}")


@pytest.fixture(scope="module")
def recorded(made_once):
    return made_once("shown_tree", record_tree)


def document(perflaw, folder, *words):
    return json.loads(perflaw("show", "--json", *words, cwd=folder).stdout)


def by_name(rows):
    """Rows by component, without garbage collection, which happens whenever it happens."""
    return {row["component"]: row for row in rows if row["component"] != "(garbage collection)"}


def test_costs_are_exact_and_add_up(perflaw, recorded):
    page = document(perflaw, recorded)
    assert [run["id"] for run in page["runs"]] == ["0002"]  # the newest
    functions = by_name(page["functions"])
    assert {name: row["calls"] for name, row in functions.items()} == {
        "profiled.<module>": 1, "profiled.main": 1, "profiled.twice": 20, "profiled.leaf": 40, "profiled.down": 6,
    }  # fmt: skip
    assert functions["profiled.leaf"]["own"]["time"] == 400
    assert functions["profiled.twice"]["own"]["time"] == 0
    assert functions["profiled.twice"]["total"]["time"] == 400
    assert functions["profiled.down"]["total"]["time"] == functions["profiled.down"]["own"]["time"] == 6
    assert page["whole"]["time"] == functions["profiled.main"]["total"]["time"] == 406
    assert [row["component"] for row in page["functions"]][:2] == ["profiled.leaf", "profiled.down"]
    for metric, whole in page["whole"].items():
        assert sum(row["own"][metric] for row in page["functions"]) == pytest.approx(whole)
        assert sum(row["own"][metric] for row in page["tree"]) == pytest.approx(whole)
    assert sum(row["component"] == "profiled.down" for row in page["tree"]) == 1  # direct recursion is one context


def test_runs_that_are_named_are_summed(perflaw, recorded):
    page = document(perflaw, recorded, "1", "2")
    assert by_name(page["functions"])["profiled.leaf"]["calls"] == 60
    assert page["whole"]["time"] == 200 + 6 + 406


def test_allocations_are_told_by_line(perflaw, recorded):
    page = document(perflaw, recorded, "--metric", "allocated_bytes")
    first = page["sites"][0]
    assert (first["component"], first["callee"], first["line"]) == ("profiled.<module>", "profiled.main", 30)
    assert first["total"]["allocated_bytes"] > 50_000_000
    assert page["functions"][0]["component"] == "profiled.main"
    lines = [site for site in page["sites"] if site["callee"] == "profiled.leaf"]
    assert [(site["line"], site["calls"]) for site in sorted(lines, key=lambda site: site["line"])] == [
        (13, 20),
        (14, 20),
    ]


def test_the_terminal_shows_the_document(perflaw, recorded):
    page = document(perflaw, recorded)
    text = perflaw("show", cwd=recorded).stdout
    assert text == show_text(page, False)
    assert re.search(r"406 ns +100 % +profiled\.<module>\n", text)
    assert re.search(
        r"400 ns +99 % +   ├─ profiled\.twice  20 calls\n +400 ns +99 % +   │  └─ profiled\.leaf  40 calls", text
    )
    assert "profiled.py:30" in text
    assert text.endswith("profiled.py {n}\n")
    assert all(len(line) <= 80 for line in text.splitlines()[:-1])


def test_a_metric_that_was_not_measured_is_refused(perflaw, recorded):
    assert "not measured" in perflaw("show", "--metric", "gc", cwd=recorded, status=2).stderr


def test_the_page_asks_for_nothing_and_holds_the_tree(perflaw, recorded, tmp_path):
    perflaw("show", "-o", tmp_path / "flame.html", cwd=recorded)
    text = (tmp_path / "flame.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data == document(perflaw, recorded)
    assert len(text) < 100_000
    assert "http" not in text.replace("http-equiv", "")


def test_the_way_to_laws(recorded):
    runs = [one.run for one in open_experiment("default", recorded).recordings()]
    once = next_command(runs[0], {"n": [10.0, 20.0]})
    assert re.fullmatch(r"perflaw record --vary n=[\d,]+ -- \S*profiled.py \{n\}", once)
    assert len(set(re.search(r"n=([\d,]+)", once)[1].split(","))) >= 5
    assert next_command(runs[0], {"n": [1.0, 2.0, 4.0, 8.0]}) == "perflaw annotate --at n=80"


def test_the_newest_execution_has_its_children(recorded):
    recordings = open_experiment("default", recorded).recordings()
    assert newest_execution(recordings) == recordings[1:]
    assert read_profile(recordings[1:]).whole("events") == sum(run.run.calls for run in recordings[1:])
