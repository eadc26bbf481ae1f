"""What a recording collects beside costs: calls always, the outcomes of branches where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perflaw.errors import TargetError, UsageError

CALLS: Final = "calls"
BRANCHES: Final = "branches"
LINES: Final = "lines"
PATHS: Final = "paths"
PROBES: Final = "probes"
KNOWN: Final = {
    CALLS: "every call of a recorded function; always collected",
    BRANCHES: "which way each branch went, and how often, in the sampled invocations; native tracer only",
    LINES: "how often each line was executed, exactly; of Python programs by the native tracer only",
    PATHS: "how long the calls of a function took, by call path, for perflaw mine",
    PROBES: "records of the probes that the program has (perflaw.h, perflaw.probes)",
}
"""Words of ``--collect`` and what they mean."""
_NEEDS: Final = {BRANCHES: "sees which way a branch goes", LINES: "counts lines"}
"""What a tracer of Python programs must be able to."""
_ABLE: Final = ("auto", "native")


def collected(asked: Iterable[str], wish: str) -> tuple[str, ...]:
    """What is asked for (``"calls,branches"``) beside calls, in the order of ``KNOWN``.

    UsageError where a word is unknown, or the tracer wished for by name cannot collect it.
    """
    words = {word.strip() for text in asked for word in text.split(",")}
    if unknown := sorted(words - KNOWN.keys()):
        known = f"there are {', '.join(list(KNOWN)[:-1])} and {list(KNOWN)[-1]}"
        raise UsageError(
            f"--collect {unknown[0]}: nothing of that name", known, "perflaw record --collect branches -- …"
        )
    for word in sorted(_NEEDS.keys() & words):
        if wish not in _ABLE:
            why = f"only the native tracer {_NEEDS[word]}"
            raise UsageError(f"--collect {word} with --tracer {wish}", why, f"perflaw record --collect {word} -- …")
    return tuple(word for word in KNOWN if word in words - {CALLS})


def require(asked: tuple[str, ...], tracer: str, reason: str) -> None:
    """TargetError where the tracer that ``auto`` came to cannot collect what is asked for."""
    for word in sorted(_NEEDS.keys() & set(asked)):
        if tracer not in _ABLE:
            why = f"only the native tracer {_NEEDS[word]}, and it is not there: {reason}"
            raise TargetError(f"--collect {word}: cannot be collected", why, "perflaw doctor")


def require_no_paths(asked: tuple[str, ...]) -> None:
    """TargetError where durations by call path are asked for of a compiled program that counts its lines."""
    if PATHS in asked:
        why = "a compiled program counts lines by itself and tells of no call; paths need hooks, in a recording of their own"
        raise TargetError(f"--collect {LINES},{PATHS}: not both at once", why, f"perflaw record --collect {PATHS} -- …")
