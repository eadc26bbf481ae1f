"""What is told of calls of nanoseconds, by a machine of two speeds, on a few inputs: nothing that nobody could use."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.types import RunCost
from tests.check.made import run
from tests.learn.annotation_data import condition, evidence, learn_one, told

N = 1200


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def only(annotation):
    [scope] = annotation.scopes
    return scope


def test_modes_nearer_than_a_call_is_measured_are_one(rng):
    y = rng.choice([96.0, 121.0, 145.0], N) + rng.integers(-2, 3, N)
    assert len(learn_one(evidence(y, {})).scopes) > 1
    found = only(learn_one(evidence(y, {}), resolution=50.0))
    assert (found.condition, found.probability, found.law.family) == (None, 1.0, "constant")


def test_modes_further_apart_stay(rng):
    y = np.where(rng.random(N) < 0.7, 300.0, 110.0) + rng.integers(-2, 3, N)
    assert [round(scope.law.coefficient, -1) for scope in learn_one(evidence(y, {}), resolution=50.0).scopes] == [
        300,
        110,
    ]


def test_speeds_of_the_machine_are_no_modes(rng):
    """Most calls of a run are at one of two speeds."""
    run = np.arange(N) % 8
    fast = rng.random(N) < np.where(run < 4, 0.85, 0.15)
    y = np.where(fast, 7_000, 11_700) * np.exp(0.05 * rng.normal(size=N))
    assert only(learn_one(evidence(y, {}, run=run))).law.family == "constant"
    chance = np.where(rng.random(N) < 0.5, 7_000, 11_700) * np.exp(0.05 * rng.normal(size=N))
    assert len(learn_one(evidence(chance, {}, run=run)).scopes) == 2


def test_a_few_inputs_again_and_again_are_no_modes(rng):
    """Each of twelve sentences takes its own time, whatever its length; all are seen a hundred times."""
    sentence = rng.integers(0, 12, N)
    cost, length = np.array([4, 40, 9, 90, 17, 5, 44, 84, 18, 95, 10, 41])[sentence], 5 * sentence + 3
    y = 1000.0 * cost * np.exp(0.05 * rng.normal(size=N))
    made = evidence(y, {"s.len": length})
    assert (
        max(len([1 for scope in learn_one(made).scopes if condition(scope) == one]) for one in told(learn_one(made)))
        == 1
    )


@pytest.mark.parametrize(("growth", "family"), [(1.15, "constant"), (2.0, "linear")])
def test_a_dependence_too_small_to_matter_is_a_constant(rng, growth, family):
    n = rng.integers(1, 100, N)
    y = 10_000 * (1 + (growth - 1) * n / 100) * np.exp(0.01 * rng.normal(size=N))
    found = only(learn_one(evidence(y, {"n": n})))
    assert found.law.family == family
    assert ("less than 25 %" in found.law.reason) == (family == "constant")


def test_a_dependence_smaller_than_a_call_is_measured_is_a_constant(rng):
    n = rng.integers(1, 100, N)
    y = 50 + 0.3 * n + rng.integers(-2, 3, N)
    assert only(learn_one(evidence(y, {"n": n}))).law.family == "linear"
    assert only(learn_one(evidence(y, {"n": n}), resolution=50.0)).law.family == "constant"


def test_a_constant_costs_what_its_records_do(rng):
    """Half of 36 calls found the module there already: a lognormal distribution's mean would be seconds."""
    y = np.where(np.arange(36) % 2 == 0, 5_000, 3e7) * np.exp(0.1 * rng.normal(size=36))
    found = only(learn_one(replace(evidence(y, {}))))
    assert found.law.coefficient == pytest.approx(y.mean(), rel=0.01)
    assert all(one.mean == pytest.approx(y.mean(), rel=0.01) for one in found.law.predictions)


def one_law(annotation):
    """Features of the laws of all scopes."""
    return {name for scope in annotation.scopes for name in scope.law.features}


@pytest.mark.parametrize(
    "unlikely", ["self._hash", "self.dialect.settings.len", "expression.parent.args.len", "index", "node.uid"]
)
def test_an_unlikely_feature_must_explain_much_more(rng, unlikely):
    """Both follow the cost, the unlikely one by chance a little closer, as one of dozens does."""
    n = np.exp(rng.uniform(3, 7, N))
    y = 100.0 * n * np.exp(0.3 * rng.normal(size=N))
    near = y * np.exp(0.29 * rng.normal(size=N))
    run = np.arange(N) % 10
    assert one_law(learn_one(evidence(y, {unlikely: near, "items.len": np.round(n)}, run=run))) == {"items.len"}


