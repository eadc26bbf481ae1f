"""What each rule of the grammar means: called by the parser with what the rule's parts came to."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from perflaw.language import ast, remarks, rules, statements
from perflaw.language.quoting import unquote
from perflaw.language.tree import Expression


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

    def remark(self, token: Token) -> remarks.Read:
        """A comment within a block."""
        return remarks.Read(self.comment(token), token.type == "BESIDE")

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
        """Statements in their order."""
        return found

    def binding(self, token: Token) -> ast.Binding:
        """Type, name and text."""
        return statements.binding(str(token))

    def clause(self, *parts: Any) -> ast.Clause:
        """A law, under a condition or not."""
        return ast.Clause(parts[0] if len(parts) == 2 else None, (ast.Part(1.0, parts[-1]),))

    def group(self, *parts: Any) -> ast.Clause:
        """A mixture in braces."""
        return ast.Clause(parts[0] if len(parts) == 2 else None, statements.mixture(parts[-1]))

    def mixture(self, *parts: Any) -> tuple[Any, ...]:
        """Weighted laws in their order."""
        return parts

    def weighted(self, token: Token, distribution: ast.Distribution) -> statements.Weighted:
        """A law with its probability."""
        return statements.Weighted(token, statements.probability(token), distribution)

    def distribution(self, name: Token, *arguments: Expression) -> ast.Distribution:
        """A distribution that exists, with arguments that it can have."""
        return rules.distribution(name, arguments)

    def binary(self, left: Expression, op: Token, right: Expression) -> Expression:
        """An operator between two."""
        return rules.bounded(ast.Binary("^" if op == "**" else str(op), left, right), op)

    def text_behind(self, name: Expression, op: Token, text: Token) -> Expression:
        """A comparison with a text."""
        return ast.Binary(str(op), rules.categorical(name, op), ast.Text(unquote(text)))

    def text_before(self, text: Token, op: Token, name: Expression) -> Expression:
        """The same the other way round."""
        return ast.Binary(str(op), ast.Text(unquote(text)), rules.categorical(name, op))

    def unary(self, op: Token, operand: Expression) -> Expression:
        """An operator before its operand."""
        return rules.bounded(ast.Unary(str(op), operand), op)

    def number(self, token: Token) -> Expression:
        """A finite number."""
        return rules.number(token)

    def name(self, token: Token) -> Expression:
        """A feature; ``true`` and ``false`` are 1 and 0."""
        return rules.name(token)

    def quoted(self, token: Token) -> Expression:
        """A feature in backquotes."""
        return ast.Name(unquote(token))

    def call(self, name: Token, *arguments: Expression) -> Expression:
        """A function that exists."""
        return rules.call(name, arguments)
