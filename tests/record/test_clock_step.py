"""The step of a clock is found where it has one, by the native core and by its twin, and not where it has none."""

from random import Random

import pytest

from perflaw.record.python.tracers import clock_step


class Ticking:
    """A clock that shows whole ns of time that passes in steps; each reading takes a while."""

    def __init__(self, step: float) -> None:
        self.step, self.passed, self.random = step, 0.0, Random(1)

    def __call__(self) -> int:
        self.passed += self.random.uniform(5, 200)
        return int(self.passed // self.step * self.step)


@pytest.mark.parametrize("step", [10.0, 10.0017, 26.6, 38.5, 100.0])
def test_the_step_is_found(step):
    assert clock_step(Ticking(step)) == pytest.approx(step, rel=0.002)


@pytest.mark.parametrize("step", [1.0, 0.4])
def test_a_fine_clock_has_none(step):
    assert clock_step(Ticking(step)) == 1


def test_a_clock_that_stands_still_has_none():
    assert clock_step(lambda: 7) == 1


def test_this_machines_has_one():
    assert 1 <= clock_step() < 1e6
