"""What a run spent where: its call tree, functions, call sites, the page, and the way from there to laws."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perflaw.report.comparison import compare_text
from perflaw.report.profile import next_command, show_text
from perflaw.store.checksums import sealed
from perflaw.store.experiment import open_experiment
from perflaw.store.profiles import newest_execution, read_profile
from tests.cli.test_report import data_of
from tests.conftest import PROGRAMS, first, run_perflaw

GOLD = Path(__file__).parents[1] / "imports" / "gold"


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


@pytest.mark.parametrize(
    "typed", first(2, ["app.py", "python3 app.py", "python3 -X dev ./app.py --size", "env.sh app.py"])
)
def test_the_next_command_is_the_one_that_was_typed_at_other_sizes(perflaw, tmp_path, typed):
    (tmp_path / "app.py").write_text("import sys\ndef work(n):\n    return n\nwork(int(sys.argv[-1]))\n")
    (tmp_path / "env.sh").write_text("#!/usr/bin/env python3\n" + (tmp_path / "app.py").read_text())
    (tmp_path / "env.sh").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    perflaw("record", "--", *typed.split(), 500, cwd=tmp_path, env={**os.environ, "PATH": path})
    assert perflaw("show").stdout.endswith(f"--vary n=5,15,50,150,500 -- {typed} {{n}}\n")


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
    once = next_command(runs[0], {"n": [10.0, 20.0]}, "default")
    assert re.fullmatch(r"perflaw record --vary n=[\d,]+ -- \S*profiled.py \{n\}", once)
    assert len(set(re.search(r"n=([\d,]+)", once)[1].split(","))) >= 5
    sizes = {"n": [1.0, 2.0, 4.0, 8.0]}
    assert next_command(runs[0], sizes, "default") == "perflaw annotate --at n=80"
    assert next_command(runs[0], sizes, "nightly") == "perflaw annotate -e nightly --at n=80"
    for target in ("-m pytest", "pytest"):  # a suite of tests has no size
        assert next_command(replace(runs[0], target=target), {}, "pytest") == "perflaw annotate -e pytest"


def test_the_way_from_an_imported_trace_to_laws_is_other_traces(perflaw, tmp_path):
    """Nobody knows how the trace was recorded, and its file is no program."""
    shutil.copy(GOLD / "shop.jfr.gz", tmp_path / "out.jfr.gz")
    perflaw("import", "out.jfr.gz")
    shown = perflaw("show").stdout
    assert "import traces of 4 sizes or more" in shown
    assert shown.endswith("perflaw import --feature n=SIZE TRACE-OF-THAT-SIZE\n")
    assert "perflaw record" not in shown
    for size in (10, 20, 40, 80):
        perflaw("import", "-e", "sized", "--feature", f"orders={size}", "out.jfr.gz")
        if size == 10:
            assert "perflaw import -e sized --feature orders=SIZE" in perflaw("show", "-e", "sized").stdout
    assert perflaw("show", "-e", "sized").stdout.endswith("perflaw annotate -e sized --at orders=800\n")
    perflaw("report")
    assert "perflaw record" not in data_of(tmp_path / "report.html")["overview"]["next"]["command"]


def test_the_newest_execution_has_its_children(recorded):
    recordings = open_experiment("default", recorded).recordings()
    assert newest_execution(recordings) == recordings[1:]
    assert read_profile(recordings[1:]).whole("events") == sum(run.run.calls for run in recordings[1:])


def compared(perflaw, folder, *words):
    return json.loads(perflaw("compare", "--json", *words, cwd=folder).stdout)


def test_two_runs_are_compared_by_function(perflaw, recorded):
    page = compared(perflaw, recorded, "1", "2")
    assert ([run["id"] for run in page["old_runs"]], [run["id"] for run in page["new_runs"]]) == (["0001"], ["0002"])
    assert page["whole"] == {"old": 206, "new": 406}
    first = page["functions"][0]
    assert (first["component"], first["change"]) == ("profiled.leaf", 200)
    assert first["old"] == {"calls": 20, "own": 200, "total": 200}
    assert first["new"] == {"calls": 40, "own": 400, "total": 400}
    back = compared(perflaw, recorded, "2", "1")
    assert back["functions"][0]["change"] == -200
    text = perflaw("compare", "1", "2", cwd=recorded).stdout
    assert text == compare_text(page, False)
    assert re.search(r"200 ns +400 ns +\+49 % +2\.0x +20 → 40 +profiled\.leaf\n", text)


def test_an_experiment_is_compared_by_its_mean_run(perflaw, recorded):
    assert compared(perflaw, recorded, "default", "2")["whole"] == {"old": 306, "new": 406}


def test_a_run_is_compared_with_the_latest_of_the_same_features(perflaw, recorded, tmp_path):
    what = perflaw("compare", cwd=recorded, status=2).stderr
    assert "run 0002 has no earlier run to compare with: none is of the same program with the same features" in what
    shutil.copytree(recorded / ".perflaw", tmp_path / ".perflaw")
    runs = tmp_path / ".perflaw" / "default" / "runs"
    for number in ("0003", "0004"):
        shutil.copytree(runs / "0001", runs / number)
        manifest = json.loads((runs / number / "run.json").read_text())
        manifest |= {"id": number, "started": f"2999-01-01T00:00:00.{number}+00:00"}
        (runs / number / "run.json").write_text(json.dumps(sealed(manifest)))
    page = compared(perflaw, tmp_path)
    assert ([run["id"] for run in page["old_runs"]], [run["id"] for run in page["new_runs"]]) == (["0003"], ["0004"])
    assert {row["change"] for row in page["functions"]} == {0}
    assert "changed less" in perflaw("compare", cwd=tmp_path).stdout


def test_time_in_which_a_generator_is_suspended_is_that_of_others(perflaw, tmp_path):
    """A recording without memory, too."""
    (tmp_path / "app.py").write_text(
        "def squares(n):\n"
        "    for i in range(n):\n"
        "        yield i * i\n"
        "def use(square):\n"
        "    return sum(range(2000))\n"
        "for square in squares(300):\n"
        "    use(square)\n"
    )
    perflaw("record", "--", "app.py", cwd=tmp_path)
    page = json.loads(perflaw("show", "--json", cwd=tmp_path).stdout)
    assert "(waiting)" not in {row["component"] for row in page["functions"]}
    own = {row["component"]: row["own"]["time"] for row in page["functions"]}
    assert own["app.squares"] < own["app.use"]
    assert page["whole"]["time"] <= page["runs"][0]["wall_ns"]
    assert "app.use" in perflaw("show", cwd=tmp_path).stdout
