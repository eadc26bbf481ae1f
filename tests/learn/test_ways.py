"""Advice names what the person can do: a suite has parameters, a trace has a tool that made it, a program has --vary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.series import Series, learn
from perflaw.learn.ways import BY_IMPORT, BY_PYTEST, BY_RECORD, Ways, ways_of
from perflaw.types import Run
from perflaw.types.recordings import IMPORTED
from tests.check.made import run

PROGRAM = run(1, {"n": 10.0})
SUITE = replace(PROGRAM, target="python -m pytest")
TRACE = replace(PROGRAM, clock=replace(PROGRAM.clock, name=IMPORTED))


@pytest.mark.parametrize(
    ("runs", "ways"),
    [
        ([PROGRAM, PROGRAM], BY_RECORD),
        ([SUITE, SUITE], BY_PYTEST),
        ([TRACE], BY_IMPORT),
        ([SUITE, PROGRAM], BY_RECORD),
        ([], BY_RECORD),
    ],
)
def test_the_runs_decide(runs: list[Run], ways: Ways) -> None:
    assert ways_of(runs) == ways


@pytest.mark.parametrize(
    ("ways", "says"),
    [
        (BY_RECORD, "add --vary n=… with 5 sizes over a 30-fold range and --repeat 2"),
        (BY_PYTEST, 'add parametrize("n", …) with 5 sizes over a 30-fold range and --perflaw-runs 2'),
        (BY_IMPORT, "add traces with --feature n=… with 5 sizes over a 30-fold range and two of each size"),
    ],
)
def test_the_advice_is_in_their_words(ways: Ways, says: str) -> None:
    [learnt] = learn([Series("s", np.array([3.0]), {"n": np.array([7.0])}, ways=ways)])
    assert learnt.law.reason == f"one point: {says}"
