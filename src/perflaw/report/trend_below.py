"""What stands below the table of trends: where each cluster is, and what the data leave open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from perflaw.report.table import WIDTH, printable
from perflaw.report.terminal import gist
from perflaw.report.trend_model import TrendView
from perflaw.report.trend_places import Places
from perflaw.types import Cluster

MOST_PLACES = 4
"""Functions whose lines are listed of a cluster; the page tells more."""
MOST_TEXT = 225
"""Characters of a place."""
MOST_NAMES = 12
"""Functions, calls or columns of a cluster that are named."""
_UNIT = re.compile(r"(\d) ([kMGTPE%]\b|%)")


def doubts(shown: Sequence[Cluster]) -> str:
    """What the question marks stand for, each reason once."""
    reasons: dict[str, int] = {}
    for one in shown:
        for reason in {gist(law.reason) for law in one.laws.values() if law.features and law.verdict == "inconclusive"}:
            reasons[reason] = reasons.get(reason, 0) + 1
    lines = [f"? {count} inconclusive: {reason}" for reason, count in reasons.items()]
    return "\n" * bool(lines) + wrapped(lines)


def explained(one: Cluster, places: Places, view: TrendView) -> str:
    """Where a cluster is: its functions with their lines, those that weigh most first."""
    told = places.told(one.members, view.peak)
    most = MOST_PLACES if view.noun == "lines" else MOST_NAMES
    texts = told[:most] if len(told) > most + 1 else told
    if len(told) > len(texts):
        texts = [*texts, f"and {len(told) - len(texts):,} more places"]
    texts = [_cut(printable(text)) for text in texts]
    if view.noun != "lines":
        texts = [", ".join(texts)]
    head = f"{one.rank:>3}  "
    lines = [line for text in texts for line in wrap(text, WIDTH - len(head), break_on_hyphens=False)]
    return "".join((head if i == 0 else " " * len(head)) + line + "\n" for i, line in enumerate(lines))


def _cut(text: str) -> str:
    """At most three lines of it: names may have any length."""
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


def wrapped(lines: Iterable[str]) -> str:
    """Lines of at most 80 columns; a number and its unit stay on one."""
    kept = (_UNIT.sub("\\1\u00a0\\2", printable(line)) for line in lines)
    broken = (wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in kept)
    return "".join(one.replace("\u00a0", " ") + "\n" for lines in broken for one in lines)
