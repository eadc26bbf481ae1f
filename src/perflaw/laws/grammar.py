"""The grammar of ``grammar.lark``, made into a parser when it is first used: lark is not imported before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer, v_args

from perflaw.laws import statements
from perflaw.laws import tree as ast
from perflaw.laws.errors import DEEPEST, refused, too_deep
from perflaw.laws.tree import Expression, unquote

# ---- Between lexer and parser: comments are put where statements end, and brackets nest so deep and no deeper.

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
        self.words += 1
        self.nesting += (token.type in _OPEN) - (token.type in _CLOSED)
        self._prefixes = self._prefixes + 1 if token.type in _PREFIX else 0
        if max(self.nesting, self._prefixes) > DEEPEST:
            raise too_deep(token)
        if self.words > _LONGEST:
            raise refused(token, f"this law has more than {_LONGEST:,} words; write a shorter one")
        if token.type == "LBRACE" and self.nesting == 2:
            self._opened = self.words
        # A group's brace ends it; that of a probability, three words, does not.
        group = token.type == "RBRACE" and self.words - self._opened > 2
        ends = self.nesting == 1 and (group or token.type in ("SEMICOLON", "LBRACE"))
        last = token.type == "RBRACE" and self.nesting == 0
        if last:
            # The comments behind a last statement without semicolon: in its line, or below it.
            line = self._last.line if self._last is not None else None
            below = [token for token in self._held if token.line != line]
            self._held = [token for token in self._held if token.line == line]
            yield from self._released("BESIDE")
            yield from below
        yield token
        if ends:
            yield from self._released("COMMENT" if token.type == "LBRACE" else "BESIDE")
        self._ended, self._last = ends, token

    def _released(self, kind: str) -> Iterator[Token]:
        """The comments that were held, as one."""
        if self._held:
            words = " ".join(token[1:].strip() for token in self._held)
            yield self._held[0].update(kind, f"# {words}")
            self._held = []


# ---- What each rule of the grammar means: called by the parser with what the rule's parts came to.


@v_args(inline=True)
class Build(Transformer[Token, Any]):
    """Methods are named after rules; expressions, clauses and blocks come out as nouns of ``ast``."""

    def file(self, *items: str | ast.Block) -> ast.LawFile:
        """Comments belong to the block they precede; those behind the last one to the file."""
        blocks = tuple(statements.with_comments(items))
        behind = len(items) - next((n for n, one in enumerate(reversed(items)) if not isinstance(one, str)), len(items))
        return ast.LawFile(blocks, tuple(one for one in items[behind:] if isinstance(one, str)))

    def comment(self, token: Token) -> str:
        """Its text."""
        return token[1:].removeprefix(" ").rstrip()

    def block(self, component: Any, metric: Token, parameters: Any, unit: Any, body: Any) -> ast.Block:
        """A block; its statements are put in order."""
        name, line = component
        statements.check_unit(metric, unit)
        bindings, clauses, said = statements.arrange(body, unit, metric)
        return ast.Block(name, str(metric), parameters, bindings, clauses, str(unit or ""), (), said, line)

    def remark(self, token: Token) -> statements.Read:
        """A comment within a block."""
        return statements.Read(self.comment(token), token.type == "BESIDE")

    def component(self, token: Token) -> tuple[str, int]:
        """Name and line."""
        return (unquote(token) if token.type == "QUOTED" else token.strip()), token.line or 0

    def parameters(self, *tokens: Token) -> tuple[str, ...]:
        """Their texts."""
        return tuple(unquote(token) if token.type == "QUOTED" else str(token) for token in tokens)

    def unit(self, token: Token | None = None) -> Token | None:
        """The unit, if there is one."""
        return token

    def body(self, *found: Any) -> tuple[Any, ...]:
        """Statements, or weighted laws, in their order."""
        return found

    mixture = body

    def binding(self, token: Token) -> ast.Binding:
        """Type, name and text."""
        return statements.binding(str(token))

    def clause(self, *parts: Any) -> ast.Clause:
        """A law, under a condition or not."""
        return ast.Clause(parts[0] if len(parts) == 2 else None, (ast.Part(1.0, parts[-1]),))

    def group(self, *parts: Any) -> ast.Clause:
        """A mixture in braces."""
        return ast.Clause(parts[0] if len(parts) == 2 else None, statements.mixture(parts[-1]))

    def weighted(self, token: Token, distribution: ast.Distribution) -> statements.Weighted:
        """A law with its probability."""
        return statements.Weighted(token, statements.probability(token), distribution)

    def distribution(self, name: Token, *arguments: Expression) -> ast.Distribution:
        """A distribution that exists, with arguments that it can have."""
        return statements.distribution(name, arguments)

    def binary(self, left: Expression, op: Token, right: Expression) -> Expression:
        """An operator between two."""
        return statements.bounded(ast.Binary("^" if op == "**" else str(op), left, right), op)

    def text_behind(self, name: Expression, op: Token, text: Token) -> Expression:
        """A comparison with a text."""
        return ast.Binary(str(op), statements.categorical(name, op), ast.Text(unquote(text)))

    def text_before(self, text: Token, op: Token, name: Expression) -> Expression:
        """The same the other way round."""
        return ast.Binary(str(op), ast.Text(unquote(text)), statements.categorical(name, op))

    def unary(self, op: Token, operand: Expression) -> Expression:
        """An operator before its operand."""
        return statements.bounded(ast.Unary(str(op), operand), op)

    def number(self, token: Token) -> Expression:
        """A finite number."""
        return statements.number(token)

    def name(self, token: Token) -> Expression:
        """A feature; ``true`` and ``false`` are 1 and 0."""
        return statements.name(token)

    def quoted(self, token: Token) -> Expression:
        """A feature in backquotes."""
        return ast.Name(unquote(token))

    def call(self, name: Token, *arguments: Expression) -> Expression:
        """A function that exists."""
        return statements.call(name, arguments)


STARTS = ["file", "expression", "distribution"]


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser; its results are nouns of ``ast``, built while it reads, so that no tree is walked afterwards."""
    text = files("perflaw.laws").joinpath("grammar.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"parser": "lalr", "lexer": "contextual", "maybe_placeholders": False}
    return Lark(text, start=STARTS, transformer=Build(), postlex=Outline(), **options)
