"""Nouns of ``ast`` as text: reading the text gives the same nouns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from perflaw.laws import tree as ast
from perflaw.laws.build import DIGITS
from perflaw.laws.tree import CONSTANTS, NOT_FINITE, Expression, quote

_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_BINDS = {"||": 1, "&&": 2, **dict.fromkeys(_COMPARED, 3), "+": 4, "-": 4, "*": 5, "/": 5, "^": 7}
"""How tightly operators bind, as the grammar has it."""
_PREFIX, _ATOM = 6, 8
_TIGHT = {"*", "/", "^"}
"""Operators without spaces about them."""


@lru_cache(maxsize=8)
def _terminal(name: str) -> re.Pattern[str]:
    """A terminal of the grammar, taken from its text: whoever prints laws does not import lark."""
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return re.compile(re.findall(rf"^{name}: /(.*)/$", grammar, re.MULTILINE)[0])


def fits(terminal: str, text: str, following: str = "") -> bool:
    """Whether the reader takes exactly this text for that terminal where ``following`` stands behind it."""
    found = _terminal(terminal).match(text + following)
    return found is not None and found.end() == len(text)


def show(node: object) -> str:
    """The text of an expression, a distribution, a part, a clause, a binding, a block or a whole file.

    >>> show(ast.Binary("*", ast.Number(3.0), ast.Binary("+", ast.Name("n"), ast.Number(1.0))))
    '3*(n + 1)'
    """
    match node:
        case Expression():
            return "".join(_pieces(node))
        case ast.Distribution():
            return f"{node.name}({', '.join(map(show, node.arguments))})"
        case ast.Part():
            return f"{{{number(node.probability)}}} {show(node.distribution)}"
        case ast.Clause():
            law = show(node.parts[0].distribution) if plain(node) else f"{{ {'; '.join(map(show, node.parts))} }}"
            return law if node.condition is None else f"[{show(node.condition)}] {law}"
        case ast.Binding():
            return f"{node.type} {node.name} = {node.expression}".lstrip()
        case ast.Block():
            unit = f" [{node.unit}]" if node.unit else ""
            parameters = ", ".join(one if fits("PARAMETER", one) else quote(one, "`") for one in node.parameters)
            header = f"{component(node.component)}.{node.metric}({parameters}){unit} {{"
            # The statements, comments before and beside them.
            body: list[str] = []
            lone = len(node.clauses) == 1 and node.clauses[0].condition is None and not plain(node.clauses[0])
            statements = [*map(show, node.bindings), *map(show, node.clauses[0].parts if lone else node.clauses)]
            for place, statement in enumerate([*statements, None]):
                about = [one for one in node.remarks if one.statement == place]
                body += [f"  {comment(one.text)}" for one in about if not one.beside]
                beside = " ".join(one.text for one in about if one.beside)
                if statement is not None:
                    body.append(f"  {statement};" + (f"  {comment(beside)}" if beside else ""))
            return "\n".join([*map(comment, node.comments), header, *body, "}"])
        case ast.LawFile():
            closing = "".join(f"{comment(one)}\n" for one in node.closing)
            return "\n".join([*(f"{show(one)}\n" for one in node.blocks), *([closing] if closing else [])])
    raise TypeError(f"{type(node).__name__} is no part of a law")


def learnt_text(node: Expression | ast.Distribution) -> str:
    """The text of a learnt law: as ``show``, but numbers of six digits stand in scientific notation from 1e6 on.

    >>> learnt_text(ast.Number(5335030.0)), learnt_text(ast.Number(1234567.0)), show(ast.Number(5335030.0))
    ('5.33503e06', '1234567', '5335030')
    """
    if isinstance(node, ast.Distribution):
        return f"{node.name}({', '.join(map(learnt_text, node.arguments))})"

    def short_number(value: float) -> str:
        text = f"{value:.{DIGITS}g}"
        return text.replace("e+", "e") if float(text) == value else number(value)

    return "".join(_pieces(node, short_number))


def condition_text(condition: Expression | None) -> str:
    """The text of a condition; empty for None, which holds everywhere."""
    return show(condition) if condition is not None else ""


def comment(text: str) -> str:
    """A line of comment.

    >>> comment("the parser alone"), comment("")
    ('# the parser alone', '#')
    """
    return f"# {' '.join(text.split(chr(10)))}".rstrip()


def writable_unit(unit: str) -> bool:
    """Whether a block can name the unit in its brackets.

    >>> writable_unit("ns"), writable_unit("rows per s")
    (True, False)
    """
    return fits("UNIT", unit)


def plain(clause: ast.Clause) -> bool:
    """Whether it is no mixture."""
    return len(clause.parts) == 1 and clause.parts[0].probability == 1


def number(value: float) -> str:
    """The shortest text that is read as this number.

    >>> number(53350.0), number(0.1), number(1e22), number(-3.0)
    ('53350', '0.1', '1e22', '-3')
    """
    return repr(float(value)).removesuffix(".0").replace("e+", "e")


def feature(name: str) -> str:
    """A feature's name as it stands in a law: in backquotes where it is more than a dotted path.

    >>> feature("self.items.len"), feature("calls.app.<lambda>")
    ('self.items.len', '`calls.app.<lambda>`')
    """
    taken = name in CONSTANTS or name.lower() in NOT_FINITE
    return name if fits("NAME", name) and not taken else quote(name, "`")


def component(name: str) -> str:
    """A component's name as it stands before ``.metric(``."""
    return name if name == name.strip() and fits("COMPONENT", name, ".x() {") else quote(name, "`")


def _pieces(root: Expression, written: Callable[[float], str] | None = None) -> Iterator[str]:
    """The texts that make up an expression; ``written`` writes its numbers, by default exactly."""
    waiting: list[Expression | str] = [root]
    while waiting:
        item = waiting.pop()
        parts: list[Expression | str]
        match item:
            case str():
                yield item
                continue
            case ast.Number():
                parts = [(written or number)(item.value)]
            case ast.Name():
                parts = [feature(item.text)]
            case ast.Text():
                parts = [quote(item.value, '"')]
            case ast.Unary():
                parts = [item.op, *_within(item.operand, _PREFIX)]
            case ast.Binary():
                binds = _BINDS[item.op]
                right = _PREFIX if item.op == "^" else binds + 1
                left = binds + 1 if item.op == "^" or item.op in _COMPARED else binds
                between = item.op if item.op in _TIGHT else f" {item.op} "
                parts = [*_within(item.left, left), between, *_within(item.right, right)]
            case ast.Call():
                behind: list[Expression | str] = [part for one in item.arguments for part in (", ", one)]
                parts = [f"{item.function}(", *behind[1:], ")"]
            case _:
                raise TypeError(f"{type(item).__name__} is no part of a law")
        waiting.extend(reversed(parts))


def _within(node: Expression, least: int) -> list[Expression | str]:
    """The node, in parentheses where it binds less tightly than that."""
    if isinstance(node, ast.Binary):
        binding = _BINDS[node.op]
    else:
        negative = isinstance(node, ast.Number) and number(node.value).startswith("-")
        binding = _PREFIX if negative or isinstance(node, ast.Unary) else _ATOM
    return [node] if binding >= least else ["(", node, ")"]
