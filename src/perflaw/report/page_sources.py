"""Sources for the page: the text of every file with the count and the clusters of each line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflaw.report.page_charts import packed, shortened
from perflaw.report.trend_model import TrendView
from perflaw.report.trend_places import outcome, shown_file
from perflaw.types import Location

Json = dict[str, Any]

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
