"""The annotation language (Freud §2.2): texts to nouns and back by one grammar, and their values over arrays.

``distributions`` says what a law says of costs: mean, probabilities, quantiles, density, samples.
"""

from perflaw.language import distributions
from perflaw.language.ast import (
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
from perflaw.language.errors import LawSyntaxError, UnknownFeatureError
from perflaw.language.evaluation import bound, evaluate, names, scope_of, truth
from perflaw.language.printing import show, writable_unit
from perflaw.language.reading import parse, parse_distribution, parse_expression
from perflaw.language.tree import Expression
from perflaw.language.units import factor

__all__ = [
    "Binary",
    "Binding",
    "Block",
    "Call",
    "Clause",
    "Distribution",
    "Expression",
    "LawFile",
    "LawSyntaxError",
    "Name",
    "Number",
    "Part",
    "Text",
    "Unary",
    "UnknownFeatureError",
    "bound",
    "distributions",
    "evaluate",
    "factor",
    "names",
    "parse",
    "parse_distribution",
    "parse_expression",
    "scope_of",
    "show",
    "truth",
    "writable_unit",
]
