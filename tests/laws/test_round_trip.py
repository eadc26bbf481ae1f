"""What is printed is read as the same, and what is read is printed as it was."""

from hypothesis import given, settings

from perflaw.laws.printing import show
from perflaw.laws.reading import parse, parse_distribution, parse_expression
from perflaw.laws.tree import Binary, LawFile, Name, Number, Unary
from tests.conftest import examples
from tests.laws import nouns


@given(nouns.expressions)
@settings(max_examples=examples(300), deadline=None)
def test_expressions(expression):
    text = show(expression)
    assert parse_expression(text) == expression
    assert show(parse_expression(text)) == text


@given(nouns.distributions)
@settings(deadline=None)
def test_distributions(distribution):
    assert parse_distribution(show(distribution)) == distribution


@given(nouns.files)
@settings(max_examples=examples(60), deadline=None)
def test_files(file):
    text = show(file)
    assert parse(text) == file
    assert show(parse(text)) == text


def test_the_same_value_is_the_same_text():
    for text in ("a - (b - c)", "a - b - c", "-x^2", "(-x)^2", "2^-1", "2^3^4", "(2^3)^4", "!(a && b)", "a - -b"):
        assert show(parse_expression(text)) == text


def test_precedence_is_that_of_mathematics():
    assert show(parse_expression("((a * b) + (c)) < 3 && (d || e)")) == "a*b + c < 3 && (d || e)"
    assert parse_expression("-2^2") == Unary("-", Binary("^", Number(2.0), Number(2.0)))
    assert parse_expression("2**3") == parse_expression("2^3")


def test_numbers_are_exact():
    for value in (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 1e22, 123456789.0, 0.0):
        assert parse_expression(show(Number(value))) == Number(value)


def test_names_that_mean_something_else_are_quoted():
    for name in ("true", "inf", "NaN", "a b", "argv[1]", "calls.app.<lambda>", "1x", "`", "\\", "\n", "\ud800"):
        assert show(Name(name)).startswith("`")
        assert parse_expression(show(Name(name))) == Name(name)


def test_equality_and_hash_look_at_everything():
    one, other = parse_expression("a + b*c"), parse_expression("a + b*d")
    assert one != other
    assert one == parse_expression("a+b * c")
    assert hash(one) == hash(parse_expression("a+b * c"))
    assert one != parse_expression("(a + b)*c")
    assert repr(one) == "Binary('+', Name('a'), Binary('*', Name('b'), Name('c')))"
    assert show(LawFile(())) == ""
    assert parse("") == LawFile(())
