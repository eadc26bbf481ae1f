"""The trend view's data: clusters as rows, their numbers deflated one by one, sources with what each line costs."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflaw.laws.printing import learnt_text
from perflaw.laws.trees import distribution_tree
from perflaw.report import law_words as text
from perflaw.report.page.charts import packed, shortened
from perflaw.report.trend.places import Places, outcome, places_of, shown_file
from perflaw.report.trend.words import TrendView, best_feature, overtake_text, power_text, summary, title, zeros_text
from perflaw.types import Cluster, Curve, Law, Location, PowerLaw
from perflaw.types.documents import finite

# ---- Sources for the page: the text of every file with the count and the clusters of each line.

MOST_TEXT = 12_000_000
"""Characters of source in a page, about 3 MB of it when deflated; files that weigh less than these are named alone."""
SPOTS = 40
"""Files in which a cluster is looked up."""


@dataclass(slots=True)
class _Line:
    """What is known of a line, gathered location by location."""

    count: float | None = None
    """Executions of the line in the costliest run; null where only its blocks were counted."""
    ranks: set[int] = field(default_factory=set)
    """Clusters of the line itself or of one of its blocks."""
    blocks: list[tuple[str, float, list[int]]] = field(default_factory=list)
    """Outcome, executions and clusters of each of its blocks."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Files in the order of what they weigh, and where each cluster is in them."""

    files: list[Json]
    """Name, counted lines and packed text of each; null for a text that the page has no room for."""
    spots: Mapping[int, list[tuple[int, int]]]
    """Rank → (number of the file, line) of its heaviest line in each file, the heaviest file first."""


def sources(view: TrendView) -> Sources:
    """All files that hold a line or block of a cluster; none where no text was kept."""
    ranks = _ranks(view)
    lines: dict[str, dict[int, _Line]] = defaultdict(lambda: defaultdict(_Line))
    shown: dict[str, str] = {}
    for row, (location, count) in enumerate(zip(view.matrix.locations, view.peak, strict=True)):
        if location.kind in ("line", "block") and location.file in view.sources:
            shown.setdefault(location.file, shown_file(location))
            _enter(lines[location.file][location.line], location, count, ranks.get(row, []))
    weights = {file: sum(_weight(one) for one in those.values() if one.ranks) for file, those in lines.items()}
    order = sorted(
        (file for file in weights if any(one.ranks for one in lines[file].values())), key=lambda f: (-weights[f], f)
    )
    return Sources(_files(order, shown, lines, view.sources), _spots(order, lines))


def _ranks(view: TrendView) -> dict[int, list[int]]:
    """Row → ranks of its clusters, the costliest first."""
    ranks: dict[int, list[int]] = defaultdict(list)
    for cluster in view.trends.clusters:
        for row in cluster.members:
            ranks[row].append(cluster.rank)
    return ranks


def _enter(line: _Line, location: Location, count: float, ranks: Sequence[int]) -> None:
    line.ranks.update(ranks)
    if location.kind == "line":
        line.count = count
    else:
        line.blocks.append((outcome(location).strip(" _") or "it", count, list(ranks)))


def _weight(line: _Line) -> float:
    return line.count if line.count is not None else max((count for _, count, _ in line.blocks), default=0.0)


def _files(
    order: Sequence[str], shown: Mapping[str, str], lines: Mapping[str, Mapping[int, _Line]], texts: Mapping[str, str]
) -> list[Json]:
    files, room = [], MOST_TEXT
    for file in order:
        text = texts[file]
        fits = len(text) <= room
        room -= len(text) * fits
        marks = [_mark(number, lines[file][number]) for number in sorted(lines[file])]
        content = packed({"text": text.split("\n"), "marks": marks}) if fits else None
        files.append({"name": shown[file], "path": file, "lines": len(marks), "packed": content})
    return files


def _mark(number: int, line: _Line) -> list[Any]:
    blocks = [[name, *shortened([count]), ranks] for name, count, ranks in line.blocks]
    return [number, *shortened([_weight(line)], 7), sorted(line.ranks), *([blocks] if blocks else [])]


