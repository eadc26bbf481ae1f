"""The calls that lie on a call path: what expressions are made of (§3.5)."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from perflaw.types.durations import CallPath
from perflaw.types.specs import Edge, Term

START: Final = "(start)"
"""Caller of a program's first function."""


def edges_of(path: CallPath) -> tuple[Edge, ...]:
    """Calls from the start of the program to the function itself, in order.

    >>> edges_of(("main", "run", "work"))
    (('(start)', 'main'), ('main', 'run'), ('run', 'work'))
    """
    return tuple(pairwise((START, *path)))


def holds(expression: tuple[Term, ...], path: CallPath) -> bool:
    """Whether any conjunction of the expression is true of the path.

    >>> holds((((("a", "b"), True), (("b", "c"), False)),), ("a", "b", "d"))
    True
    """
    on = set(edges_of(path))
    return any(all((edge in on) == wanted for edge, wanted in term) for term in expression)
