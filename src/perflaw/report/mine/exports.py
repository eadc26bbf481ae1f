"""Specifications as OTLP metrics: an exponential histogram of durations for every group of call paths.

OpenTelemetry protocol 1.x, JSON encoding: ``ExportMetricsServiceRequest`` with 64-bit numbers as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from perflaw.errors import DataError
from perflaw.report.mine.words import share_text
from perflaw.report.quantity import quantity
from perflaw.specs.call_paths import expression_text
from perflaw.specs.files import spec_yaml
from perflaw.types import Histogram
from perflaw.types.specifications import MinedSpec, PathGroup, PathSpec, SpecFile

Document = dict[str, Any]
NAME = "perflaw.call.duration"
CUMULATIVE = 2


def mine_otlp(file: SpecFile) -> Document:
    """The request; DataError where durations are not known, as of specifications read from a file."""
    if file.specs and not any(one.histograms for one in file.specs):
        why = "files of specifications hold shares and no durations"
        raise DataError("OTLP: no durations", why, "perflaw mine --export otlp (from recordings)")
    points = [_point(one, place) for one in file.specs if one.histograms for place in range(len(one.spec.groups))]
    metric = {
        "name": NAME,
        "description": "Durations of calls by group of call paths, as mined by perflaw",
        "unit": "ns",
        "exponentialHistogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": points},
    }
    resource = {"attributes": [_attribute("service.name", "perflaw")]}
    return {
        "resourceMetrics": [
            {"resource": resource, "scopeMetrics": [{"scope": {"name": "perflaw"}, "metrics": [metric]}]}
        ]
    }


def _point(one: MinedSpec, place: int) -> Document:
    group, histogram = one.spec.groups[place], one.histograms[place]
    return {
        "attributes": _attributes(one, group),
        "startTimeUnixNano": str(one.span_ns[0]),
        "timeUnixNano": str(one.span_ns[1]),
        **_buckets(histogram),
    }


def _attributes(one: MinedSpec, group: PathGroup) -> list[Document]:
    """The function, the group by its id, the clock; never a call path."""
    values = {"code.function.name": one.spec.component, "spec_group": group.id, "clock": one.spec.metric}
    return [_attribute(name, value) for name, value in values.items()]


def _attribute(name: str, value: str) -> Document:
    return {"key": name, "value": {"stringValue": value.encode("utf-8", "backslashreplace").decode()}}


def _buckets(histogram: Histogram) -> Document:
    counts = histogram.counts.tolist()
    return {
        "count": str(sum(counts) + histogram.zeros),
        "scale": histogram.scale,
        "zeroCount": str(histogram.zeros),
        "positive": {"offset": histogram.offset, "bucketCounts": [str(calls) for calls in counts]},
    }


# ---- Specifications as Prometheus rules: the share of quick calls of every group, and an alert where it leaves the
# specified one.
#
# The rules read native histograms named as an OTLP receiver names what ``perflaw mine --export otlp`` writes. Groups
# stand in
# labels by their ids: call paths would be too many values, and are nobody's business there.

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


# ---- Specifications as a pytest file: one test a group of call paths, its share of slow calls with a binomial
# tolerance.

_FILE = '''\
"""Performance specifications mined by perflaw: each test holds one group of call paths to its share of slow calls.

Record the program anew, then run the tests on that (several runs tell more than one):

    perflaw record -e {experiment} --collect paths --repeat 3 -- COMMAND
    PERFLAW_EXPERIMENT={experiment} pytest {file}

Times are held relative to each other, so that another machine may be slower as a whole; PERFLAW_ABSOLUTE=1 holds them to
the borders as they were mined.
"""

import json
import math
import os
import subprocess
import sys

import pytest

EXPERIMENT = os.environ.get("PERFLAW_EXPERIMENT", "{experiment}")
TOLERANCE = 0.05  # shares that differ by no more do not differ
SURE = 3.0  # standard deviations of a binomial share beyond that

# Function, group, when a call belongs to it, border, share of its calls that are slower.
GROUPS = [
{groups}]

SPECIFICATION = r"""
{yaml}"""


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory):
    """What perflaw says of the recordings, by function and group."""
    file = tmp_path_factory.mktemp("perflaw") / "spec.yaml"
    file.write_text(SPECIFICATION, encoding="utf-8")
    command = [sys.executable, "-m", "perflaw", "check", str(file), "-e", EXPERIMENT, "--json"]
    command += ["--absolute"] if os.environ.get("PERFLAW_ABSOLUTE") else []
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return {{(one["component"], one["metric"], one["group"]): one for one in json.loads(done.stdout)["verdicts"]}}


@pytest.mark.parametrize(
    ("function", "metric", "group", "when", "border", "slower"), GROUPS, ids=[f"{{g[0]}}-{{g[2]}}" for g in GROUPS]
)
def test_share_of_slow_calls(verdicts, function, metric, group, when, border, slower):
    found = verdicts.get((function, metric, group)) or verdicts.get((function, metric, ""))
    if found is None or found["effect"] is None or found["follows"]:
        # These runs cannot tell (the function is gone, has too few calls, or only follows a callee): neither pass nor failure.
        pytest.skip(found["message"] if found else "no verdict")
    told = f"{{function}} where {{found['path'] or when}}: {{found['message'] or 'another share of slow calls'}}"
    chance = SURE * math.sqrt(max(slower * (1 - slower), 1e-4) / max(found["worth"], 1))
    assert found["verdict"] == "holds" or abs(found["effect"]) <= TOLERANCE + chance, told
'''


def mine_pytest(file: SpecFile, experiment: str) -> str:
    """The file's text; it runs ``perflaw check`` on recordings and holds the specifications without their call paths."""
    told = [one for one in file.specs if one.spec.borders]
    groups = "".join(_group(one, place) for one in told for place in range(len(one.spec.groups)))
    yaml = spec_yaml(replace(file, specs=tuple(_without_paths(one) for one in told)))
    quoted = yaml.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = (
        _FILE.replace('SPECIFICATION = r"""', 'SPECIFICATION = """\\')
        if quoted != yaml
        else _FILE.replace('r"""\n', 'r"""')
    )
    return text.format(experiment=f"new-{experiment}", file="test_performance.py", groups=groups, yaml=quoted)


def _group(one: MinedSpec, place: int) -> str:
    """A line of the table, with what it says in words."""
    spec, group = one.spec, one.spec.groups[place]
    if group.standing:
        return f"    # {group.id} of {spec.component!a} is {group.standing}\n"
    slower = 1.0 - group.distribution[0]
    when, border = expression_text(group.expression), spec.borders[0]
    values = f"{spec.component!a}, {spec.metric!r}, {group.id!a}, {when!a}, {border:.9g}, {slower:.6g}"
    return f"    # {share_text(slower)} of the calls take more than {quantity(border, spec.unit)}\n    ({values}),\n"


def _without_paths(one: MinedSpec) -> MinedSpec:
    """The specification without call paths: expressions say which calls belong to which group."""
    groups = tuple(replace(group, paths=()) for group in one.spec.groups if not group.standing)
    kept = [place for place, group in enumerate(one.spec.groups) if not group.standing]
    tallies = tuple(one.tallies[place] for place in kept) if one.tallies else ()
    return MinedSpec(replace(one.spec, groups=groups, paths=(), path_counts=(), unknown=()), tallies)
