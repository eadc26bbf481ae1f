"""What changed in the variance between two recordings, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflaw.report.prose import paragraph
from perflaw.report.quantity import percent, quantity, significant
from perflaw.report.table import printable
from perflaw.types.variance import PatternChange, PatternNode, ShareChange


def changes_text(changes: Sequence[PatternChange], unit: str) -> str:
    """Each pattern with what became of it; those that stay are counted."""
    shown = [one for one in changes if one.what != "stays"]
    text = "".join(_change(one, unit) for one in shown)
    stay = len(changes) - len(shown)
    return text + paragraph(f"{len(shown)} patterns appeared, went or changed, {stay} stay as they were")


def _change(one: PatternChange, unit: str) -> str:
    text = paragraph(f"{one.what:9} {printable(one.component.name)}: {_root(one.old, unit)} > {_root(one.new, unit)}")
    return text + "".join(paragraph("  " + _share(share)) for share in one.shares)


def _root(node: PatternNode | None, unit: str) -> str:
    return f"CoV {significant(node.cov)} of {quantity(node.mean, unit)}" if node else "none"


def _share(share: ShareChange) -> str:
    old, new = ("none" if value is None else percent(value) for value in (share.old, share.new))
    head, *below = share.path
    return printable(f"variance of {head} from {' > '.join(below)}: {old} before, {new} now")


def changes_document(changes: Sequence[PatternChange]) -> list[dict[str, Any]]:
    """The field ``changes``."""
    return [
        {
            "component": one.component.name,
            "what": one.what,
            "old": _figures(one.old),
            "new": _figures(one.new),
            "shares": [{"segment": list(share.path), "old": share.old, "new": share.new} for share in one.shares],
        }
        for one in changes
    ]


def _figures(node: PatternNode | None) -> dict[str, Any] | None:
    if node is None:
        return None
    return {"type": node.kind, "n": node.n, "mean": node.mean, "cov": node.cov, "vim": node.vim}
