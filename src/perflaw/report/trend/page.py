"""The trend view of the page: clusters as rows, their numbers deflated one by one, sources with the count of each line."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perflaw.laws.tree import distribution_tree
from perflaw.report import law_words as words
from perflaw.report.page import curve_columns, flat, packed, shortened
from perflaw.report.page.laws import prediction_rows
from perflaw.report.quantity import NOTHING, count, number, percent
from perflaw.report.trend.view import (
    Places,
    TrendView,
    best_feature,
    disagreements_of,
    outcome,
    overtake_text,
    places_of,
    power_text,
    shown_file,
    summary,
    title,
    zeros_text,
)
from perflaw.types import Cluster, Law
from perflaw.types.documents import Document, document, finite

COLOURS = 6
"""Clusters with a colour of their own; more could not be told apart."""
FULL = 150
"""Clusters, costliest now and costliest later, whose points, bands and locations are in the page."""
MAX_PLACES, MAX_LOCATIONS = 8, 400
"""Functions that a row names, and locations that are listed of a cluster."""
MAX_SOURCE = 12_000_000
"""Characters of source in a page, about 3 MB when deflated; of the lightest files beyond only the name is shown."""
MAX_SPOTS = 40
"""Files in which a cluster is looked up."""


def trend_data(view: TrendView) -> Document:
    """Everything that the view shows, as JSON values without NaN or infinity."""
    trends = view.trends
    # The costliest now and the costliest later by turns, each once.
    later = [*dict.fromkeys((*trends.by_prediction, *(one.rank for one in trends.clusters)))]
    by_turns = (rank for cluster, rank in zip(trends.clusters, later, strict=True) for rank in (cluster.rank, rank))
    top = list(dict.fromkeys(by_turns))[:FULL]
    coloured = {rank: i for i, rank in enumerate(top[:COLOURS])}
    places, peak = places_of(view.matrix.locations), view.peak
    sources = _sources(view)
    features = []
    for name, values in trends.values.items():
        known = [value for value in values if value is not None]
        features.append(
            {"name": name, "values": list(values), "low": min(known, default=0.0), "high": max(known, default=0.0)}
        )
    plots = {}
    for rank in top:
        cluster = trends.clusters[rank - 1]
        heavy = heapq.nlargest(MAX_LOCATIONS, cluster.members, key=lambda row: peak[row])
        plots[str(rank)] = packed(
            {
                "costs": shortened(cluster.costs, 6),
                "curves": {name: curve_columns(curve) for name, curve in cluster.curves.items()},
                "members": [[view.matrix.locations[row].name, peak[row]] for row in heavy],
                "more": len(cluster.members) - len(heavy),
            }
        )
    return {
        "noun": view.noun,
        "summary": summary(view),
        "notes": [*view.left_out, *trends.notes],
        "features": features,
        "runs": list(view.matrix.runs),
        "at": {name: finite(value) for name, value in trends.at.items()},
        "paper": view.paper,
        "costliest": {"run": view.matrix.runs[view.costliest], "total": count(max(trends.totals, default=0))},
        "clusters": [
            {
                **_row(cluster, view, places, peak),
                "colour": coloured.get(cluster.rank),
                "spots": sources.spots.get(cluster.rank, []),
            }
            for cluster in trends.clusters
        ],
        "plots": plots,
        "files": sources.files,
    }


def _row(cluster: Cluster, view: TrendView, places: Places, peak: Sequence[float]) -> Document:
    """A cluster's document without its lists, its laws, where it is, and the words that a row shows."""
    members = cluster.members
    if len(members) > MAX_LOCATIONS:
        members = tuple(heapq.nlargest(MAX_LOCATIONS, members, key=lambda row: peak[row]))
    texts = places.texts(members, peak)
    powers = {}
    for name, power in cluster.powers.items():
        r2 = NOTHING if power.r2 is None else f"{power.r2:.3f}"
        powers[name] = {**flat(power), "text": {"law": power_text(power, name), "r2": r2, "zeros": zeros_text(power)}}
    return {
        **flat(cluster),
        "places": texts[:MAX_PLACES],
        "more_places": max(0, len(texts) - MAX_PLACES),
        "size": view.size(cluster),
        "best": best_feature(cluster),
        "law": _law(cluster.law) if cluster.law else None,
        "laws": {name: _law(law) for name, law in cluster.laws.items()},
        "powers": powers,
        "overtakes": [{**document(one), "text": overtake_text(one)} for one in cluster.overtakes],
        "believe": disagreements_of(cluster),
        "text": {"name": title(cluster, view), "share": percent(cluster.share), "max_cost": count(cluster.max_cost)},
    }


