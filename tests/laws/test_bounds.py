"""Long and deep texts: read in time that grows with their length, never by recursion."""

import sys
from functools import reduce

import numpy as np
import pytest

from perflaw.laws.errors import DEEPEST, LawSyntaxError
from perflaw.laws.evaluation import evaluate, names
from perflaw.laws.printing import show
from perflaw.laws.reading import parse, parse_expression
from perflaw.laws.tree import Binary, Name, Number
from tests.conftest import first

TERMS = 100_000
MILLION = 1_000_000
DEEP = "nest more than 200 deep"


@pytest.mark.slow
def test_a_sum_of_a_hundred_thousand_terms():
    text = " + ".join(["n", *["1"] * (TERMS - 1)])
    tree = parse_expression(text)
    assert show(tree) == text
    assert names(tree) == {"n"}
    assert evaluate(tree, {"n": np.array([1.0, 2.0])}).tolist() == [TERMS, TERMS + 1]
    assert tree == reduce(lambda left, _: Binary("+", left, Number(1.0)), range(TERMS - 1), Name("n"))
    assert hash(tree) == hash(Binary("+", tree.left, Number(1.0)))
    assert tree != Binary("+", tree, Number(1.0))
    assert repr(tree).endswith(", Number(1.0))")


@pytest.mark.parametrize(
    "deep",
    ["(" * MILLION, "-" * MILLION + "1", "!" * MILLION + "1", "2^" * 20_000 + "1", "log(" * 500 + "1" + ")" * 500,
     "(" * 300 + "1" + ")" * 300, "1+(" * 300 + "1" + ")" * 300],
    ids=["parentheses", "minus", "not", "powers", "functions", "closed", "sums"],
)  # fmt: skip
def test_what_nests_too_deeply_is_refused(deep):
    for text, read in ((deep, parse_expression), (f"f.time(n) {{ Exp({deep}) }}", parse)):
        with pytest.raises(LawSyntaxError, match=DEEP):
            read(text)


def test_what_nests_as_deeply_as_allowed_is_read():
    inner = DEEPEST - 2  # the block's brace and the distribution's parenthesis
    for text in ("(" * inner + "n" + ")" * inner, "-" * (inner - 1) + "n", "1 + (" * inner + "n" + ")" * inner):
        block = parse(f"f.time(n) {{ Exp({text}) }}").blocks[0]
        assert parse(show(block)).blocks[0] == block
        assert np.isfinite(evaluate(block.clauses[0].parts[0].distribution.arguments[0], {"n": 1.0}))


@pytest.mark.parametrize(
    "text",
    first(6, ["{" * MILLION, "`" * MILLION, "\x00" * MILLION, ".a(" * 300_000, "f" + " " * MILLION, "f" + "{" * MILLION,
     "f" + "::{a}" * 200_000, "f.time(" + "`" * MILLION, "f.time()[us]" * 80_000, ("f.time(" + " " * 100) * 9_000,
     "f.time(){ " + "a " * 500_000, "f.time(){ " + "a" * MILLION, "f.time(){ a" + " " * MILLION,
     'f.time(){ [x == "' + "\\" * MILLION, "f.time(){ " + "a=b " * 250_000, "f.time(){ [" + "a<" * 100_000,
     "f.time(){ Exp(" + "9" * MILLION, "f.time(){ Exp(" + "n " * 500_000, "f.time()" + " " * MILLION + "x"]),
    ids=lambda text: f"{text[:12]}…{text[-6:]}".replace("\x00", "0"),
)  # fmt: skip
def test_a_million_characters_of_nonsense(text):
    with pytest.raises(LawSyntaxError):
        parse(text)


@pytest.mark.slow
def test_a_law_of_a_million_characters_is_refused_half_way():
    with pytest.raises(LawSyntaxError, match="more than 250,000 words"):
        parse("f.time(n) { Exp(" + "1+" * 500_000 + "1) }")


def test_names_of_a_million_characters():
    name = ".".join(["a"] * 500_000)
    assert parse(f"{name}.time() {{ Exp({name}) }}").blocks[0].component == name


def test_recursion_is_not_needed():
    limit = sys.getrecursionlimit()
    text = "f.time(n) { [" + "(" * 190 + "n > 1" + ")" * 190 + "] Exp(" + "1 + (" * 190 + "n" + ")" * 190 + ") }"
    parse(text)
    depth = len(__import__("inspect").stack())
    sys.setrecursionlimit(depth + 60)
    try:
        block = parse(text).blocks[0]
        assert parse(show(block)).blocks[0] == block
    finally:
        sys.setrecursionlimit(limit)
