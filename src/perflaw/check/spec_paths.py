"""Which call edge a deviation goes through: the one that calls which deviate have in common and others have not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perflaw.language.path_texts import expression_text, path_text
from perflaw.learn.paths.atoms import START, edges_of
from perflaw.types.durations import CallPath
from perflaw.types.specs import Edge, PathGroup

CLEAR = 0.9
"""An edge is told where it has so much more of the deviating calls than of the others."""


def telling_path(
    group: PathGroup, one_of_several: bool, deviating: Mapping[CallPath, float], others: Mapping[CallPath, float]
) -> str:
    """Where calls deviate, in words: an edge, else the group's expression, else a call path; empty for everywhere.

    Mappings are from call paths to calls; ``others`` are all calls of the function that keep to their shares.
    """
    if not deviating or not others:
        return expression_text(group.expression) if one_of_several and not group.standing else ""
    edge, score = _best_edge(deviating, others)
    if score >= CLEAR:
        return expression_text([((edge, True),)])
    if group.expression and not group.standing:
        return expression_text(group.expression)
    worst: CallPath = max(deviating, key=lambda path: (deviating[path], path))
    return path_text(worst)


def _best_edge(deviating: Mapping[CallPath, float], others: Mapping[CallPath, float]) -> tuple[Edge, float]:
    """The edge nearest to the function among those that tell the calls apart best."""
    edges: dict[Edge, int] = {}
    for path in deviating:
        for distance, edge in enumerate(reversed(edges_of(path))):
            if edge[0] != START:
                edges[edge] = min(distance, edges.get(edge, distance))
    scored = {edge: _share(edge, deviating) - _share(edge, others) for edge in edges}
    if not scored:
        return ("", ""), 0.0
    best = min(scored, key=lambda edge: (-round(scored[edge], 6), edges[edge], edge))
    return best, scored[best]


def _share(edge: Edge, calls: Mapping[CallPath, float]) -> float:
    """Share of the calls that come through the edge."""
    through = sum(n for path, n in calls.items() if edge in edges_of(path))
    return through / max(sum(calls.values()), 1e-9)


def leads_to(callers: Iterable[CallPath], callees: Iterable[CallPath]) -> bool:
    """Whether every call path of the one is the beginning of some longer one of the other."""
    some = list(callees)
    return all(any(len(path) < len(other) and other[: len(path)] == path for other in some) for path in callers)
