"""Trends as a table of 80 columns: how every cluster grows, what it costs later, and where it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from perflaw.report.annotations.table import gist
from perflaw.report.law_words import law_text, prediction_text
from perflaw.report.quantity import number, percent
from perflaw.report.tables import WIDTH, broken, printable, text_table
from perflaw.report.trend.places import Places, places_of
from perflaw.report.trend.words import (
    COSTLY,
    TrendView,
    best_feature,
    dominates,
    overtake_text,
    power_text,
    summary,
    title,
    where,
    zeros_text,
)
from perflaw.types import Cluster

# ---- What stands below the table of trends: where each cluster is, and what the data leave open.

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
    told = places.texts(one.members, view.peak)
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


MOST = 20
"""Clusters a table lists; more are counted below it."""
MOST_FEATURES, MOST_OVERTAKES, MOST_LINES = 3, 3, 6
"""Features whose laws are listed of a cluster, clusters it overtakes; lines of a name. The page tells all."""
NAME_WIDTH, LAW_WIDTH = 18, 24
_PARTS = re.compile(r" (?=in |-> |at module level|\()")


def trend_table(view: TrendView, colour: bool, every: bool = False) -> str:
    """What a person sees of ``perflaw trend``; clusters of small cost are counted unless ``every`` is asked for."""
    shown = [one for one in view.trends.clusters if every or _matters(one, view)]
    shown = shown if every else shown[:MOST]
    head = wrapped([*view.left_out, summary(view)])
    if not shown:
        return head + wrapped(view.trends.notes)
    lines = [head, "\n", _table(view, shown, colour), _rest(view, shown), "\n"]
    lines += [wrapped([dominates(view)]), "\n"] if dominates(view) else []
    places = places_of(view.matrix.locations)
    lines += [explained(one, places, view) for one in shown]
    lines += [doubts(shown)]
    return "".join(lines) + ("\n" + wrapped(view.trends.notes) if view.trends.notes else "")


def _matters(one: Cluster, view: TrendView) -> bool:
    """Whether a cluster is worth a line: costly in some run, or at the point asked for."""
    dearest = view.trends.clusters[view.trends.by_prediction[0] - 1].predicted if view.trends.by_prediction else None
    later = one.predicted is not None and dearest is not None and one.predicted.mean >= COSTLY * dearest.mean > 0
    return one.costly or later


def _table(view: TrendView, shown: Sequence[Cluster], colour: bool) -> str:
    at = view.trends.at
    single = f"at {next(iter(at))}={_compact(next(iter(at.values())))}" if len(at) == 1 else "then"
    headings = [
        "now",
        "then",
        "cluster",
        "share",
        "lines" if view.noun == "lines" else "places",
        "law, ~ power law",
        single,
    ]
    table = text_table(headings, [_row(one, view) for one in shown], right=(0, 1, 3, 4), colour=colour)
    several = wrapped([f"now: rank by the largest cost seen · then: at {where(view)}"]) if len(at) > 1 else ""
    return table + several


def _compact(value: float) -> str:
    """A number for a heading: whole up to six digits, else with an exponent."""
    return number(value) if abs(value) < 1e6 else f"{value:.4g}".replace("e+0", "e").replace("e+", "e")


def _row(one: Cluster, view: TrendView) -> list[str]:
    return [
        str(one.rank),
        str(one.predicted_rank) if one.predicted else "",
        _name(one, view),
        percent(one.share),
        f"{view.places(one):,}",
        "\n".join(_laws(one)),
        prediction_text(one.predicted, "").replace(" (", "\n(") if one.predicted else "—",
    ]


def _name(one: Cluster, view: TrendView) -> str:
    """The representative, and the function around it on a line of its own."""
    parts = _PARTS.split(title(one, view))
    texts = [broken(printable(text), [".", " "], NAME_WIDTH) for text in parts]
    lines = "\n".join(texts).split("\n")
    return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "…"])


def _laws(one: Cluster) -> list[str]:
    """The law in several features where it takes them, those in one with the paper's below, then whom it overtakes."""
    first = best_feature(one)
    names = sorted(one.laws, key=lambda name: (name != first, -(one.laws[name].r2 or 0.0)))
    joint = one.law if one.law and len(one.law.features) > 1 else None
    texts = [law_text(joint, "") + " ?" * (joint.verdict == "inconclusive")] if joint else []
    for name in names[:MOST_FEATURES]:
        law, power = one.laws[name], one.powers.get(name)
        said = law_text(law, "") if law.features else f"no law in {name}"
        texts.append(said + " ?" * (bool(law.features) and law.verdict == "inconclusive"))
        if power and (law.features or name == first):
            texts += [
                f"~ {power_text(power, name)}".replace(" (", "\n  ("),
                *([f"  {zeros_text(power)}"] if power.zeros else []),
            ]
    texts += [f"and {len(names) - MOST_FEATURES} more features"] * (len(names) > MOST_FEATURES)
    texts += [
        overtake_text(other).replace(" at ", "\n  at ").replace(" (", "\n  (")
        for other in one.overtakes[:MOST_OVERTAKES]
    ]
    more = len(one.overtakes) - MOST_OVERTAKES
    texts += [f"overtakes {more} more"] * (more > 0)
    return [_fitted(printable(line)) for text in texts for line in text.split("\n")]


def _fitted(line: str) -> str:
    """The line in the width of laws; its indentation goes on."""
    text = line.lstrip(" ")
    indent = " " * (len(line) - len(text))
    return indent + broken(text, [" · ", " "], LAW_WIDTH - len(indent)).replace("\n", "\n" + indent)


def _rest(view: TrendView, shown: Sequence[Cluster]) -> str:
    ranks = {one.rank for one in shown}
    left = [one for one in view.trends.clusters if one.rank not in ranks]
    if not left:
        return ""
    share = percent(sum(one.share for one in left))
    return wrapped([f"{len(left):,} more of small cost, together {share} of all counts (--all lists them)"])
