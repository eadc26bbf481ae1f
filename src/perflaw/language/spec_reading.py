"""Specifications read back from YAML (``perflaw.spec/1``); what a person made of them is checked, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import TypeVar

from perflaw.errors import DataError
from perflaw.language.path_texts import parse_expression, parse_path
from perflaw.language.spec_writing import SCHEMA
from perflaw.language.yaml_nodes import Place, compose
from perflaw.types.durations import CallPath, Platform
from perflaw.types.spec_files import MinedSpec, SpecFile, SpecRun, Tally
from perflaw.types.specs import Edge, PathGroup, PathSpec, Standing, Term

NEXT = "perflaw mine --export yaml"
_SIZES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "": 1.0}
_BORDER = re.compile(r"([\d_.]+(?:e[+-]?\d+)?)\s*([a-zµ]*)", re.IGNORECASE)
T = TypeVar("T")
SUM_SLACK = 0.005
"""Shares that a person rounds add up to 1 within this."""
SAME = 2e-5
"""Shares that differ by no more from what the calls say were not edited."""

_FUNCTION = ("below", "stable", "observations", "utility", "share", "platforms", "borders on", "notes", "unknown")
_GROUP = ("when", "standing", "calls", "worth", "mislabelled", "shares on", "runs", "paths")


def parse_specs(text: str, where: str) -> SpecFile:
    """Specifications of a file; DataError says what is wrong on which line."""
    top = compose(text, where, NEXT)
    schema = top.keys().get("schema")
    if schema is None or schema.text() != SCHEMA:
        found = repr(schema.text()) if schema else "missing"
        raise DataError(f"{where}: schema {found}", f"wanted is {SCHEMA!r}", NEXT)
    keys = top.known_keys(("schema", "functions"), ("runs", "platforms"))
    platforms = [_platform(one) for one in keys["platforms"].items()] if "platforms" in keys else []
    specs = tuple(_function(one, platforms) for one in keys["functions"].items())
    runs = tuple(_run(one) for one in keys["runs"].items()) if "runs" in keys else ()
    return SpecFile(specs, runs, where)


def _run(place: Place) -> SpecRun:
    keys = place.known_keys(("id",), ("started",))
    return SpecRun(keys["id"].text(), keys["started"].text() if "started" in keys else "")


def _platform(place: Place) -> Platform:
    keys = place.known_keys(("host",), ("build", "tick"))
    build = keys["build"].text() if "build" in keys else ""
    return Platform(keys["host"].text(), build, keys["tick"].number() if "tick" in keys else 0.0)


@dataclass(slots=True)
class _Paths:
    """Call paths of a function, in the order of the file."""

    component: str
    """The function."""
    clusters: int
    """Numbers of calls that each has."""
    platforms: Sequence[int]
    """Numbers, in the file, of the function's platforms."""
    names: list[CallPath] = field(default_factory=list)
    """The paths."""
    counts: list[tuple[int, ...]] = field(default_factory=list)
    """Calls of each in each cluster."""
    on: list[Mapping[int, tuple[int, ...]]] = field(default_factory=list)
    """The same by platform."""

    def add(self, place: Place) -> tuple[int, ...]:
        """Read a list of paths; their places."""
        first = len(self.names)
        for one in place.items():
            keys = one.known_keys(("path", "calls"), ("calls on",))
            self.names.append(self._path(keys["path"]))
            self.counts.append(_calls(keys["calls"], self.clusters))
            self.on.append(_on(keys.get("calls on"), self.platforms, lambda some: _calls(some, self.clusters)) or {})
        return tuple(range(first, len(self.names)))

    def _path(self, place: Place) -> CallPath:
        try:
            path = parse_path(place.text())
        except DataError as error:
            place.wrong(error.why)
        if path[-1] != self.component:
            place.wrong(f"it does not end with {self.component}")
        if path in self.names:
            place.wrong("it stands there twice")
        return path

    def by_platform(self) -> dict[int, tuple[tuple[int, ...], ...]] | None:
        """Platform → calls of all paths there; None where the file does not say."""
        known = sorted({place for one in self.on for place in one})
        nothing = (0,) * self.clusters
        return {place: tuple(one.get(place, nothing) for one in self.on) for place in known} or None


def _function(place: Place, platforms: Sequence[Platform]) -> MinedSpec:
    keys = place.known_keys(("function", "metric", "borders", "groups"), _FUNCTION)
    component, borders = keys["function"].text(), _borders(keys["borders"])
    if keys["metric"].text() not in ("time", "cpu"):
        keys["metric"].wrong(f"{keys['metric'].text()!r} is neither time nor cpu")
    numbers = [_number_of(one, len(platforms)) for one in keys["platforms"].items()] if "platforms" in keys else []
    paths = _Paths(component, len(borders) + 1, numbers)
    both = [_group(one, paths) for one in keys["groups"].items()]
    groups, tallies = tuple(group for group, _ in both), tuple(some for _, some in both)
    unknown = paths.add(keys["unknown"]) if "unknown" in keys else ()
    spec = PathSpec(
        component=component,
        metric=keys["metric"].text(),
        unit="ns",
        borders=borders,
        quantiles=_below(keys, groups, len(borders)),
        groups=groups,
        paths=tuple(paths.names),
        path_counts=tuple(paths.counts),
        unknown=unknown,
        stable=keys["stable"].boolean() if "stable" in keys else True,
        observations=keys["observations"].whole() if "observations" in keys else 0,
        points=sum(map(sum, paths.counts)) or sum(sum(group.counts) for group in groups),
        utility=keys["utility"].number(0, 1) if "utility" in keys else 0.0,
        platforms=tuple(platforms[number] for number in numbers),
        platform_borders=_on(keys.get("borders on"), numbers, _borders),
        platform_counts=paths.by_platform(),
        atoms=_atoms(groups),
        share=keys["share"].number(0, 1) if "share" in keys else None,
        notes=tuple(one.text() for one in keys["notes"].items()) if "notes" in keys else (),
    )
    return MinedSpec(spec, tallies if any(tallies) else ())


