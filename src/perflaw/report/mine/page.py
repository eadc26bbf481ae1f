"""The call-path view of the page: specifications as rows, and a screen a function, deflated on its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from perflaw.report.mine import text
from perflaw.report.mine.call_path_graph import call_path_graph
from perflaw.report.mine.journal import SPENT_HEADS, journal_data
from perflaw.report.page import flat, packed
from perflaw.report.quantity import NOTHING, count, counted, percent, quantity
from perflaw.specs.call_paths import edge_text, expression_text
from perflaw.types.documents import Document, document, encoded
from perflaw.types.specifications import Edge, MergeStep, MinedSpec, PathGroup, PathSpec

MAX_UNKNOWN_PATHS, MAX_GROUP_PATHS = 20, 12
"""Call paths listed of those without a group, and of a group."""
MAX_BARS = 120
"""Bars of a histogram; finer buckets are joined."""


def mine_data(view: text.MineView) -> Document:
    """Everything that the view shows, as JSON values without NaN or infinity."""
    screens = []
    for mined in view.file.specs:
        spec, names, said = mined.spec, text.edge_names(mined.spec), text.shown_spec(mined.spec)
        stable = f"{'yes' if spec.stable else 'no'}, over {counted(spec.observations, 'observation')}"
        screens.append(
            packed(
                {
                    "facts": [
                        ("calls", count(spec.points)),
                        ("borders", said["borders"]),
                        ("stable", stable),
                        ("call paths", f"{len(spec.paths):,}"),
                        ("use of more data", percent(spec.utility)),
                    ],
                    "clusters": said["clusters"],
                    "groups": [
                        _group(group, spec, when) for group, when in zip(spec.groups, said["when"], strict=True)
                    ],
                    "edges": said["edges"],
                    "unknown": _paths(spec, spec.unknown, MAX_UNKNOWN_PATHS),
                    "graph": _graph(spec, names),
                    "histogram": histogram_data(mined),
                    "platforms": said["platforms"],
                    "notes": list(spec.notes),
                }
            )
        )
    return {
        "rows": [
            {
                **flat(mined.spec),
                "sizes": {
                    "borders": len(mined.spec.borders),
                    "groups": len(mined.spec.groups),
                    "edges": len(text.edge_names(mined.spec)),
                },
                "text": {
                    "share": percent(mined.spec.share) if mined.spec.share is not None else NOTHING,
                    "calls": count(mined.spec.points),
                },
            }
            for mined in view.file.specs
        ],
        "screens": screens,
        "merges": _merges(view.steps) if view.steps else None,
        "journal": journal_data(view.journal),
        "spent_heads": SPENT_HEADS,
    }


def _group(group: PathGroup, spec: PathSpec, when: str) -> Document:
    return {
        **document(group),
        "expression": expression_text(group.expression),
        "paths": _paths(spec, group.paths, MAX_GROUP_PATHS),
        "behaviours": [
            {"platform": spec.platforms[place].host, "shares": [text.share_text(share) for share in shares]}
            for place, shares in sorted((group.behaviours or {}).items())
        ],
        "text": {
            "when": when,
            "calls": count(sum(group.counts)),
            "shares": [text.share_text(share) for share in group.distribution],
            "mislabelled": text.share_text(group.mislabelled) if group.mislabelled else "",
        },
    }


def _paths(spec: PathSpec, places: Sequence[int], most: int) -> Document:
    order = sorted(places, key=lambda path: (-sum(spec.path_counts[path]), path))
    shown = [{"path": list(spec.paths[path]), "calls": count(sum(spec.path_counts[path]))} for path in order[:most]]
    return {"all": len(order), "shown": shown}


def _graph(spec: PathSpec, names: Mapping[Edge, str]) -> Document:
    graph = call_path_graph(spec)
    most = max((line.calls for line in graph.lines), default=1)
    return {
        "nodes": [{"names": list(one.names), "layer": one.layer, "place": round(one.place, 3)} for one in graph.nodes],
        "lines": [
            {
                "from": line.source,
                "to": line.target,
                "groups": list(line.groups),
                "weight": round(line.calls / most, 3),
                "calls": count(line.calls),
                "name": names.get(line.edge, ""),
                "edge": edge_text(line.edge),
                "bends": [[round(place, 3), layer] for place, layer in line.bends],
            }
            for line in graph.lines
        ],
        "left": graph.left,
    }


def histogram_data(mined: MinedSpec) -> Document | None:
    """Durations as bars on a logarithmic axis, a series a group; None where durations are not known."""
    spans = [(h.scale, h.offset, h.offset + h.counts.size) for h in mined.histograms if h.counts.size]
    if not spans:
        return None
    scale = min(scale for scale, _, _ in spans)
    low = min(start >> (own - scale) for own, start, _ in spans)
    high = max(((end - 1) >> (own - scale)) + 1 for own, _, end in spans)
    while high - low > MAX_BARS:
        scale, low, high = scale - 1, low >> 1, ((high - 1) >> 1) + 1
    zeros, unit = sum(h.zeros for h in mined.histograms), mined.spec.unit
    width = math.ldexp(1.0, -scale)
    groups = []
    for histogram in mined.histograms:
        bars = [0] * (high - low)
        for place, calls in enumerate(histogram.counts.tolist()):
            bars[((histogram.offset + place) >> (histogram.scale - scale)) - low] += calls
        groups.append(bars)
    # Round numbers on the axis, which is in binary logarithms.
    ends = low * width, high * width
    decades = range(math.floor(ends[0] * math.log10(2)), math.ceil(ends[1] * math.log10(2)) + 1)
    steps = (1,) if len(decades) > 4 else (1, 3) if len(decades) > 2 else (1, 2, 5)
    ticks = [step * 10.0**power for power in decades for step in steps]
    return {
        "low": low * width,
        "width": width,
        "groups": groups,
        "borders": [
            {"at": math.log2(border), "text": quantity(border, unit)} for border in mined.spec.borders if border > 0
        ],
        "ticks": [
            {"at": math.log2(value), "text": quantity(value, unit)}
            for value in ticks
            if ends[0] <= math.log2(value) <= ends[1]
        ],
        "zeros": count(zeros) if zeros else "",
    }


def _merges(steps: Sequence[MergeStep]) -> Document:
    """Box plots of consistency by step (Figure 5), and the functions that differ most or were not compared."""
    functions = [text.comparable(encoded(step.found)) for step in steps]
    worst = []
    for step, some in zip(steps, functions, strict=True):
        if some:
            least = min(some, key=lambda one: (one["points"], one["component"]))
            shares = {name: text.share_text(least[name]) for name in ("points", "paths")}
            worst.append({"step": step.name, "component": least["component"], **shares})
    return {
        **text.shown_merges(steps),
        "series": [
            {
                "name": name,
                "boxes": [box([one[of] for one in some], [one[f"chance_{of}"] for one in some]) for some in functions],
            }
            for name, of in (("call paths", "paths"), ("data points", "points"))
        ],
        "plain": sum(len(step.found) - len(some) for step, some in zip(steps, functions, strict=True)),
        "worst": worst,
    }


def box(values: Sequence[float], chance: Sequence[float]) -> Document | None:
    """Quartiles, Tukey's whiskers, outliers, and the median level of chance; None without values.

    >>> box([0.5, 0.9, 1.0, 1.0, 1.0], [0.4, 0.5, 0.6, 0.6, 0.6])["quartiles"]
    [0.9, 1.0, 1.0]
    """
    if not values:
        return None
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    reach = 1.5 * (quartiles[2] - quartiles[0])
    inside = [one for one in values if quartiles[0] - reach <= one <= quartiles[2] + reach]
    return {
        "n": len(values),
        "quartiles": quartiles,
        "whiskers": [min(inside), max(inside)],
        "outliers": sorted(one for one in values if one not in inside),
        "chance": statistics.median(chance),
        "text": text.share_text(quartiles[1]),
    }
