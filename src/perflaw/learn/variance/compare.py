"""Two recordings compared: which patterns appeared, went, or changed where their variance comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perflaw.types.variance import Pattern, PatternChange, ShareChange, Variance

MOVED: Final = 0.1
"""Change of a share of the variance that matters: what is significant at all."""
SPREAD: Final = 1.5
"""Ratio of two coefficients of variation from which on they differ."""


def compare(old: Variance, new: Variance) -> tuple[PatternChange, ...]:
    """What became of every pattern; those of the new recording first, in its order."""
    left, found = list(old.patterns), []
    for pattern in new.patterns:
        before = _counterpart(pattern, left)
        if before is not None:
            left.remove(before)
        found.append(_change(before, pattern))
    return tuple(found) + tuple(_change(pattern, None) for pattern in left)


def _counterpart(pattern: Pattern, others: Sequence[Pattern]) -> Pattern | None:
    """The pattern of the same root; of several the one with the most functions in common."""
    root = pattern.nodes[0]
    same = [
        one for one in others if (one.nodes[0].component.name, one.nodes[0].kind) == (root.component.name, root.kind)
    ]
    mine = _names(pattern)
    return max(same, key=lambda one: (_contexts(one, pattern), len(mine & _names(one))), default=None)


def _names(pattern: Pattern) -> set[str]:
    return {node.component.name for node in pattern.nodes}


def _contexts(one: Pattern, other: Pattern) -> int:
    """Call paths that both roots have, by names: call sites move where code is edited."""
    paths = ({tuple(step.callee for step in path) for path in each.nodes[0].contexts} for each in (one, other))
    return len(next(paths) & next(paths))


def _change(old: Pattern | None, new: Pattern | None) -> PatternChange:
    pattern = new or old
    assert pattern is not None
    roots = (old.nodes[0] if old else None, new.nodes[0] if new else None)
    before, now = (_shares(one) if one else {} for one in (old, new))
    moved = tuple(
        ShareChange(path, before.get(path), now.get(path))
        for path in sorted({**before, **now})
        if abs(now.get(path, 0.0) - before.get(path, 0.0)) >= MOVED
    )
    if old is None or new is None:
        own = tuple(one for one in moved if one.path[0] == pattern.nodes[0].component.name)
        return PatternChange(pattern.nodes[0].component, "appeared" if new else "went", *roots, own)
    covs = sorted((old.nodes[0].cov, new.nodes[0].cov))
    differs = bool(moved) or covs[1] >= SPREAD * covs[0] > 0
    return PatternChange(pattern.nodes[0].component, "changed" if differs else "stays", *roots, moved)


def _shares(pattern: Pattern) -> dict[tuple[str, ...], float]:
    """Segment by names → share. Of several by the same names the sum."""
    names = {node.id: node.component.name for node in pattern.nodes}
    found: dict[tuple[str, ...], float] = {}
    for edge in pattern.contributions:
        path = tuple(names[one] for one in edge.path)
        found[path] = found.get(path, 0.0) + edge.cf_net
    return found
