"""Means in words: the terms of an expression with units on their coefficients. Formatting only, no statistics."""

from __future__ import annotations

from functools import lru_cache

from perflaw.language import Binary, Call, Expression, LawSyntaxError, Number, Unary, parse_expression, show
from perflaw.language.terms import Term, terms_of
from perflaw.language.tree import fold
from perflaw.report.quantity import quantity


@lru_cache(maxsize=4096)
def mean_text(mean: str, unit: str) -> str:
    """A mean expression with units; a text that is none stands as it is.

    >>> mean_text("900 + 14*text.len", "ns"), mean_text("53350.31 - 0.12*s*log(s)/m", "ns")
    ('900 ns + 14 ns · text.len', '53 µs − 0.12 ns · s · log(s) / m')
    """
    terms = _terms(mean)
    if not terms:
        return f"{quantity(1.0, unit)} · {mean}"
    first, *others = terms
    head = ("−" if first.coefficient < 0 else "") + _term(first, unit)
    return head + "".join(f" {'−' if one.coefficient < 0 else '+'} {_term(one, unit)}" for one in others)


def dies_out(mean: str) -> bool:
    """Whether all that a mean says of features vanishes as they grow: negative powers and exponentials.

    >>> dies_out("306 - 296*exp(-0.0085*n)"), dies_out("6.5 - 6.5*n^-2.26"), dies_out("3 + n^0.5"), dies_out("7")
    (True, True, False, False)
    """
    dependent = [term for term in _terms(mean) if term.factors]
    return bool(dependent) and all(any(_vanishes(factor, below) for factor, below in one.factors) for one in dependent)


@lru_cache(maxsize=4096)
def _terms(mean: str) -> tuple[Term, ...]:
    try:
        return tuple(terms_of(parse_expression(mean)))
    except LawSyntaxError:
        return ()


def _vanishes(factor: Expression, below: bool) -> bool:
    """Whether a factor falls to 0: ``x^-2``, ``exp(-x)``, ``1/x``."""
    if isinstance(factor, Binary) and factor.op == "^":
        return _sign(factor.right) < 0
    if isinstance(factor, Call) and factor.function == "exp":
        return all(term.coefficient < 0 for term in terms_of(factor.arguments[0]) if term.factors)
    return below


def _sign(expression: Expression) -> float:
    terms = terms_of(expression)
    return terms[0].coefficient if len(terms) == 1 and not terms[0].factors else 0.0


def _term(term: Term, unit: str) -> str:
    """One term without its sign: its coefficient as a quantity, its factors with numbers of three digits."""
    text = quantity(abs(term.coefficient), unit)
    for factor, below in term.factors:
        text += f" {'/' if below else '·'} {_factor(factor)}"
    return text


def _factor(factor: Expression) -> str:
    text = show(fold(factor, _rounded))
    return f"({text})" if isinstance(factor, Binary) and factor.op != "^" else text


def _rounded(node: Expression, operands: list[Expression]) -> Expression:
    """Long numbers inside a factor with three digits: an exponent is read, not copied."""
    match node:
        case Number():
            return Number(float(f"{node.value:.3g}"))
        case Unary():
            return Unary(node.op, *operands)
        case Binary():
            return Binary(node.op, *operands)
        case Call():
            return Call(node.function, tuple(operands))
    return node
