"""The same programs under every tracer that this Python has: they record the same, to the last bit."""

import sys

import pytest

from tests.conftest import PROGRAMS, costs_of
from tests.record.recording import comparable, features, record_fake

pytestmark = pytest.mark.interpreter

DEAF_TO_THROW = sys.version_info < (3, 12)
"""Up to 3.11 a profile function is not told of an exception that is thrown into a generator; frame evaluation is."""
ALONE = ["callbacks", "falls", "hostile", "made", "sleepy", *([] if DEAF_TO_THROW else ["turns"])]
OF_TURNS = {  # calls, open, total, self
    "drive": (1, 0, 135, 0),
    "closes": (1, 0, 47, 39),
    "throws_into_a_fresh_one": (1, 0, 34, 34),
    "abandoned": (1, 0, 35, 19),
    "inner": (7, 0, 141, 141),
    "middle": (2, 0, 121, 7),
    "outer": (2, 0, 125, 11),
    "ping": (7, 0, 7, 7),
    "job": (5, 0, 115, 7),
    "ticks": (7, 0, 128, 128),
    "endless": (1, 0, 52, 52),
    "Awaitable.__await__": (1, 0, 19, 19),
    "Resource.__aexit__": (5, 0, 20, 20),
}


@pytest.fixture
def agree(tmp_path, monkeypatch):
    """Record a program by both tracers and compare all of it; gives what the native one recorded."""
    monkeypatch.chdir(tmp_path)

    def compare(name, *arguments, concurrent=False, **options):
        """What is imported depends on what the tracer imported before, so functions are selected by default."""
        command = [PROGRAMS / f"{name}.py", *arguments]
        options.setdefault("select", [f"{name}.*", "contextlib.*", "made_module.*"])
        both = []
        for tracer in ("native", "python"):
            (tmp_path / "seeds").unlink(missing_ok=True)  # known.py counts its runs there
            both.append(record_fake(tmp_path, tracer, command, metrics=["cpu"], **options))
        assert len(both[0]) == len(both[1]) > 0
        for native, python in zip(*both, strict=True):
            assert native.run.complete and python.run.complete
            assert native.run.tracer.startswith("native") and python.run.tracer.startswith("python")
            expected = comparable(python, concurrent=concurrent)
            for table, found in comparable(native, concurrent=concurrent).items():
                assert (found - expected[table], expected[table] - found) == ({}, {}), table
        return both

    return compare


@pytest.mark.parametrize("name", ALONE)
def test_programs_of_one_thread(agree, name):
    [native], [python] = agree(name)
    assert native.run.calls > 5
    assert not features(python) - features(native), "the native tracer reads more, never less"


def test_exceptions_thrown_into_generators(tmp_path):
    [recording] = record_fake(tmp_path, "native", [PROGRAMS / "turns.py"])
    costs = costs_of(recording)
    assert {name: costs[f"turns.{name}"] for name in OF_TURNS} == OF_TURNS


@pytest.mark.parametrize("name", ["crowd", "shapes"])
def test_programs_of_several_threads(agree, name):
    """What waits for a thread or a lock has the time that others spend meanwhile: left out."""
    [native], _ = agree(name, concurrent=True, select=[f"{name}.*"], exclude=["shapes.work"])
    assert native.run.calls > 80


@pytest.mark.parametrize(
    "options",
    [
        {"select": ["known.quadratic", "known.outer"]},
        {"select": ["__main__.*r"], "exclude": ["*.linear", "known.p?wer"]},
        {"select": ["random.*", "known.[a-m]*"]},
        {"select": ["known.*"], "exclude": ["known.main", "known.spend"]},
        {"select": [], "exclude": ["*"]},
    ],
    ids=str,
)
def test_selection(agree, options):
    agree("known", 16, 0.1, "seed", **options)


def test_runs_that_vary_and_repeat(agree):
    natives, _ = agree("known", "{n}", 0.1, "seed", vary={"n": ["8", "64"]}, repeat=2)
    assert [dict(run.run.features)["n"] for run in natives] == [8, 64, 8, 64]


def test_nothing_records_nothing(tmp_path):
    [recording] = record_fake(tmp_path, "nothing", [PROGRAMS / "shapes.py"])
    assert recording.run.complete
    assert (recording.run.calls, recording.run.functions, recording.run.nodes) == (0, 0, 0)
    assert recording.tables()["calltree"] == [(0, -1, -1, -1, 0, 0)], "the root alone"
