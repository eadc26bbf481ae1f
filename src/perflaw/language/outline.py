"""Between lexer and parser: comments are put where statements end, and brackets nest so deep and no deeper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflaw.language.errors import DEEPEST, refused, too_deep

if TYPE_CHECKING:
    from lark import Token

_OPEN, _CLOSED, _PREFIX = {"LPAR", "LBRACE", "LSQB"}, {"RPAR", "RBRACE", "RSQB"}, {"MINUS", "NOT"}
_LONGEST = 250_000
"""Words of a block: a sum of 100,000 terms is one; longer ones are nobody's law and would take minutes."""


class Outline:
    """What the parser is given of the lexer's tokens (lark's ``postlex``)."""

    always_accept = ("COMMENT",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens, comments moved; LawSyntaxError where they nest too deeply, or never end."""
        block = _Block()
        for token in stream:
            if token.type == "COMMENT" and block.words:
                yield from block.comment(token)
                continue
            if token.type == "COMMENT":
                yield token
                continue
            yield from block.word(token)
            if block.words and block.nesting == 0 and token.type == "RBRACE":
                block = _Block()


class _Block:
    """What is known of the block that is being read."""

    def __init__(self) -> None:
        self.words = self.nesting = 0
        self._prefixes = self._opened = 0
        self._last: Token | None = None
        self._ended = False
        self._held: list[Token] = []

    def comment(self, token: Token) -> Iterator[Token]:
        """A comment between statements as it stands; one within a statement is held until that ends."""
        if not self._ended:
            self._held.append(token)
            return
        last = self._last
        beside = last is not None and last.line == token.line and last.type != "LBRACE"
        yield token.update("BESIDE" if beside else "COMMENT")

    def word(self, token: Token) -> Iterator[Token]:
        """Any other token, and the comments that were held before it."""
        self._count(token)
        ends = self._ends(token)
        last = token.type == "RBRACE" and self.nesting == 0
        if last:
            yield from self._left()
        yield token
        if ends:
            yield from self._released("COMMENT" if token.type == "LBRACE" else "BESIDE")
        self._ended, self._last = ends, token

    def _count(self, token: Token) -> None:
        self.words += 1
        self.nesting += (token.type in _OPEN) - (token.type in _CLOSED)
        self._prefixes = self._prefixes + 1 if token.type in _PREFIX else 0
        if max(self.nesting, self._prefixes) > DEEPEST:
            raise too_deep(token)
        if self.words > _LONGEST:
            raise refused(token, f"this law has more than {_LONGEST:,} words; write a shorter one")
        if token.type == "LBRACE" and self.nesting == 2:
            self._opened = self.words

    def _ends(self, token: Token) -> bool:
        """Whether a statement may begin behind the token."""
        if self.nesting != 1:
            return False
        # A group's brace ends it; that of a probability, three words, does not.
        group = token.type == "RBRACE" and self.words - self._opened > 2
        return group or token.type in ("SEMICOLON", "LBRACE")

    def _left(self) -> Iterator[Token]:
        """The comments behind a last statement without semicolon: in its line, or below it."""
        line = self._last.line if self._last is not None else None
        below = [token for token in self._held if token.line != line]
        self._held = [token for token in self._held if token.line == line]
        yield from self._released("BESIDE")
        yield from below

    def _released(self, kind: str) -> Iterator[Token]:
        """The comments that were held, as one."""
        if self._held:
            words = " ".join(token[1:].strip() for token in self._held)
            yield self._held[0].update(kind, f"# {words}")
            self._held = []
