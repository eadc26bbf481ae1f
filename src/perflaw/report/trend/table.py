"""Trends as a table of 80 columns: how every cluster grows, what it costs later, and where it is."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from textwrap import wrap

from perflaw.report.annotations import gist
from perflaw.report.law_words import law_text, prediction_text
from perflaw.report.quantity import NOTHING, number, percent
from perflaw.report.tables import WIDTH, broken, printable, text_table
from perflaw.report.trend.view import (
    COSTLY,
    Places,
    TrendView,
    best_feature,
    dominates,
    overtake_text,
    places_of,
    point_text,
    power_text,
    summary,
    title,
    zeros_text,
)
from perflaw.types import Cluster

MAX_CLUSTERS = 20
"""Clusters that the table lists; the others are counted below it."""
MAX_FEATURES, MAX_OVERTAKES, MAX_NAME_LINES = 3, 3, 6
"""Laws and overtaken clusters that a row lists, and lines of a name; the page holds all."""
MAX_LINE_PLACES, MAX_OTHER_PLACES, MAX_PLACE = 4, 12, 225
"""Functions whose lines are listed of a cluster; other places; characters of one."""
_NAME_WIDTH, _LAW_WIDTH = 18, 24
_TITLE_PARTS = re.compile(r" (?=in |-> |at module level|\()")
_NUMBER_AND_UNIT = re.compile(r"(\d) ([kMGTPE%]\b|%)")


def trend_table(view: TrendView, colour: bool, every: bool = False) -> str:
    """Clusters, where each of them is, and what the data leave open.

    Clusters of small cost are counted and not listed, unless ``every`` cluster is asked for.
    """
    clusters = view.trends.clusters
    # Worth a row is a cluster that is costly in some run, or at the point where costs are predicted.
    later_first = clusters[view.trends.by_prediction[0] - 1].predicted if view.trends.by_prediction else None
    enough = COSTLY * later_first.mean if later_first else math.nan
    large = [one for one in clusters if one.costly or (one.predicted and one.predicted.mean >= enough > 0)]
    shown = clusters if every else large[:MAX_CLUSTERS]
    head, notes = _wrapped([*view.left_out, summary(view)]), _wrapped(view.trends.notes)
    if not shown:
        return head + notes
    at = view.trends.at
    later = "then"
    if len(at) == 1:
        [(name, value)] = at.items()
        short = number(value) if abs(value) < 1e6 else f"{value:.4g}".replace("e+0", "e").replace("e+", "e")
        later = f"at {name}={short}"
    noun = "lines" if view.noun == "lines" else "places"
    headings = ["now", "then", "cluster", "share", noun, "law, ~ power law", later]
    rows = []
    for one in shown:
        names = [broken(printable(text), [".", " "], _NAME_WIDTH) for text in _TITLE_PARTS.split(title(one, view))]
        lines = "\n".join(names).split("\n")
        predicted = one.predicted
        row = [
            str(one.rank),
            str(one.predicted_rank) if predicted else "",
            "\n".join(lines if len(lines) <= MAX_NAME_LINES else [*lines[: MAX_NAME_LINES - 1], "…"]),
            percent(one.share),
            f"{view.size(one):,}",
            _laws_cell(one),
            prediction_text(predicted, "").replace(" (", "\n(") if predicted else NOTHING,
        ]
        rows.append(row)
    parts = [head, "\n", text_table(headings, rows, right=(0, 1, 3, 4), colour=colour)]
    if len(at) > 1:
        parts.append(_wrapped([f"now: rank by the largest cost seen · then: at {point_text(view)}"]))
    ranks = {one.rank for one in shown}
    left = [one for one in clusters if one.rank not in ranks]
    if left:
        share = percent(sum(one.share for one in left))
        more = f"{len(left):,} more of small cost, together {share} of all counts (--all lists them)"
        parts.append(_wrapped([more]))
    parts.append("\n")
    if sentence := dominates(view):
        parts += [_wrapped([sentence]), "\n"]
    places = places_of(view.matrix.locations)
    parts += [_places(one, places, view) for one in shown]
    # The reasons behind the question marks, each once with the number of clusters.
    reasons = Counter(
        reason
        for cluster in shown
        for reason in dict.fromkeys(
            gist(law.reason) for law in cluster.laws.values() if law.features and law.verdict == "inconclusive"
        )
    )
    parts.append("\n" * bool(reasons) + _wrapped(f"? {n} inconclusive: {reason}" for reason, n in reasons.items()))
    return "".join(parts) + ("\n" + notes if notes else "")


def _laws_cell(cluster: Cluster) -> str:
    """The law in several features, laws in one feature with the paper's below each, then the clusters overtaken."""
    first = best_feature(cluster)
    names = sorted(cluster.laws, key=lambda name: (name != first, -(cluster.laws[name].r2 or 0.0)))
    texts = []
    if cluster.law and len(cluster.law.features) > 1:
        texts.append(law_text(cluster.law, "") + " ?" * (cluster.law.verdict == "inconclusive"))
    for name in names[:MAX_FEATURES]:
        law, power = cluster.laws[name], cluster.powers.get(name)
        if law.features:
            texts.append(law_text(law, "") + " ?" * (law.verdict == "inconclusive"))
        else:
            texts.append(f"no law in {name}")
        if power and (law.features or name == first):
            texts.append(f"~ {power_text(power, name)}".replace(" (", "\n  ("))
            texts += [f"  {zeros_text(power)}"] * bool(power.zeros)
    if len(names) > MAX_FEATURES:
        texts.append(f"and {len(names) - MAX_FEATURES} more features")
    for overtake in cluster.overtakes[:MAX_OVERTAKES]:
        texts.append(overtake_text(overtake).replace(" at ", "\n  at ").replace(" (", "\n  ("))
    if len(cluster.overtakes) > MAX_OVERTAKES:
        texts.append(f"overtakes {len(cluster.overtakes) - MAX_OVERTAKES} more")
    lines = []
    for line in (printable(line) for text in texts for line in text.split("\n")):
        unindented = line.lstrip(" ")
        indent = " " * (len(line) - len(unindented))  # continued lines keep it
        lines.append(indent + broken(unindented, [" · ", " "], _LAW_WIDTH - len(indent)).replace("\n", "\n" + indent))
    return "\n".join(lines)


def _places(cluster: Cluster, places: Places, view: TrendView) -> str:
    """Where a cluster is: its functions with their lines, those that weigh most first."""
    texts = places.texts(cluster.members, view.peak)
    most = MAX_LINE_PLACES if view.noun == "lines" else MAX_OTHER_PLACES
    if len(texts) > most + 1:
        texts = [*texts[:most], f"and {len(texts) - most:,} more places"]
    texts = [text if len(text) <= MAX_PLACE else f"{text[: MAX_PLACE - 1]}…" for text in map(printable, texts)]
    if view.noun != "lines":
        texts = [", ".join(texts)]
    head = f"{cluster.rank:>3}  "
    lines = [line for text in texts for line in wrap(text, WIDTH - len(head), break_on_hyphens=False)]
    return "".join((head if i == 0 else " " * len(head)) + line + "\n" for i, line in enumerate(lines))


def _wrapped(lines: Iterable[str]) -> str:
    """Lines of at most 80 columns; a number and its unit stay on one."""
    whole = (_NUMBER_AND_UNIT.sub("\\1\u00a0\\2", printable(line)) for line in lines)
    wrapped = (wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in whole)
    return "".join(part.replace("\u00a0", " ") + "\n" for parts in wrapped for part in parts)
