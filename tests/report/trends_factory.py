"""Hand-made trends for the tests of reports: the paper's bubble sort, a program of many clusters, hostile names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perflaw.report.trend.view import TrendView
from perflaw.types import Cluster, CountMatrix, Curve, Law, Location, Overtake, PowerLaw, Trends

from . import factory

Mean = Callable[[float], float]

SIZES = np.repeat([60.0, 200, 500, 1000, 2000, 4000], 3)
SOURCE = """\
import random


def bubble_sort(n, arr):
    i = 0
    while i < n:
        j = i + 1
        while j < n:
            if arr[j] < arr[i]:  # compare
                arr[i], arr[j] = arr[j], arr[i]
            j += 1

        i += 1


# main
bubble_sort(100, random.sample(range(100), 100))
"""


def line(number: int, function: str = "bubble.bubble_sort", file: str = "/home/me/bubble.py") -> Location:
    """A line of a Python file."""
    return Location("line", f"{file.rsplit('/', 1)[-1]}:{number}", file, number, function, "python")


def law_in(feature: str, mean: str, slope: float, at: Mapping[str, float], cost: float, **more: object) -> Law:
    """A law of one feature with its answer at a point."""
    family = {1.0: "linear", 2.0: "quadratic"}.get(slope, "power")
    made = factory.law(
        family,
        mean,
        [feature],
        slope,
        exponent=slope,
        coefficient=1.5,
        span=(60, 4000),
        predictions=[factory.prediction(at, cost, 0.04)],
    )
    return replace(made, **more)


def power(coefficient: float, exponent: float, zeros: int = 0) -> PowerLaw:
    """The paper's model with an exponent known to 2 %."""
    ends = (coefficient * 0.9, coefficient * 1.1, exponent, exponent - 0.02, exponent + 0.02)
    return PowerLaw(coefficient, *ends, 0.9987, 18 - zeros, zeros)


def curve(feature: str, mean: Mean, low: float, high: float) -> Curve:
    """A law drawn from the data to far beyond."""
    return factory.curve(feature, mean, low, high / 2)


def cluster(
    rank: int,
    representative: str,
    members: Sequence[int],
    counts: NDArray[np.float64],
    mean: Mean | None,
    text: str,
    slope: float,
    *,
    later: int | None = None,
    feature: str = "n",
    zeros: int = 0,
    coefficient: float = 1.4,
    overtakes: Sequence[Overtake] = (),
) -> Cluster:
    """A cluster of rows of ``counts`` that follows ``mean``; without one there is no law."""
    costs = counts[list(members)].sum(axis=0)
    totals = np.maximum(counts.sum(axis=0), 1)
    at = {feature: 40_000.0}
    made = law_in(feature, text, slope, at, mean(40_000.0)) if mean else None
    none = factory.law("constant", "400", [], 0, exponent=0, verdict="none", reason="no feature explains its cost")
    known = made or none
    log = np.log(np.maximum(costs, 1e-9))
    residual = tuple(
        None if cost <= 0 or mean is None else float(value - np.log(mean(size)))
        for cost, value, size in zip(costs, log, np.resize(SIZES, costs.size), strict=True)
    )
    return Cluster(
        rank=rank,
        predicted_rank=later or rank,
        representative=representative,
        is_feature=representative == feature,
        row=None if representative == feature else members[0],
        features=(feature,) if representative == feature else (),
        members=tuple(members),
        fits=(0.999,) * len(members),
        costs=tuple(costs.tolist()),
        max_cost=float(costs.max()),
        share=float(costs.sum() / totals.sum()),
        max_share=float((costs / totals).max()),
        costly=bool((costs / totals).max() > 0.02),
        law=known,
        laws={feature: known},
        powers={feature: power(coefficient, slope + 0.01, zeros)} if mean else {},
        predicted=known.predictions[0] if mean else None,
        overtakes=tuple(overtakes),
        curves={feature: curve(feature, mean, 60, 80_000)} if mean else {},
        residuals={feature: residual},
    )


