"""The smallest slowdown that a check tells, as said before anything got slower, and what the check then tells."""

from __future__ import annotations

import math

import pytest

from perflaw.check.spec_calls import SpecOptions
from perflaw.check.spec_judge import judge_specs
from perflaw.check.spec_power import smallest_slowdown
from tests.check.test_spec_location import mined, record

RUNS, CALLS = 6, 1000


@pytest.fixture(scope="module")
def specs():
    return mined(record(1, runs=6, calls=CALLS))


def test_a_check_tells_what_it_says_that_it_tells_and_not_much_less(specs):
    options = SpecOptions(alpha=1e-4)  # as when it looks a hundred times an hour
    (sort,) = (one.spec.groups[0] for one in specs if one.spec.component == "mail.sort")
    factor = smallest_slowdown(sort, RUNS, CALLS, len(specs) / options.alpha, options)
    assert 1.2 < factor < 3.0

    def told(factor):
        new = record(2, RUNS, slower={"mail.sort": factor}, calls=CALLS)
        return [one.component.name for one in judge_specs(specs, new, options) if one.verdict == "violated"]

    assert told(1.25 * factor) == ["mail.sort"]
    assert told(factor / 1.25) == []


def test_rare_calls_few_mined_runs_and_an_unknown_machine_take_more(specs):
    group, options = specs[1].spec.groups[0], SpecOptions()
    usual = smallest_slowdown(group, RUNS, 1000.0, 1e4, options)
    assert smallest_slowdown(group, RUNS, 40.0, 1e4, options) > usual
    assert smallest_slowdown(group, 3, 1000.0, 1e4, options) > usual
    assert smallest_slowdown(group, RUNS, 1000.0, 1e8, options) > usual
    assert smallest_slowdown(group, RUNS, 1000.0, 1e4, options, math.log(2)) > 1.5 * usual
