"""What a recording collects beside costs: calls always, the outcomes of branches where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perflaw.errors import TargetError, UsageError

CALLS: Final = "calls"
BRANCHES: Final = "branches"
KNOWN: Final = {
    CALLS: "every call of a recorded function; always collected",
    BRANCHES: "which way each branch went, and how often, in the sampled invocations; native tracer only",
}
"""Words of ``--collect`` and what they mean."""
_ABLE: Final = ("auto", "native")


def collected(asked: Iterable[str], wish: str) -> tuple[str, ...]:
    """What is asked for (``"calls,branches"``) beside calls, in the order of ``KNOWN``.

    UsageError where a word is unknown, or the tracer wished for by name cannot collect it.
    """
    words = {word.strip() for text in asked for word in text.split(",")}
    if unknown := sorted(words - KNOWN.keys()):
        known = f"there are {' and '.join(KNOWN)}"
        raise UsageError(
            f"--collect {unknown[0]}: nothing of that name", known, "perflaw record --collect branches -- …"
        )
    if BRANCHES in words and wish not in _ABLE:
        why = "only the native tracer sees which way a branch goes"
        raise UsageError(f"--collect branches with --tracer {wish}", why, "perflaw record --collect branches -- …")
    return tuple(word for word in KNOWN if word in words - {CALLS})


def require(asked: tuple[str, ...], tracer: str, reason: str) -> None:
    """TargetError where the tracer that ``auto`` came to cannot collect what is asked for."""
    if BRANCHES in asked and tracer not in _ABLE:
        why = f"only the native tracer sees which way a branch goes, and it is not there: {reason}"
        raise TargetError("--collect branches: cannot be collected", why, "perflaw doctor")