def trends(clusters: Sequence[Cluster], counts: NDArray[np.float64], names: Sequence[str], **more: object) -> Trends:
    """All of it; features have the values of ``SIZES``."""
    fields: dict[str, object] = {
        "clusters": tuple(clusters),
        "by_prediction": tuple(one.rank for one in sorted(clusters, key=lambda one: one.predicted_rank)),
        "features": ("n",),
        "values": {"n": tuple(np.resize(SIZES, counts.shape[1]).tolist())},
        "locations": tuple(names),
        "runs": counts.shape[1],
        "workloads": len(set(SIZES.tolist())),
        "totals": tuple(counts.sum(axis=0).tolist()),
        "constant": 2,
        "constant_share": 0.0004,
        "zero": 1,
        "alpha": 0.02,
        "sigma": 10.0,
        "at": {"n": 40_000.0},
    }
    return Trends(**{**fields, **more})


def bubble(**more: object) -> TrendView:
    """The paper's example (§3): COMPARES, SWAPS, and SIZE with n as its representative."""
    n = SIZES
    random = np.random.default_rng(5)
    swaps = np.round(0.25 * n * n * np.exp(random.normal(0, 0.08, n.size)))
    pairs = (n * n - n) / 2
    rows = {8: pairs + n, 9: pairs, 10: swaps, 11: pairs, 6: n + 1, 7: n, 13: n, 5: n * 0 + 1, 17: n * 0 + 1, 1: n * 0}
    counts = np.array(list(rows.values()))
    locations = tuple(line(number, "bubble.bubble_sort" if number < 17 else "bubble.<module>") for number in rows)
    passed = Overtake(1, "bubble.py:8", "n", 1.2e6, 9e5, 2e6)
    clusters = [
        cluster(1, "bubble.py:8", [0, 1, 3], counts, lambda x: 1.5 * x * x, "1.5*n^2", 2.0),
        cluster(
            2, "bubble.py:10", [2], counts, lambda x: 0.25 * x**2.03, "0.25*n^2.03", 2.03, zeros=1, overtakes=[passed]
        ),
        cluster(3, "n", [4, 5, 6], counts, lambda x: 3 * x, "3*n", 1.0),
    ]
    matrix = CountMatrix(locations, counts, {"n": n}, tuple(f"{i + 1:04d}" for i in range(n.size)))
    learnt = replace(trends(clusters, counts, [one.name for one in locations]), **more)
    return TrendView(learnt, matrix, {"/home/me/bubble.py": SOURCE})


def grown(size: float, slope: float) -> Mean:
    """A power of n."""
    return lambda x: size * x**slope


def many(clusters: int = 1500, locations: int = 30_000, runs: int = 60) -> TrendView:
    """A large program: cluster k costs what an own power of n costs; files of 500 lines."""
    n = np.geomspace(100, 10_000, runs)
    slopes = 0.8 + 0.6 * (np.arange(clusters) * 37 % clusters) / clusters
    weights = 1000.0 / (1 + np.arange(clusters))
    counts = np.round(
        weights[np.arange(locations) % clusters, None] * n ** slopes[np.arange(locations) % clusters, None]
    )
    files = [f"/src/lib/part{i // 500}.py" for i in range(locations)]
    places = tuple(line(i % 500 + 1, f"lib.part{i // 500}.f{i % 500 // 25}", files[i]) for i in range(locations))
    order = sorted(range(clusters), key=lambda k: -counts[k::clusters].sum(axis=0).max())
    made = []
    for rank, k in enumerate(order, 1):
        members = range(k, locations, clusters)
        size = weights[k] * len(members)
        mean, text, slope = grown(size, slopes[k]), f"{size:.6g}*n^{slopes[k]:.4f}", float(slopes[k])
        made.append(cluster(rank, places[k].name, members, counts, mean, text, slope, coefficient=size))
    later = {one.rank: place for place, one in enumerate(sorted(made, key=lambda one: -one.predicted.mean), 1)}
    made = [replace(one, predicted_rank=later[one.rank]) for one in made]
    matrix = CountMatrix(places, counts, {"n": n}, tuple(f"{i + 1:04d}" for i in range(runs)))
    sources = {
        file: "\n".join(f"    value_{i} = compute({i})  # line {i}" for i in range(1, 501)) for file in set(files)
    }
    learnt = trends(made, counts, [one.name for one in places], values={"n": tuple(n.tolist())})
    return TrendView(learnt, matrix, sources)


