"""Specifications as a pytest file: one test a group of call paths, its share of slow calls with a binomial tolerance."""

from __future__ import annotations

from dataclasses import replace

from perflaw.language.path_texts import expression_text
from perflaw.language.spec_writing import spec_yaml
from perflaw.report.mine_words import share_text
from perflaw.report.quantity import quantity
from perflaw.types.spec_files import MinedSpec, SpecFile

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
