"""Specifications for other tools: metrics for OpenTelemetry, rules for Prometheus, tests for pytest."""

from __future__ import annotations

import json

from perflaw.errors import DataError
from perflaw.report.mine.text import share_text
from perflaw.report.quantity import quantity
from perflaw.specs.call_paths import expression_text
from perflaw.specs.files import spec_yaml
from perflaw.types.documents import Document
from perflaw.types.specifications import PathGroup, PathSpec, SpecFile

NAME = "perflaw.call.duration"
"""Name of the metric in OpenTelemetry."""
CUMULATIVE = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE."""
METRIC = "perflaw_call_duration_nanoseconds"
"""The same metric as a receiver of OTLP names it for Prometheus."""
RATIO, CALLS = "perflaw:calls_quicker:ratio", "perflaw:calls:increase"
"""Recorded series: the share of calls quicker than a border, and the number of calls."""
TOLERANCE, SURE = 0.05, 3.0
"""An alert needs a difference of shares above the tolerance and above so many binomial standard deviations."""
WINDOW, LASTING = "15m", "30m"
"""Time that shares are taken over, and time that a difference has to last."""


def mine_otlp(file: SpecFile) -> Document:
    """An exponential histogram of durations for every group of call paths.

    ``ExportMetricsServiceRequest`` of the OpenTelemetry protocol 1.x in its JSON encoding, 64-bit numbers as text.
    DataError where durations are not known, as for specifications read from a file.
    """
    if file.specs and not any(one.histograms for one in file.specs):
        why = "files of specifications hold shares and no durations"
        raise DataError("OTLP: no durations", why, "perflaw mine --export otlp (from recordings)")
    points = []
    for one in file.specs:
        for group, histogram in zip(one.spec.groups, one.histograms, strict=False):
            # Attributes name the function, the group by its id, and the clock, but no call path.
            attributes = {"code.function.name": one.spec.component, "spec_group": group.id, "clock": one.spec.metric}
            counts = histogram.counts.tolist()
            points.append(
                {
                    "attributes": [_attribute(name, value) for name, value in attributes.items()],
                    "startTimeUnixNano": str(one.span_ns[0]),
                    "timeUnixNano": str(one.span_ns[1]),
                    "count": str(sum(counts) + histogram.zeros),
                    "scale": histogram.scale,
                    "zeroCount": str(histogram.zeros),
                    "positive": {"offset": histogram.offset, "bucketCounts": [str(calls) for calls in counts]},
                }
            )
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


def _attribute(name: str, value: str) -> Document:
    return {"key": name, "value": {"stringValue": value.encode("utf-8", "backslashreplace").decode()}}


_ON = "on (code_function_name, spec_group, clock)"
_HEAD = """\
# Prometheus rules of performance specifications, by perflaw mine --export prometheus.
# They need native histograms (--enable-feature=native-histograms) of what perflaw mine --export otlp sends.
groups:
"""


def mine_prometheus(file: SpecFile) -> str:
    """Rules as YAML: the share of quick calls of every group, and an alert where it leaves the specified share.

    The rules read native histograms named as a receiver of OTLP names what `mine_otlp` gives. Groups are labels by
    their ids: call paths would be too many values, and would publish the program's structure.
    """
    specs = [mined.spec for mined in file.specs if mined.spec.borders]
    if not specs:
        return _HEAD.replace("groups:\n", "groups: []\n")
    lines = []
    for spec in specs:
        lines += [f"- name: {_quoted(f'perflaw {spec.component} {spec.metric}')}", "  rules:"]
        for group in spec.groups:
            if group.standing == "quarantined":
                continue
            selector = f"code_function_name={_quoted(spec.component)}, spec_group={json.dumps(group.id)}, "
            selector += f"clock={json.dumps(spec.metric)}"
            series = f"{METRIC}{{{selector}}}[{WINDOW}]"
            lines.append(f"  - record: {CALLS}")
            lines.append(f"    expr: {_quoted(f'histogram_count(sum(increase({series})))')}")
            lines.append(f"    labels: {_labels(spec, group)}")
            for place, border in enumerate(spec.borders):
                lines.append(f"  - record: {RATIO}")
                lines.append(f"    expr: {_quoted(f'histogram_fraction(0, {border:.9g}, sum(rate({series})))')}")
                lines.append(f"    labels: {_labels(spec, group, border=f'{border:.9g}')}")
                # The alert where the share differs by more than the tolerance and by more than chance explains.
                share = sum(group.distribution[: place + 1])
                ratio = f"{RATIO}{{{selector}, border={json.dumps(f'{border:.9g}')}}} - {share:.6g}"
                variance = SURE**2 * max(share * (1.0 - share), 1e-4)
                chance = f"({ratio}) ^ 2 * {_ON} {CALLS}{{{selector}}} > {variance:.6g}"
                text = f"{spec.component}, group {group.id}: "
                text += f"{{{{ $value | humanizePercentage }}}} off the {share_text(share)} of calls"
                lines.append("  - alert: PerformanceSpecificationViolated")
                lines.append(f"    expr: {_quoted(f'abs({ratio}) > {TOLERANCE} and {_ON} {chance}')}")
                lines.append(f"    for: {LASTING}")
                lines.append(f"    labels: {_labels(spec, group, border=f'{border:.9g}', severity='warning')}")
                lines.append(f"    annotations: {{summary: {_quoted(f'{text} up to {quantity(border, spec.unit)}')}}}")
    return _HEAD + "".join(line + "\n" for line in lines)


def _labels(spec: PathSpec, group: PathGroup, **more: str) -> str:
    labels = {"code_function_name": spec.component, "spec_group": group.id, "clock": spec.metric, **more}
    return "{" + ", ".join(f"{name}: {_quoted(value)}" for name, value in labels.items()) + "}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_FILE = '''\
"""Performance specifications mined by perflaw: one test for each group of call paths, as `perflaw check` judges it.

