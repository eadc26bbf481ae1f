"""The page asks expressions itself, as trees: it must say what perflaw says."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate
from perflaw.laws.reading import parse_distribution, parse_expression
from perflaw.laws.tree import Binary, Call, Expression, Name, Number, Unary, distribution_tree, expression_tree
from perflaw.report.page.page import program
from tests.conftest import examples

VALUES: dict[str, float | str] = {"n": 7.0, "docs.len": 300.0, "calls.app.<lambda>": 0.0, "x.type": "int"}


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    source = program(["evaluate", "labels"])
    tab = browser.new_page()
    tab.add_script_tag(content=source)
    return tab


def shown(tab: Page, expression: Expression) -> Any:
    """What the page makes of an expression: a value, or null; infinities as texts."""
    program = """([tree, values]) => { const node = nodeOf(JSON.parse(tree)); if (!node) return null;
        const value = evaluate(node, values);
        return typeof value === 'number' && !Number.isFinite(value) ? String(value) : Number(value); }"""
    return tab.evaluate(program, [json.dumps(expression_tree(expression)), VALUES])


NUMBERS = st.floats(0, 1e6).map(Number) | st.integers(0, 20).map(float).map(Number)
NAMES = st.sampled_from(["n", "docs.len", "calls.app.<lambda>"]).map(Name)
TESTS = st.sampled_from(['x.type == "int"', 'x.type != "int"', '"str" == x.type']).map(parse_expression)


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    calls = st.sampled_from(["exp", "sqrt", "floor", "ceil", "abs"])
    return (
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "^"]), inner, inner)
        | st.builds(Binary, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner, inner)
        | st.builds(Binary, st.sampled_from(["&&", "||"]), inner, inner)
        | st.builds(Unary, st.sampled_from(["-", "!"]), inner)
        | st.builds(lambda name, one: Call(name, (one,)), calls, inner)
        | st.builds(lambda one, other: Call("max", (one, other)), inner, inner)
    )


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=st.recursive(NUMBERS | NAMES | TESTS, deeper, max_leaves=12))
def test_the_page_finds_the_values_that_perflaw_finds(tab: Page, tree: Expression) -> None:
    values = {name: np.array([value]) for name, value in VALUES.items()}
    with np.errstate(all="ignore"):
        wanted = float(np.broadcast_to(evaluate(tree, values), 1)[0])
    found = shown(tab, tree)
    if math.isfinite(wanted):
        assert float(found) == pytest.approx(wanted, rel=1e-9, abs=1e-300)
    else:
        assert found in ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2^3^2", 512), ("-2^2", -4), ("2^-1", 0.5), ("1 + 2*3 < 8 && !(n > 9)", 1), ("3*1ms", 3e6), ("2kB", 2000),
        ("1_000", 1000), ("`calls.app.<lambda>` == 0", 1), ("log(exp(2))", 2), ("min(3, n, 9)", 3),
        ("n <= 7 || nothing", 1), ("(n - 7)*log(n - 7)", 0), ("missing > 0", 0),
    ],
)  # fmt: skip
def test_values(tab: Page, text: str, value: float) -> None:
    assert shown(tab, parse_expression(text)) == pytest.approx(value)


@pytest.mark.parametrize("text", ["abs(" * 150 + "n" + ")" * 150, "+".join(["n"] * 240)])
def test_large_expressions_have_values(tab: Page, text: str) -> None:
    assert shown(tab, parse_expression(text)) == pytest.approx(7.0 * (text.count("+") + 1))


def test_what_is_too_large_for_the_page_has_no_tree(tab: Page) -> None:
    assert shown(tab, parse_expression("+".join(["n"] * 1000))) is None
    assert distribution_tree(parse_distribution(f"Norm({'+'.join(['n'] * 1000)}, 1)")) is None
    assert tab.evaluate("() => lawOfTree(null)") is None


DISTRIBUTIONS = ["Norm(3*n, 2)", "LogNorm(docs.len^1.5, 0.3)", "Exp(n*100)", "Binom(500, 0.3)"]


def test_the_page_has_every_distribution_of_the_language() -> None:
    assert [text.partition("(")[0] for text in DISTRIBUTIONS] == list(distributions.FAMILIES)


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_distributions_say_what_perflaw_s_say(tab: Page, text: str) -> None:
    dist = parse_distribution(text)
    values = {name: np.array([value]) for name, value in VALUES.items() if not isinstance(value, str)}
    mean = float(np.ravel(distributions.mean(dist, values))[0])
    program = """([tree, values, y]) => { const law = lawOfTree(tree);
        const below = formulaAt(law, "cdf", argumentsAt(law, values), { y });
        return [meanAt(law, values), densityAt(law, y, values), below, ...noiseAt(law, values)]; }"""
    y = round(mean * 1.05)
    found = tab.evaluate(program, [distribution_tree(dist), VALUES, y])
    density = math.exp(float(np.ravel(distributions.log_density(dist, np.array([float(y)]), values))[0]))
    ends = [float(np.ravel(distributions.quantile(dist, np.array([p]), values))[0]) for p in (0.025, 0.975)]
    below = float(np.ravel(distributions.cdf(dist, np.array([float(y)]), values))[0])
    near = 0.03 if text.startswith("Binom") else 1e-5  # the page takes a normal distribution for it
    assert found == pytest.approx([mean, density, below, *(max(0.0, end) for end in ends)], rel=near)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("n > 10 && n <= 1000", "10 < n ≤ 1,000"),
        ("5 < n", "n > 5"),
        ("branch.L12.taken > 0", "branch at line 12 taken"),
        ("branch.L12.taken < 0.5", "branch at line 12 never taken"),
        ("branch.L12.to_L14 > 0", "branch from line 12 to line 14"),
        ("branch.L12_2.not_taken > 3", "branch 2 at line 12 skipped > 3 times"),
        ("`calls.db.<locals>.query` == 0 && n > 1", "does not call db.<locals>.query and n > 1"),
        ("calls.db.query >= 4", "calls of db.query ≥ 4"),
        ('x.type == "int" || x.type == "str"', "x is int or x is str"),
        ("!(n*2 > 5)", "not (n * 2 > 5)"),
    ],
)
def test_conditions_in_words(tab: Page, condition: str, words: str) -> None:
    tree = expression_tree(parse_expression(condition))
    assert tab.evaluate("([text, tree]) => conditionText(text, nodeOf(tree))", [condition, tree]) == words
