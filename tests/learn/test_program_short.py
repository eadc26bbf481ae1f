"""Short laws: sums of many terms in few, near the sum at every size, and never above the laws of their callers."""

import numpy as np
import pytest

from perflaw.laws.evaluation import evaluate
from perflaw.learn.program import RunLaws, learn_program
from perflaw.learn.program.short import FAR, MAX_TERMS, TOLERANCE, not_above_larger, short_law
from perflaw.learn.program.terms import monomial, restricted, values
from tests.conftest import first
from tests.learn.program_data import random_program

LOW, HIGH = 20.0, 400.0
SIZES = np.geomspace(LOW, FAR * HIGH, 500)


def at(terms, x=SIZES):
    keys = list(terms)
    return np.array([terms[key] for key in keys]) @ values(keys, {"n": x}, x.size)


def many_terms(rng):
    """A sum like that of a program: powers that are near each other, of sizes that matter somewhere."""
    exponents = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (1.9, 0.0), (2.0, 0.0), (2.0, 1.0), (2.1, 0.0)]
    middle = {monomial("n", *one): 1.0 for one in exponents}
    return {key: rng.uniform(0.1, 3.0) * 1e7 / at({key: 1.0}, np.array([200.0]))[0] for key in middle}


@pytest.mark.parametrize("seed", range(20))
def test_a_short_law_is_near_the_sum_and_never_above_it(seed):
    terms = many_terms(np.random.default_rng(seed))
    short = short_law(terms, "n", LOW, HIGH, TOLERANCE)
    ratio = at(short) / at(terms)
    assert ratio.min() > 1.0 - TOLERANCE - 1e-3
    assert ratio.max() < 1.0 + 1e-3  # between the sizes that are compared
    assert min(short.values()) > 0


def test_most_sums_of_many_terms_have_short_laws():
    several = [many_terms(np.random.default_rng(seed)) for seed in range(30)]
    lengths = [len(short_law(terms, "n", LOW, HIGH, TOLERANCE)) for terms in several]
    assert np.mean(np.array(lengths) <= MAX_TERMS) > 0.8


def test_an_exact_sum_keeps_its_terms():
    terms = many_terms(np.random.default_rng(1))
    assert short_law(terms, "n", LOW, HIGH, 0.0) == pytest.approx(terms)


def test_pieces_have_a_short_law_each():
    low, high = many_terms(np.random.default_rng(2)), many_terms(np.random.default_rng(3))
    terms = restricted(low, "n", "<=", 100.0) | restricted({key: 5.0 * c for key, c in high.items()}, "n", ">", 100.0)
    short = short_law(terms, "n", LOW, HIGH, TOLERANCE)
    ratio = at(short) / at(terms)
    assert 1.0 - TOLERANCE - 1e-3 < ratio.min() <= ratio.max() < 1.0 + 1e-3
    assert len(short) <= 2 * MAX_TERMS
    # Where the pieces say the same, the change goes.
    alike = restricted(low, "n", "<=", 100.0) | restricted(low, "n", ">", 100.0)
    assert len(short_law(alike, "n", LOW, HIGH, TOLERANCE)) <= MAX_TERMS


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
@pytest.mark.parametrize("terms", [{(): 17.0}, {(): 17.0, monomial("n", 1.0): 2.0}])
def test_a_sum_of_few_terms_that_changes_once(terms, tolerance):
    """There are fewer monomials to choose from than a short law may have."""
    changed = terms | restricted({(): 0.9}, "n", ">", 100.0)
    short = short_law(changed, "n", LOW, HIGH, tolerance)
    assert at(short) == pytest.approx(at(changed), rel=max(tolerance, 1e-9) + 1e-3)


def test_a_law_is_lowered_below_a_short_one_that_costs_more():
    sums = np.array([[10.0, 20.0], [9.9, 19.9], [9.9, 21.0], [1.0, 1.0]])
    laws = np.array([[9.9, 19.6], [9.9, 19.9], [9.9, 21.0], [1.0, 1.0]])
    factors = not_above_larger(laws, sums, [0])
    assert factors == pytest.approx([1.0, 19.6 / 19.9, 1.0, 1.0])


@pytest.mark.parametrize("seed", first(2, range(4)))
def test_short_laws_predict_and_cost_no_more_than_their_callers(seed):
    rng = np.random.default_rng(seed)
    costs = random_program(rng, 60).record(np.repeat([100.0, 200.0, 400.0, 800.0, 1600.0], 2), rng, noise=0.1)
    model = learn_program(costs)
    point = {"n": 9000.0}
    laws = RunLaws(model, point)
    each = [laws.of(place) for place in range(len(model.components))]
    x = np.geomspace(100.0, 16000.0, 100)
    told = np.array([np.broadcast_to(evaluate(law.mean, {"n": x}), x.shape) for law in each])
    composed = np.array([model.inclusive_costs({"n": size}) for size in x]).T
    assert told / composed == pytest.approx(np.ones_like(told), abs=0.03)
    assert (told <= composed.max(axis=0) * 1.0001).all(), "none costs more than the whole"
    for law in each:
        assert law.predictions[0].mean == pytest.approx(float(evaluate(law.mean, {"n": 9000.0})), rel=1e-3)
    for caller in range(len(each)):
        callees = (composed <= composed[caller]).all(axis=1)
        assert (told[callees] <= told[caller] * 1.003).all()
