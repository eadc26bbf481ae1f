"""Specifications as YAML for review (``perflaw.spec/1``): short, commented, one line a call path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml

from perflaw.language.path_texts import expression_text, path_text
from perflaw.types.durations import Platform
from perflaw.types.spec_files import MinedSpec, SpecFile, Tally
from perflaw.types.specs import PathGroup, PathSpec

SCHEMA = "perflaw.spec/1"
UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
"""Of borders, the largest first."""
_HEAD = f"""\
# What durations each function shows on which call paths, mined by perflaw. Edit it as you review it:
#   borders  between quick and slow calls; `shares` have one more entry, from the quickest calls to the slowest
#   when     call edges that a path has or has not: "caller -> callee", not, and, or, always
#   shares   of the group's calls, adding up to 1; where they are edited they are taken at their word
#   standing left out, or: inseparable (no edges tell the group from another), quarantined (runs contradict)
# Hold new recordings against it: perflaw check FILE.yaml -e NAME
schema: {SCHEMA}
"""


def spec_yaml(file: SpecFile) -> str:
    """The text of a file that ``parse_specs`` reads back."""
    platforms = list(dict.fromkeys(one for mined in file.specs for one in mined.spec.platforms))
    lines = [_HEAD.rstrip("\n")]
    lines += _listed("runs", [f"{{id: {_scalar(run.id)}, started: {_scalar(run.started)}}}" for run in file.runs])
    lines += _listed("platforms", [_platform(one) for one in platforms])
    lines.append("functions:" if file.specs else "functions: []")
    for mined in file.specs:
        lines += _function(mined, platforms)
    return "\n".join(lines) + "\n"


def border_text(border: float) -> str:
    """A border in the unit that suits it, with nine digits.

    >>> border_text(70e6), border_text(1234.5), border_text(0.25)
    ('70 ms', '1.2345 us', '0.25 ns')
    """
    name, size = next((unit for unit in UNITS if border >= unit[1]), UNITS[-1])
    return f"{border / size:.9g} {name}"


def _platform(one: Platform) -> str:
    return f"{{host: {_scalar(one.host)}, build: {_scalar(one.build)}, tick: {one.tick:.9g}}}"


def _function(mined: MinedSpec, platforms: Sequence[Platform]) -> Iterator[str]:
    spec = mined.spec
    numbers = [platforms.index(one) for one in spec.platforms]
    yield f"- function: {_scalar(spec.component)}"
    yield f"  metric: {spec.metric}"
    yield f"  borders: {_borders(spec.borders)}"
    yield f"  below: {_numbers(spec.quantiles)}"
    yield f"  stable: {str(spec.stable).lower()}"
    yield f"  observations: {spec.observations}"
    yield f"  utility: {spec.utility:.6g}"
    if spec.share is not None:
        yield f"  share: {spec.share:.6g}"
    yield f"  platforms: {numbers}"
    if spec.platform_borders is not None:
        pairs = ", ".join(f"{numbers[p]}: {_borders(some)}" for p, some in sorted(spec.platform_borders.items()))
        yield f"  borders on: {{{pairs}}}"
    for line in _listed("notes", [_scalar(note) for note in spec.notes]):
        yield f"  {line}"
    yield "  groups:" if spec.groups else "  groups: []"
    for place, group in enumerate(spec.groups):
        yield from _group(group, spec, mined.tallies[place] if mined.tallies else (), numbers)
    for line in _listed("unknown", [_path(spec, path, numbers) for path in spec.unknown]):
        yield f"  {line}"


def _group(group: PathGroup, spec: PathSpec, tallies: Sequence[Tally], numbers: Sequence[int]) -> Iterator[str]:
    yield f"  - id: {_scalar(group.id)}"
    if group.expression:
        yield f"    when: {_scalar(expression_text(group.expression))}"
    if group.standing:
        yield f"    standing: {group.standing}"
    yield f"    shares: {_numbers(group.distribution)}"
    yield f"    calls: {list(group.counts)}"
    yield f"    worth: {group.effective:.6g}"
    if group.mislabelled:
        yield f"    mislabelled: {group.mislabelled:.6g}"
    if group.behaviours is not None:
        pairs = ", ".join(f"{numbers[p]}: {_numbers(some)}" for p, some in sorted(group.behaviours.items()))
        yield f"    shares on: {{{pairs}}}"
    several = [f"{{run: {_scalar(t.run)}, calls: {list(t.counts)}, worth: {t.worth:.6g}}}" for t in tallies]
    for line in [*_listed("runs", several), *_listed("paths", [_path(spec, path, numbers) for path in group.paths])]:
        yield f"    {line}"


def _path(spec: PathSpec, place: int, numbers: Sequence[int]) -> str:
    pairs = [f"{numbers[p]}: {list(table[place])}" for p, table in sorted((spec.platform_counts or {}).items())]
    on = f", calls on: {{{', '.join(pairs)}}}" if pairs else ""
    return f"{{path: {_scalar(path_text(spec.paths[place]))}, calls: {list(spec.path_counts[place])}{on}}}"


def _listed(name: str, items: Sequence[str]) -> list[str]:
    """A list of one-line items under a name; nothing where there are none."""
    return [f"{name}:", *(f"- {item}" for item in items)] if items else []


def _borders(borders: Sequence[float]) -> str:
    return f"[{', '.join(map(border_text, borders))}]"


def _numbers(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:.6g}' for value in values)}]"


def _scalar(text: str) -> str:
    """Text that YAML reads back as this very text, whatever it says."""
    if text.isprintable():
        quoted = text.replace("'", "''")
        return f"'{quoted}'"
    dumped: str = yaml.safe_dump(text, default_style='"', width=2**31)
    return dumped.strip()
