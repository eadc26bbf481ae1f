"""The call-path view's data: specifications as rows, tables, graphs and histograms, one function deflated on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflaw.language.path_texts import edge_text, expression_text
from perflaw.report.call_path_graph import call_path_graph
from perflaw.report.mine_histogram import histogram_data
from perflaw.report.mine_model import MineView
from perflaw.report.mine_words import behaviour_text, cluster_texts, legend, share_text
from perflaw.report.page_charts import packed
from perflaw.report.page_merges import merges_data
from perflaw.report.quantity import count, percent, quantity
from perflaw.types.spec_files import MinedSpec
from perflaw.types.specs import PathGroup, PathSpec

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
