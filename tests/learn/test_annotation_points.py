"""What charts are given of an annotation: points of one law, single records where several hold."""

import numpy as np

from perflaw.learn.annotations.annotate import MAX_POINTS, points_of_records
from perflaw.learn.annotations.records import record_table
from perflaw.types import Component, Evidence


def evidence(n=2000, uniform=None):
    random = np.random.default_rng(3)
    size = np.round(random.uniform(1, 100, n))
    return Evidence(
        component=Component("app.f"),
        cost=1000 * size,
        weight=np.ones(n),
        uniform=np.arange(n) % 2 == 0 if uniform is None else uniform,
        run=np.array(["0001", "0002"])[np.arange(n) // (n // 2)],
        features={"n": np.where(np.arange(n) % 10, size, np.nan)},
        runs=(),
        categories={"x.type": np.array(["int", "str"])[np.arange(n) % 4 // 2]},
        edges={"calls.db.query": (np.arange(n) % 3).astype(float)},
        branches={"branch.L12.taken": (np.arange(n) % 5).astype(float)},
    )


def test_records_carry_all_that_conditions_speak_of():
    points = points_of_records(record_table(evidence()))
    assert set(points.features) == {"n", "calls.db.query", "branch.L12.taken"}
    assert set(points.categories["x.type"]) == {"int", "str"}
    assert len(points.y) == len(points.run) == len(points.residual) == len(points.features["n"]) == MAX_POINTS
    assert None in points.features["n"]
    for y, n in zip(points.y, points.features["n"], strict=True):
        assert n is None or y == 1000 * n


def test_slow_strata_do_not_crowd_the_chart():
    """Only the uniform part of the sample is shown, unless it is too small to show anything."""
    every = evidence(200, np.zeros(200, dtype=bool))
    assert len(points_of_records(record_table(every)).y) == 200
    half = evidence(200)
    shown = points_of_records(record_table(half))
    assert shown.y == tuple(half.cost[half.uniform])


def test_two_records_are_both_shown():
    points = points_of_records(record_table(evidence(2)))
    assert len(points.y) == 2
