"""``perflaw.mine/1``: specifications as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflaw.report.mine.table import assertions
from perflaw.specs.call_paths import expression_text
from perflaw.types import Consistency
from perflaw.types.specifications import PathGroup, PathSpec, Platform, SpecFile, Tally

Document = dict[str, Any]


def mine_document(file: SpecFile, merges: Sequence[Sequence[Consistency]] = ()) -> Document:
    """The document; ``merges`` has what every step of ``--merge`` found of each function."""
    return {
        "schema": "perflaw.mine/1",
        "runs": [{"id": run.id, "started": run.started} for run in file.runs],
        "specs": [_spec(one.spec, one.tallies) for one in file.specs],
        "merges": [[_consistency(one) for one in step] for step in merges],
    }


def _spec(spec: PathSpec, tallies: Sequence[Sequence[Tally]]) -> Document:
    groups = [_group(group, spec, tallies[i] if tallies else ()) for i, group in enumerate(spec.groups)]
    return {
        "component": spec.component,
        "metric": spec.metric,
        "unit": spec.unit,
        "borders": list(spec.borders),
        "quantiles": list(spec.quantiles),
        "groups": groups,
        "stable": spec.stable,
        "observations": spec.observations,
        "calls": spec.points,
        "utility": spec.utility,
        "share": spec.share,
        "edges": [list(edge) for edge in spec.atoms],
        "assertions": assertions(spec),
        "unknown": [_path(spec, place) for place in spec.unknown],
        "platforms": [_platform(one) for one in spec.platforms],
        "platform_borders": _by_platform(spec.platform_borders),
        "notes": list(spec.notes),
    }


def _group(group: PathGroup, spec: PathSpec, tallies: Sequence[Tally]) -> Document:
    return {
        "id": group.id,
        "expression": expression_text(group.expression),
        "terms": [[{"edge": list(edge), "on_path": on} for edge, on in term] for term in group.expression],
        "standing": group.standing,
        "distribution": list(group.distribution),
        "counts": list(group.counts),
        "effective": group.effective,
        "mislabelled": group.mislabelled,
        "paths": [_path(spec, place) for place in group.paths],
        "behaviours": _by_platform(group.behaviours),
        "runs": [{"id": one.run, "counts": list(one.counts), "effective": one.worth} for one in tallies],
    }  # fmt: skip


def _path(spec: PathSpec, place: int) -> Document:
    return {"path": list(spec.paths[place]), "counts": list(spec.path_counts[place])}


def _platform(one: Platform) -> Document:
    return {"host": one.host, "build": one.build, "tick": one.tick}


def _by_platform(values: Any) -> list[Document] | None:
    if values is None:
        return None
    return [{"platform": place, "values": list(some)} for place, some in sorted(values.items())]


def _consistency(one: Consistency) -> Document:
    return {
        "component": one.component,
        "paths": one.paths,
        "points": one.points,
        "chance_paths": one.chance_paths,
        "chance_points": one.chance_points,
        "common": one.common,
    }
