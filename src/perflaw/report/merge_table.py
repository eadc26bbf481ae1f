"""What ``mine --merge`` found, step by step: the figures behind the paper's Figure 5."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perflaw.report.prose import paragraph
from perflaw.report.quantity import count
from perflaw.report.table import printable, text_table
from perflaw.types import Consistency
from perflaw.types.spec_files import MergeStep

MOST_NAMED = 8
"""Functions of one side alone that are named; more are counted."""
HEADINGS = ["merged", "functions", "paths consistent", "by chance", "calls consistent", "by chance"]


def telling(found: Sequence[Consistency]) -> list[Consistency]:
    """Functions about which models can disagree: chance does not put all calls together, as it does with one group each."""
    return [one for one in found if one.chance_points < 1.0 or one.points < 1.0]


def merge_text(steps: Sequence[MergeStep], colour: bool = False) -> str:
    """A row a step: medians over functions, the least in brackets, beside what random groups would reach."""
    rows = [_row(step) for step in steps]
    text = text_table(HEADINGS, rows, right=(1, 2, 3, 4, 5), colour=colour)
    plain = sum(len(step.found) - len(telling(step.found)) for step in steps)
    if plain:
        text += paragraph(
            f"{plain} comparisons of functions with one group are left out: there is nothing to disagree about"
        )
    text += _left_out("not in all of them (gone, new or inlined), so not compared", [step.missing for step in steps])
    return text + _left_out(
        "without borders in one of them, so without a model to compare", [step.unsettled for step in steps]
    )


def _left_out(why: str, names: Sequence[Sequence[str]]) -> str:
    """Functions that were not compared, by name; nothing where there are none."""
    some = sorted({name for step in names for name in step})
    more = f" and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
    return paragraph(f"{why}: {', '.join(map(printable, some[:MOST_NAMED]))}{more}") if some else ""


def _row(step: MergeStep) -> list[str]:
    told = telling(step.found)
    columns = ([one.paths for one in told], [one.chance_paths for one in told],
               [one.points for one in told], [one.chance_points for one in told])  # fmt: skip
    return [f"+ {printable(step.name)}", count(len(told)), *map(_median, columns)]


def _median(values: Sequence[float]) -> str:
    """The median, and the least in brackets.

    >>> _median([1.0, 0.9, 0.5]), _median([])
    ('90 % (50)', '—')
    """
    if not values:
        return "—"
    return f"{statistics.median(values) * 100:.0f} % ({min(values) * 100:.0f})"
