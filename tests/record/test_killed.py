"""What a program completed before SIGKILL is in its recording: the small version of benchmarks/kills.py."""

import random
import sys

import pytest


@pytest.fixture
def kills(benchmark_module):
    return benchmark_module("kills")


@pytest.mark.slow
def test_every_call_that_ended_is_there(kills, tmp_path):
    chance = random.Random(tmp_path.name)
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        for count in kills.kill(sys.executable, chance, folder, threads=1 + number % 2):
            assert count.agree, count
