"""Laws and numbers in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.laws.reading import parse_expression
from perflaw.laws.tree import Expression
from perflaw.report import law_words as text
from perflaw.report import quantity
from perflaw.types import Annotation, Law, Prediction
from tests.laws.nouns import expressions

from . import factory


def law_of(mean: str, features: tuple[str, ...] = ("n",), **more: Any) -> Law:
    return replace(factory.law("linear", mean, features, 1.0), **more)


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        ("3100*docs.len^1.98213", "3.1 µs · docs.len^1.98"),
        ("3100*docs.len**2", "3.1 µs · docs.len^2"),
        ("900 + 14*text.len", "900 ns + 14 ns · text.len"),
        ("53350.31 - 2.10*s + 0.12*s*log(s)", "53 µs − 2.1 ns · s + 0.12 ns · s · log(s)"),
        ("-90901042.29 + 63.11*s", "−91 ms + 63 ns · s"),
        ("2.5e-05*x1.5size", "2.5e-5 ns · x1.5size"),
        ("400", "400 ns"),
        ("12*a*b^2", "12 ns · a · b^2"),
        ("n*log(n)", "1.0 ns · n · log(n)"),
        ("7*max(0, n - 1.23456)", "7.0 ns · max(0, n - 1.23)"),
        ("3*this->_M_impl.size", "3.0 ns · this->_M_impl.size"),
        ("8*n/2", "4.0 ns · n"),
        ("5*(a + b)*c/d", "5.0 ns · (a + b) · c / d"),
        ("2*`argv[1].x - y`^1.23456", "2.0 ns · `argv[1].x - y`^1.23"),
        ("3 - -2*n", "3.0 ns + 2.0 ns · n"),
    ],
)
def test_a_mean_is_written_with_units_on_its_coefficients(mean: str, words: str) -> None:
    assert text.law_text(law_of(mean), "ns") == words


def test_other_units_than_time() -> None:
    assert text.law_text(law_of("2500000*n"), "bytes") == "2.5 MB · n"
    assert text.law_text(law_of("3*n"), "calls") == "3.0 calls · n"


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        ("400", "constant"),
        ("3*n", "n"),
        ("3*n*log(n)", "n log n"),
        ("5 + 2*log(n)", "log n"),
        ("5 + 2*n^0.5", "√n"),
        ("3*n^2", "n^2"),
        ("3*n^1.98213", "n^1.98"),
        ("0.02*n^2 + 90*n", "n^2"),  # at ten times the data: 200 ms and 9 ms
        ("0.0005*n^2 + 90*n", "n"),  # 5 ms and 9 ms
        ("1e-9*n^3 + 0.02*n^2 + 90*n", "n^2"),
        ("3*n*(n <= 64) + 2*n*(n > 64)", "n"),
        ("3*n^2*(n <= 64) + 2*n*(n > 64)", "n"),
        ("1e9 + 100*n", "constant"),  # 1 % of the cost at ten times the data
        ("1e8 + 100*n", "n"),
        ("1e9 + 5*exp(0.9*n)", "exp n"),
        ("5*exp(1.05*(n*log(n) - n))", "exp (n log n)"),
    ],
)
def test_growth_is_that_of_the_term_that_governs_the_cost_up_to_ten_times_the_data(mean: str, words: str) -> None:
    assert text.grows_as(law_of(mean)) == words


def test_growth_is_that_at_the_point_asked_for() -> None:
    mean = "0.0005*n^2 + 90*n"
    for n, words in ((1e5, "n"), (1e7, "n^2")):
        assert text.grows_as(law_of(mean, predictions=(Prediction({"n": n}, 1.0, 1.0, 1.0, 1.0, 1.0),))) == words


def test_growth_may_be_open() -> None:
    assert text.grows_as(law_of("n", verdict="inconclusive")) == "n ?"


def test_growth_at_the_upper_end_of_the_data_is_told_where_it_differs_from_the_leading_term() -> None:
    exponents = {"slope": {"n": 0.57}, "slope_low": {"n": 0.55}, "slope_high": {"n": 0.6}}
    assert text.slope_interval(law_of("1e6 + 17*n*log(n)", **exponents)) == "now n^0.57 (0.55–0.60)"
    exponents = {"slope": {"n": 1.11}, "slope_low": {"n": 1.1}, "slope_high": {"n": 1.12}}
    assert text.slope_interval(law_of("17*n*log(n)", **exponents)) == "(1.10–1.12)"


@pytest.mark.parametrize(
    ("family", "mean", "more", "words"),
    [
        ("exponential", "306 - 296*exp(-0.0085*n)", {"intercept": 306.0, "coefficient": -296.0}, "levels off"),
        (
            "power",
            "6500 - 6500*n^-2.26",
            {"intercept": 6500.0, "coefficient": -6500.0, "exponent": -2.26},
            "levels off",
        ),
        ("linear", "771 - 84*n", {"intercept": 771.0, "coefficient": -84.0}, "falls"),
        ("power", "53*n^-0.57", {"exponent": -0.57}, "n^-0.57"),
        ("exponential", "3*exp(0.1*n)", {}, "exp n"),
        (
            "quadratic",
            "3*n^2",
            {"verdict": "inconclusive", "slope_low": {"n": -4.0}, "slope_high": {"n": 46.0}},
            "undecided ?",
        ),
    ],
)
def test_growth_that_is_none_is_said_in_words(family: str, mean: str, more: dict[str, Any], words: str) -> None:
    assert text.grows_as(law_of(mean, family=family, **more)) == words


def test_growth_in_several_features_names_them() -> None:
    assert text.grows_as(law_of("a*b", ("a", "b"), family="product")) == "a^1.0 · b^1.0"
    assert text.grows_as(law_of("a + b", ("a", "b"), family="sum")) == "a^1.0, b^1.0"


def test_the_interval_of_the_exponent() -> None:
    assert text.slope_interval(factory.quadratic().scopes[0].law) == "(1.94–2.02)"
    assert text.slope_interval(factory.constant().scopes[0].law) == ""


def laws_shown(annotation: Annotation) -> list[tuple[str, str]]:
    return [(part["condition"], part["law"]) for part in text.shown_law(annotation, None, of_runs=False)["laws"]]


def test_scopes_carry_their_condition_and_probability() -> None:
    assert laws_shown(factory.two_modes()) == [("", "{92 %} 400 ns"), ("", "{8 %} 31 µs")]
    made = factory.linear()
    scoped = replace(made, scopes=(replace(made.scopes[0], condition=parse_expression("k > 3")),))
    assert laws_shown(scoped) == [("k > 3", "900 ns + 14 ns · text.len")]


def test_the_parts_of_a_mixture_share_their_condition() -> None:
    made = factory.two_modes()
    scoped = replace(made, scopes=tuple(replace(scope, condition=parse_expression("k > 3")) for scope in made.scopes))
    assert laws_shown(scoped) == [("k > 3", "{92 %} 400 ns"), ("", "{8 %} 31 µs")]


def test_one_scope_with_a_law_is_a_law() -> None:
    assert text.shown_law(factory.linear(), None, of_runs=False)["verdict"] == "law"
    assert text.shown_law(factory.inconclusive(), None, of_runs=False)["verdict"] == "inconclusive"
    assert text.shown_law(replace(factory.linear(), scopes=()), None, of_runs=False)["verdict"] == "none"


def test_where_a_run_is_predicted_the_law_of_runs_is_shown() -> None:
    at = {"n": 1e6}
    asked = replace(factory.linear(), predicted=factory.prediction(at, 41e9))
    shown = text.shown_law(asked, at)
    assert (shown["per"], shown["laws"]) == ("run", [{"condition": "", "law": "900 ns + 14 ns · n"}])
    assert text.shown_law(factory.linear(), at)["per"] == "call"  # the law of runs does not reach there


def test_without_a_point_the_law_of_runs_is_shown_where_runs_have_several_sizes() -> None:
    shown = text.shown_law(factory.linear(), None)
    assert (shown["per"], shown["laws"]) == ("run", [{"condition": "", "law": "900 ns + 14 ns · n"}])
    assert text.shown_law(factory.linear(), None, of_runs=False)["per"] == "call"
    one_size = replace(factory.linear().run_law, range={"n": (5.0, 5.0)})
    assert text.shown_law(replace(factory.linear(), run_law=one_size), None)["per"] == "call"


def test_nothing_where_there_is_no_number() -> None:
    assert quantity.duration(None) == quantity.duration(float("nan")) == quantity.count(None) == "—"
    assert quantity.number(float("inf")) == "—"


@given(st.floats(min_value=1e-6, max_value=1e18))
def test_a_duration_keeps_two_digits_of_its_value(ns: float) -> None:
    sizes = {
        "ns": 1,
        "µs": 1e3,
        "ms": 1e6,
        "s": 1e9,
        "min": 60e9,
        "h": 3600e9,
        "days": 86400e9,
        "years": 365.25 * 86400e9,
    }
    value, unit = quantity.duration(ns).split(" ")
    assert float(value.replace(",", "")) * sizes[unit] == pytest.approx(ns, rel=0.051)


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["ns", "bytes", "calls", ""]))
def test_every_number_has_words(value: float, unit: str) -> None:
    assert quantity.quantity(value, unit)
    assert quantity.number(value)
    assert quantity.count(value)


@given(expressions)
def test_any_mean_has_words(mean: Expression) -> None:
    assert isinstance(text.law_text(replace(law_of("n"), mean=mean), "ns"), str)


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (100.0, "1.0 µs + 5.0 ns · n (n <= 566)"),
        (3000.0, "1.0 µs + 7.0 ns · n (outside the data: n > 566)"),
        (1e6, "7.0 ns · n (outside the data: n > 566)"),
    ],
)
def test_of_a_law_with_pieces_the_one_at_the_point_is_written(n: float, words: str) -> None:
    law = replace(law_of("1000 + 5*n + 2*n*(n > 566.262) + 1e-9*n^2*(n <= 566.262)"), range={"n": (10.0, 250.0)})
    assert text.leading_terms(law, "ns", {"n": n}) == words


def test_a_run_has_the_piece_of_the_largest_size_recorded_and_that_of_ten_times_it() -> None:
    law = replace(law_of("1000 + 5*n + 2*n*(n > 566.262)"), range={"n": (10.0, 250.0)})
    annotation = replace(factory.linear(), run_law=law)
    shown = [part["law"] for part in text.shown_law(annotation, None)["laws"]]
    assert shown == ["1.0 µs + 5.0 ns · n (n <= 566)", "1.0 µs + 7.0 ns · n (outside the data: n > 566)"]
    near = replace(law, range={"n": (10.0, 50.0)})
    assert len(text.shown_law(replace(annotation, run_law=near), None)["laws"]) == 1
