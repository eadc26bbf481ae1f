"""Specifications of two versions side by side: what changed, and whether it costs more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perflaw.check.spec_diffing import compare_specs
from perflaw.check.spec_watching import without_doubt
from perflaw.specs.files import spec_yaml
from perflaw.types import TIME, Component
from perflaw.types.specifications import MinedSpec, PathGroup, PathSpec, SpecFile
from perflaw.types.verdicts import SpecVerdict
from tests.conftest import Run

EDGE = ("app.search", "app.load")
QUICK = (3000.0, 3100.0, 3200.0, 3500.0, 4000.0)


def group(name: str, slow: float, there: bool, durations: tuple[float, ...] = QUICK, **changes: object) -> PathGroup:
    made = PathGroup(
        id=name, paths=(), distribution=(1 - slow, slow), counts=(round(6000 * (1 - slow)), round(6000 * slow)),
        effective=4000.0, expression=(((EDGE, there),),), durations=durations, runs=5, share_spread=(0.004,),
        duration_spread=0.02,
    )  # fmt: skip
    return replace(made, **changes)


def spec(name: str = "app.load", border: float = 22_000.0, slow: float = 0.05, **changes: object) -> MinedSpec:
    groups = (group(f"{name}1", slow, False, **changes), group(f"{name}2", 0.6, True, **changes))
    return MinedSpec(
        PathSpec(
            component=name, metric="time", unit="ns", borders=(border,), quantiles=(0.9,), groups=groups, paths=(),
            path_counts=(), unknown=(), stable=True, observations=12, points=12_000, utility=0.0, atoms=(EDGE,),
        )
    )  # fmt: skip


def test_equal_specifications_hold():
    verdicts = compare_specs([spec()], [spec()])
    assert [(one.path, one.verdict, one.changes) for one in verdicts] == [
        ("", "holds", ()),
        ('"app.search -> app.load"', "holds", ()),
        ('not "app.search -> app.load"', "holds", ()),
    ]


def test_a_group_of_which_more_calls_are_slow_is_violated_by_its_condition():
    verdicts = compare_specs([spec()], [spec(slow=0.5)])
    violated = {one.path: one.changes for one in verdicts if one.verdict == "violated"}
    assert set(violated) == {"", 'not "app.search -> app.load"'}
    [change] = violated['not "app.search -> app.load"']
    assert (change.what, change.name, change.old, change.new) == ("shares", "above 22 us", "5 %", "50 %")


def test_queueing_for_a_busy_cpu_is_neither_the_program_nor_the_machine():
    """Of four functions that are as quick as before, all queue, by times that differ; one is slower itself as well."""
    names = ("app.a", "app.b", "app.c", "app.d")
    old = [spec(name) for name in names]
    tails = (1.5, 3.0, 6.0, 20.0)
    new = [
        spec(name, durations=(*QUICK[:3], tail * QUICK[3], tail * QUICK[4]), cpu_durations=QUICK)
        for name, tail in zip(names, tails, strict=True)
    ]
    assert {one.verdict for one in compare_specs(old, new)} == {"holds"}
    slower = tuple(3 * one for one in QUICK)
    new[0] = spec("app.a", durations=tuple(4 * one for one in slower), cpu_durations=slower)
    found = compare_specs(old, new)
    assert {one.component.name for one in found if one.verdict == "violated"} == {"app.a"}
    assert not any("machine" in one.message for one in found)


def test_longer_durations_are_a_violation_and_shorter_ones_are_told():
    slower = tuple(2 * one for one in QUICK)
    assert compare_specs([spec()], [spec(durations=slower)])[0].verdict == "violated"
    quicker = compare_specs([spec(durations=slower)], [spec()])
    assert all(one.verdict == "holds" and one.better for one in quicker)
    assert quicker[0].effect == pytest.approx(0.5)


def test_few_recordings_are_inconclusive():
    slower = {"durations": tuple(2 * one for one in QUICK)}
    verdicts = compare_specs([spec(runs=1)], [spec(runs=1, **slower)])
    assert {one.verdict for one in verdicts} == {"inconclusive"}


def test_what_all_functions_have_in_common_is_the_machine():
    names, slower = ("app.a", "app.b", "app.c", "app.d"), tuple(3 * one for one in QUICK)
    old = [spec(name) for name in names]
    new = [spec(name, border=66_000.0, durations=slower) for name in names]
    assert {one.verdict for one in compare_specs(old, new)} == {"holds"}
    new[0] = spec("app.a", border=66_000.0, durations=tuple(9 * one for one in QUICK))
    assert {one.component.name for one in compare_specs(old, new) if one.verdict == "violated"} == {"app.a"}


def test_borders_edges_groups_and_functions_of_one_side_are_told(perflaw: Run, tmp_path: Path):
    old, new = spec(), spec("app.new")
    one_kind = replace(
        spec().spec, borders=(), quantiles=(), atoms=(),
        groups=(replace(group("g", 0.0, True), distribution=(1.0,), counts=(6000,), expression=((),), share_spread=()),),
    )  # fmt: skip
    for name, specs in (("old.yaml", [old]), ("new.yaml", [MinedSpec(one_kind), new])):
        (tmp_path / name).write_text(spec_yaml(SpecFile(tuple(specs))))
    document = json.loads(perflaw("diff", "old.yaml", "new.yaml", "--json").stdout)
    assert document["schema"] == "perflaw.diff/1"
    verdicts = {(one["component"], one["path"]): one for one in document["verdicts"]}
    changes = [(one["what"], one["old"], one["new"]) for one in verdicts["app.load", ""]["changes"]]
    assert ("border", "22 us", "") in changes
    assert ("edge", "app.search -> app.load", "") in changes
    assert ("group", "", "always") in changes
    assert verdicts["app.new", ""]["verdict"] == "out of scope"
    text = perflaw("diff", "old.yaml", "new.yaml").stdout
    assert "border 22 us -> none" in " ".join(text.split())
    assert "no specifications" in perflaw("diff", "old.yaml", "laws.law", status=2).stderr


def test_a_violated_group_of_few_recordings_is_inconclusive():
    verdict = SpecVerdict(Component("f"), TIME, "", "violated", 0.0, 0.5, 0.4, 0.6, group="g")
    assert without_doubt(verdict, {"other"}) == verdict
    assert without_doubt(verdict, {"g"}).verdict == "inconclusive"
