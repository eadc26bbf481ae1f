"""Synthetic annotations for the tests of reports: plausible numbers, no learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from perflaw.laws.build import lognormal, number, product
from perflaw.laws.evaluation import renamed
from perflaw.laws.reading import parse_distribution, parse_expression
from perflaw.laws.tree import Binary, Expression, Name
from perflaw.types import (
    TIME,
    Alternative,
    Annotation,
    Component,
    Curve,
    Law,
    Noise,
    Points,
    Prediction,
    Scope,
    Verdict,
)

Mean = Callable[[float], float]

HOSTILE = (
    '<script>alert(1)</script></script><b onload="x">\'"%{x} 🦊 \u202eevil\u202c \u2028 &lt;a href="javascript:x"&gt;'
)


def law(
    family: str,
    mean: str | Expression,
    features: Sequence[str],
    slope: float,
    *,
    exponent: float | None = None,
    log_exponent: float | None = None,
    coefficient: float = 1.0,
    intercept: float | None = None,
    verdict: Verdict = "law",
    reason: str = "",
    noise: float = 0.05,
    predictions: Sequence[Prediction] = (),
    alternatives: Sequence[Alternative] = (),
    span: tuple[float, float] = (10, 10_000),
) -> Law:
    """A law with the given mean; its intervals are 2 % wide."""
    expression = parse_expression(mean) if isinstance(mean, str) else mean
    return Law(
        family=family,
        expression=lognormal(expression, noise),
        mean=expression,
        features=tuple(features),
        slope=dict.fromkeys(features, slope),
        slope_low=dict.fromkeys(features, slope - 0.04),
        slope_high=dict.fromkeys(features, slope + 0.04),
        noise=Noise("lognormal", noise),
        n=360,
        runs=9,
        r2=0.9973,
        verdict=verdict,
        reason=reason,
        exponent=exponent,
        log_exponent=log_exponent,
        coefficient=coefficient,
        intercept=intercept,
        range=dict.fromkeys(features, span),
        alternatives=tuple(alternatives),
        predictions=tuple(predictions),
    )


def prediction(features: Mapping[str, float], mean: float, width: float = 0.1) -> Prediction:
    """An answer with a relative interval of ``width``, twice as wide for a new run."""
    ends = (mean * (1 - width), mean * (1 + width), mean * (1 - 2 * width), mean * (1 + 2 * width))
    return Prediction(features, mean, *ends)


def curve(feature: str, mean: Mean, low: float, high: float) -> Curve:
    """A law drawn to twice its range, its bands opening beyond."""
    x = np.geomspace(max(low, 1e-12), high * 2, 60)
    y = np.array([mean(value) for value in x])
    near = 0.03 + 0.1 * np.maximum(0, np.log10(x / high))
    bands = [y * (1 - near), y * (1 + near), y * (1 - near - 0.1), y * (1 + near + 0.12)]
    return Curve(feature, tuple(x.tolist()), tuple(y.tolist()), *(tuple(band.tolist()) for band in bands))


def points(
    feature: str, mean: Mean, low: float, high: float, n: int = 360, noise: float = 0.05, seed: int = 1
) -> Points:
    """Evidence scattered about ``mean``, from nine runs."""
    random = np.random.default_rng(seed)
    x = np.round(np.exp(random.uniform(np.log(max(low, 1e-12)), np.log(high), n)), 3 if high < 100 else 0)
    residual = random.normal(0, noise, n)
    y = np.array([mean(value) for value in x]) * np.exp(residual)
    runs = tuple(f"run-{i % 9 + 1}" for i in range(n))
    other = tuple(None if i % 7 == 0 else float(v) for i, v in enumerate(random.integers(1, 50, n)))
    return Points({feature: tuple(x.tolist()), "k": other}, tuple(y.tolist()), runs, tuple(residual.tolist()))


def annotation(
    name: str, learnt: Law, mean: Mean, share: float, *, n: int = 360, feature: str = "", seed: int = 1
) -> Annotation:
    """A component whose law is drawn and proved by points; its cost per run is the same law in ``n``."""
    feature = feature or (learnt.features[0] if learnt.features else "size")
    low, high = learnt.range.get(feature, (10.0, 10_000.0))
    whole = prediction({"n": 100_000.0}, mean(high) * 300)
    asked = tuple(prediction(dict.fromkeys(learnt.features, high * k), mean(high * k)) for k in (2, 10))
    return Annotation(
        component=Component(name, "src/index/build.py", 41, parameters=(feature.split(".")[0], "k")),
        metric=TIME,
        features=(feature, "k"),
        scopes=(Scope(None, 1.0, replace(learnt, predictions=asked)),),
        calls=1_900,
        total=int(mean(high) * 400),
        share=share,
        self_share=share * 0.6,
        run_law=in_runs(learnt, feature, whole),
        curves=(curve(feature, mean, low, high),) if learnt.features else (),
        points=points(feature, mean, low, high, n, learnt.noise.scale, seed),
    )


def in_runs(learnt: Law, feature: str, whole: Prediction) -> Law:
    """The law with ``n`` in the place of its feature."""
    features = tuple("n" for _ in learnt.features)
    names = ("slope", "slope_low", "slope_high", "range")
    maps = {name: dict(zip(features, getattr(learnt, name).values(), strict=True)) for name in names}
    return replace(learnt, features=features, mean=renamed(learnt.mean, {feature: "n"}), predictions=(whole,), **maps)


def quadratic(name: str = "index.build", share: float = 0.61) -> Annotation:
    """The one that scales badly."""
    power = law("power", "3100*docs.len^1.98213", ["docs.len"], 1.98, exponent=1.98213, coefficient=3100)
    return annotation(name, power, lambda x: 3100 * x**1.98213, share)


def n_log_n(share: float = 0.24) -> Annotation:
    """With an alternative the data cannot tell from it."""
    other = Alternative("power", parse_distribution("LogNorm(190*items.len^1.11, 0.05)"), {"items.len": 1.11}, 0.7)
    nlogn = law(
        "nlogn", "120*items.len*log(items.len)", ["items.len"], 1.12, exponent=1, log_exponent=1, coefficient=120
    )
    return annotation("sort.merge", replace(nlogn, alternatives=(other,)), lambda x: 120 * x * np.log(x), share, seed=2)


def linear(share: float = 0.08) -> Annotation:
    """With an intercept."""
    learnt = law("linear", "900 + 14*text.len", ["text.len"], 0.99, exponent=1, coefficient=14, intercept=900)
    return annotation("parse.tokens", learnt, lambda x: 900 + 14 * x, share, seed=3)


def constant(name: str = "cache.get", share: float = 0.03, n: int = 360) -> Annotation:
    """Nothing depends on anything."""
    reason = "no feature explains its cost; the noise control allows 5 % of such findings"
    flat = law("constant", "400", [], 0, exponent=0, coefficient=400, verdict="none", reason=reason, noise=0.2)
    return annotation(name, flat, lambda x: 400.0, share, n=n, seed=4)


def inconclusive(share: float = 0.02) -> Annotation:
    """Too few sizes."""
    reason = "too few sizes: 2 distinct values of rows; add --vary n=..."
    unsure = law(
        "linear", "52*rows", ["rows"], 1, exponent=1, coefficient=52, verdict="inconclusive", reason=reason, noise=0.4
    )
    return annotation("load.rows", unsure, lambda x: 52 * x, share, n=12, seed=5)


def hostile(share: float = 0.01) -> Annotation:
    """Every string in it would like to be markup."""
    made = annotation(
        HOSTILE,
        law("linear", product([number(3), Name(HOSTILE)]), [HOSTILE], 1, exponent=1),
        lambda x: 3 * x,
        share,
        seed=6,
    )
    part = Component(HOSTILE, HOSTILE, 1, parameters=(HOSTILE,))
    scope = replace(
        made.scopes[0], condition=Binary(">", Name(HOSTILE), number(0)), law=replace(made.scopes[0].law, reason=HOSTILE)
    )
    assert made.points is not None
    evidence = replace(made.points, run=tuple(HOSTILE if i % 2 else "run-1" for i in range(len(made.points.y))))
    return replace(made, component=part, scopes=(scope,), points=evidence)


def two_modes() -> Annotation:
    """Two scopes: nine calls of ten hit the cache."""
    made = constant("cache.fetch", 0.05)
    hit = made.scopes[0].law
    miss = replace(hit, mean=number(31000), coefficient=31000.0, expression=lognormal(number(31000), 0.2))
    return replace(made, scopes=(Scope(None, 0.92, hit), Scope(None, 0.08, miss)))


def many(n: int, size: int = 30) -> list[Annotation]:
    """Small functions far down the ranking."""
    return [small(i, size) for i in range(n)]


def small(i: int, size: int) -> Annotation:
    """One of them; its law is linear with a slope of its own."""
    learnt = law("linear", f"{i + 3}*a.len", ["a.len"], 1, exponent=1, coefficient=i + 3)
    name = f"pkg.mod{i % 17}.Class{i % 5}.method_{i}"
    made = annotation(name, learnt, lambda x: (i + 3) * x, 0.01 / (i + 2), n=size, seed=i)
    return replace(made, component=replace(made.component, line=i + 1))


def all_kinds() -> list[Annotation]:
    """One of each, then 300 small ones."""
    return [quadratic(), n_log_n(), linear(), two_modes(), constant(), inconclusive(), hostile(), *many(300)]


def edges() -> list[Annotation]:
    """What charts choke on: one point, one value of the feature, nulls, huge, tiny, zero, nothing at all."""
    base = linear()
    name = base.features[0]

    def shown(title: str, x: Sequence[float | None], y: Sequence[float]) -> Annotation:
        residual: tuple[float | None, ...] = tuple(None if i % 2 else 0.1 for i in range(len(y)))
        evidence = Points({name: tuple(x)}, tuple(y), ("run-1",) * len(y), residual)
        return replace(base, component=Component(title), points=evidence, share=0.001)

    flat = constant("flat one value")
    assert flat.points is not None
    same = Points({"size": (5.0,) * 4}, (1.0, 2.0, 3.0, 2.0), ("a", "b", "c", "d"), (0.1, 0.2, None, 0.0))
    return [
        shown("one point", [7.0], [900.0]),
        shown("same x", [5.0, 5.0, 5.0], [1.0, 2.0, 3.0]),
        shown("nulls", [None, 3.0, None], [1.0, 2.0, 3.0]),
        shown("only nulls", [None, None], [1.0, 2.0]),
        shown("huge", [1.0, 1e18], [1e18, 9e18]),
        shown("tiny", [1e-18, 1e-9], [1e-12, 1e-3]),
        shown("zeros", [0.0, 10.0, 1000.0], [0.0, 0.0, 5.0]),
        replace(flat, points=same),
        replace(base, component=Component("no points"), points=None, curves=()),
        replace(base, component=Component("no law"), scopes=(), curves=(), run_law=None),
        replace(base, component=Component("undecodable \udcff")),
    ]
