"""Texts in, nouns of ``ast`` out, and errors that say where and what was expected."""

from __future__ import annotations

from typing import Any, cast

from perflaw.language import ast
from perflaw.language.errors import LawSyntaxError
from perflaw.language.expected import unexpected
from perflaw.language.grammar import parser
from perflaw.language.tree import Expression


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
            raise LawSyntaxError(reason, block.line, _column(text, block), where)
        seen[name] = block.line
    return read


def _column(text: str, block: ast.Block) -> int:
    """Where the block starts in its line: names are written there as they are, or in backquotes."""
    line = text.split("\n")[block.line - 1]
    return max(line.rfind(block.component), line.rfind("`", 0, line.rfind(block.component) + 1), 0) + 1


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
