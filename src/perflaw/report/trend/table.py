"""Trends as a table of 80 columns: how every cluster grows, what its count is later, and where it is."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from textwrap import wrap

from perflaw.report.annotations import gist, predicted_text
from perflaw.report.quantity import NOTHING, number, percent
from perflaw.report.tables import broken, column, line_width, printable, text_table, width
from perflaw.report.trend.view import COSTLY
from perflaw.types.documents import Document

MAX_CLUSTERS = 20
"""Clusters that the table lists; the others are counted below it."""
MAX_FEATURES, MAX_OVERTAKES, MAX_NAME_LINES = 3, 3, 6
"""Laws and overtaken clusters that a row lists, and lines of a name; the page holds all."""
MAX_LINE_PLACES, MAX_OTHER_PLACES, MAX_PLACE = 4, 12, 225
"""Functions whose lines are listed of a cluster; other places; characters of one."""
_NAME_WIDTH, _LAW_WIDTH = 18, 24
_LEAST_WIDTH = 72
"""Columns of a screen from which a table has room for the rank then and the number of lines."""
_TITLE_PARTS = re.compile(r" (?=in |-> |at module level|\()")
_NUMBER_AND_UNIT = re.compile(r"(\d) ([kMGTPE%]\b|%)")


def trend_table(document: Document, colour: bool, every: bool = False) -> str:
    """Clusters, where each of them is, and what the data leave open. ``document``: ``perflaw.trend/1``.

    Clusters of small counts are summed up and not listed, unless ``every`` cluster is asked for.
    """
    clusters, at, said = document["clusters"], document["at"], document["shown"]
    # Worth a row is a cluster that is costly in some run, or at the point where counts are predicted.
    later_first = next((one["predicted"] for one in clusters if one["predicted_rank"] == 1), None)
    enough = COSTLY * later_first["mean"] if later_first else math.nan
    large = [one for one in clusters if one["costly"] or (one["predicted"] and one["predicted"]["mean"] >= enough > 0)]
    shown = clusters if every else large[:MAX_CLUSTERS]
    head, notes = _wrapped([*document["left_out"], said["summary"]]), _wrapped(document["notes"])
    if not shown:
        return head + notes
    later = "then"
    if len(at) == 1:
        [(name, value)] = at.items()
        short = number(value) if abs(value) < 1e6 else f"{value:.4g}".replace("e+0", "e").replace("e+", "e")
        later = f"at {name}={short}"
    noun = "lines" if said["locations"] == "lines" else "places"
    headings = ["now", "then", "cluster", "share", noun, "law, ~ power law", later]
    rows = []
    for one in shown:
        title, predicted = one["shown"]["name"], one["predicted"]
        names = [broken(printable(text), [".", " "], column(_NAME_WIDTH)) for text in _TITLE_PARTS.split(title)]
        lines = "\n".join(names).split("\n")
        row = [
            str(one["rank"]),
            str(one["predicted_rank"]) if predicted else "",
            "\n".join(lines if len(lines) <= MAX_NAME_LINES else [*lines[: MAX_NAME_LINES - 1], "…"]),
            percent(one["share"]),
            f"{one['shown']['size']:,}",
            _laws_cell(one["shown"]),
            predicted_text(predicted, "").replace(" (", "\n(") if predicted else NOTHING,
        ]
        rows.append(row)
    right: tuple[int, ...] = (0, 1, 3, 4)
    if width() < _LEAST_WIDTH:  # predictions tell the rank then, and the list below the lines; laws need the room
        kept = (0, 2, 3, 5, 6)
        headings, rows, right = [headings[i] for i in kept], [[row[i] for i in kept] for row in rows], (0, 2)
    parts = [head, "\n", text_table(headings, rows, right=right, colour=colour)]
    if len(at) > 1:
        parts.append(_wrapped([f"now: rank by the largest count seen · then: at {said['point']}"]))
    ranks = {one["rank"] for one in shown}
    left = [one for one in clusters if one["rank"] not in ranks]
    if left:
        share = percent(sum(one["share"] for one in left))
        more = f"{len(left):,} more of small counts, together {share} of all counts (--all lists them)"
        parts.append(_wrapped([more]))
    parts.append("\n")
    if said["dominates"]:
        parts += [_wrapped([said["dominates"]]), "\n"]
    parts += [_places(one, said["locations"]) for one in shown]
    believed = [f"{one['rank']:>3}  {sentence}" for one in shown for sentence in one["shown"]["believe"]]
    parts += ["\n", _wrapped(believed, "     ")] if believed else []
    # The reasons behind the question marks, each once with the number of clusters.
    reasons = Counter(
        reason
        for cluster in shown
        for reason in dict.fromkeys(
            gist(law["reason"])
            for law in cluster["laws"].values()
            if law["features"] and law["verdict"] == "inconclusive"
        )
    )
    parts.append("\n" * bool(reasons) + _wrapped(f"? {n} inconclusive: {reason}" for reason, n in reasons.items()))
    return "".join(parts) + ("\n" + notes if notes else "")


def _laws_cell(shown: Document) -> str:
    """The law in several features, laws in one feature with the paper's below each, then the clusters overtaken."""
    several = [one["law"] for one in shown["laws"] if one["feature"] is None]
    single = [one for one in shown["laws"] if one["feature"] is not None]
    texts = [*several]
    for one in single[:MAX_FEATURES]:
        texts.append(one["law"])
        if one["power"]:
            texts.append(f"~ {one['power']}".replace(" (", "\n  ("))
            texts += [f"  {one['zeros']}"] * bool(one["zeros"])
    texts += [shown["no_law"]] * bool(shown["no_law"])
    if len(single) > MAX_FEATURES:
        texts.append(f"and {len(single) - MAX_FEATURES} more features")
    overtakes = shown["overtakes"]
    texts += [text.replace(" at ", "\n  at ").replace(" (", "\n  (") for text in overtakes[:MAX_OVERTAKES]]
    if len(overtakes) > MAX_OVERTAKES:
        texts.append(f"overtakes {len(overtakes) - MAX_OVERTAKES} more")
    lines = []
    for line in (printable(line) for text in texts for line in text.split("\n")):
        unindented = line.lstrip(" ")
        indent = " " * (len(line) - len(unindented))  # continued lines keep it
        lines.append(
            indent + broken(unindented, [" · ", " "], column(_LAW_WIDTH) - len(indent)).replace("\n", "\n" + indent)
        )
    return "\n".join(lines)


