"""Two and more regimes: planted thresholds are found, smooth laws and noise have none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from perflaw.laws.evaluation import evaluate
from perflaw.laws.printing import show
from perflaw.learn.series import Series, learn
from perflaw.learn.series.partition import SegmentSums, SortedSeries, best_partitions, deviance, partitions, splits
from perflaw.types.documents import document
from tests.conftest import first
from tests.learn.law_data import TRUTHS, at_least, at_most, draw, generator

Switch = Callable[[np.ndarray, float], np.ndarray]
SWITCHES: dict[str, Switch] = {
    "jump": lambda x, t: np.where(x <= t, 2 * x, 10 * x),
    "down": lambda x, t: np.where(x <= t, 10 * x, 2 * x),
    "kink": lambda x, t: np.where(x <= t, x, x * x / t),
    "steps": lambda x, t: np.where(x <= t, 10.0, 80.0),
    "sort": lambda x, t: np.where(x <= t, x * x, t * x * np.log(x) / np.log(t)),
}


def switched(name: str, noise: float, n: int, rng: np.random.Generator) -> tuple[Series, float]:
    low = 10 ** rng.uniform(0.5, 3)
    x = np.geomspace(low, 1000 * low, n)
    t = float(low * 1000 ** rng.uniform(0.3, 0.7))
    return Series("s", SWITCHES[name](x, t) * np.exp(noise * rng.standard_normal(n)), {"n": x}), t


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "bar"), first(1, [(0.05, 0.8), (0.0, 0.85), (0.2, 0.65)]))
def test_mode_switch_is_found_where_it_is(noise: float, bar: float) -> None:
    rng, hits, held, count = generator(30, int(noise * 100)), 0, 0, 0
    for name in SWITCHES:
        for n in (10, 20, 30):
            data, thresholds = zip(*(switched(name, noise, n, rng) for _ in range(20)), strict=True)
            for one, t in zip(learn(data), thresholds, strict=True):
                count += 1
                if one.law.family == "piecewise":
                    hits += 1
                    held += any(point.low <= t <= point.high for point in one.law.breakpoints)
    at_least(hits, count, bar, f"mode switch at noise {noise}")
    at_least(held, hits, 0.9, "threshold within its interval")


@pytest.mark.parametrize("noise", first(1, [0.05, 0.0, 0.2]))
def test_smooth_laws_have_no_threshold(noise: float) -> None:
    rng, hits, count = generator(31, int(noise * 100)), 0, 0
    for truth, _ in TRUTHS.values():
        laws = learn([draw(truth, noise, n, rng)[0] for n in (10, 20, 30) for _ in range(25)])
        hits += sum(one.law.family == "piecewise" for one in laws)
        count += len(laws)
    at_most(hits, count, 0.02 if noise else 0.0001, f"noise {noise}")


def test_many_points_make_no_threshold() -> None:
    rng = generator(40)
    laws = learn([draw(truth, 0.2, 150, rng)[0] for truth, _ in TRUTHS.values() for _ in range(15)])
    at_most(sum(one.law.family == "piecewise" for one in laws), len(laws), 0.03)


def test_other_smooth_shapes_have_no_threshold() -> None:
    rng = generator(32)
    x = np.geomspace(10, 1e4, 30)
    shapes = (x + 0.002 * x**2, x * np.log(x) ** 2, np.sqrt(x) + 50, x * np.ceil(np.log2(x)))
    data = [Series("s", y * np.exp(0.03 * rng.standard_normal(30)), {"n": x}) for y in shapes for _ in range(25)]
    at_most(sum(one.law.family == "piecewise" for one in learn(data)), len(data), 0.1)


def test_noise_has_no_threshold() -> None:
    rng = generator(33)
    x = np.geomspace(10, 1e4, 20)
    draws = (rng.standard_normal, lambda n: np.exp(rng.standard_normal(n)), lambda n: 1 + rng.pareto(1.5, n))
    data = [Series("s", some(20), {"n": x}) for some in draws for _ in range(100)]
    at_most(sum(one.law.family != "constant" for one in learn(data)), len(data), 0.05)


def test_what_a_piecewise_law_says() -> None:
    x = np.geomspace(10, 1e4, 24)
    learnt = learn([Series("s", np.where(x <= 300, 2 * x, 0.1 * x**2), {"docs.len": x})])[0]
    law = learnt.law
    assert (law.family, law.verdict, law.features) == ("piecewise", "law", ("docs.len",))
    assert [one.family for one in law.segments] == ["linear", "quadratic"]
    assert [one.coefficient for one in law.segments] == pytest.approx([2.0, 0.1], rel=1e-6)
    (point,) = law.breakpoints
    assert point.feature == "docs.len"
    assert point.low <= 300 <= point.high
    assert law.slope["docs.len"] == pytest.approx(2.0)
    assert law.predictions[1].mean == pytest.approx(0.1 * law.predictions[1].features["docs.len"] ** 2, rel=1e-6)
    told = document(law)
    assert [one["family"] for one in told["segments"]] == ["linear", "quadratic"]
    assert set(told["breakpoints"][0]) == {"feature", "value", "low", "high"}


def test_its_mean_is_written_in_the_language() -> None:
    x = np.geomspace(10, 1e4, 24)
    learnt = learn([Series("s", np.where(x <= 300, 2 * x, 0.1 * x**2), {"n": x})])[0]
    grid = np.geomspace(5, 1e5, 50)
    said = evaluate(learnt.law.mean, {"n": grid})
    assert said == pytest.approx(learnt.mean({"n": grid}), rel=1e-4)


def test_three_regimes() -> None:
    rng = generator(34)
    x = np.geomspace(10, 1e5, 40)
    y = np.select([x <= 200, x <= 5000], [50 * x, 2 * x], 30 * x)
    laws = [one.law for one in learn([Series("s", y * np.exp(0.05 * rng.standard_normal(40)), {"n": x})] * 1)]
    assert len(laws[0].breakpoints) == 2
    assert len(laws[0].segments) == 3
    assert [one.low <= t <= one.high for one, t in zip(laws[0].breakpoints, (200, 5000), strict=True)] == [True, True]


def test_units_do_not_matter() -> None:
    rng = generator(35)
    data = [switched(name, 0.1, 20, rng)[0] for name in SWITCHES for _ in range(4)]
    other = [Series("s", one.y * 1e-6, one.features) for one in data]
    for a, b in zip(learn(data), learn(other), strict=True):
        assert a.law.family == b.law.family
        assert [p.value for p in a.law.breakpoints] == pytest.approx([p.value for p in b.law.breakpoints])


def test_alone_and_in_a_batch_are_the_same() -> None:
    rng = generator(36)
    data = [switched(name, 0.1, n, rng)[0] for name in SWITCHES for n in (10, 17, 30)]
    assert [one.law for one in learn(data)] == [learn([one])[0].law for one in data]


def test_rows_that_share_runs() -> None:
    """Intervals come from the spread between runs."""
    rng, data = generator(37), []
    run, x = np.repeat(np.arange(6), 20), np.tile(np.geomspace(10, 1e4, 20), 6)
    for _ in range(40):
        level = np.exp(0.05 * rng.standard_normal(6))[run]
        y = np.where(x <= 300, 2 * x, 20 * x) * level * np.exp(0.05 * rng.standard_normal(120))
        data.append(Series("s", y, {"n": x}, runs=run))
    laws = [one.law for one in learn(data)]
    assert all(law.family == "piecewise" for law in laws)
    assert all(any(point.low <= 300 <= point.high for point in law.breakpoints) for law in laws)
    first = [law.predictions[0] for law in laws]
    at_least(sum(one.mean_low < 20 * one.features["n"] < one.mean_high for one in first), 40, 0.93)


def test_zeros_up_to_a_threshold() -> None:
    x = np.arange(1.0, 41.0)
    law = learn([Series("s", np.where(x < 15, 0.0, 100 * x), {"n": x})])[0].law
    assert law.family == "piecewise"
    assert show(law.segments[0].mean) == "0"
    assert law.breakpoints[0].low <= 14.5 <= law.breakpoints[0].high


def brute(rows: SortedSeries, log: bool) -> dict[int, np.ndarray]:
    """Best two segments by trying every place, each segment by least squares."""
    n = rows.x.shape[-1]
    out = {p: np.full(n + 1, np.inf) for p in (2, 3, 4)}
    sums = SegmentSums(rows, log)
    for k in range(3, n - 2):
        sides = [sums.rss(np.array([a]), np.array([b])) for a, b in ((0, k), (k, n))]
        for p in out:
            out[p][k] = min(sides[0][q][0, 0] + sides[1][p - q][0, 0] for q in (1, 2) if p - q in (1, 2))
    return out


def test_search_is_exact() -> None:
    rng = generator(38)
    x = np.sort(rng.uniform(1, 100, 15))[None]
    y = np.exp(rng.standard_normal((1, 15)))
    rows = SortedSeries(x, y, np.log(y), np.ones((1, 15)))
    for log in (True, False):
        expected, found = brute(rows, log), splits(rows, log)
        for p in (3, 4):
            assert found[p][0] == pytest.approx(expected[p])
        best = partitions(rows, log, np.arange(16), 2)
        assert best[2, 4][0][0] == pytest.approx(expected[4].min())
        assert best[2, 4][1][0, 0] == expected[4].argmin()


def test_a_segment_of_the_scan_is_least_squares() -> None:
    rng = generator(39)
    x = np.sort(rng.uniform(1, 100, 12))
    y = 5 * x**1.3 * np.exp(0.1 * rng.standard_normal(12))
    rows = SortedSeries(x[None], y[None], np.log(y)[None], np.ones((1, 12)))
    two = SegmentSums(rows, True).rss(np.array([2]), np.array([9]))[2][0, 0]
    power = np.polyfit(np.log(x[2:9]), np.log(y[2:9]), 1, full=True)[1][0]
    assert two <= power * (1 + 1e-9)
    flat = deviance(np.array([1.0]), rows, True)
    assert best_partitions(rows, True, flat, np.ones(1))[0].smooth <= flat[0]
