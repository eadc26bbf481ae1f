"""Values of expressions over arrays of features. Nothing is compiled or run but the operators listed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perflaw.errors import DataError
from perflaw.laws import tree as ast
from perflaw.laws.errors import UnknownFeatureError
from perflaw.laws.tree import Expression, fold, unquote

Values = Mapping[str, Any]
"""Feature → (n,) numbers, booleans or texts, or one of them for all."""
Array = NDArray[Any]

_FUNCTIONS: dict[str, np.ufunc] = {name: getattr(np, name) for name in ("log", "exp", "sqrt", "floor", "ceil", "abs")}
_CHOICES: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum}
_ARITHMETIC: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "/": np.divide, "^": np.power}
_COMPARISONS: dict[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
}


def evaluate(expression: Expression, values: Values) -> Array:
    """Values of an expression, of the shape that all ``values`` broadcast to: numbers, or booleans for a condition.

    Where a feature was not read (NaN, or the empty text) no comparison holds, ``!=`` neither. Where a number has no
    value (``log(0)``) it is infinite or NaN. UnknownFeatureError where a feature is missing; DataError where numbers
    and texts are mixed up.

    >>> evaluate(ast.Binary("^", ast.Name("n"), ast.Number(2.0)), {"n": np.array([1.0, 3.0])})
    array([1., 9.])
    """
    if isinstance(expression, ast.Number):
        return np.full(shape_of(values), float(expression.value))
    with np.errstate(all="ignore"):
        result = fold(expression, lambda node, operands: _value(node, operands, values))
    return np.broadcast_to(result, np.broadcast_shapes(np.shape(result), shape_of(values))).copy()


def truth(values: Array) -> NDArray[np.bool_]:
    """Where values of a condition are true: not 0, and read. DataError where they are texts.

    >>> truth(np.array([2.0, 0.0, np.nan])).tolist()
    [True, False, False]
    """
    numbers = _number(values)
    return np.asarray((numbers != 0) & ~np.isnan(numbers))


def shape_of(values: Values) -> tuple[int, ...]:
    """The shape that all of them broadcast to; () for single values."""
    return np.broadcast_shapes(*(np.shape(one) for one in values.values()))


def names(expression: Expression) -> set[str]:
    """All features in it.

    >>> sorted(names(ast.Binary("*", ast.Name("b"), ast.Name("a.len"))))
    ['a.len', 'b']
    """
    return {node.text for node in expression.walk() if isinstance(node, ast.Name)}


def scope_of(block: ast.Block, values: Values) -> NDArray[np.int64]:
    """Index of the first clause whose condition holds, -1 where none does; the shape of ``values``."""
    found = np.full(shape_of(values), -1, dtype=np.int64)
    for index, clause in reversed(list(enumerate(block.clauses))):
        holds = True if clause.condition is None else truth(evaluate(clause.condition, values))
        found = np.where(holds, index, found)
    return found


def bound(block: ast.Block) -> ast.Block:
    """The block with features in the places of the short names its bindings give them, and without bindings."""
    table = {
        one.name: unquote(one.expression) if one.expression[:1] == one.expression[-1:] == "`" else one.expression
        for one in block.bindings
    }
    clauses = tuple(
        ast.Clause(
            None if clause.condition is None else renamed(clause.condition, table),
            tuple(
                replace(
                    part,
                    distribution=replace(
                        part.distribution, arguments=tuple(renamed(one, table) for one in part.distribution.arguments)
                    ),
                )
                for part in clause.parts
            ),
        )
        for clause in block.clauses
    )
    return replace(block, bindings=(), clauses=clauses)


def renamed(root: Expression, table: Mapping[str, str]) -> Expression:
    """The expression with other names: ``table`` maps the names to replace."""

    def rename(node: Expression, operands: list[Expression]) -> Expression:
        match node:
            case ast.Name():
                return ast.Name(table.get(node.text, node.text))
            case ast.Unary():
                return ast.Unary(node.op, *operands)
            case ast.Binary():
                return ast.Binary(node.op, *operands)
            case ast.Call():
                return ast.Call(node.function, tuple(operands))
        return node

    return fold(root, rename)


def _value(node: Expression, operands: list[Array], values: Values) -> Array:
    match node:
        case ast.Number():
            return np.asarray(float(node.value))
        case ast.Text():
            return np.asarray(node.value)
        case ast.Name():
            if node.text not in values:
                raise UnknownFeatureError(node.text, values)
            found = np.asarray(values[node.text])
            return found.astype(str) if found.dtype.kind in "OS" else found
        case ast.Unary(op="!"):
            return ~truth(operands[0])
        case ast.Unary():
            return -_number(operands[0])
        case ast.Binary():
            return _binary(node.op, *operands)
        case ast.Call():
            arguments = [_number(one) for one in operands]
            return (
                np.asarray(reduce(_CHOICES[node.function], arguments))
                if node.function in _CHOICES
                else np.asarray(_FUNCTIONS[node.function](*arguments))
            )
    raise TypeError(f"{type(node).__name__} is no part of an expression")


def _number(value: Array) -> Array:
    if value.dtype.kind == "U":
        why = 'a text can only be compared, as in x.type == "int"'
        raise DataError("a law computes with a text", why, "use a feature that is a number")
    return value.astype(float, copy=False)


def _binary(op: str, left: Array, right: Array) -> Array:
    if op == "&&":
        return truth(left) & truth(right)
    if op == "||":
        return truth(left) | truth(right)
    if op == "*":
        # 0 times infinity is 0: n*log(n) at 0, and a regime that does not hold.
        left, right = _number(left), _number(right)
        product = np.asarray(left * right)
        zero = ((left == 0) | (right == 0)) & ~np.isnan(left) & ~np.isnan(right)
        return np.where(np.isnan(product) & zero, 0.0, product)
    if op in _ARITHMETIC:
        return np.asarray(_ARITHMETIC[op](_number(left), _number(right)))
    texts = (left.dtype.kind == "U", right.dtype.kind == "U")
    if any(texts) and (not all(texts) or op not in ("==", "!=")):
        raise DataError(
            "a law compares a text with a number", "a categorical feature is compared with a text", 'x.type == "int"'
        )
    if op != "!=":
        return np.asarray(_COMPARISONS[op](left, right))
    missing = (left == "") | (right == "") if all(texts) else np.isnan(_number(left)) | np.isnan(_number(right))
    return np.asarray((left != right) & ~missing)
