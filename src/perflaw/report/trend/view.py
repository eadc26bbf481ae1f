"""What a report of trends shows, and the words that its table and its page share.

Locations stand as a person reads them: ``sort.py:12-15, 18 in bubble()``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from perflaw.report.law_words import features_text, law_text
from perflaw.report.quantity import counted, is_known, number, percent, quantity
from perflaw.types import Cluster, CountMatrix, Law, Location, Overtake, PowerLaw, Trends
from perflaw.types.documents import Document

_ANONYMOUS = re.compile(r"(<\w+>):\d+$")
_INCLUDER = re.compile(r"^ \([^()]*\)")
"""The function in the name of a line of a file that is included several times: ``x.inc:3 (walk)``."""
_STEEPEST = 20.0
"""A growth beyond this exponent is told in words."""
MODULE = "<module>"
"""Name of a Python module's own code."""


@dataclass(frozen=True, slots=True)
class Places:
    """All locations of a program. A range of lines may hold comments and blank lines, but no other location."""

    locations: Sequence[Location]
    """All locations, those in no cluster included."""
    known: Mapping[str, tuple[int, ...]]
    """File → its lines that are locations, increasing."""

    def texts(self, members: Iterable[int], weights: Sequence[float]) -> list[str]:
        """A text for each function of these locations (indices), the function of the largest weight (by index) first.

        >>> one, two, four = (Location("line", f"a.py:{i}", "a.py", i, "a.f") for i in (1, 2, 4))
        >>> places_of([one, two, four]).texts([0, 1, 2], [5, 5, 1])
        ['a.py:1-4 in f()']
        >>> places_of([one, two, four]).texts([0, 2], [5, 5, 1])
        ['a.py:1, 4 in f()']
        """
        groups: dict[tuple[str, str], list[Location]] = defaultdict(list)
        weight: dict[tuple[str, str], float] = defaultdict(float)
        for member in sorted(members, key=lambda member: -weights[member]):
            location = self.locations[member]
            key = (location.file, location.function) if _lined(location) else _BY_NAME
            groups[key].append(location)
            weight[key] += weights[member]
        ordered = sorted(groups, key=lambda key: (-weight[key], key))
        texts: list[str] = []
        for key in ordered:
            texts += map(named, groups[key]) if key == _BY_NAME else [self._lines(key[0], groups[key])]
        return texts

    def _lines(self, file: str, group: Sequence[Location]) -> str:
        whole = {location.line for location in group if location.kind == "line"}
        blocks = sorted({(one.line, outcome(one)) for one in group if one.line not in whole})
        # No other location lies between the two ends of a range.
        known = self.known[file]
        ranges: list[list[int]] = []
        for line in sorted(whole):
            if ranges and bisect_right(known, ranges[-1][1]) == bisect_right(known, line) - 1:
                ranges[-1][1] = line
            else:
                ranges.append([line, line])
        texts = [
            *[f"{low}" if low == high else f"{low}-{high}" for low, high in ranges],
            *(f"{line}{way}" for line, way in blocks),
        ]
        where = within(group[0])
        return f"{shown_file(group[0])}:{', '.join(texts)}{f' {where}' if where else ''}"


_BY_NAME = ("", "")
"""Key of locations without a line of their own: functions, edges, columns."""


def _lined(location: Location) -> bool:
    return location.kind in ("line", "block") and location.line > 0 and bool(location.file)


def places_of(locations: Sequence[Location]) -> Places:
    """The places of a program's locations."""
    known: dict[str, set[int]] = defaultdict(set)
    for location in locations:
        if _lined(location):
            known[location.file].add(location.line)
    return Places(locations, {file: tuple(sorted(lines)) for file, lines in known.items()})


def shown_file(location: Location) -> str:
    """The file as the location's name has it: the shortest name that is unique.

    >>> shown_file(Location("block", "lib/a.py:12 taken", "/home/me/lib/a.py", 12))
    'lib/a.py'
    """
    head, _, _ = location.name.rpartition(f":{location.line}")
    return head or PurePath(location.file).name


def outcome(location: Location) -> str:
    """A block's name after its line: `` taken``, ``_2 not taken``; empty for the line itself.

    >>> outcome(Location("block", "x.inc:3 (walk) branch 2", "/src/x.inc", 3, "walk", "c"))
    ' branch 2'
    """
    return _INCLUDER.sub("", location.name.rpartition(f":{location.line}")[2])


def within(location: Location) -> str:
    """The function that a location lies in: ``in bubble()``, without the module, which the file names already.

    >>> within(Location("line", "a.py:1", "/x/a.py", 1, "pkg.a.Class.f"))
    'in Class.f()'
    >>> within(Location("line", "a.py:7", "/x/a.py", 7, "a.f.<locals>.<listcomp>:7", "python"))
    'in f.<listcomp>'
    """
    name = location.function
    if not name:
        return ""
    if location.language in ("", "python"):
        _, found, tail = f".{name}".rpartition(f".{PurePath(location.file).stem}.")
        name = tail if found else name
        if name == MODULE or name.endswith(f".{MODULE}"):
            return "at module level"
        name = _ANONYMOUS.sub(r"\1", name.replace(".<locals>", ""))
    return f"in {name}" if name.endswith((")", ">")) else f"in {name}()"


