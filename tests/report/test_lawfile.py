"""Annotations as law files: what is written is read as the same laws."""

from dataclasses import replace

import pytest

from perflaw.laws.printing import show
from perflaw.laws.reading import parse, parse_distribution, parse_expression
from perflaw.laws.tree import Clause, Part
from perflaw.report.annotations import law_file
from perflaw.types import Breakpoint, Metric, Scope

from . import factory


def scope(expression, condition="", probability=1.0, **more):
    made = factory.law("linear", "3*n", ["n"], 1.0)
    where = parse_expression(condition) if condition else None
    return Scope(where, probability, replace(made, expression=parse_distribution(expression), **more))


def annotation(*scopes, name="app.f", metric=None, **more):
    made = factory.quadratic()
    component = replace(made.component, name=name, parameters=("n", "*rest"))
    return replace(made, component=component, scopes=scopes, metric=metric or made.metric, **more)


def only(text):
    (block,) = parse(text).blocks
    assert show(parse(text)) == text
    return block


def test_scopes_of_one_condition_are_a_mixture():
    block = only(
        law_file(
            [
                annotation(
                    scope("Exp(3*n)", "n > 5 && x.type == \"int\"", 0.25),
                    scope("LogNorm(2*n, 0.1)", "n > 5 && x.type == \"int\"", 0.75),
                    scope("Norm(5, 1)", "`calls.db.<lambda>` > 0"),
                )
            ]
        )
    )  # fmt: skip
    first, second = block.clauses
    assert first.condition == parse_expression('n > 5 && x.type == "int"')
    assert [part.probability for part in first.parts] == [0.25, 0.75]
    assert second == Clause(parse_expression("`calls.db.<lambda>` > 0"), parse_parts("Norm(5, 1)"))
    assert (block.component, block.metric, block.unit, block.parameters) == ("app.f", "time", "ns", ("n", "*rest"))


def parse_parts(expression):
    return (Part(1.0, parse_distribution(expression)),)


def test_comments_tell_the_evidence():
    law = scope(
        "Norm(3*n, 1)", "n > 1", reason="too few\nsizes", alternatives=factory.quadratic().scopes[0].law.alternatives
    )
    law = replace(law, law=replace(law.law, collinear={"n": ("m", "docs.len")}))
    made = annotation(
        law,
        scope("Norm(2*n, 1)", "n <= 1"),
        marks=("noise removed",),
        breakpoints=(Breakpoint("n", 1.0, 0.9, 1.25),),
        calls=1234,
    )
    comments = only(law_file([made])).comments
    assert comments[0].startswith("1,234 calls, 9 runs, ")
    assert "noise removed" in comments
    assert "regimes part at n = 1 (0.9–1.25)" in comments
    assert "[n > 1] too few sizes" in comments
    assert "[n > 1] n varies together with m, docs.len" in comments


@pytest.mark.parametrize(
    ("unit", "in_block", "in_comment"), [("ns", "ns", False), ("rows/s", "rows/s", False), ("rows per s", "", True)]
)
def test_units(unit, in_block, in_comment):
    block = only(law_file([annotation(scope("Exp(1)"), metric=Metric("rows", unit))]))
    assert block.unit == in_block
    assert (f"; unit {unit}" in block.comments[0]) == in_comment


@pytest.mark.parametrize("name", ["app.<lambda>", "a b;{", factory.HOSTILE, "f(int) const", "x\ny"])
def test_any_name(name):
    assert only(law_file([annotation(scope("Exp(1)"), name=name)])).component == name


def test_of_two_components_of_one_name_the_dearest_is_written():
    text = law_file([annotation(scope("Exp(1)")), annotation(scope("Exp(2)")), annotation(scope("Exp(3)"), name="g")])
    first, second = parse(text).blocks
    assert first.clauses[0].parts == parse_parts("Exp(1)")
    assert first.comments[-1] == "1 more component of this name left out: src/index/build.py:41"
    assert second.component == "g"


def test_nothing_learnt_is_an_empty_file():
    assert law_file([]) == ""
