"""Bounds of growth as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.errors import UsageError
from perflaw.pytest_plugin.scales import parse_bound


@pytest.mark.parametrize(
    ("text", "exponent", "logs", "base"),
    [
        ("1", 0, 0, 1),
        ("O(1)", 0, 0, 1),
        ("log n", 0, 1, 1),
        ("log(n)", 0, 1, 1),
        ("n", 1, 0, 1),
        ("N log N", 1, 1, 1),
        ("n*log(n)", 1, 1, 1),
        ("O(n log n)", 1, 1, 1),
        ("n^2", 2, 0, 1),
        ("n**1.5", 1.5, 0, 1),
        (" n ^ 0.5 ", 0.5, 0, 1),
        ("n^2 log n", 2, 1, 1),
        ("2^n", 0, 0, 2),
        ("1.5**n", 0, 0, 1.5),
    ],
)
def test_forms(text, exponent, logs, base):
    bound = parse_bound(text)
    assert (bound.exponent, bound.logs, bound.base) == (exponent, logs, base)


@pytest.mark.parametrize(
    "text", ["", "m", "n!", "2n", "n^-1", "1^n", "n^", "log", "n^2 + n", "O(n", "nlog", "n^2^n", "0^n"]
)
def test_what_is_no_bound(text):
    with pytest.raises(UsageError, match="n log n"):
        parse_bound(text)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        bound = parse_bound(text)
    except UsageError:
        return
    assert math.isfinite(bound.local_exponent(1000))


@pytest.mark.parametrize(
    ("text", "f"), [("n^2 log n", lambda n: n**2 * math.log(n)), ("2^n", lambda n: 2**n), ("1", lambda n: 1)]
)
def test_the_local_exponent_is_the_derivative(text, f):
    n, h = 50.0, 1e-5
    slope = (math.log(f(n * (1 + h))) - math.log(f(n * (1 - h)))) / (math.log(1 + h) - math.log(1 - h))
    assert parse_bound(text).local_exponent(n) == pytest.approx(slope)