def _group(place: Place, paths: _Paths) -> tuple[PathGroup, tuple[Tally, ...]]:
    """A group and what single runs showed of it; its paths are added to ``paths``."""
    keys = place.known_keys(("id", "shares"), _GROUP)
    clusters, standing = paths.clusters, _standing(keys)
    shares = _shares(keys["shares"], clusters)
    calls = _calls(keys["calls"], clusters) if "calls" in keys else (0,) * clusters
    total = sum(calls)
    exact = tuple(one / total for one in calls) if total else shares
    edited = not total or any(abs(a - b) > SAME for a, b in zip(shares, exact, strict=True))
    group = PathGroup(
        id=keys["id"].text(),
        paths=paths.add(keys["paths"]) if "paths" in keys else (),
        distribution=shares if edited else exact,
        counts=calls,
        effective=keys["worth"].number() if "worth" in keys else float(total),
        expression=_when(keys, standing),
        standing=standing,
        mislabelled=keys["mislabelled"].number(0, 1) if "mislabelled" in keys else 0.0,
        behaviours=_on(keys.get("shares on"), paths.platforms, lambda one: _shares(one, clusters)),
    )
    return group, () if edited or "runs" not in keys else tuple(_tally(one, clusters) for one in keys["runs"].items())


def _standing(keys: Mapping[str, Place]) -> Standing:
    known: tuple[Standing, ...] = ("", "inseparable", "quarantined")
    text = keys["standing"].text() if "standing" in keys else ""
    found = next((one for one in known if one == text), None)
    if found is None:
        keys["standing"].wrong(f"{text!r} is neither inseparable nor quarantined")
    return found


def _when(keys: Mapping[str, Place], standing: str) -> tuple[Term, ...]:
    if "when" not in keys:
        if not standing:
            keys["id"].wrong("the group has neither 'when' nor a standing that says why")
        return ()
    try:
        return parse_expression(keys["when"].text())
    except DataError as error:
        keys["when"].wrong(f"{error.what}: {error.why}")


def _shares(place: Place, clusters: int) -> tuple[float, ...]:
    """Shares of clusters, adding up to 1."""
    values = [one.number(0, 1) for one in place.items()]
    if len(values) != clusters:
        place.wrong(f"{len(values)} for {clusters - 1} border{'s' * (clusters != 2)}: there must be {clusters}")
    total = sum(values)
    if not isclose(total, 1.0, abs_tol=SUM_SLACK):
        place.wrong(f"they add up to {total:.4g} and not to 1")
    return tuple(value / total for value in values)


def _calls(place: Place, clusters: int) -> tuple[int, ...]:
    values = tuple(one.whole() for one in place.items())
    if len(values) != clusters:
        place.wrong(f"{len(values)} numbers for {clusters} clusters")
    return values


def _borders(place: Place) -> tuple[float, ...]:
    """Times, increasing, ns."""
    found: list[float] = []
    for one in place.items():
        match = _BORDER.fullmatch(one.text().strip())
        if match is None or match[2] not in _SIZES:
            one.wrong(f"{one.text()!r} is no time such as 70 ms")
        try:
            found.append(float(match[1]) * _SIZES[match[2]])
        except ValueError:
            one.wrong(f"{one.text()!r} is no time such as 70 ms")
        if len(found) > 1 and found[-1] <= found[-2]:
            one.wrong("borders must increase")
    return tuple(found)


def _tally(place: Place, clusters: int) -> Tally:
    keys = place.known_keys(("run", "calls", "worth"), ())
    return Tally(keys["run"].text(), _calls(keys["calls"], clusters), keys["worth"].number())


def _number_of(place: Place, most: int) -> int:
    number = place.whole()
    if number >= most:
        place.wrong(f"there is no platform {number}: there are {most}")
    return number


def _on(place: Place | None, numbers: Sequence[int], read: Callable[[Place], T]) -> Mapping[int, T] | None:
    """By platform: numbers of the file become places of the function's own list."""
    if place is None:
        return None
    found: dict[int, T] = {}
    for name, one in place.keys().items():
        if not name.isdecimal() or int(name) not in numbers:
            one.wrong(f"platform {name} is none of the function's")
        found[numbers.index(int(name))] = read(one)
    return found


def _below(keys: Mapping[str, Place], groups: Sequence[PathGroup], borders: int) -> tuple[float, ...]:
    """Share of all calls below each border."""
    if "below" in keys:
        values = tuple(one.number(0, 1) for one in keys["below"].items())
        if len(values) != borders:
            keys["below"].wrong(f"{len(values)} for {borders} borders")
        return values
    total = sum(sum(group.counts) for group in groups) or 1
    return tuple(sum(sum(group.counts[: k + 1]) for group in groups) / total for k in range(borders))


def _atoms(groups: Sequence[PathGroup]) -> tuple[Edge, ...]:
    return tuple(dict.fromkeys(edge for group in groups for term in group.expression for edge, _ in term))