def hostile() -> TrendView:
    """Every name would like to be markup, or is 300 characters long."""
    view, bad = bubble(), factory.HOSTILE
    locations = tuple(
        replace(one, name=f"{bad}:{one.line}", file=bad, function=bad * (i + 1))
        for i, one in enumerate(view.matrix.locations)
    )
    names = {"bubble.py:8": f"{bad}:8", "bubble.py:10": "x" * 300, "n": "n"}
    clusters = [replace(one, representative=names[one.representative]) for one in view.trends.clusters]
    learnt = replace(view.trends, clusters=tuple(clusters), notes=(bad,))
    matrix = replace(view.matrix, locations=locations, runs=tuple(f"{bad}{i}" for i in range(18)))
    return TrendView(learnt, matrix, {bad: SOURCE.replace("compare", bad)})


def odd_features() -> TrendView:
    """A feature that is zero in some runs, one that is negative, one that not every run says; a count of zeros alone."""
    view = bubble()
    values = {
        "zero": tuple(float(max(0, i - 4)) for i in range(18)),
        "negative": tuple(-float(i + 1) for i in range(18)),
        "unsaid": tuple(None if i % 3 else float(i + 1) for i in range(18)),
    }
    none = factory.law("constant", "400", [], 0, exponent=0, verdict="none", reason="no feature explains its cost")
    first, *others = view.trends.clusters
    empty = replace(others[0], costs=(0.0,) * 18, law=None, predicted=None, laws={}, powers={}, curves={}, overtakes=())
    first = replace(first, laws={**first.laws, **dict.fromkeys(values, none)})
    learnt = replace(view.trends, clusters=(first, empty), by_prediction=(1,), values={**view.trends.values, **values})
    learnt = replace(
        learnt, features=("n", *values), at={"n": 40_000.0, "zero": 130.0, "negative": -1.0, "unsaid": 160.0}
    )
    return replace(view, trends=learnt)


def one_cluster() -> TrendView:
    """Of two runs of functions, without sources and without a law."""
    counts = np.array([[5.0, 900.0]])
    place = Location("function", "app.f", "/home/me/app.py", 3, "app.f", "python")
    alone = cluster(1, "app.f", [0], counts, None, "", 1.0)
    matrix = CountMatrix((place,), counts, {"n": np.array([1.0, 2.0])}, ("0001", "0002"))
    found = trends([alone], counts, ["app.f"], values={"n": (1.0, 2.0)}, constant=0, zero=0, by_prediction=())
    return TrendView(found, matrix)


def functions() -> TrendView:
    """Calls between functions in two features, of a recording without lines; a child process was added."""
    n = SIZES
    counts = np.array([n * n, n * n * 0.5, n * 3])
    names = ("app.main -> app.index", "app.index", "app.parse")
    kinds = ("edge", "function", "function")
    places = tuple(
        Location(kind, name, "/home/me/app.py", i + 3, "app.main", "python")
        for i, (kind, name) in enumerate(zip(kinds, names, strict=True))
    )
    index = cluster(1, names[0], [0, 1], counts, lambda x: 1.5 * x * x, "1.5*n^2", 2.0)
    none = factory.law("constant", "400", [], 0, exponent=0, verdict="none", reason="no feature explains its cost")
    k = {"k": np.resize([1.0, 2.0, 3.0], n.size)}
    index = replace(index, laws={**index.laws, "k": none}, powers={**index.powers, "k": power(200.0, 0.02)})
    parse = cluster(2, names[2], [2], counts, lambda x: 3 * x, "3*n", 1.0)
    matrix = CountMatrix(places, counts, {"n": n, **k}, tuple(f"{i + 1:04d}" for i in range(n.size)))
    values = {"n": tuple(n.tolist()), "k": tuple(k["k"].tolist())}
    found = trends([index, parse], counts, names, values=values, features=("n", "k"), constant=0, zero=0)
    found = replace(found, at={"n": 40_000.0, "k": 30.0})
    return TrendView(found, matrix, left_out=("3 runs of child processes added to the runs that started them",))
