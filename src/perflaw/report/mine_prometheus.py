"""Specifications as Prometheus rules: the share of quick calls of every group, and an alert where it leaves the specified one.

The rules read native histograms named as an OTLP receiver names what ``perflaw mine --export otlp`` writes. Groups stand in
labels by their ids: call paths would be too many values, and are nobody's business there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from perflaw.report.mine_words import share_text
from perflaw.report.quantity import quantity
from perflaw.types.spec_files import SpecFile
from perflaw.types.specs import PathGroup, PathSpec

METRIC = "perflaw_call_duration_nanoseconds"
RATIO = "perflaw:calls_quicker:ratio"
CALLS = "perflaw:calls:increase"
TOLERANCE, SURE, WINDOW, LASTING = 0.05, 3.0, "15m", "30m"
"""Shares that differ by less are no alert, nor by so many binomial standard deviations; over how long; for how long."""
_ON = "on (code_function_name, spec_group, clock)"

_HEAD = """\
# Prometheus rules of performance specifications, by perflaw mine --export prometheus.
# They need native histograms (--enable-feature=native-histograms) of what perflaw mine --export otlp sends.
groups:
"""


def mine_prometheus(file: SpecFile) -> str:
    """The rules as YAML."""
    told = [one.spec for one in file.specs if one.spec.borders]
    if not told:
        return _HEAD.replace("groups:\n", "groups: []\n")
    return _HEAD + "".join(line + "\n" for spec in told for line in _function(spec))


def _function(spec: PathSpec) -> Iterator[str]:
    yield f"- name: {json.dumps(f'perflaw {spec.component} {spec.metric}', ensure_ascii=False)}"
    yield "  rules:"
    for group in spec.groups:
        if group.standing == "quarantined":
            continue
        yield f"  - record: {CALLS}"
        yield f"    expr: {_quoted(f'histogram_count(sum(increase({_series(spec, group)})))')}"
        yield f"    labels: {_labels(spec, group)}"
        for place, border in enumerate(spec.borders):
            yield f"  - record: {RATIO}"
            yield f"    expr: {_quoted(f'histogram_fraction(0, {border:.9g}, sum(rate({_series(spec, group)})))')}"
            yield f"    labels: {_labels(spec, group, border=f'{border:.9g}')}"
            yield from _alert(spec, group, border, sum(group.distribution[: place + 1]))


def _alert(spec: PathSpec, group: PathGroup, border: float, share: float) -> Iterator[str]:
    """The alert: the share is off by more than the tolerance, and by more than chance gives so many calls."""
    ratio = f"{RATIO}{{{_selector(spec, group)}, border={json.dumps(f'{border:.9g}')}}} - {share:.6g}"
    variance = SURE**2 * max(share * (1.0 - share), 1e-4)
    chance = f"({ratio}) ^ 2 * {_ON} {CALLS}{{{_selector(spec, group)}}} > {variance:.6g}"
    text = f"{spec.component}, group {group.id}: {{{{ $value | humanizePercentage }}}} off the {share_text(share)} of calls"
    yield "  - alert: PerformanceSpecificationViolated"
    yield f"    expr: {_quoted(f'abs({ratio}) > {TOLERANCE} and {_ON} {chance}')}"
    yield f"    for: {LASTING}"
    yield f"    labels: {_labels(spec, group, border=f'{border:.9g}', severity='warning')}"
    yield f"    annotations: {{summary: {_quoted(f'{text} up to {quantity(border, spec.unit)}')}}}"


def _series(spec: PathSpec, group: PathGroup) -> str:
    return f"{METRIC}{{{_selector(spec, group)}}}[{WINDOW}]"


def _selector(spec: PathSpec, group: PathGroup) -> str:
    return (
        f"code_function_name={json.dumps(spec.component, ensure_ascii=False)}, spec_group={json.dumps(group.id)}, "
        f"clock={json.dumps(spec.metric)}"
    )


def _labels(spec: PathSpec, group: PathGroup, **more: str) -> str:
    values = {
        "code_function_name": spec.component,
        "spec_group": group.id,
        "clock": spec.metric,
        **more,
    }
    return "{" + ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()) + "}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
