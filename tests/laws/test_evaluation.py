"""Values of expressions over arrays: mathematics, comparisons, what was not read, and what is not there."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.errors import DataError
from perflaw.laws.errors import UnknownFeatureError
from perflaw.laws.evaluation import evaluate, names, scope_of
from perflaw.laws.reading import parse, parse_expression
from tests.laws import nouns

N = np.array([1.0, 4.0, 9.0])


def value(text, **values):
    return evaluate(parse_expression(text), values)


def test_arithmetic():
    cases = {
        "2 + 3*4": 14.0,
        "2^3^2": 512.0,
        "-2^2": -4.0,
        "10 - 4 - 3": 3.0,
        "12/3/2": 2.0,
        "log(exp(2))": 2.0,
        "sqrt(16) + floor(2.7) + ceil(2.1) + abs(-3)": 12.0,
        "min(3, 1, 2) + max(3, 1, 2)": 4.0,
        "1.5us + 2ms": 2001500.0,
        "1kB + 1MB": 1001000.0,
        "(3 > 2)*5": 5.0,
    }
    for text, expected in cases.items():
        assert value(text) == pytest.approx(expected), text


def test_arrays_have_the_shape_of_the_values():
    np.testing.assert_allclose(value("2*n + sqrt(n)", n=N), 2 * N + np.sqrt(N))
    assert value("7", n=N).shape == (3,)
    assert value("n", n=2.0).shape == ()
    assert value("a*b", a=np.ones((2, 1)), b=N).shape == (2, 3)


def test_conditions_are_booleans():
    found = value("n > 3 && n < 9 || n == 1", n=N)
    assert found.dtype == bool
    assert found.tolist() == [True, True, False]
    assert value("!(n > 3)", n=N).tolist() == [True, False, False]
    assert value("true && n != 4", n=N).tolist() == [True, False, True]


def test_categories():
    kinds = np.array(["int", "list", ""])
    assert value('x.type == "int"', **{"x.type": kinds}).tolist() == [True, False, False]
    assert value('x.type != "int"', **{"x.type": kinds}).tolist() == [False, True, False]
    assert value('"list" == x.type', **{"x.type": list(kinds)}).tolist() == [False, True, False]


def test_what_was_not_read_meets_no_comparison():
    n = np.array([np.nan, 1.0])
    for text in ("n < 5", "n >= 0", "n == 1", "n != 7"):
        assert value(text, n=n).tolist() == [False, True], text
    assert value("n && true", n=n).tolist() == [False, True]
    assert np.isnan(value("0*n", n=n)[0])


def test_nothing_times_infinity_is_nothing():
    zero = np.array([0.0, 1.0])
    assert value("n*log(n)", n=zero).tolist() == [0.0, 0.0]
    assert value("(n <= 0)*(3) + (n > 0)*(1/n)", n=zero).tolist() == [3.0, 1.0]


def test_what_has_no_value_is_not_finite_and_warns_nobody():
    assert value("log(0)") == -math.inf
    assert np.isnan(value("log(-1)"))
    assert value("9^9^9^9") == math.inf
    assert value("exp(1000)") == math.inf


def test_features_that_are_missing_or_of_the_wrong_kind():
    with pytest.raises(UnknownFeatureError, match="needs the feature m: there are: n") as caught:
        value("n + m", n=N)
    assert caught.value.name == "m"
    with pytest.raises(DataError, match="computes with a text"):
        value("t + 1", t=np.array(["a"]))
    with pytest.raises(DataError, match="computes with a text"):
        value("t || 1 > 0", t=np.array(["a"]))
    with pytest.raises(DataError, match="compares a text with a number"):
        value("t > 1", t=np.array(["a"]))
    with pytest.raises(DataError, match="compares a text with a number"):
        value('n == "a"', n=N)


def test_scopes_in_their_order():
    (block,) = parse("f.time(n) { [n > 5] Exp(1); [n > 2] Exp(2); [n == 0] Exp(3) }").blocks
    assert scope_of(block, {"n": np.array([9.0, 4.0, 1.0, 0.0, np.nan])}).tolist() == [0, 1, -1, 2, -1]
    (block,) = parse("f.time(n) { [n > 5] Exp(1); Exp(2) }").blocks
    assert scope_of(block, {"n": 1.0}) == 1


@given(nouns.expressions, st.integers(0, 2**32))
@settings(deadline=None)
def test_anything_has_a_value_or_a_reason(expression, seed):
    rng = np.random.default_rng(seed)
    try:
        found = evaluate(expression, {name: rng.normal(size=3) * 10 for name in names(expression)})
    except DataError:
        return  # a text where a number stands
    assert found.shape in ((3,), ())
