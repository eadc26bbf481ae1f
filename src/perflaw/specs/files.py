"""Specifications read back from YAML (``perflaw.spec/1``); what a person made of them is checked, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import TypeVar

import yaml

from perflaw.documents import DocumentNode, DocumentSource, yaml_document
from perflaw.errors import DataError
from perflaw.specs.call_paths import expression_text, parse_expression, parse_path, path_text
from perflaw.types.specifications import (
    LOCATION_LEVELS,
    CallPath,
    MinedSpec,
    PathGroup,
    PathSpec,
    Platform,
    SpecFile,
    SpecRun,
    Standing,
    Tally,
    Term,
)

# ---- Specifications as YAML for review (``perflaw.spec/1``): short, commented, one line a call path.

SCHEMA = "perflaw.spec/1"
UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
"""Of borders, the largest first."""
_HEAD = f"""\
# What durations each function shows on which call paths, mined by perflaw. Edit it as you review it:
#   borders  between quick and slow calls; `shares` have one more entry, from the quickest calls to the slowest
#   when     call edges that a path has or has not: "caller -> callee", not, and, or, always
#   shares   of the group's calls, adding up to 1; where they are edited they are taken at their word
#   times    that 10, 25, 50, 75 and 90 % of the group's calls do not exceed
#   selected functions that were recorded, where others were not: these divide no call paths
#   standing left out, or: inseparable (no edges tell the group from another), quarantined (runs contradict)
# Hold new recordings against it: perflaw check FILE.yaml -e NAME
schema: {SCHEMA}
"""


MAX_BYTES = 2000
"""Bytes that the specification of a function has at most, without evidence."""


def spec_yaml(file: SpecFile, evidence: bool = True) -> str:
    """The text of a file that ``parse_specs`` reads back, with call paths and runs, or without this evidence.

    Without it numbers have four digits, and of many groups those of the fewest calls are left out.
    """
    platforms = list(dict.fromkeys(one for mined in file.specs for one in mined.spec.platforms))
    lines = [_HEAD.rstrip("\n")]
    lines += _listed("runs", [f"{{id: {_scalar(run.id)}, started: {_scalar(run.started)}}}" for run in file.runs])
    lines += _listed(
        "platforms",
        [f"{{host: {_scalar(one.host)}, build: {_scalar(one.build)}, tick: {one.tick:.9g}}}" for one in platforms],
    )
    lines.append("functions:" if file.specs else "functions: []")
    for mined in file.specs:
        numbers = [platforms.index(one) for one in mined.spec.platforms]
        lines += _function_lines(mined, numbers) if evidence else _reviewed_lines(mined, numbers)
    return "\n".join(lines) + "\n"


def _function_lines(mined: MinedSpec, numbers: Sequence[int]) -> list[str]:
    """All that is known of a function."""
    spec = mined.spec
    lines = _head_lines(spec, numbers, border_text)
    lines.insert(3, f"  below: {_numbers(spec.quantiles)}")
    lines += [f"  observations: {spec.observations}", f"  utility: {spec.utility:.6g}"]
    lines += [f"  {line}" for line in _listed("notes", [_scalar(note) for note in spec.notes])]
    lines.append("  groups:" if spec.groups else "  groups: []")
    for place, group in enumerate(spec.groups):
        lines += _group_lines(group, numbers, border_text)
        tallies = mined.tallies[place] if mined.tallies else ()
        several = [f"{{run: {_scalar(t.run)}, calls: {list(t.counts)}, worth: {t.worth:.6g}}}" for t in tallies]
        for line in [
            *_listed("runs", several),
            *_listed("paths", [_path(spec, path, numbers) for path in group.paths]),
        ]:
            lines.append(f"    {line}")
    return lines + [f"  {line}" for line in _listed("unknown", [_path(spec, path, numbers) for path in spec.unknown])]


def _reviewed_lines(mined: MinedSpec, numbers: Sequence[int]) -> list[str]:
    """The specification of a function alone, in at most ``MAX_BYTES``."""
    lines = [*_head_lines(mined.spec, numbers, short_time), "  groups:"]
    size, kept = sum(len(line.encode()) + 1 for line in lines), 0
    for group in mined.spec.groups:
        more = list(_group_lines(group, numbers, short_time))
        size += sum(len(line.encode()) + 1 for line in more)
        if kept and size > MAX_BYTES:
            break
        lines, kept = lines + more, kept + 1
    if left := len(mined.spec.groups) - kept:
        lines.append(f"  # and {left} group{'s' * (left > 1)} of fewer calls")
    return lines if kept else [*lines[:-1], "  groups: []"]


def _head_lines(spec: PathSpec, numbers: Sequence[int], time: Callable[[float], str]) -> list[str]:
    """The function itself."""
    lines = [
        f"- function: {_scalar(spec.component)}",
        f"  metric: {spec.metric}",
        f"  borders: {_time_list(spec.borders, time)}",
        f"  stable: {str(spec.stable).lower()}",
    ]
    if spec.share is not None:
        lines.append(f"  share: {spec.share:.4g}")
    lines.append(f"  platforms: {list(numbers)}")
    if spec.platform_borders is not None:
        pairs = (f"{numbers[p]}: {_time_list(some, time)}" for p, some in sorted(spec.platform_borders.items()))
        lines.append(f"  borders on: {{{', '.join(pairs)}}}")
    return lines + [f"  {line}" for line in _listed("selected", [_scalar(text) for text in spec.selected])]


def short_time(duration: float) -> str:
    """A time with four digits.

    >>> short_time(1234567.0)
    '1.235 ms'
    """
    return border_text(float(f"{duration:.4g}"))


def border_text(border: float) -> str:
    """A border in the unit that suits it, with nine digits.

    >>> border_text(70e6), border_text(1234.5), border_text(0.25)
    ('70 ms', '1.2345 us', '0.25 ns')
    """
    name, size = next((unit for unit in UNITS if border >= unit[1]), UNITS[-1])
    return f"{border / size:.9g} {name}"


def _group_lines(group: PathGroup, numbers: Sequence[int], time: Callable[[float], str]) -> Iterator[str]:
    """A group, without its call paths and runs."""
    yield f"  - id: {_scalar(group.id)}"
    if group.expression:
        yield f"    when: {_scalar(expression_text(group.expression))}"
    if group.standing:
        yield f"    standing: {group.standing}"
    yield f"    shares: {_numbers(group.distribution)}"
    for name, times in (
        ("times", group.durations),
        ("times on cpu", group.cpu_durations),
        ("path medians", group.path_medians),
    ):
        if times:
            yield f"    {name}: {_time_list(times, time)}"
    if group.path_shares:
        yield f"    path shares: [{', '.join(_numbers(one) for one in group.path_shares)}]"
    yield f"    calls: {list(group.counts)}"
    yield f"    worth: {group.effective:.6g}"
    if group.runs:
        yield f"    from runs: {group.runs}"
    if group.share_spread:
        yield f"    shares vary: [{', '.join(f'{one:.4g}' for one in group.share_spread)}]"
    if group.duration_spread is not None:
        yield f"    times vary: {group.duration_spread:.4g}"
    if group.mislabelled:
        yield f"    mislabelled: {group.mislabelled:.6g}"
    if group.behaviours is not None:
        pairs = ", ".join(f"{numbers[p]}: {_numbers(some)}" for p, some in sorted(group.behaviours.items()))
        yield f"    shares on: {{{pairs}}}"


def _path(spec: PathSpec, place: int, numbers: Sequence[int]) -> str:
    pairs = [f"{numbers[p]}: {list(table[place])}" for p, table in sorted((spec.platform_counts or {}).items())]
    on = f", calls on: {{{', '.join(pairs)}}}" if pairs else ""
    return f"{{path: {_scalar(path_text(spec.paths[place]))}, calls: {list(spec.path_counts[place])}{on}}}"


def _listed(name: str, items: Sequence[str]) -> list[str]:
    """A list of one-line items under a name; nothing where there are none."""
    return [f"{name}:", *(f"- {item}" for item in items)] if items else []


def _time_list(times: Sequence[float], time: Callable[[float], str]) -> str:
    return f"[{', '.join(map(time, times))}]"


def _numbers(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:.6g}' for value in values)}]"


def _scalar(text: str) -> str:
    """Text that YAML reads back as this very text, whatever it says."""
    if text.isprintable():
        quoted = text.replace("'", "''")
        return f"'{quoted}'"
    dumped: str = yaml.safe_dump(text, default_style='"', width=2**31)
    return dumped.strip()


NEXT = "perflaw mine --export yaml"
_SIZES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "": 1.0}
_BORDER = re.compile(r"([\d_.]+(?:e[+-]?\d+)?)\s*([a-zµ]*)", re.IGNORECASE)
T = TypeVar("T")
SUM_SLACK = 0.005
"""Shares that a person rounds add up to 1 within this."""
SAME = 2e-5
"""Shares that differ by no more from what the calls say were not edited."""

_FUNCTION = (
    "below",
    "stable",
    "observations",
    "utility",
    "share",
    "platforms",
    "borders on",
    "notes",
    "unknown",
    "selected",
)
_TIMES = {"times": len(LOCATION_LEVELS), "times on cpu": len(LOCATION_LEVELS), "path medians": 2}
"""Lists of times of a group and their lengths."""
_GROUP = (
    *("when", "standing", "calls", "worth", "mislabelled", "shares on", "runs", "paths"),
    *(*_TIMES, "times vary", "shares vary", "path shares", "from runs"),
)


def parse_specs(text: str, where: str) -> SpecFile:
    """Specifications of a file; DataError says what is wrong on which line."""
    top = yaml_document(text, DocumentSource(where, DataError, NEXT))
    schema = top.child("schema")
    if schema.value != SCHEMA:
        schema.expect(repr(SCHEMA))
    keys = top.mapping(("runs", "platforms"), ("schema", "functions"))
    platforms = []
    for one in keys["platforms"].items() if "platforms" in keys else ():
        of_one = one.mapping(("build", "tick"), ("host",))
        build = of_one["build"].text() if "build" in of_one else ""
        platforms.append(Platform(of_one["host"].text(), build, of_one["tick"].number(0) if "tick" in of_one else 0.0))
    specs = tuple(_function(one, platforms) for one in keys["functions"].items())
    runs = []
    for one in keys["runs"].items() if "runs" in keys else ():
        run = one.mapping(("started",), ("id",))
        runs.append(SpecRun(run["id"].text(), run["started"].text() if "started" in run else ""))
    return SpecFile(specs, tuple(runs), where)


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

    def add(self, node: DocumentNode) -> tuple[int, ...]:
        """Read a list of paths; their places."""
        first = len(self.names)
        for one in node.items():
            keys = one.mapping(("calls on",), ("path", "calls"))
            self.names.append(self._path(keys["path"]))
            self.counts.append(_calls(keys["calls"], self.clusters))
            self.on.append(_on(keys.get("calls on"), self.platforms, lambda some: _calls(some, self.clusters)) or {})
        return tuple(range(first, len(self.names)))

    def _path(self, node: DocumentNode) -> CallPath:
        try:
            path = parse_path(node.text())
        except DataError as error:
            node.refuse(error.why)
        if path[-1] != self.component:
            node.refuse(f"it does not end with {self.component}")
        if path in self.names:
            node.refuse("the path occurs twice")
        return path

    def by_platform(self) -> dict[int, tuple[tuple[int, ...], ...]] | None:
        """Platform → calls of all paths there; None where the file does not say."""
        known = sorted({place for one in self.on for place in one})
        nothing = (0,) * self.clusters
        return {place: tuple(one.get(place, nothing) for one in self.on) for place in known} or None


def _function(node: DocumentNode, platforms: Sequence[Platform]) -> MinedSpec:
    keys = node.mapping(_FUNCTION, ("function", "metric", "borders", "groups"))
    component, borders = keys["function"].text(), _borders(keys["borders"])
    if keys["metric"].text() not in ("time", "cpu"):
        keys["metric"].refuse(f"{keys['metric'].text()!r} is neither time nor cpu")
    numbers = []
    for one in keys["platforms"].items() if "platforms" in keys else ():
        if one.whole() >= len(platforms):
            one.refuse(f"there is no platform {one.whole()}: there are {len(platforms)}")
        numbers.append(one.whole())
    paths = _Paths(component, len(borders) + 1, numbers)
    both = [_group(one, paths) for one in keys["groups"].items()]
    groups, tallies = tuple(group for group, _ in both), tuple(some for _, some in both)
    unknown = paths.add(keys["unknown"]) if "unknown" in keys else ()
    if "below" in keys:
        quantiles = tuple(one.number(0, 1) for one in keys["below"].items())
        if len(quantiles) != len(borders):
            keys["below"].refuse(f"{len(quantiles)} for {len(borders)} borders")
    else:
        # The share of all calls below each border.
        calls = sum(sum(group.counts) for group in groups) or 1
        quantiles = tuple(
            sum(sum(group.counts[: place + 1]) for group in groups) / calls for place in range(len(borders))
        )
    spec = PathSpec(
        component=component,
        metric=keys["metric"].text(),
        unit="ns",
        borders=borders,
        quantiles=quantiles,
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
        atoms=tuple(dict.fromkeys(edge for group in groups for term in group.expression for edge, _ in term)),
        share=keys["share"].number(0, 1) if "share" in keys else None,
        notes=tuple(one.text() for one in keys["notes"].items()) if "notes" in keys else (),
        selected=tuple(one.text() for one in keys["selected"].items()) if "selected" in keys else (),
    )
    return MinedSpec(spec, tallies if any(tallies) else ())


def _group(node: DocumentNode, paths: _Paths) -> tuple[PathGroup, tuple[Tally, ...]]:
    """A group and what single runs showed of it; its paths are added to ``paths``."""
    keys = node.mapping(_GROUP, ("id", "shares"))
    known: tuple[Standing, ...] = ("", "inseparable", "quarantined")
    text = keys["standing"].text() if "standing" in keys else ""
    standing = next((one for one in known if one == text), None)
    if standing is None:
        keys["standing"].refuse(f"{text!r} is neither inseparable nor quarantined")
    clusters = paths.clusters
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
        effective=keys["worth"].number(0) if "worth" in keys else float(total),
        expression=_when(keys, standing),
        standing=standing,
        mislabelled=keys["mislabelled"].number(0, 1) if "mislabelled" in keys else 0.0,
        behaviours=_on(keys.get("shares on"), paths.platforms, lambda one: _shares(one, clusters)),
        durations=_group_times(keys, "times"),
        cpu_durations=_group_times(keys, "times on cpu"),
        path_medians=_group_times(keys, "path medians"),
        path_shares=_path_shares(keys, clusters),
        runs=keys["from runs"].whole() if "from runs" in keys else 0,
        share_spread=tuple(one.number(0) for one in keys["shares vary"].items()) if "shares vary" in keys else (),
        duration_spread=keys["times vary"].number(0) if "times vary" in keys else None,
    )
    tallies = []
    for one in () if edited or "runs" not in keys else keys["runs"].items():
        run = one.mapping((), ("run", "calls", "worth"))
        tallies.append(Tally(run["run"].text(), _calls(run["calls"], clusters), run["worth"].number(0)))
    return group, tuple(tallies)


def _when(keys: Mapping[str, DocumentNode], standing: str) -> tuple[Term, ...]:
    if "when" not in keys:
        if not standing:
            keys["id"].refuse("the group has neither 'when' nor a standing that says why")
        return ()
    try:
        return parse_expression(keys["when"].text())
    except DataError as error:
        keys["when"].refuse(f"{error.what}: {error.why}")


def _shares(node: DocumentNode, clusters: int) -> tuple[float, ...]:
    """Shares of clusters, adding up to 1."""
    values = [one.number(0, 1) for one in node.items()]
    if len(values) != clusters:
        node.refuse(f"{len(values)} for {clusters - 1} border{'s' * (clusters != 2)}: there must be {clusters}")
    total = sum(values)
    if not isclose(total, 1.0, abs_tol=SUM_SLACK):
        node.refuse(f"they add up to {total:.4g} and not to 1")
    return tuple(value / total for value in values)


def _calls(node: DocumentNode, clusters: int) -> tuple[int, ...]:
    values = tuple(one.whole() for one in node.items())
    if len(values) != clusters:
        node.refuse(f"{len(values)} numbers for {clusters} clusters")
    return values


def _group_times(keys: Mapping[str, DocumentNode], name: str) -> tuple[float, ...]:
    """A list of times of a group, ns; empty where the file has none."""
    if name not in keys:
        return ()
    times = _times(keys[name])
    if len(times) != _TIMES[name]:
        keys[name].refuse(f"{len(times)} times: there must be {_TIMES[name]}")
    if list(times) != sorted(times):
        keys[name].refuse("times must not decrease")
    return times


def _path_shares(keys: Mapping[str, DocumentNode], clusters: int) -> tuple[tuple[float, float], ...]:
    """Least and largest share of slower calls among the call paths of a group, for each border."""
    if "path shares" not in keys:
        return ()
    found = []
    for one in keys["path shares"].items():
        ends = [end.number(0, 1) for end in one.items()]
        if len(ends) != 2 or ends[0] > ends[1]:
            one.refuse("the least and the largest share were expected")
        found.append((ends[0], ends[1]))
    if len(found) != clusters - 1:
        keys["path shares"].refuse(f"{len(found)} for {clusters - 1} border{'s' * (clusters != 2)}")
    return tuple(found)


def _borders(node: DocumentNode) -> tuple[float, ...]:
    """Times, increasing, ns."""
    borders = _times(node)
    for one, border, last in zip(list(node.items())[1:], borders[1:], borders, strict=False):
        if border <= last:
            one.refuse("borders must increase")
    return borders


def _times(node: DocumentNode) -> tuple[float, ...]:
    found: list[float] = []
    for one in node.items():
        match = _BORDER.fullmatch(one.text().strip())
        if match is None or match[2] not in _SIZES:
            one.refuse(f"{one.text()!r} is not a time such as 70 ms")
        try:
            found.append(float(match[1]) * _SIZES[match[2]])
        except ValueError:
            one.refuse(f"{one.text()!r} is not a time such as 70 ms")
    return tuple(found)


def _on(node: DocumentNode | None, numbers: Sequence[int], read: Callable[[DocumentNode], T]) -> Mapping[int, T] | None:
    """By platform: numbers of the file become places of the function's own list."""
    if node is None:
        return None
    found: dict[int, T] = {}
    for name, one in node.mapping().items():
        if not name.isdecimal() or int(name) not in numbers:
            one.refuse(f"platform {name} is none of the function's")
        found[numbers.index(int(name))] = read(one)
    return found
