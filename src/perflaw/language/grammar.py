"""The grammar of ``grammar.lark``, made into a parser when it is first used: lark is not imported before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from perflaw.language.errors import DEEPEST, refused, too_deep

if TYPE_CHECKING:
    from lark import Lark, Token

STARTS = ["file", "expression", "distribution"]
_OPEN, _CLOSED, _PREFIX = {"LPAR", "LBRACE", "LSQB"}, {"RPAR", "RBRACE", "RSQB"}, {"MINUS", "NOT"}
_LONGEST = 250_000
"""Words of a block: a sum of 100,000 terms is one; longer ones are nobody's law and would take minutes."""


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser; its results are nouns of ``ast``, built while it reads, so that no tree is walked afterwards."""
    from lark import Lark

    from perflaw.language.build import Build

    text = files("perflaw.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"parser": "lalr", "lexer": "contextual", "maybe_placeholders": False}
    return Lark(text, start=STARTS, transformer=Build(), postlex=_Outline(), **options)


@lru_cache(maxsize=64)
def _pattern(terminal: str) -> re.Pattern[str]:
    return re.compile(parser().get_terminal(terminal).pattern.to_regexp())


def fits(terminal: str, text: str, behind: str = "") -> bool:
    """Whether the terminal would be read as exactly this text where ``behind`` follows."""
    found = _pattern(terminal).match(text + behind)
    return found is not None and found.end() == len(text)


class _Outline:
    """Between lexer and parser: comments are kept between blocks alone, and brackets nest so deep and no deeper."""

    always_accept = ("COMMENT",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens without comments within blocks; LawSyntaxError where they nest too deeply, or never end."""
        nesting = prefixes = words = 0
        for token in stream:
            if token.type == "COMMENT":
                if not words:
                    yield token
                continue
            words += 1
            nesting += (token.type in _OPEN) - (token.type in _CLOSED)
            prefixes = prefixes + 1 if token.type in _PREFIX else 0
            if max(nesting, prefixes) > DEEPEST:
                raise too_deep(token)
            if words > _LONGEST:
                raise refused(token, f"this law has more than {_LONGEST:,} words; write a shorter one")
            if nesting == 0 and token.type == "RBRACE":
                words = 0
            yield token
