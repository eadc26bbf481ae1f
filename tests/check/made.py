"""Evidence made of known laws, and the laws learnt from it, without any program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from perflaw.check.claims import Claim, claims_of_document, claims_of_text
from perflaw.check.twin import support
from perflaw.laws.reading import parse
from perflaw.learn.annotations import annotate
from perflaw.report.documents import annotate_document
from perflaw.types import Clock, Component, Evidence, Losses, Run, RunCost

Cost = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def run(number: int, features: Mapping[str, float] | None = None, calls: int = 0) -> Run:
    """A complete run."""
    return Run(
        f"{number:04d}", ("app.py",), "app.py", dict(features or {}), f"2026-01-01T00:00:{number % 60:02d}", 10**9, 10**9,
        0, True, "ended", "fake", "3.12", Clock("fake", 1, 0, 0), Losses(), "host", {}, {}, calls, 1, 1,
    )  # fmt: skip


def evidence(
    name: str,
    cost: Cost,
    rng: np.random.Generator,
    *,
    runs: int = 3,
    calls: int = 1000,
    tau: float = 0.03,
    sizes: tuple[float, float] | None = (10, 1000),
    first: int = 1,
) -> Evidence:
    """Invocations of a function of ``n`` whose runs differ by ``tau``; sizes are drawn evenly by their logarithm."""
    n = runs * calls
    x = np.round(np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1]), n))) if sizes else np.zeros(n)
    number = np.repeat(np.arange(runs), calls)
    y = np.maximum(cost(x, rng) * np.exp(rng.normal(0, tau, runs))[number], 1.0)
    names = np.array([f"{first + one:04d}" for one in range(runs)])
    costs = tuple(
        RunCost(run(first + one, calls=calls), calls, int(y[number == one].sum()), 0, int(y[number == one].sum()))
        for one in range(runs)
    )
    return Evidence(
        Component(name, "app.py", 3, parameters=("n",)), y, np.ones(n), np.ones(n, bool), names[number],
        {"n": x} if sizes else {}, costs,
    )  # fmt: skip


def learnt(*several: Evidence) -> list[Claim]:
    """Their laws, as the JSON twin holds them."""
    found = {(one.component.name, "time"): one for one in several}
    annotations = annotate(list(several))
    document = annotate_document(annotations, [], None)
    for one, stated in zip(annotations, document["annotations"], strict=True):
        stated.update(support(one, found))
    of_nouns = claims_of_document(document, annotations)
    assert [one.clauses for one in claims_of_document(document)] == [one.clauses for one in of_nouns]
    return of_nouns


def written(text: str) -> list[Claim]:
    """Laws of a text alone."""
    return claims_of_text(parse(text))


def keyed(*several: Evidence) -> dict[tuple[str, str], Evidence]:
    """Evidence by component and metric."""
    return {(one.component.name, "time"): one for one in several}
