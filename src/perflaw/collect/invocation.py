"""An execution of a function that has not ended yet."""

from __future__ import annotations


class Invocation:
    """One open execution of a function. Mutable: this is the hot path."""

    __slots__ = (
        "code", "deeper", "features", "frame", "fresh", "key", "kids", "node", "segment", "slot", "started", "waited", "x",
    )  # fmt: skip

    def __init__(self, frame: int, code: int, node: int, started: int, key: int) -> None:
        self.frame, self.code, self.node, self.slot = frame, code, node, node
        self.started = self.segment = started
        self.x = self.waited = 0
        self.key, self.fresh = key, True
        self.features: list[tuple[int, float]] = []
        self.kids: dict[int, list[int]] = {}
        """Direct callee node → [cost Y, calls K]."""
        self.deeper: dict[int, list[int]] = {}
        """Descendant node below the callees → [cost Y, calls K]."""
