"""What matters first: ordering by variance impact, and trimming (§4, step 5 of §7).

What is only there for contrast does not outweigh what varies: many calls of a steady function have much σ·N as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflaw.learn.variance.joining import Passing
from perflaw.learn.variance.vertex import Vertex


def ordered(vertices: Sequence[Vertex]) -> list[Vertex]:
    """Most important first, at every depth; what is there for contrast alone comes last."""
    inner = [replace(one, children=tuple(ordered(one.children))) for one in vertices]
    return sorted(inner, key=lambda one: (not _varies(one), -one.vim, one.order))


def trimmed(vertices: Sequence[Vertex], beta: float, passing: Passing, above: frozenset[int]) -> list[Vertex]:
    """Leave out what has less than β of the greatest VIM at its level, but nothing on a segment that is told."""
    rivals = [one for one in vertices if _varies(one)] or vertices
    most = max((one.vim for one in rivals), default=0.0)
    kept = [one for one in vertices if one.vim >= beta * most or _told(one, passing, above)]
    return [replace(one, children=tuple(trimmed(one.children, beta, passing, above | one.members))) for one in kept]


def _varies(vertex: Vertex) -> bool:
    return any(one.kind != "Contrast" for one in vertex.walk())


def _told(vertex: Vertex, passing: Passing, above: frozenset[int]) -> bool:
    """Whether it lies on a linear segment whose head stands above it."""
    return any(head in above for member in vertex.members for head, _ in passing.get(member, ()))
