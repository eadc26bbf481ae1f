"""Random programs of conditions, and what their branches do according to the source: an oracle that knows no bytecode."""

from __future__ import annotations

import ast
import random
import sys
from collections import Counter
from typing import Any

Outcome = tuple[str, bool]
"""Branch such as ``L12_2``, and whether it was taken."""
ATOMS = ("a", "b", "c", "a == 1", "b is None", "c is not None", "a in (0, 1)", "b != c")
SMALL = (None, 0, 1, 2)


def program(seed: int, functions: int = 25) -> str:
    """The text of a program whose functions ``f0``, ``f1``, … branch on their arguments a, b and c."""
    chance = random.Random(seed)
    lines = []
    for number in range(functions):
        lines += [f"def f{number}(a, b, c):", "    r = 0", *_block(chance, 1, 3), "    return r"]
    return "\n".join(lines) + "\n"


def _block(chance: random.Random, depth: int, most: int) -> list[str]:
    return [line for _ in range(chance.randint(1, most)) for line in _statement(chance, depth)]


def _statement(chance: random.Random, depth: int) -> list[str]:
    kinds = ["plain", "value", "choice", "assert", "list", "flow"]
    kinds += ["if", "else", "while", "for", "finally", "except"] * (depth < 3)
    kind, indent, test = chance.choice(kinds), "    " * depth, _condition(chance, 3)
    inner = _block(chance, depth + 1, 1) if kind in ("if", "else", "while", "for", "finally") else []
    more = _block(chance, depth + 1, 1) if kind == "else" else []
    texts = {
        "plain": ["r += 1"],
        "value": [f"v = {_value(chance)}"],
        "choice": [f"r = 1 if {test} else 2"],
        "assert": ["try:", f"    assert {test}", "except AssertionError: r = 5"],
        "list": ["v = [0", "    for i in range(3)", f"    if {test}]"],
        "flow": [
            "for j in range(3):",
            f"    if {test}: {chance.choice(('break', 'continue', 'return r'))}",
            "    r = j",
        ],
        "if": [f"if {test}:"],
        "else": [f"if {test}:"],
        "while": ["k = 3", f"while k and ({test}):", "    k -= 1"],
        "for": [f"for i in range({chance.randint(0, 3)}):"],
        "finally": ["try: r = 1", "finally:"],
        "except": ["try: a.missing", "except ValueError: r = 3", "except AttributeError: r = 4"],
    }
    otherwise = [f"{indent}elif {_condition(chance, 1)}:", *more, f"{indent}else:", *more] if more else []
    return [indent + line for line in texts[kind]] + inner + otherwise


def _condition(chance: random.Random, depth: int) -> str:
    kind = chance.choice(("atom", "not", "and", "or")) if depth else "atom"
    if kind == "atom":
        return chance.choice(ATOMS)
    if kind == "not":
        return f"not ({_condition(chance, depth - 1)})"
    return "(" + f" {kind} ".join(_condition(chance, depth - 1) for _ in range(chance.randint(2, 3))) + ")"


def _value(chance: random.Random) -> str:
    """``and`` and ``or`` whose value is used."""
    one = chance.choice(("and", "or"))
    return f" {one} ".join(chance.sample("abc", chance.randint(2, 3)))


class _Marker(ast.NodeTransformer):
    """Wraps every part of a condition and every loop's iterable in a call that counts."""

    def __init__(self) -> None:
        self.found: dict[int, list[tuple[int, ast.AST]]] = {}

    def visit_If(self, node: Any) -> Any:
        node.test = self._tested(node.test)
        return self.generic_visit(node)

    visit_While = visit_IfExp = visit_Assert = visit_If  # noqa: N815 (names that ast looks for)

    def visit_comprehension(self, node: Any) -> Any:
        node.ifs = [self._tested(one) for one in node.ifs]
        node.iter = self._call("loop", node.target, node.iter)
        return self.generic_visit(node)

    def visit_For(self, node: Any) -> Any:
        node.iter = self._call("loop", node.target, node.iter)
        return self.generic_visit(node)

    def visit_ExceptHandler(self, node: Any) -> Any:
        node.type = self._call("handler", node.type, node.type)
        return self.generic_visit(node)

    def visit_BoolOp(self, node: Any) -> Any:
        """Within a value: all parts but the last are tested."""
        return self._value(node, True)

    def _value(self, node: Any, last: bool) -> Any:
        if not isinstance(node, ast.BoolOp):
            return node if last else self._call("part", node, node, False)
        final = len(node.values) - 1
        node.values = [self._value(one, last and at == final) for at, one in enumerate(node.values)]
        return node

    def _tested(self, node: Any, negated: bool = False) -> Any:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._tested(node.operand, not negated)
            return node
        if isinstance(node, ast.BoolOp):
            node.values = [self._tested(one, negated) for one in node.values]
            # A marked one is not marked again as a value.
            return _Marked(**{name: getattr(node, name) for name in (*node._fields, *node._attributes)})
        return self._call("part", node, node, negated)

    def _call(self, what: str, place: Any, value: Any, *more: Any) -> Any:
        self.found.setdefault(place.lineno, []).append((place.col_offset, place))
        arguments = [ast.Constant((place.lineno, place.col_offset)), value, *map(ast.Constant, more)]
        call = ast.Call(ast.Name(what, ast.Load()), arguments, [])
        return ast.fix_missing_locations(ast.copy_location(call, value))


class _Marked(ast.BoolOp):
    """A condition whose parts are marked."""


def expected(text: str, calls: list[tuple[str, tuple[Any, ...]]]) -> Counter[Outcome]:
    """How often each branch goes which way in these calls of the program's functions."""
    marker, seen = _Marker(), Counter[tuple[tuple[int, int], bool]]()
    tree = _plain(marker.visit(ast.parse(text)))

    def part(place: tuple[int, int], value: Any, negated: bool) -> Any:
        seen[place, bool(value) != negated] += 1
        return value

    def loop(place: tuple[int, int], values: Any) -> Any:
        for value in values:
            seen[place, True] += 1
            yield value
        seen[place, False] += 1

    def handler(place: tuple[int, int], kind: Any) -> Any:
        seen[place, sys.exc_info()[0] is kind] += 1
        return kind

    names: dict[str, Any] = {"part": part, "loop": loop, "handler": handler}
    exec(compile(ast.fix_missing_locations(tree), "oracle", "exec"), names)
    for name, arguments in calls:
        names[name](*arguments)
    order = {line: sorted({column for column, _ in found}) for line, found in marker.found.items()}
    result: Counter[Outcome] = Counter()
    for ((line, column), taken), count in seen.items():
        rank = order[line].index(column) + 1
        result[f"L{line}" + f"_{rank}" * (rank > 1), taken] += count
    return result


def _plain(tree: Any) -> Any:
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, _Marked):
                setattr(node, field, ast.BoolOp(value.op, value.values))
            elif isinstance(value, list):
                value[:] = [ast.BoolOp(one.op, one.values) if isinstance(one, _Marked) else one for one in value]
    return tree
