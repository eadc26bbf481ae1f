"""How far a constraint is from holding: a number for a search to go down, where true and false alone show no way."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from perflaw.explore.operations import COMPARISONS
from perflaw.types.studies import Value

Variables = Mapping[str, Value]
Step = Callable[[Variables], Value]
Far = Callable[[Variables], float]
LEAST = 1e-9
"""Of what does not hold, however near its two sides are."""


def distance_of(node: ast.expr, step: Callable[[ast.expr, int], Step]) -> Far:
    """A function of the variables: 0 where the expression holds, else up to 1 for each comparison that does not.

    ``step`` compiles a node. Sides of a comparison are compared relative to their sizes; ``and`` adds, ``or`` takes the least.
    """
    if isinstance(node, ast.BoolOp):
        parts = [distance_of(one, step) for one in node.values]
        gather = sum if isinstance(node.op, ast.And) else min
        return lambda variables: float(gather(part(variables) for part in parts))
    if isinstance(node, ast.Compare):
        return _compared(node, [step(one, 0) for one in (node.left, *node.comparators)])
    run = step(node, 0)
    return lambda variables: 0.0 if run(variables) else 1.0


def _compared(node: ast.Compare, sides: list[Step]) -> Far:
    operators = [COMPARISONS[type(one)] for one in node.ops]

    def far(variables: Variables) -> float:
        values = [side(variables) for side in sides]
        pairs = zip(operators, values, values[1:], strict=False)
        return sum(0.0 if operate(left, right) else _gap(left, right) for operate, left, right in pairs)

    return far


def _gap(left: Value, right: Value) -> float:
    """How far two sides are apart, above 0 up to 1; texts are apart or not."""
    if isinstance(left, str) or isinstance(right, str):
        return 1.0
    size = abs(left) + abs(right)
    return max(LEAST, min(1.0, abs(left - right) / size)) if size else LEAST
