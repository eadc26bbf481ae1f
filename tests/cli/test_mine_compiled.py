"""``perflaw mine`` on a program in C: long functions first, none below 1 µs, and a printed command that records alone."""

import json
import shlex
import subprocess

import pytest

from tests.conftest import PROGRAMS, run_perflaw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("grinder")
    source = PROGRAMS / "grinder.c"
    subprocess.run(["gcc", "-O1", "-g", "-finstrument-functions", source, "-o", made / "grinder"], check=True)
    run_perflaw(made, "record", "--collect", "paths", "--repeat", "2", "--", "./grinder", 1200)
    return made


def specs(folder, *arguments):
    return json.loads(run_perflaw(folder, "mine", "--json", *arguments).stdout)["specs"]


@pytest.mark.slow
def test_leaves_below_a_microsecond_are_not_specified(folder):
    of_step = next(one for one in specs(folder) if one["component"] == "step")
    assert (of_step["borders"], of_step["groups"]) == ([], [])
    assert any(note.startswith("too short: ") for note in of_step["notes"])
    assert "'step'" not in run_perflaw(folder, "mine", "--export", "yaml").stdout
    order = [one["component"] for one in specs(folder)]
    assert order.index("polish") < order.index("step")


def test_the_printed_command_records_alone_what_recording_distorts(folder):
    text = run_perflaw(folder, "mine").stdout
    [command] = [line for line in text.splitlines() if line.startswith("perflaw record")]
    words = shlex.split(command)
    assert words[words.index("--select") + 1] == "grind"
    assert words[-3:] == ["--", "./grinder", "1200"]
    run_perflaw(folder, *words[1:])
    [alone] = [one for one in specs(folder, "-e", "default-alone") if one["component"] == "grind"]
    assert not any(note.startswith("perturbed") for note in alone["notes"])
    [group] = alone["groups"]
    assert sum(group["counts"]) == 2400
    # Its 1,500 calls take 12 to 80 µs, by processor; recording each of them takes as long again, or several times as long.
    assert 5_000 < group["durations"][2] < 1_000_000
    assert "perflaw record" not in run_perflaw(folder, "mine", "-e", "default-alone").stdout


def test_what_hooks_that_stay_distort_is_told_with_what_settles_it(tmp_path):
    source = PROGRAMS / "skipped.c"
    subprocess.run(["gcc", "-O1", "-g", "-finstrument-functions", source, "-o", tmp_path / "skipped"], check=True)
    run_perflaw(tmp_path, "record", "--collect", "paths", "--select", "work", "--", "./skipped", 3000, "threads")
    [spec] = specs(tmp_path)
    assert spec["groups"] == []
    assert any(note.startswith("perturbed: ") for note in spec["notes"])
    text = " ".join(run_perflaw(tmp_path, "mine").stdout.split())
    assert "work is distorted by hooks of functions that are not recorded" in text
    assert "build the program without -finstrument-functions" in text