Record the program again, then run the tests on the new recordings (several runs are better than one):

    perflaw record -e {experiment} --collect paths --repeat 3 -- COMMAND
    PERFLAW_EXPERIMENT={experiment} pytest {file}

A test fails if its specification is violated. It is skipped, with the reason, if the recordings do not decide.
Durations are compared after the speed of the machine, which may be slower as a whole; PERFLAW_ABSOLUTE=1 compares
them as they were mined.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

EXPERIMENT = os.environ.get("PERFLAW_EXPERIMENT", "{experiment}")

# Function, clock, group, when a call belongs to it.
GROUPS = [
{groups}]

SPECIFICATION = r"""
{yaml}"""


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory):
    """The verdicts of `perflaw check` on the recordings, by function, clock and group."""
    if importlib.util.find_spec("perflaw") is None:
        raise RuntimeError(f"perflaw is not installed for {{sys.executable}}: pip install perflaw")
    file = tmp_path_factory.mktemp("perflaw") / "spec.yaml"
    file.write_text(SPECIFICATION, encoding="utf-8")
    command = [sys.executable, "-m", "perflaw", "check", str(file), "-e", EXPERIMENT, "--json"]
    command += ["--absolute"] if os.environ.get("PERFLAW_ABSOLUTE") else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr or f"perflaw check ended with status {{done.returncode}}")
    return {{(v["component"], v["metric"], v["group"]): v for v in json.loads(done.stdout)["verdicts"]}}


@pytest.mark.parametrize(
    ("function", "metric", "group", "when"), GROUPS, ids=[f"{{g[0]}}-{{g[2]}}" for g in GROUPS]
)
def test_specification(verdicts, function, metric, group, when):
    verdict = verdicts.get((function, metric, group)) or verdicts[function, metric, ""]
    message = f"{{function}} where {{verdict['path'] or when}}: {{verdict['message']}}"
    if verdict["verdict"] in ("inconclusive", "out of scope"):
        pytest.skip(message)
    assert verdict["verdict"] == "holds", message
'''


def mine_pytest(file: SpecFile, experiment: str) -> str:
    """A pytest file: one test a group, which fails where ``perflaw check`` on recordings finds it violated.

    ``file`` has the specifications as people review them, without call paths.
    """
    # The table of groups: each line stands below a comment that says the same in words.
    table = []
    for spec, group in ((mined.spec, group) for mined in file.specs for group in mined.spec.groups):
        condition = expression_text(group.expression)
        if spec.borders:
            words = f"{share_text(1.0 - group.distribution[0])} of the calls take more than "
            words += quantity(spec.borders[0], spec.unit)
        elif group.durations:
            words = f"half of the calls take at most {quantity(group.durations[len(group.durations) // 2], spec.unit)}"
        else:
            words = "nothing is specified"
        table.append(f"    # {words}\n")
        table.append(f"    ({spec.component!a}, {spec.metric!r}, {group.id!a}, {condition!a}),\n")
    yaml = spec_yaml(file, evidence=False)
    quoted = yaml.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    raw, plain = ('SPECIFICATION = r"""', 'SPECIFICATION = """\\') if quoted != yaml else ('r"""\n', 'r"""')
    text, groups = _FILE.replace(raw, plain), "".join(table)
    return text.format(experiment=f"new-{experiment}", file="test_performance.py", groups=groups, yaml=quoted)
