r"""Call edges, call paths and expressions over edges as people read and write them, and back.

An edge is ``caller -> callee``; an arrow within a name is written ``\->`` so that names of any language come back.
An expression is in disjunctive normal form: ``"a -> b" and not "c -> d" or "e -> f"``; ``always`` holds for every path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perflaw.errors import DataError
from perflaw.types.specifications import CallPath, Edge, Term

ALWAYS = "always"
"""The expression that holds for every path."""
_ARROW = " -> "
_ESCAPED = r" \-> "
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s"]+)')


def edge_text(edge: Edge) -> str:
    r"""The edge as text.

    >>> edge_text(("a", "b")), edge_text(("f -> g", "b"))
    ('a -> b', 'f \\-> g -> b')
    """
    return path_text(edge)


def path_text(path: Sequence[str]) -> str:
    """The functions of a call path with arrows between them."""
    return _ARROW.join(name.replace(_ARROW, _ESCAPED) for name in path)


def parse_path(text: str) -> CallPath:
    r"""The functions of a call path; DataError where one has no name.

    >>> parse_path("a -> b -> z"), parse_path(r"f \-> g -> b")
    (('a', 'b', 'z'), ('f -> g', 'b'))
    """
    names = tuple(part.replace(_ESCAPED, _ARROW) for part in text.split(_ARROW))
    if not all(name.strip() for name in names):
        raise DataError(f"call path {text!r}", "a function has no name", 'write "caller -> callee"')
    return names


def parse_edge(text: str) -> Edge:
    """The two functions of an edge; DataError where there are not two."""
    names = parse_path(text)
    if len(names) != 2:
        raise DataError(f"call edge {text!r}", f"it has {len(names)} functions and not two", 'write "caller -> callee"')
    return names[0], names[1]


def expression_text(expression: Sequence[Term], legend: Mapping[Edge, str] | None = None) -> str:
    """The expression; edges by the names that a legend gives them, else in quotes. Empty where there is none.

    >>> expression_text([((("b", "c"), True),)]), expression_text([((("b", "c"), False), (("a", "b"), True))])
    ('"b -> c"', 'not "b -> c" and "a -> b"')
    >>> expression_text([()]), expression_text([((("b", "c"), False),)], {("b", "c"): "e1"})
    ('always', 'not e1')
    """
    terms = []
    for term in expression:
        atoms = []
        for edge, there in term:
            escaped = edge_text(edge).replace("\\", "\\\\").replace('"', '\\"')
            name = legend[edge] if legend is not None and edge in legend else f'"{escaped}"'
            atoms.append(name if there else f"not {name}")
        terms.append(" and ".join(atoms) or ALWAYS)
    return " or ".join(terms)


def parse_expression(text: str) -> tuple[Term, ...]:
    """What ``expression_text`` wrote, without a legend; DataError says what was expected where.

    >>> parse_expression('not "b -> c" and "a -> b" or always')
    (((('b', 'c'), False), (('a', 'b'), True)), ())
    """
    words: list[str] = []
    place, stripped = 0, text.strip()
    while place < len(stripped):
        token = _TOKEN.match(stripped, place)
        if token is None:
            raise _wrong(stripped, "a quotation mark is not closed")
        words.append(token[1])
        place = token.end()

    terms: list[Term] = []
    term: list[tuple[Edge, bool]] = []
    place = 0
    while True:
        there = words[place : place + 1] != ["not"]
        place += not there
        word = words[place] if place < len(words) else ""
        if word.startswith('"'):
            term.append((parse_edge(re.sub(r"\\(.)", r"\1", word[1:-1])), there))
        elif word != ALWAYS or not there:
            found = f"{word!r}" if word else "the end"
            raise _wrong(text, f'{found} where an edge in quotes was expected, such as "caller -> callee"')
        place += 1
        if place == len(words):
            return (*terms, tuple(term))
        if words[place] == "or":
            terms.append(tuple(term))
            term = []
        elif words[place] != "and":
            raise _wrong(text, f"{words[place]!r} where 'and' or 'or' was expected")
        place += 1


def excluded_callee(expression: Sequence[Term]) -> str | None:
    """The function whose calls by some callers an expression excludes, and nothing else; None for other expressions.

    >>> excluded_callee([((("a", "f"), False), (("b", "f"), False))]), excluded_callee([((("a", "f"), True),)])
    ('f', None)
    """
    if len(expression) != 1 or not expression[0] or any(on_path for _, on_path in expression[0]):
        return None
    callees = {callee for (_, callee), _ in expression[0]}
    return callees.pop() if len(callees) == 1 else None


def _wrong(text: str, why: str) -> DataError:
    return DataError(f"expression {text!r}", why, 'write "a -> b" and not "c -> d"')
