"""The sample is uniform where it says so, covers every order of magnitude, and its weights count everything."""

import numpy as np
import pytest
from scipy import stats

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.records import ENTER, EXIT, Definitions
from perflaw.record.tree.reservoir import scramble
from perflaw.record.tree.tables import tabulate
from perflaw.store.schema import PER_STRATUM, UNIFORM
from perflaw.types import Component
from tests.conftest import assert_identities

CALLS = 20_000


def sample(seed, bits=31):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 1 << 31, CALLS)
    costs = np.where(np.arange(CALLS) % 1000 == 999, 1_000_000, rng.integers(100, 200, CALLS))
    builder = TreeBuilder(seed)
    for index in range(CALLS):
        frame, cost = index + 1, int(costs[index])
        builder.feed(1, [(0, frame, 1, 0, int(keys[index]), ENTER), (cost, frame, 1, -1, -1, EXIT)])
    return tabulate("0001", builder.finish(), Definitions({1: Component("f")}, sample_bounds={1: 1 << bits})), costs


def test_rare_slow_calls_are_kept_and_weigh_what_they_are():
    tables, costs = sample(1)
    assert_identities(tables)
    slow = [row for row in tables["invocations"] if row[5] == 1_000_000]
    assert len(slow) == 20
    assert all(row[-1] == 1.0 for row in slow)
    mean = sum(row[5] * row[-1] for row in tables["invocations"]) / CALLS
    assert mean == pytest.approx(costs.mean(), rel=0.02)


def test_sizes():
    tables, _ = sample(2)
    uniform = [row for row in tables["invocations"] if row[9] >= 0]
    assert len(uniform) == UNIFORM
    assert len(tables["invocations"]) <= UNIFORM + 4 * PER_STRATUM


@pytest.mark.slow
def test_the_uniform_part_is_uniform_over_time():
    places = np.concatenate([[row[1] for row in sample(seed)[0]["invocations"] if row[9] >= 0] for seed in range(5)])
    assert stats.kstest(places / CALLS, "uniform").pvalue > 1e-3


def test_a_sample_that_the_tracer_made_smaller_has_no_larger_priorities():
    """Larger ones are left only of calls before it became smaller; the weights count everything even so."""
    whole, smaller = ({row[1]: row[9] for row in sample(1, bits)[0]["invocations"] if row[9] >= 0} for bits in (31, 22))
    assert smaller == {sequence: key for sequence, key in whole.items() if key < 1 << 22}
    assert 0 < len(smaller) < len(whole)
    tables, costs = sample(1, 22)
    assert sum(row[-1] for row in tables["invocations"]) == pytest.approx(CALLS)
    assert sum(row[5] * row[-1] for row in tables["invocations"]) / CALLS == pytest.approx(costs.mean(), rel=0.05)


def test_scrambled_numbers_are_uniform():
    keys = np.array([scramble(n) for n in range(20_000)], dtype=np.float64) / (1 << 62)
    assert stats.kstest(keys, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.03
