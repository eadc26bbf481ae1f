"""Damaged, missing and unwritable recordings: a clear error, exit status 2, nothing lost."""

import json
import resource
import shutil
import subprocess
import sys

import pytest

from perflaw.cli.main import main
from tests.conftest import run_perflaw


@pytest.fixture(scope="module")
def recorded_folder(tmp_path_factory):
    """A program with its recording, made once."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "app.py").write_text("def f(n): return n\nf(1)\n")
    run_perflaw(folder, "record", "--", "app.py")
    return folder


@pytest.fixture
def experiment(recorded_folder, tmp_path):
    """The experiment in the test's folder, to be damaged."""
    shutil.copytree(recorded_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path / ".perflaw" / "default"


def assert_one_line(done, *parts):
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("perflaw: ")
    for part in (*parts, "try: "):
        assert part in line


VERBS = [("annotate",), ("report",), ("dump", "1")]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_an_empty_experiment(perflaw, tmp_path, verb):
    assert_one_line(perflaw(*verb, status=2), "no r")
    assert not (tmp_path / "report.html").exists()


def test_no_runs(perflaw, tmp_path):
    assert_one_line(perflaw("runs", status=2), "nothing was recorded", "perflaw record")


def test_an_unknown_run(perflaw, experiment):
    assert_one_line(perflaw("dump", 7, status=2), "no run 0007", "there are: 0001")


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_recording_from_a_newer_version_is_refused(perflaw, experiment, verb):
    path = experiment / "runs/0001/run.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "schema": "perflaw.run/99"}))
    assert_one_line(perflaw(*verb, status=2), "version 99, this perflaw reads 2", "--upgrade")
    assert "version 99" in " ".join(perflaw("runs").stdout.split())


def test_a_recording_from_an_older_version_is_refused(perflaw, experiment):
    path = experiment / "runs/0001/run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": "perflaw.run/1"}))
    assert_one_line(perflaw("annotate", status=2), "version 1, this perflaw reads 2", "perflaw record -e NAME")


def test_a_wrongly_typed_manifest(perflaw, experiment):
    path = experiment / "runs/0001/run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "features": None}))
    assert_one_line(perflaw("annotate", status=2), "run.json")
    assert "0001" in perflaw("runs").stdout


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "other/1"}', '{"schema": "perflaw.run/2"}', "\0\0"])
def test_a_damaged_manifest(perflaw, experiment, content):
    (experiment / "runs/0001/run.json").write_text(content)
    assert_one_line(perflaw("annotate", status=2), "run.json")


@pytest.mark.parametrize("keep", [0, 10, 0.5])
@pytest.mark.parametrize("table", ["components", "invocations", "moments"])
def test_a_truncated_table(perflaw, experiment, table, keep):
    path = experiment / f"runs/0001/{table}.parquet"
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if keep < 1 else keep])
    assert_one_line(perflaw("annotate", status=2), f"{table}.parquet", "truncated")


def test_a_missing_table(perflaw, experiment):
    (experiment / "runs/0001/strata.parquet").unlink()
    assert_one_line(perflaw("dump", 1, status=2), "strata.parquet: missing")


def test_one_damaged_run_does_not_hide_the_others(perflaw, experiment):
    perflaw("record", "--", "app.py")
    (experiment / "runs/0001/run.json").write_text("{")
    assert_one_line(perflaw("annotate", status=2), "0001")
    assert "app.f" in perflaw("annotate", 2, "--all").stdout
    listed = perflaw("runs").stdout
    assert "0001" in listed
    assert "0002" in listed


def test_a_run_being_recorded_is_left_alone(perflaw, experiment):
    (experiment / "runs/0002/spool").mkdir(parents=True)
    assert "app.f" in perflaw("annotate", "--all").stdout
    assert "unfinished" in perflaw("runs").stdout


def test_a_program_that_failed_each_time_has_laws_of_what_completed(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import sys\ndef f(n): return sum(range(n))\nf(10)\nsys.exit(3)\n")
    perflaw("record", "--", "app.py", status=3)
    assert "app.f" in perflaw("annotate", "--all").stdout
    assert "wrote report.html" in perflaw("report", "-o", "report.html").stdout


def test_a_current_folder_that_is_gone(monkeypatch, tmp_path, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SystemExit) as ended:
        main(["runs"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("perflaw: the current folder is gone: it was removed")


def test_a_place_that_cannot_be_written(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("print('must not run')")
    (tmp_path / ".perflaw").write_text("a file where the folder should be")
    done = perflaw("record", "--", "app.py", status=2)
    assert_one_line(done, ".perflaw/default: cannot be written")
    assert done.stdout == ""


def test_a_read_only_folder(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("print('must not run')")
    # /proc refuses to make folders for everyone, root included.
    done = perflaw("record", "--", tmp_path / "app.py", status=2, cwd="/proc")
    assert_one_line(done, "cannot be written")
    assert done.stdout == ""


def limit(size):
    """A file size limit stands in for a full disk: allocation fails with an error in both cases."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_stops_the_recording_and_never_the_target(tmp_path):
    (tmp_path / "app.py").write_text("print(sum(map(len, [str(i) for i in range(1000)])))")
    command = [sys.executable, "-m", "perflaw", "record", "--", "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit(1 << 19))
    assert done.stdout == "2890\n"
    assert done.returncode == 2
    assert "nothing was recorded (exit status 0): the program may write no file so large (ulimit -f)" in done.stderr


# The native tracer takes its room on the disk when a thread begins, the other one as it goes. The definitions fit.
@pytest.mark.parametrize(
    ("tracer", "begin"), [("python", "call()"), ("native", "t = Thread(target=call); t.start(); t.join()")]
)
def test_a_disk_that_fills_up_while_recording_keeps_what_was_recorded(perflaw, tmp_path, tracer, begin):
    (tmp_path / "app.py").write_text(
        "import os, resource\nfrom threading import Thread\ndef f(n): return n\n[f(i) for i in range(10000)]\n"
        "def call(): print(sum(f(i) for i in range(100_000)))\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))\n{begin}\n"
    )
    done = perflaw("record", "--tracer", tracer, "--", "app.py")
    assert done.stdout == "4999950000\n"
    assert "incomplete: recording stopped early" in done.stderr
    run = json.loads(perflaw("runs", "--json").stdout)["runs"][0]
    assert run["calls"] > 5_000
    assert not run["complete"]


def test_the_newest_of_many_runs_are_listed(perflaw, experiment):
    """A list of 10^5 recordings takes a second, for manifests that are not shown are not read."""
    for number in range(2, 106):
        shutil.copytree(experiment / "runs/0001", experiment / f"runs/{number:04d}")
    (experiment / "runs/0003/run.json").write_text("damaged")
    done = perflaw("runs")
    assert done.stdout.count("app.py") == 100
    assert done.stderr == "perflaw: 5 earlier recordings are not shown: perflaw runs --all\n"
    assert "damaged" in perflaw("runs", "--all").stdout
    assert len(json.loads(perflaw("runs", "--json").stdout)["runs"]) == 104
