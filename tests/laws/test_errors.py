"""What is wrong with a law is told with its place and in words."""

import pytest

from perflaw.laws.errors import LawSyntaxError
from perflaw.laws.reading import parse, parse_distribution, parse_expression

CASES = [
    # text, line, column, words
    ("f.time(n) { Norm(3*n 4); }", 1, 22, "an operator expected, found `4`; a product is written with *"),
    ("f.time(n) {\n  Norm(3*n, 4 }", 2, 15, "`)` or `,` or an operator expected, found `}`"),
    ("f.time(n) { Normal(3*n, 4); }", 1, 13, "no distribution Normal; did you mean `Norm`?"),
    ("f.time(n) { Foo(3*n, 4); }", 1, 13, "no distribution Foo; there are Norm, LogNorm, Exp, Binom"),
    ("f.time(n) { Norm(3*n); }", 1, 13, "Norm(mean, standard deviation) takes 2 arguments, found 1"),
    ("f.time(n) { Norm(sqr(n), 3); }", 1, 18, "no function sqr; did you mean `sqrt`?"),
    ("f.time(n) { Norm(log(n, 2), 3); }", 1, 18, "log takes 1 argument, found 2"),
    ("f.time(n) {\n {0.2} Exp(1); {0.7} Exp(2); }", 2, 3, "probabilities of a mixture must sum to 1, these sum to 0.9"),
    ("f.time(n) { [n > 1] { {0.5} Exp(1) } }", 1, 24, "sum to 0.5"),
    ("f.time(n) { {75} Exp(1); }", 1, 14, "a probability above 0 and at most 1 is expected, found 75"),
    ("f.time(n) { {0} Exp(1); }", 1, 14, "a probability"),
    ("f.time(n) { {0.75} [n > 3] Exp(1); }", 1, 20, "a condition stands before its mixture"),
    ("f.time(n) { Norm(1e999, 2); }", 1, 18, "1e999 is too large for a number"),
    ("f.time(n) { Norm(inf, 2); }", 1, 18, "inf is no finite number"),
    ("f.time(n) { Norm(n, NaN); }", 1, 21, "NaN is no finite number"),
    ("f.time(n) { Norm(1/0, 2); }", 1, 13, "the mean of Norm cannot be inf"),
    ("f.time(n) { Norm(n, -2); }", 1, 13, "the standard deviation of Norm cannot be -2"),
    ("f.time(n) { Binom(n, 1.5); }", 1, 13, "the probability of Binom cannot be 1.5"),
    ("f.time(n) [kB] { Norm(3, 2); }", 1, 12, "time cannot be in kB; there are ns, us"),
    ("f.time(n) [usec] { Norm(3, 2); }", 1, 12, "did you mean `us`?"),
    ("f.time(n) [ms] { Exp(5us*n); }", 1, 22, "a number with a unit in a block in [ms]"),
    ("f.time(n) Norm(3,2)", 1, 11, "`{` expected, found `Norm`"),
    ("f.time(n)", 1, 10, "`{` expected, found the end"),
    ("f.time n { Norm(3,2); }", 1, 1, "`component.metric(parameters) {` expected"),
    ("f(n) { Norm(3,2); }", 1, 1, "`component.metric(parameters) {` expected"),
    ("hello", 1, 1, "a block starts as in parser.parse.time(src) {"),
    ("f.time(n) { }", 1, 3, "the block has no law"),
    ("f.time(n) { Norm(3,2);\n\n", 1, 23, "a distribution such as Norm(mean, deviation), `[condition]`"),
    ("f.time(n) { Norm(3,2) Exp(1) }", 1, 23, "`;` or `}` expected, found `Exp`"),
    ("f.time(n) {\n  Exp(n);\ng.time(n) {\n  Exp(n);\n}", 3, 11, "found `{`; is the `}` of the block before missing?"),
    ("\ufefff.time(n) { @ }", 1, 13, "found `@`"),
    ("f.time(n) { 3*n; }", 1, 13, "a distribution such as Norm(mean, deviation)"),
    ("f.time(n) { [1 < n < 5] Exp(1); }", 1, 20, "a range is a < x && x < b"),
    ("f.time(n) { [n = 5] Exp(1); }", 1, 16, "== compares"),
    ("f.time(n) { [n > 5 Exp(1); }", 1, 20, "`]` or an operator expected"),
    ('f.time(n) { [n > "x"] Exp(1); }', 1, 18, "a text can only be compared with == or !="),
    ('f.time(n) { [n + 1 == "x"] Exp(1); }', 1, 20, "only a feature can be compared with a text"),
    ("f.time(n) { Exp(argv[1]); }", 1, 21, "names with other characters stand in backquotes"),
    ("f.time(n) { Exp(n); } }", 1, 23, "found `}`"),
    ("f.time(n) { Exp(n) @ }", 1, 20, "found `@`"),
    ("f.time(n) { uint s = ; Exp(n) }", 1, 18, "a short name is given as in"),
    ("f.time(n) { uint s = n\n  Exp(s) }", 2, 3, "`;` or `}` expected, found `Exp`"),
    ("f.time(n, ) { Exp(1); }", 1, 11, "a parameter expected"),
    ("f.time(n) { Exp(); }", 1, 17, "a number, a feature or `(` expected, found `)`"),
    ("# c\nf.time(n) { Exp(n); }\n  f.time(n) { Exp(n); }", 3, 3, "a second law of f.time; the first stands in line 2"),
    ("f.time(n) { Exp(\x00) }", 1, 17, "found '\\x00'"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), CASES, ids=[case[0][:40] for case in CASES])
def test_files(text, line, column, words):
    with pytest.raises(LawSyntaxError) as caught:
        parse(text, "perf.law")
    error = caught.value
    assert words in error.expected
    assert (error.file, error.line, error.column) == ("perf.law", line, column)
    assert str(error) == f"perf.law:{line}:{column}: {error.expected} · try: perflaw annotate --text"


@pytest.mark.parametrize("name", ["LPAR", "RBRACE", "TIMES", "COMPONENT", "__ANON", "$END"])
def test_no_error_speaks_of_tokens(name):
    for text, *_ in CASES:
        with pytest.raises(LawSyntaxError) as caught:
            parse(text)
        assert name not in str(caught.value)


def test_expressions_and_distributions():
    with pytest.raises(
        LawSyntaxError, match="law, line 1, column 4: a number, a feature or `\\(` expected, found the end"
    ):
        parse_expression("3 *")
    with pytest.raises(LawSyntaxError, match="a distribution such as Norm"):
        parse_distribution("3*n")
    with pytest.raises(LawSyntaxError, match="an operator expected"):
        parse_expression("a b")
    with pytest.raises(LawSyntaxError):
        parse_expression("")
