"""A program that was edited between recordings: laws are those of its latest version, and who records is told."""

import json

import pytest

PROGRAM = """
import sys


def work(n):
    return [step(i) for i in range(n)]


def step(i):
    return i


work(int(sys.argv[1]))
"""
SIZES = "n=10,20,40,80,160"


def calls_of_step(perflaw, *runs):
    done = perflaw("annotate", "--metric", "events", "--at", "n=1000", "--json", *runs)
    annotations = json.loads(done.stdout)["annotations"]
    return next(one for one in annotations if one["component"] == "app.step")["predicted"]["mean"], done.stderr


@pytest.fixture
def edited(tmp_path, perflaw):
    (tmp_path / "app.py").write_text(PROGRAM)
    first = perflaw("record", "--vary", SIZES, "--", "app.py", "{n}")
    assert "changed" not in first.stderr
    (tmp_path / "app.py").write_text(PROGRAM.replace("range(n)", "range(3 * n)"))
    return perflaw("record", "--vary", SIZES, "--", "app.py", "{n}")


@pytest.mark.slow
def test_laws_are_those_of_the_latest_version(edited, perflaw):
    assert "app.py changed since earlier runs of experiment default" in edited.stderr
    mean, told = calls_of_step(perflaw)
    assert mean == pytest.approx(3000) and "0001 to 0005" in told and "older version of app.py" in told
    mean, told = calls_of_step(perflaw, "1", "2", "3", "4", "5")
    assert mean == pytest.approx(1000) and "older" not in told


@pytest.mark.slow
def test_the_older_version_comes_back_with_its_text(tmp_path, edited, perflaw):
    (tmp_path / "app.py").write_text(PROGRAM)
    again = perflaw("record", "--vary", SIZES, "--", "app.py", "{n}")
    assert "app.py changed" in again.stderr
    mean, told = calls_of_step(perflaw)
    assert mean == pytest.approx(1000) and "0006 to 0010" in told
