"""The annotation language (Freud §2.2): texts to nouns and back by one grammar, and their values over arrays.

``distributions`` says what a law says of costs: mean, probabilities, quantiles, density, samples.
"""

from perflaw.law import distributions
from perflaw.law.errors import LawSyntaxError, UnknownFeatureError
from perflaw.law.evaluation import bound, evaluate, names, scope_of, truth
from perflaw.law.printing import show, writable_unit
from perflaw.law.reading import parse, parse_distribution, parse_expression
from perflaw.law.tree import (
    Binary,
    Binding,
    Block,
    Call,
    Clause,
    Distribution,
    Expression,
    LawFile,
    Name,
    Number,
    Part,
    Text,
    Unary,
)
from perflaw.law.units import factor

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
