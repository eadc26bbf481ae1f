"""Calls and unit costs of generated programs compared: planted changes are found and named, and unchanged programs hold."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.check.judge import CheckOptions
from perflaw.check.program_changes import compare_programs, with_changes
from perflaw.check.program_summary import summarize, summary_document, summary_from
from perflaw.types import CPU, CheckVerdict, Component
from tests.conftest import first
from tests.learn.program_data import Node, Program, random_program

SIZES = [100, 200, 400, 700, 1000]
STRICT = CheckOptions(alpha=0.005)


def constant(value):
    return lambda n: np.full_like(n, float(value))


def changed_in(program, place, calls=None, factor=1.0):
    nodes = list(program.nodes)
    node = nodes[place]
    nodes[place] = Node(node.function, node.caller, calls or node.calls, lambda n: factor * node.unit(n))
    return Program(nodes)


def slower(costs, factor):
    return replace(costs, own=costs.own * factor, context_own=costs.context_own * factor)


def compared(old, new):
    found = compare_programs(summarize(old), summarize(new), STRICT)
    return {name: one for name, one in found.changes.items() if one.violated}


PROGRAM = Program(
    [
        Node("main", -1, constant(1), constant(5e6)),
        Node("parse", 0, lambda n: n, constant(9000)),
        Node("token", 1, lambda n: 12 * n, constant(2500)),
        Node("render", 0, lambda n: n, constant(9000)),
        Node("escape", 3, lambda n: 4 * n, constant(2500)),
        Node("join", 3, lambda n: n, constant(9000)),
        Node("sort", 0, lambda n: n, constant(9000)),
    ]
)


def test_one_run_shows_more_calls_and_the_caller():
    rng = np.random.default_rng(0)
    old = PROGRAM.record(SIZES * 2, rng, noise=0.1, speeds=0.3)
    new = changed_in(PROGRAM, 2, lambda n: 24 * n).record([400], rng, noise=0.1, speeds=0.3)
    found = compared(old, new)
    assert set(found) == {"token", "parse", "main"}
    assert found["token"].changed == "calls"
    assert found["token"].caller == "parse"
    assert found["token"].effect == pytest.approx(2)
    assert found["token"].cause == "calls of `token` from `parse`: 12 → 24 a call, 2.0x in all"
    assert not found["parse"].root
    assert found["parse"].cause.startswith("through `token`: calls of `token`")


def test_functions_that_are_called_more_often_with_their_caller_are_no_cause():
    rng = np.random.default_rng(1)
    old = PROGRAM.record(SIZES * 2, rng, noise=0.05)
    more = changed_in(changed_in(PROGRAM, 1, lambda n: 3 * n), 2, lambda n: 36 * n)
    found = compared(old, more.record(SIZES, rng, noise=0.05))
    assert found["parse"].caller == "main"
    assert "token" not in found


def test_a_dearer_call_is_told_from_more_calls():
    rng = np.random.default_rng(2)
    old = PROGRAM.record(SIZES * 3, rng, noise=0.05, speeds=0.3)
    new = slower(changed_in(PROGRAM, 4, factor=1.3).record(SIZES, rng, noise=0.05, speeds=0.3), 1.5)
    found = compared(old, new)
    assert found["escape"].changed == "unit cost"
    assert found["escape"].effect == pytest.approx(1.3, rel=0.1)
    assert found["escape"].cause.startswith("own cost of a call of `escape` +")
    assert {name for name, one in found.items() if one.root} == {"escape"}


def test_intervals_of_a_dearer_call_hold_its_change():
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        old = PROGRAM.record(SIZES * 3, rng, noise=0.05, speeds=0.3)
        new = slower(changed_in(PROGRAM, 4, factor=1.3).record(SIZES, rng, noise=0.05, speeds=0.3), 1.5)
        found = compared(old, new)["escape"]
        inside.append(found.low < 1.3 < found.high)
    assert np.mean(inside) >= 0.88


def power(factor, old_sizes, new_sizes, noise, speeds, seeds=20):
    found = others = 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        old = PROGRAM.record(old_sizes, rng, noise=noise, speeds=speeds, lumps=0.002)
        new = slower(changed_in(PROGRAM, 2, factor=factor).record(new_sizes, rng, noise=noise, speeds=speeds), 1.4)
        roots = {name for name, one in compared(old, new).items() if one.root}
        found += "token" in roots
        others += bool(roots - {"token"})
    return found / seeds, others / seeds


def test_ten_percent_are_found_with_ten_quiet_runs():
    found, others = power(1.1, SIZES * 2, SIZES * 2, noise=0.02, speeds=0.05)
    assert found >= 0.9
    assert others <= 0.05


def test_thirty_percent_are_found_with_five_busy_runs():
    found, others = power(1.3, SIZES * 3, SIZES, noise=0.06, speeds=0.35)
    assert found >= 0.9
    assert others <= 0.05


@pytest.mark.parametrize(("noise", "speeds", "lumps"), first(1, [(0.03, 0.05, 0.0), (0.1, 0.35, 0.003)]))
def test_unchanged_programs_hold(noise, speeds, lumps):
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        program = random_program(rng)
        old = program.record(SIZES * 3, rng, noise=noise, speeds=speeds, lumps=lumps)
        new = program.record(SIZES, rng, noise=noise, speeds=speeds, lumps=lumps)
        alarms += bool(compared(old, slower(new, 1.5)))
    assert alarms == 0


def test_counts_that_vary_are_not_exact():
    rng = np.random.default_rng(4)
    program = changed_in(PROGRAM, 4, rng.poisson)
    assert not compared(program.record(SIZES * 3, rng, noise=0.02), program.record(SIZES, rng, noise=0.02))


def test_the_twin_keeps_the_summary():
    rng = np.random.default_rng(5)
    old = summarize(PROGRAM.record(SIZES * 2, rng, noise=0.05))
    again = summary_from(summary_document(old))
    new = summarize(changed_in(PROGRAM, 2, lambda n: 24 * n, 1.5).record(SIZES * 2, rng, noise=0.05))
    first, second = compare_programs(old, new, STRICT), compare_programs(again, new, STRICT)
    assert {name: one.cause for name, one in first.changes.items()} == {
        name: one.cause for name, one in second.changes.items()
    }
    assert first.changes["token"].cause.count(";") == 1


def test_a_violated_law_tells_the_effect_of_the_unit_cost():
    verdict = CheckVerdict(Component("token"), CPU, "", "violated", 0.0, 13.5, 9.0, 20.0)
    rng = np.random.default_rng(6)
    old = summarize(PROGRAM.record(SIZES * 2, rng, noise=0.02))
    new = summarize(changed_in(PROGRAM, 2, factor=2.0).record(SIZES * 2, rng, noise=0.02))
    [merged] = with_changes([verdict], compare_programs(old, new, STRICT), ())
    assert (merged.verdict, merged.changed) == ("violated", "unit cost")
    assert merged.effect == pytest.approx(2.0, rel=0.1)
    [from_size_on] = with_changes([replace(verdict, since="n = 400")], compare_programs(old, new, STRICT), ())
    assert from_size_on.effect == 13.5


@pytest.mark.slow
def test_the_likely_cause_of_a_violated_law_needs_less_evidence_than_a_finding():
    causes, chance = 0, 0
    verdict = CheckVerdict(Component("token"), CPU, "", "violated", 0.0, 1.12, 1.05, 1.2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        old = summarize(PROGRAM.record(SIZES * 4, rng, noise=0.04))
        new = summarize(changed_in(PROGRAM, 2, factor=1.1).record(SIZES, rng, noise=0.04))
        same = summarize(PROGRAM.record(SIZES, rng, noise=0.04))
        [dearer] = with_changes([verdict], compare_programs(old, new, STRICT), ())
        [unchanged] = with_changes([verdict], compare_programs(old, same, STRICT), ())
        [holds] = with_changes([replace(verdict, verdict="holds")], compare_programs(old, new, STRICT), ())
        causes += dearer.changed == "unit cost" and "own cost of a call of `token` +" in dearer.cause
        chance += bool(unchanged.cause)
        assert holds.verdict == "violated" or not holds.cause
    assert causes >= 16
    assert chance <= 3


def test_a_function_that_costs_next_to_nothing_is_not_reported():
    rng = np.random.default_rng(7)
    program = Program([*PROGRAM.nodes, Node("setup", 0, constant(1), constant(2000))])
    old = program.record(SIZES * 3, rng, noise=0.02)
    assert not compared(old, changed_in(program, 7, factor=2.0).record(SIZES * 3, rng, noise=0.02))
    found = compared(old, changed_in(program, 7, factor=10_000.0).record(SIZES * 3, rng, noise=0.02))
    assert found["setup"].root
