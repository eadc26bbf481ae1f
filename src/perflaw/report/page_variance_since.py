"""What changed since other recordings, for the variance page: patterns that appeared, went, or vary for other reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.report import text
from perflaw.report.page_variance_words import share_text
from perflaw.report.quantity import significant
from perflaw.report.variance_model import Since
from perflaw.types import Component
from perflaw.types.variance import PatternChange, PatternNode, ShareChange

Json = dict[str, Any]


def since_data(since: Since | None, numbers: Mapping[Component, int], unit: str) -> Json | None:
    """The comparison; None where there is nothing to compare with. ``numbers`` are those of the page's functions."""
    if since is None:
        return None
    shown = [one for one in since.changes if one.what != "stays"]
    return {
        "name": since.name,
        "stay": len(since.changes) - len(shown),
        "rows": [_row(one, numbers, unit) for one in shown],
    }


def _row(one: PatternChange, numbers: Mapping[Component, int], unit: str) -> Json:
    return {
        "name": one.component.name,
        "f": numbers.get(one.component),
        "id": one.new.id if one.new else None,
        "what": one.what,
        "old": _root(one.old, unit),
        "new": _root(one.new, unit),
        "shares": [_share(share) for share in one.shares],
    }


def _root(node: PatternNode | None, unit: str) -> str:
    return f"CoV {significant(node.cov)} of {text.quantity(node.mean, unit)}" if node else "none"


def _share(share: ShareChange) -> Json:
    ends = ["none" if value is None else share_text(value) for value in (share.old, share.new)]
    return {"old": ends[0], "new": ends[1], "of": share.path[0], "from": " > ".join(share.path[1:])}
