"""Recordings of several machines, processes and threads: merged to the numbers of all runs at once, each counted once."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from perflaw.report.variance.text import provenance
from perflaw.store.checksums import sealed
from perflaw.store.experiment import Recording, open_experiment
from perflaw.store.merge import merge
from tests.conftest import assert_identities
from tests.record.test_hooks import HOOKS, built, calls, recorded


def elsewhere(recording: Recording, host: str) -> None:
    """As if another machine had made it: another name, clock and calibration."""
    path = recording.folder / "run.json"
    about = json.loads(path.read_text())
    about["host"] = host
    about["clock"] |= {"tick_ns": 4, "event_ns": 31}
    about["words"]["clock"] = "TSC: constant rate, 2.1 GHz"
    path.write_text(json.dumps(sealed(about)))


@pytest.fixture
def parted(tmp_path: Path) -> Path:
    """Four runs in one experiment, and the same in two folders as of two machines: here/ and there/."""
    program = built(tmp_path, "listing1.c", "-O1", HOOKS)
    for way in ("A", "B", "B", "C"):
        recorded(tmp_path, program, way, clock="fake")
    for place in ("here", "there"):
        shutil.copytree(tmp_path / ".perflaw" / "hooks", tmp_path / place / ".perflaw" / "hooks")
    runs = {place: tmp_path / place / ".perflaw" / "hooks" / "runs" for place in ("here", "there")}
    for number in ("0003", "0004"):
        shutil.rmtree(runs["here"] / number)
    for number in ("0001", "0002"):
        shutil.rmtree(runs["there"] / number)
    for recording in open_experiment("hooks", tmp_path / "there").recordings():
        elsewhere(recording, "other")
    return tmp_path


def documents(perflaw, *words: object, cwd: Path) -> object:
    document = json.loads(perflaw("variance", "-e", "hooks", "--cov", 0.2, *words, "--json", cwd=cwd).stdout)
    document.pop("runs")
    document["shown"].pop("runs")
    return document


@pytest.mark.slow
def test_two_machines_are_as_one_that_made_all_runs(perflaw, parted: Path) -> None:
    said = perflaw("import", "-e", "hooks", parted / "there" / ".perflaw" / "hooks", cwd=parted / "here").stderr
    assert "imported 2 runs of 1 machine" in said
    together = open_experiment("hooks", parted / "here").recordings()
    alone = open_experiment("hooks", parted).recordings()
    ours, theirs = (merge([one.tables() for one in each]) for each in (together, alone))
    assert_identities(ours)
    for name, table in theirs.items():
        for column in table.columns:
            np.testing.assert_array_equal(ours[name][column], table[column], err_msg=f"{name}.{column}")
    for words in ((), ("f",)):
        assert documents(perflaw, *words, cwd=parted / "here") == documents(perflaw, *words, cwd=parted)
    head = perflaw("variance", "-e", "hooks", cwd=parted / "here").stdout.splitlines()[0]
    assert head == "from 4 runs: 2 machines, 4 processes, 4 threads"


def test_a_recording_counts_once(perflaw, parted: Path) -> None:
    other = parted / "there" / ".perflaw" / "hooks"
    for expected in ("imported 2 runs of 1 machine", "imported 0 runs, 2 more are here already"):
        assert expected in perflaw("import", "-e", "hooks", other, cwd=parted / "here").stderr
    assert len(open_experiment("hooks", parted / "here").ids()) == 4
    said = perflaw("import", "-e", "hooks", ".perflaw/hooks", cwd=parted / "here", status=2).stderr
    assert "this experiment itself" in said
    assert "--feature" in perflaw("import", other, "--feature", "n=1", cwd=parted / "here", status=2).stderr


def test_children_stay_with_their_programs_and_threads_are_told(perflaw, tmp_path: Path) -> None:
    program = built(tmp_path, "jumps.c", "-O1", HOOKS)
    (tmp_path / "a").mkdir()
    recorded(tmp_path / "a", program, "threads", 10)
    recorded(tmp_path / "a", program, "forks", 2)
    for recording in open_experiment("hooks", tmp_path / "a").recordings():
        elsewhere(recording, "a")
    recorded(tmp_path, program, "inlined", 10)
    perflaw("import", "-e", "hooks", "a/.perflaw/hooks")
    local, threads, forks, *children = open_experiment("hooks", tmp_path).recordings()
    assert (calls(threads)["leaf"], calls(forks)["leaf"], calls(local)["leaf"]) == (160, 4, 10)
    assert [child.run.parent for child in children] == [forks.run.id] * 2
    told = provenance([one.run for one in (local, threads, forks, *children)])
    assert told == "from 3 runs: 2 machines, 5 processes, 12 threads"
    assert provenance([local.run]) == ""


def test_counts_of_lines_keep_their_sources(perflaw, tmp_path: Path) -> None:
    for place in ("a", "b"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "p.c").write_text("int main(void) { return 0; }\n")
        subprocess.run(["gcc", "-O0", "--coverage", "p.c", "-o", "p"], cwd=folder, check=True)
        perflaw("record", "--collect", "lines", "--", "./p", cwd=folder)
    perflaw("import", tmp_path / "a" / ".perflaw" / "default", cwd=tmp_path / "b")
    assert len(list((tmp_path / "b" / ".perflaw" / "default" / "sources").iterdir())) == 1
    assert len(open_experiment("default", tmp_path / "b").ids()) == 2