def _law(law: Law) -> Document:
    learnt = document(law)
    return {
        **{name: learnt[name] for name in ("expression", "features", "slope", "verdict", "reason")},
        "tree": distribution_tree(law.expression),
        "text": {
            "law": words.law_text(law, ""),
            "grows": words.grows_as(law),
            "slopes": words.slope_interval(law),
            "facts": [
                ("noise", words.noise_text(law.noise, "")),
                ("r²", NOTHING if law.r2 is None else f"{law.r2:.4f}"),
                ("equally good", ", ".join(other.family for other in law.alternatives)),
                ("breaks at", ", ".join(f"{one.feature} = {number(one.value)}" for one in law.breakpoints)),
            ],
            "predictions": prediction_rows(law.predictions, ""),
        },
    }


@dataclass(slots=True)
class _SourceLine:
    """A line of source, gathered location by location."""

    count: float | None = None
    """Executions of the line in the costliest run; None where only its blocks were counted."""
    ranks: set[int] = field(default_factory=set)
    """Clusters of the line itself and of its blocks."""
    blocks: list[tuple[str, float, list[int]]] = field(default_factory=list)
    """Outcome, executions and clusters of each of its blocks."""

    @property
    def weight(self) -> float:
        """Executions of the line, else of its most frequent block."""
        return self.count if self.count is not None else max((count for _, count, _ in self.blocks), default=0.0)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Files, the heaviest first, and where each cluster is in them."""

    files: list[Document]
    """Name, number of counted lines and packed text of each; null for a text that the page has no room for."""
    spots: Mapping[int, list[tuple[int, int]]]
    """Rank → (number of the file, line) of its heaviest line in each file, the heaviest file first."""


def _sources(view: TrendView) -> _Sources:
    """All files that hold a line or a block of a cluster; none where no text was kept."""
    ranks: dict[int, list[int]] = defaultdict(list)
    for cluster in view.trends.clusters:
        for row in cluster.members:
            ranks[row].append(cluster.rank)
    lines: dict[str, dict[int, _SourceLine]] = defaultdict(lambda: defaultdict(_SourceLine))
    names: dict[str, str] = {}
    for row, (location, executions) in enumerate(zip(view.matrix.locations, view.peak, strict=True)):
        if location.kind in ("line", "block") and location.file in view.sources:
            names.setdefault(location.file, shown_file(location))
            line = lines[location.file][location.line]
            line.ranks.update(ranks.get(row, []))
            if location.kind == "line":
                line.count = executions + (line.count or 0.0)  # a file may be included several times
            else:
                line.blocks.append((outcome(location).strip(" _") or "it", executions, list(ranks.get(row, []))))
    in_clusters = {file: [line for line in known.values() if line.ranks] for file, known in lines.items()}
    weights = {file: sum(line.weight for line in known) for file, known in in_clusters.items() if known}
    order = sorted(weights, key=lambda file: (-weights[file], file))
    files, room = [], MAX_SOURCE
    for file in order:
        text = view.sources[file]
        marks = []
        for place in sorted(lines[file]):
            line = lines[file][place]
            blocks = [[name, *shortened([executions]), ranks] for name, executions, ranks in line.blocks]
            marks.append([place, *shortened([line.weight], 7), sorted(line.ranks), *([blocks] if blocks else [])])
        content = packed({"text": text.split("\n"), "marks": marks}) if len(text) <= room else None
        room -= len(text) if content else 0
        files.append({"name": names[file], "path": file, "lines": len(marks), "packed": content})
    # The heaviest line of each cluster in each file.
    spots: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for place_of_file, file in enumerate(order):
        heaviest: dict[int, tuple[float, int]] = {}
        for place, line in lines[file].items():
            for rank in line.ranks:
                heaviest[rank] = max(heaviest.get(rank, (-1.0, 0)), (line.weight, -place))
        for rank, (weight, place) in heaviest.items():
            spots[rank].append((-weight, place_of_file, -place))
    shown = {rank: [(number, place) for _, number, place in sorted(found)[:MAX_SPOTS]] for rank, found in spots.items()}
    return _Sources(files, shown)
