"""Annotations with several laws: regimes, mixtures, branches, types, call edges, several features, breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from perflaw.laws.build import lognormal
from perflaw.laws.reading import parse_distribution, parse_expression
from perflaw.laws.tree import Call, Expression, Name
from perflaw.types import TIME, Alternative, Annotation, Breakpoint, Component, Law, Noise, Points, Scope

from .factory import law

Row = Mapping[str, float | str]
Part = tuple[str, float, str, Callable[[Row], float]]
"""Condition, probability, mean in the language, and the same mean in Python."""
Holds = Callable[[Row], bool]


def component(
    name: str,
    columns: Mapping[str, Sequence[float] | Sequence[str]],
    scopes: Sequence[tuple[Law, Part, Holds]],
    *,
    noise: float = 0.05,
    seed: int = 7,
    share: float = 0.2,
) -> Annotation:
    """Points of the given features, each scattered about a law that holds for it, drawn by its probability."""
    random = np.random.default_rng(seed)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    y: list[float] = []
    for row in rows:
        parts = [part for _, part, holds in scopes if holds(row)]
        weights = np.array([part[1] for part in parts])
        mean = parts[random.choice(len(parts), p=weights / weights.sum())][3](row)
        y.append(float(mean * np.exp(random.normal(0, noise))))
    numbers = {k: tuple(v) for k, v in columns.items() if not isinstance(v[0], str)}
    texts = {k: tuple(map(str, v)) for k, v in columns.items() if isinstance(v[0], str)}
    runs = tuple(f"run-{i % 9 + 1}" for i in range(len(y)))
    return Annotation(
        component=Component(name, "src/app.py", 12, parameters=tuple(dict.fromkeys(k.split(".")[0] for k in columns))),
        metric=TIME,
        features=tuple(columns),
        scopes=tuple(
            Scope(parse_expression(part[0]) if part[0] else None, part[1], learnt) for learnt, part, _ in scopes
        ),
        calls=len(y),
        total=int(sum(y)),
        share=share,
        self_share=share / 2,
        points=Points(numbers, tuple(y), runs, (None,) * len(y), texts),
    )


def _of(mean: str, features: Sequence[str], part: Part, span: tuple[float, float], noise: float = 0.05) -> Law:
    made = law("sum" if len(features) > 1 else "linear", mean, features, 1.0, noise=noise, span=span)
    return replace(made, expression=lognormal(made.mean, noise), noise=Noise("lognormal", noise))


def _sizes(low: float, high: float, n: int = 300, seed: int = 3) -> list[float]:
    random = np.random.default_rng(seed)
    values: list[float] = np.round(np.exp(random.uniform(np.log(low), np.log(high), n))).tolist()
    return values


def two_regimes() -> Annotation:
    """A numeric threshold: below it linear, above it quadratic; one more law cannot be told from the second."""
    small: Part = ("n <= 500", 1.0, "400*n", lambda row: 400 * float(row["n"]))
    large: Part = ("n > 500", 1.0, "2*n^2", lambda row: 2 * float(row["n"]) ** 2)
    other = Alternative("power", parse_distribution("LogNorm(2.9*n^1.95, 0.05)"), {"n": 1.95}, 0.6)
    above = replace(_of("2*n^2", ["n"], large, (501, 10_000)), family="quadratic", alternatives=(other,))
    return component(
        "app.regimes",
        {"n": _sizes(10, 10_000)},
        [
            (_of("400*n", ["n"], small, (10, 500)), small, lambda row: float(row["n"]) <= 500),
            (above, large, lambda row: float(row["n"]) > 500),
        ],
    )


def mixture() -> Annotation:
    """900, 600 and 300 µs at 30, 40 and 30 % whatever the input."""
    parts: list[Part] = [
        ("", 0.3, "900000", lambda row: 9e5),
        ("", 0.4, "600000", lambda row: 6e5),
        ("", 0.3, "300000", lambda row: 3e5),
    ]
    scopes = [(replace(law("constant", p[2], [], 0, noise=0.04), predictions=()), p, lambda row: True) for p in parts]
    return component("app.lottery", {"t": _sizes(10, 1000)}, scopes, noise=0.04)


def branches() -> Annotation:
    """Two ways through an if, each with a feature of its own."""
    random = np.random.default_rng(5)
    taken = [float(value) for value in random.integers(0, 2, 300)]
    one: Part = ("branch.L12.taken > 0", 1.0, "3*b^2", lambda row: 3 * float(row["b"]) ** 2)
    two: Part = ("branch.L12.taken <= 0", 1.0, "450*c", lambda row: 450 * float(row["c"]))
    columns = {"b": _sizes(10, 1000, seed=1), "c": _sizes(10, 1000, seed=2), "branch.L12.taken": taken}
    return component(
        "app.branches",
        columns,
        [
            (_of("3*b^2", ["b"], one, (10, 1000)), one, lambda row: float(row["branch.L12.taken"]) > 0),
            (_of("450*c", ["c"], two, (10, 1000)), two, lambda row: float(row["branch.L12.taken"]) <= 0),
        ],
    )


def types() -> Annotation:
    """Dynamic types as conditions."""
    kinds = ["int" if i % 3 else "str" for i in range(300)]
    one: Part = ('x.type == "int"', 1.0, "700", lambda row: 700)
    two: Part = ('x.type != "int"', 1.0, "60*x.len", lambda row: 60 * float(row["x.len"]))
    return component(
        "app.types",
        {"x.len": _sizes(2, 900), "x.type": kinds},
        [
            (law("constant", "700", [], 0, noise=0.05), one, lambda row: row["x.type"] == "int"),
            (_of("60*x.len", ["x.len"], two, (2, 900)), two, lambda row: row["x.type"] != "int"),
        ],
    )


def call_edges() -> Annotation:
    """Calls of a database: where there are some, most hit its cache and the rest does not."""
    calls = [float(i % 4 == 0) for i in range(300)]
    name = "`calls.db.<locals>.query`"
    hit: Part = (f"{name} > 0", 0.8, "20000", lambda row: 2e4)
    miss: Part = (f"{name} > 0", 0.2, "5e6", lambda row: 5e6)
    none: Part = (f"{name} == 0", 1.0, "30*n", lambda row: 30 * float(row["n"]))

    def queried(row: Row) -> bool:
        return float(row["calls.db.<locals>.query"]) > 0

    return component(
        "app.cached",
        {"n": _sizes(5, 400), "calls.db.<locals>.query": calls},
        [
            (law("constant", "20000", [], 0), hit, queried),
            (law("constant", "5e6", [], 0), miss, queried),
            (_of("30*n", ["n"], none, (5, 400)), none, lambda row: not queried(row)),
        ],
    )


def product() -> Annotation:
    """Two features in one law: a · b²."""
    part: Part = ("", 1.0, "40*a*b^2", lambda row: 40 * float(row["a"]) * float(row["b"]) ** 2)
    made = law("product", "40*a*b^2", ["a", "b"], 1.0, span=(2, 200))
    return component(
        "app.product", {"a": _sizes(2, 200), "b": _sizes(2, 200, seed=9)}, [(made, part, lambda row: True)]
    )


def piecewise() -> Annotation:
    """One law with a breakpoint and its interval."""
    mean = "(n <= 1000)*20*n + (n > 1000)*(20000 + 300*(n - 1000))"

    def value(row: Row) -> float:
        n = float(row["n"])
        return 20 * n if n <= 1000 else 20_000 + 300 * (n - 1000)

    made = replace(
        law("piecewise", mean, ["n"], 1.0, span=(10, 10_000)), breakpoints=(Breakpoint("n", 1000, 880, 1130),)
    )
    return component("app.piecewise", {"n": _sizes(10, 10_000)}, [(made, ("", 1.0, mean, value), lambda row: True)])


def exponential() -> Annotation:
    """exp(n/5)."""
    mean = "250*exp(0.2*n)"
    made = law("exponential", mean, ["n"], 8.0, span=(2, 40))
    part: Part = ("", 1.0, mean, lambda row: 250 * float(np.exp(0.2 * float(row["n"]))))
    return component("app.tower", {"n": _sizes(2, 40)}, [(made, part, lambda row: True)])


def unreadable() -> Annotation:
    """A law and conditions that nest too deeply for the page: it draws the points and fails nowhere."""
    made = two_regimes()
    first, second = made.scopes
    nested: Expression = Name("n")
    for _ in range(5000):
        nested = Call("abs", (nested,))
    odd = replace(first, condition=nested, law=replace(first.law, expression=lognormal(nested, 0.1), mean=nested))
    deep = replace(second, condition=nested)
    return replace(made, component=Component("app.unreadable"), scopes=(odd, deep))


def all_scopes() -> list[Annotation]:
    """One of each."""
    return [
        two_regimes(), mixture(), branches(), types(), call_edges(), product(), piecewise(), exponential(), unreadable(),
    ]  # fmt: skip