def _places(cluster: Document, locations: str) -> str:
    """Where a cluster is: its functions with their lines, those that weigh most first."""
    texts = cluster["places"]
    most = MAX_LINE_PLACES if locations == "lines" else MAX_OTHER_PLACES
    if len(texts) > most + 1:
        texts = [*texts[:most], f"and {len(texts) - most:,} more places"]
    texts = [text if len(text) <= MAX_PLACE else f"{text[: MAX_PLACE - 1]}…" for text in map(printable, texts)]
    if locations != "lines":
        texts = [", ".join(texts)]
    head = f"{cluster['rank']:>3}  "
    lines = [line for text in texts for line in wrap(text, line_width() - len(head), break_on_hyphens=False)]
    return "".join((head if i == 0 else " " * len(head)) + line + "\n" for i, line in enumerate(lines))


def _wrapped(lines: Iterable[str], indent: str = "  ") -> str:
    """Lines that the terminal holds; a number and its unit stay on one."""
    whole = (_NUMBER_AND_UNIT.sub("\\1\u00a0\\2", printable(line)) for line in lines)
    wrapped = (wrap(line, line_width(), subsequent_indent=indent, break_on_hyphens=False) for line in whole)
    return "".join(part.replace("\u00a0", " ") + "\n" for parts in wrapped for part in parts)
