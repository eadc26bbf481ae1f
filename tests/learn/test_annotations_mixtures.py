"""Algorithm 2: behaviours with probabilities, selections of records, distributions (Freud §3.2)."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.annotations import annotate, call_laws
from perflaw.types import Component, Metric
from tests.learn.annotation_data import condition, evidence, learn_one, told

N = 800


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def test_three_modes_whatever_the_input(rng):
    y = rng.choice([900.0, 600.0, 300.0], N, p=[0.3, 0.4, 0.3]) * 1000
    found = learn_one(evidence(y, {"a": rng.integers(1, 200, N)}))
    assert [(scope.condition, scope.law.family) for scope in found.scopes] == [(None, "constant")] * 3
    for scope in found.scopes:
        assert scope.probability == pytest.approx(np.mean(y == round(scope.law.coefficient)))
    assert sum(scope.probability for scope in found.scopes) == pytest.approx(1.0)


@pytest.mark.parametrize("sigma", [0.0, 0.05])
def test_a_law_among_constants(rng, sigma):
    a, kind = rng.integers(1, 1000, N), rng.random(N)
    noise = np.exp(sigma * rng.normal(size=N))
    first = np.where(kind < 0.25, 10_000 + rng.uniform(0, 1500, N), rng.uniform(0, 100, N))
    y = np.where(kind < 0.5, first, 1000 * a * noise) * 1000
    found = learn_one(evidence(y, {"a": a, "u": rng.integers(0, 99, N)}))
    law, *rest = found.scopes
    assert (law.law.features, law.probability) == (("a",), pytest.approx(0.5, abs=0.05))
    assert law.law.slope["a"] == pytest.approx(1.0, abs=0.03)
    assert [scope.law.family for scope in rest] == ["constant"] * 2
    assert [scope.probability for scope in rest] == pytest.approx([0.25] * 2, abs=0.05)


def test_a_mixture_within_a_scope(rng):
    kind = rng.integers(0, 2, N)
    y = np.where(kind, np.where(rng.random(N) < 0.3, 9e6, 1e6), 4e4) * np.exp(0.1 * rng.normal(size=N))
    found = learn_one(evidence(y, {}, types={"x.type": np.array(["int", "str"])[kind]}))
    assert [condition(scope) for scope in found.scopes] == ['x.type == "int"', *['x.type == "str"'] * 2]
    assert [scope.probability for scope in found.scopes] == pytest.approx([1.0, 0.7, 0.3], abs=0.06)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.lognormal(10, 1.5, N),
        lambda rng: rng.pareto(1.5, N) * 1e4,
        lambda rng: rng.exponential(1e4, N),
        lambda rng: rng.normal(1e4, 2e3, N),
        lambda rng: rng.uniform(1, 1e5, N),
    ],
)
def test_one_mode_is_no_mixture(draw):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        assert told(learn_one(evidence(np.round(draw(rng)) + 1, {"a": rng.integers(0, 9, N)}))) == {"": "constant"}


def test_runs_that_differ_are_no_mixture(rng):
    run = np.arange(N) % 8
    y = np.where(run < 4, 1e5, 9e5) * np.exp(0.05 * rng.normal(size=N))
    assert len(learn_one(evidence(y, {"a": rng.integers(0, 9, N)}, run=run)).scopes) == 1


@pytest.mark.parametrize(
    ("draw", "unit", "name"),
    [
        (lambda rng: rng.exponential(1e5, N), "ns", "Exp"),
        (lambda rng: rng.normal(1e5, 2e4, N), "ns", "Norm"),
        (lambda rng: rng.lognormal(10, 1, N), "ns", "LogNorm"),
        (lambda rng: rng.binomial(40, 0.3, N), "calls", "Binom"),
    ],
)
def test_the_distribution_of_input_independent_costs(rng, draw, unit, name):
    found = learn_one(evidence(draw(rng), {"a": rng.integers(0, 9, N)}), metric=Metric("any", unit))
    [scope] = found.scopes
    assert scope.law.expression.name == name


def test_the_scale_is_that_of_single_invocations(rng):
    """Although the law is learnt from means over equal inputs."""
    n = rng.integers(1, 10, N) * 100
    found = learn_one(evidence(1000.0 * n * np.exp(0.2 * rng.normal(size=N)), {"n": n}))
    assert found.scopes[0].law.noise.scale == pytest.approx(0.2, abs=0.03)


def test_additive_noise_is_removed_where_nothing_else_shows_a_law(rng):
    n = rng.integers(1, 11, 2000) * 1000
    y = 1000.0 * n + rng.exponential(4e7, 2000) * (rng.random(2000) < 0.8)
    found = learn_one(evidence(y, {"n": n}))
    laws = [scope.law for scope in found.scopes if scope.law.features]
    assert found.marks == ("noise removed",) or len(found.scopes) > 1
    assert any(law.slope["n"] == pytest.approx(1.0, abs=0.1) for law in laws)


def test_modes_of_all_functions_are_learnt_together(rng, monkeypatch):
    """As many calls of the law learner as for one function: it is made for thousands of series a call."""
    a, kind = rng.integers(1, 1000, 200), rng.random(200)
    one = evidence(np.where(kind < 0.5, rng.uniform(1e5, 2e5, 200), 1e5 * a), {"a": a})
    several = [replace(one, component=Component(f"m.f{number}")) for number in range(2)]
    learn, calls = call_laws.learn, list[int]()

    def counted(series, *arguments):
        calls.append(len(series))
        return learn(series, *arguments)

    monkeypatch.setattr(call_laws, "learn", counted)
    [alone] = annotate([one])
    of_one = calls.copy()
    calls.clear()
    together = annotate(several)
    assert len(alone.scopes) == 2
    assert len(of_one) > 4, "modes are looked for in several rounds"
    assert calls == [2 * count for count in of_one]
    for found in together:
        assert [scope.law.family for scope in found.scopes] == [scope.law.family for scope in alone.scopes]
        assert [scope.probability for scope in found.scopes] == [scope.probability for scope in alone.scopes]
