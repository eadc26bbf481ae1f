"""Recordings of a program before and after a change, made once for the tests of check, diff and predict."""

import pytest

from tests.conftest import PROGRAMS, run_perflaw

OPTIONS = ["--clock", "fake", "--select", "shifting.*", "--vary", "n=200,800,1600"]


def record_shifted(folder):
    def record(name, factor, repeat, seed, *options):
        command = ["--", PROGRAMS / "shifting.py", "{n}", factor, seed]
        run_perflaw(folder, "record", "-e", name, *(options or OPTIONS), "--repeat", repeat, *command)

    record("default", 1, 2, "a")
    record("same", 1, 1, "b")
    record("slow", 1.8, 1, "c")
    record("one", 1.8, 1, "d", *OPTIONS[:-1], "n=1600")
    record("far", 1, 2, "e", *OPTIONS[:-1], "n=64000")
    run_perflaw(folder, "annotate", "-o", "perf.law")


@pytest.fixture(scope="session")
def shifted(made_once):
    """A folder with the experiments default (and its laws in perf.law), same, one, slow and far; it is only read."""
    return made_once("shifted", record_shifted)