def _spots(order: Sequence[str], lines: Mapping[str, Mapping[int, _Line]]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for place, file in enumerate(order):
        heaviest: dict[int, tuple[float, int]] = {}
        for number, line in lines[file].items():
            for rank in line.ranks:
                heaviest[rank] = max(heaviest.get(rank, (-1.0, 0)), (_weight(line), -number))
        for rank, (weight, number) in heaviest.items():
            found[rank].append((-weight, place, -number))
    return {rank: [(place, number) for _, place, number in sorted(those)[:SPOTS]] for rank, those in found.items()}


Json = dict[str, Any]

COLOURS = 6
"""Clusters with a colour of their own; more would not be told apart."""
FULL = 150
"""Clusters, dearest now and dearest predicted, whose points, bands and locations are in the page."""
PLACES = 8
"""Functions a row names."""
LOCATIONS = 400
"""Locations listed of a cluster."""


def trend_data(view: TrendView) -> Json:
    """Everything the view shows, as JSON values without NaN or infinity."""
    trends = view.trends
    top = _interleaved(view, FULL)
    coloured = {rank: i for i, rank in enumerate(top[:COLOURS])}
    places, peak = places_of(view.matrix.locations), view.peak
    listed = sources(view)
    return {
        "noun": view.noun,
        "summary": summary(view),
        "notes": [*view.left_out, *trends.notes],
        "features": [_feature(name, values) for name, values in trends.values.items()],
        "runs": list(view.matrix.runs),
        "at": {name: finite(value) for name, value in trends.at.items()},
        "asked": view.asked,
        "paper": view.paper,
        "alpha": trends.alpha,
        "costliest": {"run": view.matrix.runs[view.costliest], "total": text.count(max(trends.totals, default=0))},
        "clusters": [
            {**_row(one, view, places, peak), "colour": coloured.get(one.rank), "spots": listed.spots.get(one.rank, [])}
            for one in trends.clusters
        ],
        "plots": {str(rank): _plot(trends.clusters[rank - 1], view, peak) for rank in top},
        "files": listed.files,
    }


def _interleaved(view: TrendView, most: int) -> list[int]:
    """Ranks of the clusters dearest now and dearest later by turns, each once."""
    both = zip((one.rank for one in view.trends.clusters), _later(view), strict=True)
    return list(dict.fromkeys(rank for pair in both for rank in pair))[:most]


def _later(view: TrendView) -> Sequence[int]:
    """All ranks by predicted cost, those without a prediction last."""
    known = dict.fromkeys(view.trends.by_prediction)
    return [*known, *(one.rank for one in view.trends.clusters if one.rank not in known)]


def _feature(name: str, values: Sequence[float | None]) -> Json:
    known = [value for value in values if value is not None]
    return {"name": name, "values": list(values), "low": min(known, default=0.0), "high": max(known, default=0.0)}


def _row(one: Cluster, view: TrendView, places: Places, peak: Sequence[float]) -> Json:
    """A row of the list: what is shown, and the numbers it is sorted by."""
    heavy = heapq.nlargest(LOCATIONS, one.members, key=lambda row: peak[row])
    told = places.texts(one.members if len(one.members) <= LOCATIONS else heavy, peak)
    return {
        "rank": one.rank,
        "later": one.predicted_rank if one.predicted else None,
        "key": one.representative,
        "name": title(one, view),
        "isFeature": one.is_feature,
        "places": told[:PLACES],
        "morePlaces": max(0, len(told) - PLACES),
        "count": view.places(one),
        "share": finite(one.share),
        "shareText": text.percent(one.share),
        "max": finite(one.max_cost),
        "maxText": text.count(one.max_cost),
        "costly": one.costly,
        "best": best_feature(one),
        "laws": {name: _law(law) for name, law in one.laws.items()},
        "powers": {name: _power(power, name) for name, power in one.powers.items()},
        "predicted": text.prediction_text(one.predicted, "") if one.predicted else "—",
        "overtakes": [
            {"rank": other.rank, "feature": other.feature, "at": finite(other.at), "text": overtake_text(other)}
            for other in one.overtakes
        ],
        "law": {
            "expression": learnt_text(one.law.expression),
            "tree": distribution_tree(one.law.expression),
            "text": text.law_text(one.law, ""),
        }
        if one.law
        else None,
        "joint": one.law is not None and len(one.law.features) > 1,
    }


def _law(law: Law) -> Json:
    return {
        "text": text.law_text(law, ""),
        "expression": learnt_text(law.expression),
        "tree": distribution_tree(law.expression),
        "grows": text.grows_as(law),
        "slope": finite(max(law.slope.values(), default=0.0)),
        "slopes": text.slope_interval(law),
        "verdict": law.verdict,
        "flat": not law.features,
        "reason": law.reason,
        "facts": [
            ("noise", text.noise_text(law.noise, "")),
            ("r²", "—" if law.r2 is None else f"{law.r2:.4f}"),
            ("not told apart", ", ".join(other.family for other in law.alternatives)),
            ("breaks at", ", ".join(f"{b.feature} = {text.number(b.value)}" for b in law.breakpoints)),
        ],
        "predictions": [
            [
                text.features_text(p.features),
                text.quantity(p.mean, ""),
                text.interval(p.mean_low, p.mean_high, ""),
                text.interval(p.new_low, p.new_high, ""),
            ]
            for p in law.predictions
        ],
    }


def _power(power: PowerLaw, name: str) -> Json:
    return {
        "a": finite(power.coefficient),
        "b": finite(power.exponent),
        "low": finite(power.exponent_low),
        "high": finite(power.exponent_high),
        "text": power_text(power, name),
        "r2": "—" if power.r2 is None else f"{power.r2:.3f}",
        "n": power.n,
        "zeros": zeros_text(power),
    }


def _plot(one: Cluster, view: TrendView, peak: Sequence[float]) -> str:
    """Numbers behind a cluster's plots, and its locations with their counts in the costliest run."""
    heavy = heapq.nlargest(LOCATIONS, one.members, key=lambda row: peak[row])
    names = [view.matrix.locations[row].name for row in heavy]
    plot = {
        "costs": shortened(one.costs, 6),
        "curves": {name: _curve(curve) for name, curve in one.curves.items()},
        "members": [[name, peak[row]] for name, row in zip(names, heavy, strict=True)],
        "more": len(one.members) - len(heavy),
    }
    return packed(plot)


def _curve(curve: Curve) -> Mapping[str, list[float | None]]:
    columns = {"x": curve.x, "mean": curve.mean, "meanLow": curve.mean_low, "meanHigh": curve.mean_high}
    columns |= {"newLow": curve.new_low, "newHigh": curve.new_high}
    return {name: shortened(values) for name, values in columns.items()}
