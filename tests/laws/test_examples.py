"""Laws as people and papers write them."""

from dataclasses import replace

import pytest

from perflaw.laws.evaluation import bound, names
from perflaw.laws.printing import show
from perflaw.laws.reading import parse
from perflaw.laws.tree import Binding, Clause

SORT = """
std::list<int>::sort.time(this) {            # component . metric ( parameters )
  uint s = *(this->_M_impl._M_node._M_storage._M_storage);   # feature bound to a short name
  [s > 49584 && s < 1450341] Norm(53350.31 - 2.10*s + 0.12*s*log(s), 12463.88);
  [s > 1589482 && s < 2085480] Norm(-90901042.29 + 63.11*s, 899547.29); }
"""
"""Figure 2 of the paper."""

COMPONENTS = [
    "f",
    "parser.parse",
    "app.<lambda>",
    "app.outer.<locals>.inner",
    "app.<module>",
    "words.main.<locals>.<genexpr>:9",
    "std::map<int, std::vector<double> >::operator[]",
    "std::less<int>::operator()(int const&, int const&) const",
    "operator<",
    "operator<<",
    "ns::f(std::function<void (int)>)",
    "(anonymous namespace)::f",
    "f[abi:cxx11]",
    "g::{lambda(int)#1}::operator()(int) const",
    "src/app.py:12",
    "a.time(n)",
]


def only(text):
    (block,) = parse(text).blocks
    return block


def test_figure_2():
    block = only(SORT)
    assert (block.component, block.metric, block.parameters, block.line) == (
        "std::list<int>::sort",
        "time",
        ("this",),
        2,
    )
    assert block.bindings == (Binding("uint", "s", "*(this->_M_impl._M_node._M_storage._M_storage)"),)
    assert len(block.clauses) == 2
    assert show(block.clauses[0]) == (
        "[s > 49584 && s < 1450341] Norm(53350.31 - 2.1*s + 0.12*s*log(s), 12463.88)"
    )  # fmt: skip


@pytest.mark.parametrize("component", COMPONENTS)
def test_any_name_of_a_component(component):
    text = f"{component}.time(x, y) {{ Exp(1); }} {component}.cpu() [us] {{ Exp(2) }}"
    one, two = parse(text).blocks
    assert (one.component, one.metric, one.parameters) == (component, "time", ("x", "y"))
    assert (two.component, two.metric, two.unit) == (component, "cpu", "us")
    assert "`" not in show(one)


@pytest.mark.parametrize("component", ["f {", "{closure}", "a;b", "#1", " f", "f ", "a\nb", "`"])
def test_names_that_would_be_misread_stand_in_backquotes(component):
    block = replace(only("f.time() { Exp(1); }"), component=component)
    assert show(block).startswith("`")
    assert only(show(block)) == block


def test_a_block_reaches_to_its_own_brace_alone():
    blocks = parse("f.time(x) { Exp(1); } g.h(y).time(y) { Exp(2); } # end\n k.time() { Exp(3) }").blocks
    assert [block.component for block in blocks] == ["f", "g.h(y)", "k"]


def test_mixtures():
    nested = only("f.time(a) { [a > 3] { {0.2} Exp(1); {0.8} Exp(a) } Exp(9) }")
    assert [part.probability for part in nested.clauses[0].parts] == [0.2, 0.8]
    assert show(nested.clauses[0].condition) == "a > 3"
    plain = only("f.time(a) { {0.25} Norm(10000, 50); {0.75} Norm(1, 2); }")
    assert plain.clauses == only("f.time(a) { { {0.25} Norm(10000, 50); {0.75} Norm(1, 2) } }").clauses
    assert len(plain.clauses) == 1
    assert only("f.time(a) { {1} Exp(a) }").clauses == only("f.time(a) { Exp(a) }").clauses
    assert len(only("f.time() { {.333} Exp(1); {.333} Exp(2); {.333} Exp(3) }").clauses[0].parts) == 3


def test_units():
    assert only("parser.parse.time(src) [us] { Norm(50*src.len, 0.2*src.len); }").unit == "us"
    assert only("f.time(n) { Norm(50us*n, 1.5 ms) }".replace(" ms", "ms")) == only("f.time(n){Norm(50000*n, 1500000)}")
    assert only("f.time(n) [µs] { [n > 4kB] Exp(n/1MB) }").unit == "µs"
    assert only("f.io.rows(n) [rows/s] { Exp(1_000) }").unit == "rows/s"


def test_comments_before_a_block_are_kept():
    text = "# one\n#two\n\nf.time(n) { # inside\n  Exp(n); } # behind\n# three\ng.time(n) { Exp(n) }\n# last\n"
    one, two = parse(text).blocks
    assert one.comments == ("one", "two")
    assert two.comments == ("behind", "three")
    assert (one.line, two.line) == (4, 7)
    assert show(one).startswith("# one\n# two\nf.time(n) {")


def test_texts_and_constants():
    block = only(
        """f.time(x) { [x.type == "int" && flag == true] Exp(1); ["a\\"b" != x.type] Exp(2); [x.t == 'c'] Exp(3) }"""
    )
    assert show(block.clauses[0].condition) == 'x.type == "int" && flag == 1'
    assert show(block.clauses[1].condition) == '"a\\"b" != x.type'
    assert names(block.clauses[0].condition) == {"x.type", "flag"}


def test_short_names_become_features():
    block = bound(only("f.time(q) { n = q.items.len; `x y` Exp(n); }".replace("`x y` ", "[`x y` > n] ")))
    assert block.bindings == ()
    assert names(block.clauses[0].condition) == {"x y", "q.items.len"}
    assert (
        bound(only("f.time() { s = `x y`; Exp(s) }")).clauses[0].parts
        == only("f.time(){ Exp(`x y`) }").clauses[0].parts
    )
    assert isinstance(block.clauses[0], Clause)


def test_a_file_may_start_with_a_mark_and_end_its_lines_in_two_ways():
    assert parse("\ufeff# c\r\nf.time(n) {\r\n  Exp(n);\r\n}\r\n") == parse("# c\nf.time(n) {\n  Exp(n);\n}\n")
