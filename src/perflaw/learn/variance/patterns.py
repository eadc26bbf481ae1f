"""Vertices to the nouns a person sees: numbered nodes with their figures, and back-edges with their shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perflaw.learn.variance.causes import cause, off_cpu, stats_by_metric
from perflaw.learn.variance.edges import edges
from perflaw.learn.variance.joining import Passing
from perflaw.learn.variance.options import Options
from perflaw.learn.variance.tree import Tree
from perflaw.learn.variance.vertex import CallPath, Vertex
from perflaw.types.explanations import Step
from perflaw.types.variance import Pattern, PatternNode


def patterns_of(tree: Tree, vertices: Sequence[Vertex], passing: Passing, options: Options) -> tuple[Pattern, ...]:
    """The patterns with ids depth first, in the order given."""
    first, result, shown = 0, list[Pattern](), _Shown(tree, _lines(tree), options)
    for root in vertices:
        numbered = list(_numbered(root, None, first))
        ids = {id(vertex): number for number, _, vertex in numbered}
        nodes = tuple(_node(shown, *row) for row in numbered)
        found = [edge for _, _, one in numbered for edge in edges(tree, one, ids, passing, options.paper)]
        result.append(Pattern(nodes, tuple(found)))
        first += len(nodes)
    return tuple(result)


def _numbered(vertex: Vertex, parent: int | None, number: int) -> Iterator[tuple[int, int | None, Vertex]]:
    yield number, parent, vertex
    following = number + 1
    for child in vertex.children:
        rows = list(_numbered(child, number, following))
        yield from rows
        following += len(rows)


Lines = dict[tuple[int, int], int]
"""Caller and call site → source line."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What it takes to tell a node."""

    tree: Tree
    lines: Lines
    options: Options


def _lines(tree: Tree) -> Lines:
    return {(tree.component[tree.parent[node]], tree.site[node]): tree.line[node] for node in range(1, tree.size)}


def _node(shown: _Shown, number: int, parent: int | None, vertex: Vertex) -> PatternNode:
    tree, stats, heads = shown.tree, vertex.stats, sorted(vertex.members)
    contexts = sorted((_steps(shown, path) for path in vertex.contexts), key=_context_order)
    by_metric = stats_by_metric(tree, heads)
    off = off_cpu(tree, heads, by_metric, shown.options)
    return PatternNode(
        number,
        parent,
        tree.given.components[vertex.function],
        vertex.kind,
        stats.n,
        stats.mean,
        stats.cov,
        float(stats.x),
        vertex.vim,
        tuple(contexts),
        cause(by_metric, tree.given.metric.name, off, shown.options, tree.noise),
        off,
    )


def _context_order(path: tuple[Step, ...]) -> list[tuple[str, int, str]]:
    return [(step.caller, step.site, step.callee) for step in path]


def _steps(shown: _Shown, path: CallPath) -> tuple[Step, ...]:
    name, lines = shown.tree.name, shown.lines
    return tuple(Step(name(caller), lines.get((caller, site), 0), site, name(callee)) for caller, site, callee in path)
