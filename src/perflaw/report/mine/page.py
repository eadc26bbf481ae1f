"""The call-path view's data: specifications as rows, tables, graphs and histograms, one function deflated on its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from perflaw.report.mine.call_path_graph import call_path_graph
from perflaw.report.mine.table import telling
from perflaw.report.mine.words import MineView, behaviour_text, cluster_texts, legend, share_text
from perflaw.report.page.charts import packed
from perflaw.report.quantity import count, percent, quantity
from perflaw.specs.call_paths import edge_text, expression_text
from perflaw.types import Consistency, Histogram
from perflaw.types.specifications import MergeStep, MinedSpec, PathGroup, PathSpec

# ---- Box plots of consistency per merge step (Figure 5): call paths on the left, data points on the right, beside
# chance.


def merges_data(steps: Sequence[MergeStep]) -> Json:
    """Two series of boxes, one of call paths and one of calls; what differs most by name."""
    told = [telling(step.found) for step in steps]
    return {
        "steps": [step.name for step in steps],
        "series": [
            {
                "name": "call paths",
                "boxes": [box([one.paths for one in some], [one.chance_paths for one in some]) for some in told],
            },
            {
                "name": "data points",
                "boxes": [box([one.points for one in some], [one.chance_points for one in some]) for some in told],
            },
        ],
        "plain": sum(len(step.found) - len(some) for step, some in zip(steps, told, strict=True)),
        "worst": [_worst(some, step.name) for step, some in zip(steps, told, strict=True) if some],
        "missing": sorted({name for step in steps for name in step.missing}),
        "unsettled": sorted({name for step in steps for name in step.unsettled}),
    }


def box(values: Sequence[float], chance: Sequence[float]) -> Json | None:
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
        "text": share_text(quartiles[1]),
    }


def _worst(found: Sequence[Consistency], name: str) -> Json:
    """The function of which the fewest calls agree."""
    least = min(found, key=lambda one: (one.points, one.component))
    return {
        "step": name,
        "function": least.component,
        "points": share_text(least.points),
        "paths": share_text(least.paths),
    }


# ---- Durations of a function as bars on a logarithmic axis, one colour a behaviour, with the borders between
# clusters.

BARS = 120
"""Bars at most; buckets are put together for fewer."""


def histogram_data(mined: MinedSpec) -> Json | None:
    """Bars by group, None where the durations themselves are not known."""
    spans = [(h.scale, h.offset, h.offset + h.counts.size) for h in mined.histograms if h.counts.size]
    if not spans:
        return None
    scale = min(scale for scale, _, _ in spans)
    low = min(start >> (own - scale) for own, start, _ in spans)
    high = max(((end - 1) >> (own - scale)) + 1 for own, _, end in spans)
    while high - low > BARS:
        scale, low, high = scale - 1, low >> 1, ((high - 1) >> 1) + 1
    rows = [_bars(h, scale, low, high) for h in mined.histograms]
    zeros = sum(h.zeros for h in mined.histograms)
    width = math.ldexp(1.0, -scale)
    return {
        "low": low * width,
        "width": width,
        "groups": rows,
        "borders": [
            {"at": math.log2(one), "text": quantity(one, mined.spec.unit)} for one in mined.spec.borders if one > 0
        ],
        "ticks": _ticks(low * width, high * width, mined.spec.unit),
        "zeros": count(zeros) if zeros else "",
    }


def _bars(h: Histogram, scale: int, low: int, high: int) -> list[int]:
    """Calls in each bar."""
    bars = [0] * (high - low)
    for place, calls in enumerate(h.counts.tolist()):
        if calls:
            bars[((h.offset + place) >> (h.scale - scale)) - low] += calls
    return bars


def _ticks(low: float, high: float, unit: str) -> list[Json]:
    """Round numbers on the axis, in binary logarithms."""
    decades = range(math.floor(low * math.log10(2)), math.ceil(high * math.log10(2)) + 1)
    steps = (1,) if len(decades) > 4 else (1, 3) if len(decades) > 2 else (1, 2, 5)
    values = [step * 10.0**power for power in decades for step in steps]
    return [
        {"at": math.log2(value), "text": quantity(value, unit)} for value in values if low <= math.log2(value) <= high
    ]


Json = dict[str, Any]
UNKNOWN_PATHS, GROUP_PATHS = 20, 12
"""Call paths told of those without a group, and of a group."""


def mine_data(view: MineView) -> Json:
    """Everything the view shows, as JSON values without NaN or infinity."""
    return {
        "rows": [_row(one.spec) for one in view.file.specs],
        "screens": [packed(_screen(one)) for one in view.file.specs],
        "merges": merges_data(view.steps) if view.steps else None,
    }


def _row(spec: PathSpec) -> Json:
    return {
        "name": spec.component,
        "metric": spec.metric,
        "share": spec.share,
        "shareText": percent(spec.share) if spec.share is not None else "—",
        "calls": count(spec.points),
        "borders": len(spec.borders),
        "groups": len(spec.groups),
        "atoms": len(legend(spec)),
        "stable": spec.stable,
    }


def _screen(mined: MinedSpec) -> Json:
    spec, names = mined.spec, legend(mined.spec)
    found = f"{spec.observations} observation{'s' * (spec.observations != 1)}"
    return {
        "facts": [
            ("calls", count(spec.points)),
            ("borders", ", ".join(quantity(border, spec.unit) for border in spec.borders) or "none"),
            ("stable", f"{'yes' if spec.stable else 'no'}, over {found}"),
            ("call paths", f"{len(spec.paths):,}"),
            ("use of more data", percent(spec.utility)),
        ],
        "clusters": cluster_texts(spec),
        "groups": [_group(group, spec, names) for group in spec.groups],
        "legend": [{"name": name, "edge": edge_text(edge)} for edge, name in names.items()],
        "unknown": _paths(spec, spec.unknown, UNKNOWN_PATHS),
        "graph": _graph(spec, names),
        "histogram": histogram_data(mined),
        "platforms": _platforms(spec),
        "notes": list(spec.notes),
    }


def _group(group: PathGroup, spec: PathSpec, names: dict[tuple[str, str], str]) -> Json:
    return {
        "id": group.id,
        "when": behaviour_text(group, names),
        "full": expression_text(group.expression),
        "calls": count(sum(group.counts)),
        "shares": list(group.distribution),
        "texts": [share_text(share) for share in group.distribution],
        "mislabelled": share_text(group.mislabelled) if group.mislabelled else "",
        "paths": _paths(spec, group.paths, GROUP_PATHS),
        "behaviours": [
            {"platform": spec.platforms[place].host, "texts": [share_text(share) for share in shares]}
            for place, shares in sorted((group.behaviours or {}).items())
        ],
    }


def _paths(spec: PathSpec, places: Sequence[int], most: int) -> Json:
    order = sorted(places, key=lambda path: (-sum(spec.path_counts[path]), path))
    told = [{"names": list(spec.paths[path]), "calls": count(sum(spec.path_counts[path]))} for path in order[:most]]
    return {"all": len(order), "told": told}


def _graph(spec: PathSpec, names: dict[tuple[str, str], str]) -> Json:
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


def _platforms(spec: PathSpec) -> list[Json]:
    """Borders by platform, where there are several."""
    return [
        {"host": spec.platforms[place].host, "borders": ", ".join(quantity(border, spec.unit) for border in borders)}
        for place, borders in sorted((spec.platform_borders or {}).items())
    ]
