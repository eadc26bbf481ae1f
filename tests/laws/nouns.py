"""Hypothesis strategies for everything that a law can say."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from perflaw.laws.tree import (
    Binary,
    Binding,
    Block,
    Call,
    Clause,
    Distribution,
    LawFile,
    Name,
    Number,
    Part,
    Text,
    Unary,
)

COMPARED = ("<", "<=", ">", ">=", "==", "!=")
OPERATORS = ("+", "-", "*", "/", "^", "&&", "||", *COMPARED)
TAKES = {"Norm": 2, "LogNorm": 2, "Exp": 1, "Binom": 2}

words = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=6)
identifiers = words.filter(lambda text: not text[0].isdigit())
odd = st.text(min_size=1, max_size=8)
features = st.one_of(st.lists(identifiers, min_size=1, max_size=3).map(".".join), odd)
numbers = st.floats(min_value=0, allow_nan=False, allow_infinity=False).map(Number)
names = features.map(Name)
texts = st.text(max_size=8).map(Text)
components = st.one_of(
    st.sampled_from(
        ["app.<lambda>", "std::list<int>::sort", "A::operator()(int) const", "app.outer.<locals>.f", "a b"]
    ),
    st.text("abc.<>:(){}[]*&,;#`\"' \\\n", min_size=1, max_size=12),
    odd,
)


def _compound(inner):
    return st.one_of(
        st.builds(Unary, st.sampled_from("-!"), inner),
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Binary, st.sampled_from(["==", "!="]), names, texts),
        st.builds(Binary, st.sampled_from(["==", "!="]), texts, names),
        st.builds(Call, st.sampled_from(["log", "exp", "sqrt", "floor", "ceil", "abs"]), st.tuples(inner)),
        st.builds(Call, st.sampled_from(["min", "max"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
    )


expressions = st.recursive(st.one_of(numbers, names), _compound, max_leaves=12)
_small = st.recursive(st.one_of(numbers, names), _compound, max_leaves=4)
_arguments = st.builds(Binary, st.just("+"), names, _small)  # with a name: constants are checked
distributions = st.sampled_from(sorted(TAKES)).flatmap(
    lambda name: st.builds(Distribution, st.just(name), st.tuples(*[_arguments] * TAKES[name]))
)


@st.composite
def clauses(draw):
    weights = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=4))
    parts = [Part(weight / sum(weights), draw(distributions)) for weight in weights]
    return Clause(draw(st.one_of(st.none(), _small)), tuple(parts))


bindings = st.builds(
    Binding,
    st.sampled_from(["", "uint", "unsigned long", "std::vector<int>*", "const std::string&"]),
    identifiers,
    st.sampled_from(["*(this->_M_impl._M_node)", "a.b", "x[0] == 3", "`odd name`", "f(a, b)"]),
)
parameters = st.one_of(identifiers, st.sampled_from(["*args", "int const& x", "char *s[]"]), odd)
comments = st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=12).map(str.rstrip)
blocks = st.builds(
    Block,
    components,
    st.sampled_from(["events", "rows", "switches"]),
    st.lists(parameters, max_size=3).map(tuple),
    st.lists(bindings, max_size=2).map(tuple),
    st.lists(clauses(), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["", "calls", "us", "MB"]),
    st.lists(comments, max_size=2).map(tuple),
)
files = st.lists(blocks, max_size=3, unique_by=lambda one: (one.component, one.metric)).map(
    lambda found: LawFile(tuple(found))
)
