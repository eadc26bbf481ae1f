"""What a program completed before SIGKILL is in its recording: the small version of benchmarks/kills.py."""

import random
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def kills(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import kills

    return kills


def test_every_call_that_ended_is_there(kills, tmp_path):
    chance = random.Random(tmp_path.name)
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        for count in kills.kill(sys.executable, chance, folder, threads=1 + number % 2):
            assert count.agree, count