def named(location: Location) -> str:
    """Name of a function, an edge or a column, with the place of the function.

    >>> named(Location("edge", "a.f -> a.g", "/x/a.py", 3)), named(Location("column", "swaps"))
    ('a.f -> a.g (a.py:3)', 'swaps')
    """
    place = f" ({PurePath(location.file).name}:{location.line})" if location.file and location.line else ""
    return location.name if place and place[2:-1] in location.name else f"{location.name}{place}"


COSTLY = 0.02
"""Part of a run's counts from which on a cluster is listed (Figure 4 of the paper)."""


@dataclass(frozen=True, slots=True, eq=False)
class TrendView:
    """Clusters with the counts that they were found in, and the sources that they lie in."""

    trends: Trends
    """The clusters with their laws."""
    matrix: CountMatrix
    """The counts; members of clusters are its rows."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → its text; empty where none was kept."""
    left_out: tuple[str, ...] = ()
    """What was left out before learning, a sentence each."""
    asked: bool = False
    """The person asked for the point where counts are predicted; else it is ten times the 95th percentiles."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is."""
    paper: bool = False
    """Counts are predicted by the power laws, as in the paper."""

    @property
    def noun(self) -> str:
        """What the locations are: ``lines`` (with their blocks), ``functions``, or else ``locations``."""
        kinds = {location.kind for location in self.matrix.locations}
        if "line" in kinds and kinds <= {"line", "block"}:
            return "lines"
        return "functions" if kinds == {"function"} else "locations"

    def size(self, cluster: Cluster) -> int:
        """Number of lines, functions or locations in a cluster; outcomes of a line's branches belong to the line."""
        if self.noun != "lines":
            return len(cluster.members)
        members = [self.matrix.locations[row] for row in cluster.members]
        return len({(location.file, location.line) for location in members})

    @property
    def costliest(self) -> int:
        """Column of the run with the largest sum of all counts; the first of several."""
        return int(np.argmax(self.trends.totals)) if self.trends.totals else 0

    @property
    def peak(self) -> list[float]:
        """(L,) counts in the costliest run: the weights by which locations are put in order."""
        counts = self.matrix.counts
        return [float(value) for value in counts[:, self.costliest]] if counts.size else [0.0] * len(counts)


def power_text(power: PowerLaw, feature: str) -> str:
    """The paper's law, such as ``1.4 · n^2.01 (1.99–2.02)``; the interval is the exponent's.

    >>> power_text(PowerLaw(77.0, 70.0, 80.0, 1.012, 1.004, 1.021, 0.99, 30, 0), "bytes")
    '77 · bytes^1.01 (1.00–1.02)'
    """
    low, high = power.exponent_low, power.exponent_high
    interval = f" ({low:.2f}–{high:.2f})" if low is not None and high is not None else ""
    return f"{quantity(power.coefficient, '')} · {feature}^{power.exponent:.2f}{interval}"


def zeros_text(power: PowerLaw) -> str:
    """The runs that a power law leaves out because their count is 0; empty where there are none."""
    return f"without {counted(power.zeros, 'run')} of 0" if power.zeros else ""


def no_law_text(cluster: Cluster) -> str:
    """Why a cluster has no law in any feature: too few runs have a count above 0."""
    return f"no law: only {sum(cost > 0 for cost in cluster.costs)} of {counted(len(cluster.costs), 'run')} above 0"


def disagreements_of(cluster: Cluster) -> list[str]:
    """Which of law and power law to believe, and why: a sentence for each feature of the headline where they differ."""
    features = cluster.law.features if cluster.law else ()
    sentences = []
    for name in features:
        found = cluster.disagreements.get(name)
        if found is None:
            continue
        exponent = f"{name}^{cluster.powers[name].exponent:.2f}"
        if found.believe == "law":
            grows = "a faster growth" if found.growth > _STEEPEST else f"{name}^{found.growth:.2f}"
            first = f"believe the law ({grows} for large {name}), not {exponent}"
        else:
            first = f"believe {exponent}, not the law"
        if cluster.laws[name].verdict == "inconclusive":
            why = "several growth laws fit equally well, and the power law is between them"
        else:
            law, power = percent(found.law_error), percent(found.power_error)
            why = f"in the larger half of the runs the law is off by {law}, the power law by {power}"
        sentences.append(f"{first}: {why}")
    return sentences


def overtake_text(overtake: Overtake) -> str:
    """The cluster that is overtaken, and where: ``overtakes 1 at n = 22,000 (19,000–31,000)``."""
    high = "…" if overtake.high is None else number(overtake.high)
    place = f"{overtake.feature} = {number(overtake.at)} ({number(overtake.low)}–{high})"
    return f"overtakes {overtake.rank} at {place}"


