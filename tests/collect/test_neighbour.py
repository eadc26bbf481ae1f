"""CPU time beside busy neighbours: the small version of benchmarks/neighbour.py. No wall time is asserted."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def neighbour(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import neighbour

    return neighbour


def test_the_planted_function_has_the_variance_of_the_cpu_time(neighbour, tmp_path):
    found = neighbour.find(sys.executable, hash(tmp_path) % 1000, 300, tmp_path)
    assert abs(found.error) < neighbour.AGREEMENT
    name, share = found.greatest("cpu")
    assert name == found.planted
    assert share >= neighbour.SHARE