@pytest.mark.parametrize("unlikely", ["self._hash", "self.dialect.settings.len"])
def test_an_unlikely_feature_that_decides_the_cost_is_found(rng, unlikely):
    n = np.exp(rng.uniform(3, 7, N))
    y = 100.0 * n * np.exp(0.1 * rng.normal(size=N))
    other = np.round(np.exp(rng.uniform(3, 7, N)))
    assert one_law(learn_one(evidence(y, {unlikely: np.round(n), "items.len": other}))) == {unlikely}


def test_steep_exponents_need_overwhelming_evidence(rng):
    """A feature that hardly varies fits with any exponent."""
    width = rng.uniform(10, 10.6, 80)
    y = 1e4 * (width / 10) ** 6 * np.exp(0.12 * rng.normal(size=80))
    [scope] = learn_one(evidence(y, {"width": width})).scopes
    assert all(-2 <= slope <= 4 for slope in scope.law.slope.values())
    wide = np.exp(rng.uniform(1, 3, N))
    [steep] = learn_one(evidence(wide**6 * np.exp(0.1 * rng.normal(size=N)), {"width": wide})).scopes
    assert steep.law.slope["width"] == pytest.approx(6.0, abs=0.2)


def test_advice_names_a_placeholder_of_the_command(rng):
    """An attribute is nothing that a person can type after --vary."""
    configured = [
        replace(run(i, {"rows": 10.0 * i}), configuration={"rows": str(10 * i), "clock": "real"}) for i in (1, 2)
    ]
    made = evidence(rng.normal(1e5, 3e4, 40), {"self.a": rng.integers(1, 3, 40)}, run=np.repeat(["0001", "0002"], 20))
    made = replace(made, runs=tuple(RunCost(one, 20, 2_000_000, 0, 2_000_000) for one in configured))
    reasons = {scope.law.reason for scope in learn_one(made).scopes}
    assert not [reason for reason in reasons if "self.a" in reason]
    assert [reason for reason in reasons if "--vary rows=…" in reason]


def numbered(rng, count, growth, name="run.index"):
    """Runs whose costs grow with their number: of a machine that becomes slower, say."""
    number = np.arange(1.0, count + 1)
    runs = [run(i + 1, {name: float(i + 1)}) for i in range(count)]
    y = 1e6 * growth(number) * np.exp(0.01 * rng.normal(size=count))
    made = evidence(y, {name: number}, run=[one.id for one in runs])
    return replace(made, runs=tuple(RunCost(one, 1, int(c), 0, int(c)) for one, c in zip(runs, y, strict=True)))


@pytest.mark.parametrize("count", [5, 10, 40])
@pytest.mark.parametrize("growth", [lambda i: 1.0 + 0.0 * i, lambda i: 1.0 + 0.05 * i, lambda i: i])
def test_the_number_of_a_run_is_never_a_law(rng, count, growth):
    assert one_law(learn_one(numbered(rng, count, growth))) == set()
    assert one_law(learn_one(numbered(rng, count, lambda i: i, "rows"))) == {"rows"}


def test_the_number_of_a_run_splits_nothing(rng):
    assert not any(scope.condition for scope in learn_one(numbered(rng, 40, lambda i: 1.0 + 9.0 * (i > 20))).scopes)


def test_a_number_of_runs_that_a_person_varies_is_a_law_if_it_explains_much(rng):
    made = numbered(rng, 20, lambda i: i, "seed")
    varied = tuple(replace(one, run=replace(one.run, configuration={"seed": "1"})) for one in made.runs)
    assert one_law(learn_one(replace(made, runs=varied))) == {"seed"}


def test_a_feature_of_calls_that_differs_from_that_of_the_run_is_their_own(rng):
    """Of ``n`` the runs say how large they are; a function may be called with that number or with others."""
    sizes = np.repeat([10.0, 100.0, 1000.0], 20)
    runs = [run(i + 1, {"n": size}) for i, size in enumerate((10.0, 100.0, 1000.0))]
    costs = tuple(RunCost(one, 20, 20_000, 0, 20_000) for one in runs)
    y = 1000.0 * np.exp(0.05 * rng.normal(size=sizes.size))
    numbers = np.repeat([one.id for one in runs], 20)
    given = {"n": sizes, "k": sizes}
    assert learn_one(replace(evidence(y, given, run=numbers), runs=costs)).own_features == ()
    partly = np.where(np.arange(sizes.size) % 20 == 3, np.nan, sizes)
    assert learn_one(replace(evidence(y, {"n": partly}, run=numbers), runs=costs)).own_features == ()
    partly[7] = 3.0
    assert learn_one(replace(evidence(y, {"n": partly}, run=numbers), runs=costs)).own_features == ("n",)
