"""The journal of mining in a running program, for people: what was measured and why, what was found, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from perflaw.report.quantity import counted
from perflaw.report.tables import text_table

Entries = Sequence[Mapping[str, Any]]
"""Entries of the journal, the oldest first."""
MAX_SHOWN = 500
"""Decisions that a page shows, the latest."""
_COLUMNS: Final = (
    "Each row is of some ten seconds: how long probes were in the program, measurements, CPU time of the program and of "
    "perflaw itself, and what was spent of the former, by what was known then. The last figure is the CPU time for each unit "
    "of work with probes, beyond that without."
)
DECISION_HEADS = ("at", "what", "of", "why", "utility", "cost", "found")
"""Heads of the ``decisions`` of :func:`journal_data`."""
MAX_NAMES = 3
"""Functions that one row names."""


def journal_data(entries: Entries) -> Mapping[str, Any] | None:
    """What a page shows of a journal; None without one."""
    if not entries:
        return None
    results = {(one["request"], one["event"]): one for one in _since_begin(entries) if "request" in one}
    findings: dict[int, list[str]] = {}
    decisions = []
    for one in _since_begin(entries):
        if one["event"] == "finding":
            findings.setdefault(one["request"], []).append(one["what"])
    for one in _since_begin(entries):
        if one["event"] != "decision":
            continue
        number = one["number"]
        measured, failed = results.get((number, "measurement")), results.get((number, "failure"))
        cost = f"{measured['calls']:,} calls, {measured['spent_ms']:.1f} ms" if measured else ""
        names = [*one["functions"][:MAX_NAMES], *["…"] * (len(one["functions"]) > MAX_NAMES)]
        callers = f" with {counted(len(one['callers']), 'caller')}" if one["callers"] else ""
        decisions.append(
            [
                _clock(one["at_ns"]),
                f"{one['kind']}{callers}",
                ", ".join(names) or "the whole program",
                one["why"],
                f"{one['utility']:.2f}",
                failed["why"] if failed else cost,
                "; ".join(findings.get(number, [])),
            ]
        )
    return {"decisions": decisions[-MAX_SHOWN:], "spent": spent_rows(entries), "budget": budget_text(entries)}


def budget_text(entries: Entries) -> str:
    """What the budget was, what was spent of it in all if the loop has ended, and what the columns of the table mean."""
    begin, ended = _since_begin(entries)[0], [one for one in _since_begin(entries) if one["event"] == "end"]
    of = "CPU time, perflaw's own included" if begin.get("of") == "cpu" else "throughput"
    target = f"Budget: {100 * begin['target']:.1f} % of the program's {of}. " if "target" in begin else ""
    whole = "".join(f"In all {100 * one['share']:.1f} % were spent. " for one in ended[-1:])
    return f"{target}{whole}{_COLUMNS}"


def spent_rows(entries: Entries) -> list[list[str]]:
    """What was spent over time, a row for each window; see :data:`SPENT_HEADS`."""
    return [
        [
            f"{one['start_s']:.0f} s",
            f"{one['probes_s']:.1f} s",
            str(one["measurements"]),
            f"{one['cpu_ns'] / 1e9:.1f} s",
            f"{one['own_ns'] / 1e9:.1f} s" if "own_ns" in one else "",
            f"{100 * one['share']:.1f} %",
            "" if one["paired"] is None else f"{100 * one['paired']:+.1f} %",
            one["action"],
        ]
        for one in _since_begin(entries)
        if one["event"] == "budget"
    ]


SPENT_HEADS = ("from", "probes in", "measured", "CPU time", "perflaw's", "spent", "with probes", "change")
"""Heads of :func:`spent_rows`: when a window began, how long probes were in, measurements, CPU time of the program and of
perflaw, what counts against the budget as a part of the former, CPU time for each unit of work with probes beyond that
without, and what was changed to keep the budget."""


def spent_text(entries: Entries, colour: bool) -> str:
    """The same as a table for the terminal, without changes, which were told already; empty without a journal."""
    rows = [row[:-1] for row in spent_rows(entries)]
    return text_table(SPENT_HEADS[:-1], rows, range(len(SPENT_HEADS) - 1), colour) if rows else ""


def _since_begin(entries: Entries) -> Entries:
    """Entries of the latest loop."""
    begun = max((place for place, one in enumerate(entries) if one["event"] == "begin"), default=0)
    return entries[begun:]


def _clock(at_ns: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ns / 1e9))