def title(cluster: Cluster, view: TrendView) -> str:
    """The representative and where it is: ``bubble.py:14 in bubble_sort()``, ``n (feature)``."""
    if cluster.is_feature or cluster.row is None:
        same = [name for name in cluster.features if name != cluster.representative]
        place = view.counted.get(cluster.representative)
        kind = f"count of {place}" if place else "feature"
        return f"{cluster.representative} ({', '.join([kind, *same[:3]])})"
    location = view.matrix.locations[cluster.row]
    if location.kind in ("line", "block"):
        return f"{shown_file(location)}:{location.line}{outcome(location)} {within(location)}".strip()
    return named(location)


def best_feature(cluster: Cluster) -> str | None:
    """The feature of the cluster's best law, else the one whose own law explains most."""
    if cluster.law is not None and cluster.law.features:
        return cluster.law.features[0]
    return max(cluster.laws, key=lambda name: cluster.laws[name].r2 or 0.0, default=None)


def summary(view: TrendView) -> str:
    """How many runs and locations there are, and how many of these vary."""
    trends, locations = view.trends, len(view.matrix.locations)
    varying = locations - trends.constant - trends.zero
    parts = [
        counted(trends.runs, "run"),
        f"{varying:,} of {locations:,} {view.noun} vary in {counted(len(trends.clusters), 'cluster')}",
    ]
    if trends.constant:
        verb = "varies" if trends.constant == 1 else "vary"
        share = f"σ < {number(trends.sigma)}, {percent(trends.constant_share)} of all counts"
        parts.append(f"{trends.constant:,} hardly {verb} ({share})")
    if trends.zero:
        parts.append(f"{trends.zero:,} never ran")
    return " · ".join(parts)


def point_text(view: TrendView) -> str:
    """The point where counts are predicted, at most four of its features: ``n = 40,000 (10x)``."""
    point = features_text(dict(list(view.trends.at.items())[:4]))
    return point if view.asked or not point else f"{point} (10x)"


def dominates(view: TrendView) -> str:
    """The cluster with the largest count at the predicted point, in one sentence; empty where nothing can be predicted."""
    predicted = {one.rank: one.predicted for one in view.trends.clusters if one.predicted is not None}
    whole = sum(each.mean for each in predicted.values())
    if not view.trends.at or whole <= 0:
        return ""
    for one in view.trends.clusters:
        each = predicted.get(one.rank)
        if one.share >= COSTLY and (each is None or not is_known(each.mean, each.mean_low, each.mean_high)):
            why = f"the count of cluster {one.rank} (now {percent(one.share)}) is unknown there"
            return f"At {point_text(view)} it is not known what dominates: {why}."
    first = view.trends.clusters[max(predicted, key=lambda rank: predicted[rank].mean) - 1]
    places = places_of(view.matrix.locations).texts(first.members, view.peak)
    more = f" and {counted(len(places) - 1, 'more place')}" if len(places) > 1 else ""
    part = f"with {percent(predicted[first.rank].mean / whole)} of all counts (now {percent(first.share)})"
    place = places[0] if places else first.representative
    return f"At {point_text(view)} cluster {first.rank} dominates {part}: {place}{more}."


def shown_trends(view: TrendView) -> Document:
    """What the table says of all clusters together, in words."""
    return {"summary": summary(view), "locations": view.noun, "point": point_text(view), "dominates": dominates(view)}


def shown_cluster(cluster: Cluster, view: TrendView) -> Document:
    """What the table says of a cluster, in words: its name, its laws, and what it overtakes.

    ``laws`` begins with the law in several features if that is the headline, without the name of a feature; the law in
    the feature that explains most follows. A law of one feature stands with the paper's power law.
    """
    first = best_feature(cluster)
    # Of laws that explain about as much, sizes stay before other numbers.
    names = sorted(cluster.laws, key=lambda name: (name != first, -round(cluster.laws[name].r2 or 0.0, 1)))
    laws: list[Document] = []
    if cluster.law and len(cluster.law.features) > 1:
        laws.append({"feature": None, "law": _law_text(cluster.law), "power": None, "zeros": ""})
    for name in names:
        law, power = cluster.laws[name], cluster.powers.get(name)
        told = power if power and (law.features or name == first) else None
        laws.append(
            {
                "feature": name,
                "law": _law_text(law) if law.features else f"no law in {name}",
                "power": told and power_text(told, name),
                "zeros": zeros_text(told) if told else "",
            }
        )
    return {
        "name": title(cluster, view),
        "size": view.size(cluster),
        "laws": laws,
        "no_law": no_law_text(cluster) if not names and view.trends.features else "",
        "overtakes": list(map(overtake_text, cluster.overtakes)),
        "believe": disagreements_of(cluster),
    }


def _law_text(law: Law) -> str:
    return law_text(law, "") + " ?" * (law.verdict == "inconclusive")
