"""``perflaw mine`` and ``perflaw check FILE.yaml`` on recordings: groups, exports, merging, planted regressions, bad input."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from perflaw.cli import check, mine
from perflaw.errors import PerflawError
from tests.conftest import PROGRAMS, run_perflaw

EDGE = '"lookups.overview -> lookups.load"'


def record(folder, experiment, seeds, *more):
    options = ["--collect", "paths", "--clock", "fake", "-e", experiment]
    run_perflaw(folder, "record", *options, "--vary", f"s={seeds}", "--", PROGRAMS / "lookups.py", 3300, "{s}", *more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Experiments: default (three runs, mined to spec.yaml), same, planted, slower (all of it)."""
    made = tmp_path_factory.mktemp("lookups")
    record(made, "default", "a,b,c")
    record(made, "same", "d,e")
    record(made, "planted", "f,g", "planted")
    record(made, "slower", "h,i", "1.7")
    (made / "spec.yaml").write_text(run(made, mine, "--export", "yaml"))
    return made


def run(folder, verb, *arguments, status=0):
    """A verb that reads, in this process."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(verb.command, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False)
    assert done.return_value == status, done.output
    return done.stdout


def refused(folder, verb, *arguments):
    with contextlib.chdir(folder), pytest.raises(PerflawError) as error:
        CliRunner().invoke(verb.command, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False)
    assert error.value.next_command
    return str(error.value)


@pytest.mark.slow
def test_groups_are_told_with_their_edge(folder):
    text = run(folder, mine, "load")
    assert "e1  lookups.search -> lookups.load" in text
    assert max(map(len, text.splitlines())) <= 80
    spec = json.loads(run(folder, mine, "lookups.load", "--json"))["specs"][0]
    assert sorted(len(group["paths"]) for group in spec["groups"]) == [1, 2]
    assert spec["stable"]
    assert [len(one["runs"]) for one in spec["groups"]] == [3, 3]
    assert sum(spec["groups"][0]["counts"]) == 6600


def test_runs_are_chosen_and_names_completed(folder):
    document = json.loads(run(folder, mine, "--json", "1", "2"))
    assert [one["id"] for one in document["runs"]] == ["0001", "0002"]
    assert "there is no component 'lode'" in refused(folder, mine, "lode")


def test_a_clean_run_holds_and_the_planted_one_names_its_edge(folder):
    assert "violated" not in run(folder, check, "spec.yaml", "-e", "same")
    document = json.loads(run(folder, check, "spec.yaml", "-e", "planted", "--json", status=1))
    violated = [one for one in document["verdicts"] if one["verdict"] == "violated"]
    assert [(one["component"], one["path"]) for one in violated] == [("lookups.load", EDGE)]
    assert violated[0]["effect"] == pytest.approx(0.45, abs=0.06)
    text = run(folder, check, "spec.yaml", "-e", "planted", status=1)
    assert "explained by its callee lookups.load" in " ".join(text.split())


def test_a_machine_that_is_slower_as_a_whole_violates_absolute_bounds_alone(folder):
    run(folder, check, "spec.yaml", "-e", "slower")
    assert "violated" not in run(folder, check, "spec.yaml", "-e", "same", "--absolute")


def test_verdicts_go_to_sarif_and_github(folder, tmp_path):
    file = tmp_path / "v.sarif"
    text = run(folder, check, "spec.yaml", "-e", "planted", "--sarif", file, "--github", status=1)
    assert "lookups.py,line=14,title=perflaw%3A violated::lookups.load where" in text
    results = json.loads(file.read_text())["runs"][0]["results"]
    assert [one["kind"] for one in results].count("fail") == 1


def test_the_runs_behind_a_specification_are_no_test_of_it(folder):
    assert "was mined from runs 0001 0002 0003" in refused(folder, check, "spec.yaml")


@pytest.mark.slow
def test_the_exported_pytest_file_passes_and_fails(folder, tmp_path):
    (folder / "test_performance.py").write_text(run(folder, mine, "--export", "pytest"))

    def tested(experiment):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "test_performance.py"]
        environment = {**os.environ, "PERFLAW_EXPERIMENT": experiment}
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)

    assert tested("same").returncode == 0
    failed = tested("planted")
    assert failed.returncode == 1
    assert "1 failed" in failed.stdout
    assert "overview -> lookups.load" in failed.stdout
    assert "no recordings" in tested("nowhere").stdout


def test_what_is_reviewed_is_short_and_checks_as_the_evidence_does(folder, tmp_path):
    """No call paths, no runs, at most 2 kB a function, and the same verdicts."""
    text = (folder / "spec.yaml").read_text()
    _, *functions = text.split("- function:")
    assert len(functions) >= 5
    assert max(len(one.encode()) for one in functions) <= 2000
    assert "paths:" not in text
    assert "random.Random.seed" not in text  # called three times: nothing is specified of it
    (tmp_path / "evidence.yaml").write_text(run(folder, mine, "--export", "evidence"))

    def verdicts(file, experiment, status):
        document = json.loads(run(folder, check, file, "-e", experiment, "--json", status=status))
        return {
            (one["component"], one["path"]): one["verdict"]
            for one in document["verdicts"]
            if one["verdict"] != "out of scope"
        }

    for experiment, status in (("same", 0), ("planted", 1)):
        assert verdicts("spec.yaml", experiment, status) == verdicts(tmp_path / "evidence.yaml", experiment, status)
    assert "--export evidence" in refused(folder, mine, "--merge", "spec.yaml", "spec.yaml")


@pytest.mark.slow
def test_the_exported_tests_fail_only_where_a_check_does_and_say_if_perflaw_is_missing(folder, tmp_path):
    (folder / "test_agreement.py").write_text(run(folder, mine, "--export", "pytest"))
    document = json.loads(run(folder, check, "spec.yaml", "-e", "planted", "--json", status=1))
    violated = sum(one["verdict"] == "violated" for one in document["verdicts"])
    undecided = sum(one["verdict"] == "inconclusive" for one in document["verdicts"])
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-n", "0", "test_agreement.py"]
    environment = {**os.environ, "PERFLAW_EXPERIMENT": "planted"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert f"{violated} failed" in done.stdout
    assert undecided
    assert f"{undecided} skipped" in done.stdout
    assert "explained by its callee" in " ".join(done.stdout.split())
    # An interpreter without perflaw: every import of it fails.
    without = folder / "conftest.py"
    without.write_text("import importlib.util\nimportlib.util.find_spec = lambda name: None\n")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    without.unlink()
    assert "perflaw is not installed for" in done.stdout
    assert "passed" not in done.stdout
    assert done.returncode == 1


def test_prometheus_and_otlp_name_groups_and_no_paths(folder, tmp_path):
    rules = tmp_path / "rules.yml"
    rules.write_text(run(folder, mine, "--export", "prometheus"))
    assert subprocess.run(["promtool", "check", "rules", rules], capture_output=True).returncode == 0
    otlp = run(folder, mine, "--export", "otlp")
    ids = {group["id"] for spec in json.loads(run(folder, mine, "--json"))["specs"] for group in spec["groups"]}
    assert all(one in otlp for one in ids)
    assert "lookups.serve -> " not in rules.read_text() + otlp


@pytest.mark.slow
def test_runs_are_merged_one_after_the_other(folder, tmp_path):
    text = run(folder, mine, "--merge")
    assert "+ 0002" in text
    assert "+ 0003" in text
    document = json.loads(run(folder, mine, "--merge", "--json"))
    assert len(document["merges"]) == 2
    assert all("lookups.load" in [one["component"] for one in step] for step in document["merges"])
    assert min(one["points"] for step in document["merges"] for one in step) > 0.9
    load = next(one for one in document["specs"] if one["component"] == "lookups.load")
    assert [group["standing"] for group in load["groups"]] == ["", ""]
    files = []
    for number in (1, 2):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(run(folder, mine, "--export", "evidence", number))
    both = json.loads(run(folder, mine, "--merge", "--json", *files))
    [load] = [spec for spec in both["specs"] if spec["component"] == "lookups.load"]
    assert sum(sum(group["counts"]) for group in load["groups"]) == 6600


def test_the_page_shows_them(folder, tmp_path):
    run(folder, mine, "--merge", "-o", tmp_path / "mine.html")
    text = (tmp_path / "mine.html").read_text()
    assert "lookups.load" in text
    assert len(text) < 1_000_000


def test_wrong_use_is_told(folder, tmp_path):
    assert "can only be merged" in refused(folder, mine, "spec.yaml")
    assert "needs two runs" in refused(folder, mine, "--merge", "1")
    assert "no recordings" in refused(folder, mine, "-e", "nowhere")
    assert "cannot be read" in refused(folder, check, "other.yaml", "-e", "same")
    edited = tmp_path / "edited.yaml"
    lines = (folder / "spec.yaml").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if "    shares:" in line)
    edited.write_text("\n".join([*lines[:place], "    shares: [0.5, 0.9]", *lines[place + 1 :]]))
    assert f"edited.yaml:{place + 1}: functions[0].groups[0].shares: they add up to 1.4 and not to 1" in refused(
        folder, check, edited, "-e", "same"
    )


def test_recordings_without_paths_are_refused(folder):
    options = ["--tracer", "python", "--clock", "fake", "-e", "bare"]
    run_perflaw(folder, "record", *options, "--", PROGRAMS / "lookups.py", 30, "x")
    assert "perflaw record --collect paths" in refused(folder, mine, "-e", "bare")
    assert "perflaw record --collect paths" in refused(folder, check, "spec.yaml", "-e", "bare")


def test_a_function_that_is_gone_is_out_of_scope(folder, tmp_path):
    renamed = tmp_path / "renamed.yaml"
    renamed.write_text((folder / "spec.yaml").read_text().replace("lookups.load", "lookups.loaded"))
    document = json.loads(run(folder, check, renamed, "-e", "planted", "--json", status=1))
    [gone] = [one for one in document["verdicts"] if one["component"] == "lookups.loaded"]
    assert gone["verdict"] == "out of scope"
    assert gone["message"] == "not in the new recordings: not called, or no longer there"


def test_a_function_whose_durations_were_not_kept_is_not_called_gone(folder):
    """The printed option keeps them."""
    options = ["--collect", "paths", "--clock", "fake", "-e", "few"]
    run_perflaw(folder, "record", *options, "--select", "lookups.steady", "--", PROGRAMS / "lookups.py", 300, "z")
    document = json.loads(run(folder, check, "spec.yaml", "-e", "few", "--json"))
    assert {
        one["message"] for one in document["verdicts"] if one["component"] in ("lookups.load", "lookups.serve")
    } == {"not recorded: left out by --select or --exclude, or not called"}
