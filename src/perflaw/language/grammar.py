"""The grammar of ``grammar.lark``, made into a parser when it is first used: lark is not imported before."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from perflaw.language.outline import Outline

if TYPE_CHECKING:
    from lark import Lark

STARTS = ["file", "expression", "distribution"]


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser; its results are nouns of ``ast``, built while it reads, so that no tree is walked afterwards."""
    from lark import Lark

    from perflaw.language.build import Build

    text = files("perflaw.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"parser": "lalr", "lexer": "contextual", "maybe_placeholders": False}
    return Lark(text, start=STARTS, transformer=Build(), postlex=Outline(), **options)


@lru_cache(maxsize=64)
def _pattern(terminal: str) -> re.Pattern[str]:
    return re.compile(parser().get_terminal(terminal).pattern.to_regexp())


def fits(terminal: str, text: str, behind: str = "") -> bool:
    """Whether the terminal would be read as exactly this text where ``behind`` follows."""
    found = _pattern(terminal).match(text + behind)
    return found is not None and found.end() == len(text)
