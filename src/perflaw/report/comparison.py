"""Two profiles beside each other: what each function cost before and after, as a document and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from perflaw.report.quantity import NOTHING, count, counted, percent, quantity
from perflaw.report.tables import paragraph, printable, text_table
from perflaw.types.documents import Document
from perflaw.types.profiles import Profile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALL_CHANGE: Final = 0.01
"""Functions whose own cost changed by less than this part of the whole are counted and not listed."""
MAX_CHANGES: Final = 20
"""Functions that the table lists, unless all are asked for."""


def compare_document(old: Profile, new: Profile, metric: str) -> Document:
    """``perflaw.compare/1``: each function's calls and own cost in an execution of either side, the largest change first.

    Costs of several executions are means. Functions are the same if their names are.
    """
    sides = {"old": old, "new": new}
    costs = {side: _by_name(profile, metric) for side, profile in sides.items()}
    functions: list[Document] = []
    for name in costs["old"] | costs["new"]:
        before, after = costs["old"].get(name), costs["new"].get(name)
        change = (after["own"] if after else 0.0) - (before["own"] if before else 0.0)
        functions.append({"component": name, "old": before, "new": after, "change": change})
    functions.sort(key=lambda row: (-abs(row["change"]), row["component"]))
    return {
        "schema": "perflaw.compare/1",
        "metric": metric,
        "unit": new.metrics[metric].unit,
        "old_runs": _runs(old),
        "new_runs": _runs(new),
        "whole": {side: profile.whole(metric) / _executions(profile) for side, profile in sides.items()},
        "functions": functions,
    }


def _runs(profile: Profile) -> list[Document]:
    runs = [run for run in profile.runs if not run.parent] or profile.runs
    return [
        {"id": run.id, "target": run.target, "features": dict(run.features), "started": run.started} for run in runs
    ]


def _executions(profile: Profile) -> int:
    return max(1, sum(not run.parent for run in profile.runs))


def _by_name(profile: Profile, metric: str) -> dict[str, dict[str, float]]:
    """Calls, own cost and cost with callees of an execution, by name of the function."""
    executions = _executions(profile)
    columns: Mapping[str, NDArray[np.float64]] = {
        "calls": profile.function_calls.astype(float),
        "own": profile.function_own[metric],
        "total": profile.function_total[metric],
    }
    result: dict[str, dict[str, float]] = {}
    for place, component in enumerate(profile.components):
        row = result.setdefault(component.name, dict.fromkeys(columns, 0.0))
        for name, column in columns.items():
            row[name] += float(column[place]) / executions
    return result


def compare_text(page: Document, colour: bool, every: bool = False) -> str:
    """The document of ``compare`` for a terminal."""
    unit, whole = page["unit"], page["whole"]
    largest = max(whole.values()) or 1.0
    changed = [row for row in page["functions"] if abs(row["change"]) >= SMALL_CHANGE * largest]
    rows = page["functions"] if every else changed[:MAX_CHANGES]
    cells = [
        [
            quantity(row["old"]["own"], unit) if row["old"] else NOTHING,
            quantity(row["new"]["own"], unit) if row["new"] else NOTHING,
            signed(row["change"] / largest),
            ratio_text(row["old"] and row["old"]["own"], row["new"] and row["new"]["own"]),
            calls_text(row["old"], row["new"]),
            row["component"],
        ]
        for row in rows
    ]
    total = f"{quantity(whole['old'], unit)} → {quantity(whole['new'], unit)}"
    sides = f"{_side_text(page['old_runs'])} → {_side_text(page['new_runs'])}"
    text = paragraph(f"{sides} · {page['metric']} {total} ({ratio_text(whole['old'], whole['new'])})")
    if rows:
        headings = ["own before", "after", "of all", "factor", "calls", "function"]
        text += "\n" + text_table(headings, cells, right=range(5), colour=colour, names={5: (".", "_")})
    if left := len(page["functions"]) - len(rows):
        text += f"{counted(left, 'further function')} changed less (--all lists them)\n"
    if unit == "ns":
        text += "\ncalls are exact; times of single runs scatter: perflaw diff tests what changed\n"
    return text


def signed(share: float) -> str:
    """A change as a share with its sign.

    >>> signed(0.12), signed(-0.004), signed(0.0)
    ('+12 %', '-0.4 %', '0 %')
    """
    return "0 %" if share == 0 else f"{'+' if share > 0 else '-'}{percent(abs(share))}"


def ratio_text(old: float | None, new: float | None) -> str:
    """By which factor a cost changed; None where there was none.

    >>> ratio_text(2.0, 3.0), ratio_text(2.0, 1.5), ratio_text(None, 3.0), ratio_text(2.0, None), ratio_text(0.0, 0.0)
    ('1.5x', '0.75x', 'new', 'gone', '—')
    """
    if old is None or new is None:
        return "gone" if new is None else "new"
    if old <= 0:
        return NOTHING
    return f"{new / old:.{1 if new / old >= 0.95 else 2}f}x"


def calls_text(old: Mapping[str, float] | None, new: Mapping[str, float] | None) -> str:
    """Calls before and after, once where they are alike."""
    before, after = (count(side["calls"]) if side else NOTHING for side in (old, new))
    return before if before == after else f"{before} → {after}"


def _side_text(runs: Sequence[Document]) -> str:
    if len(runs) == 1:
        return f"run {runs[0]['id']} of {printable(runs[0]['target'])}"
    return f"{counted(len(runs), 'run')} of {printable(runs[0]['target'])}"
