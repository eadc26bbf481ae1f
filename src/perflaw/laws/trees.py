"""Expressions and distributions as JSON trees, which the report page evaluates and puts into words.

A number stands for itself, a text for the feature of that name, and a list for everything else: an operator or function
with its operands (``["*", 3, ["log", "n"]]``), or ``["text", "int"]`` for a text that a feature is compared with. A
distribution is a list of its name and its arguments.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from perflaw.laws.tree import Binary, Call, Distribution, Expression, Name, Number, Text, Unary, fold

MOST_NODES = 500
"""Larger expressions have no tree: the page evaluates a law at thousands of points, and JSON's writer is recursive."""
Tree = Any
"""A number, a text, or a list that starts with a text and goes on with trees."""


def expression_tree(expression: Expression | None) -> Tree:
    """The expression as a tree; None for no expression and for one of more than 500 nodes.

    >>> expression_tree(Binary("*", Number(3.0), Call("log", (Name("n"),))))
    ['*', 3, ['log', 'n']]
    """
    if expression is None or any(islice(expression.walk(), MOST_NODES, None)):
        return None
    return fold(expression, _node)


def distribution_tree(distribution: Distribution) -> Tree:
    """The distribution as a tree; None where an argument is too large."""
    arguments = [expression_tree(one) for one in distribution.arguments]
    return None if None in arguments else [distribution.name, *arguments]


def _node(node: Expression, operands: list[Tree]) -> Tree:
    match node:
        case Number():
            return int(node.value) if node.value.is_integer() and node.value < 1e15 else node.value
        case Name():
            return node.text
        case Text():
            return ["text", node.value]
        case Unary() | Binary():
            return [node.op, *operands]
        case Call():
            return [node.function, *operands]
    raise TypeError(f"{type(node).__name__} is no part of an expression")
