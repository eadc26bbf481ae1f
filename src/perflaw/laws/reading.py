"""Texts in, nouns of ``ast`` out, and errors that say where and what was expected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from perflaw.laws import tree as ast
from perflaw.laws.errors import LawSyntaxError
from perflaw.laws.grammar import parser
from perflaw.laws.tree import Expression

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput


# ---- Where a text stops being a law, in words: what was expected there, what stands there, and what people mostly
# mean.

_LAW = "a distribution such as Norm(mean, deviation)"
_EXPRESSION = "a number, a feature or `(`"
_HEADER = "`component.metric(parameters) {`"
_OPERATORS = {"PLUS", "MINUS", "TIMES", "POWER", "ORDER", "EQUAL", "AND", "OR"}
_WORDS = {
    "RPAR": "`)`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "SEMICOLON": "`;`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "DOT": "`.`",
    "METRIC": "a metric",
    "PARAMETER": "a parameter",
    "UNIT": "a unit such as us or MB",
    "NUMBER": "a number",
    "$END": "the end",
}
"""Terminals in words, in the order they are told in; others go without saying where these are said."""
_METRIC = re.compile(r"[^\n{]*?\.\s*[^\W\d]\w*\s*\([^(){};\n]*\)(?:\s*\[[^\]\n]*\])?")
_WORD = re.compile(r"\w+|.", re.DOTALL)


def unexpected(error: UnexpectedInput, text: str, where: str) -> LawSyntaxError:
    """The parser's error as ours."""
    place = error.pos_in_stream
    if place is None or getattr(getattr(error, "token", None), "type", "") == "$END":
        place = len(text.rstrip())
    parser = getattr(error, "interactive_parser", None)
    terminals = set(parser.accepts()) if parser else set()
    # The terminals in words.
    if "COMPONENT" in terminals:
        wanted = _HEADER
    elif "BINDING" in terminals:
        wanted = f"{_LAW}, `[condition]` or `{{probability}}`"
    elif terminals == {"NAME"}:
        wanted = _LAW
    elif "NAME" in terminals:
        wanted = _EXPRESSION
    else:
        words = [word for terminal, word in _WORDS.items() if terminal in terminals]
        if terminals == {"EQUAL"}:
            words = ["`==` or `!=`"]
        elif terminals & _OPERATORS:
            words.append("an operator")
        wanted = " or ".join(words) or "something else"
    if wanted == _HEADER:
        # What is missing in the line that should open a block, and where.
        opened = _METRIC.match(text, place)
        if opened:
            place, wanted = len(text) - len(text[opened.end() :].lstrip()), "`{`"
    if place >= len(text.rstrip()):
        found = "the end"
    else:
        match = _WORD.match(text, place)
        word = match.group()[:30] if match else ""
        found = f"`{word}`" if word.isprintable() and word != "`" else ascii(word)
    reason = f"{wanted} expected, found {found}{_hint(text, place, wanted, terminals)}"
    return LawSyntaxError(reason, text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place), where)


def _hint(text: str, place: int, wanted: str, terminals: set[str]) -> str:
    """What people mostly mean there."""
    here, before = text[place : place + 1], text[max(place - 1, 0) : place]
    if wanted == _HEADER:
        return "; a block starts as in parser.parse.time(src) {"
    if here == "=" and terminals & _OPERATORS:
        return "; == compares"
    if here in "<>" and here and "AND" in terminals:
        return "; a range is a < x && x < b"
    if here == '"' and wanted == _EXPRESSION:
        return "; a text can only be compared with == or !="
    if wanted == _LAW and here == "[":
        return "; a condition stands before its mixture: [x > 3] { {0.2} Exp(1); {0.8} Exp(2) }"
    if here == "{" and "RBRACE" in terminals:
        return "; is the `}` of the block before missing?"
    if terminals == {"LPAR"} and "=" in text[place:].split(";")[0]:
        return "; a short name is given as in uint s = this.items.len;"
    if "TIMES" not in terminals or not (here.isalnum() or here in ("[", "`", "_", "(")):
        return ""
    if before.isdigit() or before == " " or here == "(":
        return "; a product is written with *"
    return "; names with other characters stand in backquotes"


def parse(text: str, where: str = "") -> ast.LawFile:
    """A whole ``.law`` text; ``where`` names its file in errors. LawSyntaxError where it is none.

    >>> parse("f.time(n) [us] { Norm(50*n, 2) }").blocks[0].unit
    'us'
    """
    read = cast(ast.LawFile, _read(text, "file", where))
    seen: dict[tuple[str, str], int] = {}
    for block in read.blocks:
        name = (block.component, block.metric)
        if name in seen:
            reason = f"a second law of {'.'.join(name)}; the first stands in line {seen[name]}"
            line = text.split("\n")[block.line - 1]
            named = line.rfind(block.component)  # in backquotes or without
            column = max(named, line.rfind("`", 0, named + 1), 0) + 1
            raise LawSyntaxError(reason, block.line, column, where)
        seen[name] = block.line
    return read


def parse_expression(text: str) -> Expression:
    """An expression or a condition; LawSyntaxError where it is none.

    >>> parse_expression("3*n")
    Binary('*', Number(3.0), Name('n'))
    """
    return cast(Expression, _read(text, "expression", ""))


def parse_distribution(text: str) -> ast.Distribution:
    """A distribution; LawSyntaxError where it is none.

    >>> parse_distribution("Exp(12)")
    Distribution(name='Exp', arguments=(Number(12.0),))
    """
    return cast(ast.Distribution, _read(text, "distribution", ""))


def _read(text: str, start: str, where: str) -> Any:
    from lark.exceptions import UnexpectedInput, VisitError

    text = text.removeprefix("\ufeff")
    try:
        return parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise unexpected(error, text, where) from None
    except VisitError as error:
        found = error.orig_exc
    except LawSyntaxError as error:
        found = error
    if isinstance(found, LawSyntaxError):
        raise LawSyntaxError(found.expected, found.line, found.column, where) from None
    raise found
