"""Groups of call paths: planted ones are found, and one behaviour makes one group (specs/mining.md, "Grouping call paths")."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.grouping import group_paths, paper_groups
from perflaw.learn.paths.mine import mine
from tests.conftest import examples
from tests.learn.path_data import planted
from tests.learn.path_models import QUICK, SEMOP, observed

NOW = 10**18


def found(counts, effective=None):
    labels = group_paths(counts, counts.sum(axis=1).astype(float) if effective is None else effective)
    return len(set(labels[labels >= 0].tolist())), labels


@pytest.mark.slow
def test_the_right_number_of_groups_is_found():
    """95 % in the benchmark, of any number of paths; here of at most 200."""
    cases = [planted(np.random.default_rng([1, seed]), most=200) for seed in range(60)]
    right = [found(case.counts)[0] == len(set(case.labels)) for case in cases]
    assert sum(right) >= 57


def test_paths_are_in_the_group_where_they_were_planted():
    case = planted(np.random.default_rng(5), groups=4)
    _, labels = found(case.counts)
    calls = case.counts.sum(axis=1)
    for group in set(case.labels):
        ours = (case.labels == group) & (labels >= 0)
        most = np.bincount(labels[ours], calls[ours]).max()
        assert most >= 0.99 * calls[ours].sum()


@pytest.mark.slow
def test_one_behaviour_is_one_group():
    cases = [planted(np.random.default_rng([2, seed]), groups=1, most=300) for seed in range(60)]
    assert sum(found(case.counts)[0] == 1 for case in cases) >= 57


def test_the_papers_table_has_three_groups_and_the_paper_finds_two():
    shares = np.repeat([[0.41, 0.59], [0.35, 0.65], [0.99, 0.01]], 6, axis=0)
    counts = [np.random.default_rng(seed).multinomial(2000, shares) for seed in range(20)]
    assert sum(found(one)[0] == 3 for one in counts) >= 19
    assert [len(set(paper_groups(one).tolist())) for one in counts[:3]] == [2] * 3


def test_the_papers_table_from_durations_has_three_groups_and_two_edges():
    spec = mine(observed(1), MiningOptions(), NOW)
    assert len(spec.borders) == 1
    assert len(spec.groups) == 3
    assert len(spec.atoms) == 2
    assert not spec.unknown
    for group in spec.groups:
        wanted = {QUICK[SEMOP.index(spec.paths[place])] for place in group.paths}
        assert len(wanted) == 1
        assert group.distribution[0] == pytest.approx(wanted.pop(), abs=0.03)


def test_autocorrelated_calls_are_worth_fewer():
    rng = np.random.default_rng(0)
    counts = 50 * rng.multinomial(40, [0.5, 0.5], 12)
    assert found(counts)[0] > 1
    assert found(counts, np.full(12, 40.0))[0] == 1


@pytest.mark.parametrize("sticky", [0.9, 0.98])
def test_bursts_of_slow_calls_make_no_groups(sticky):
    specs = [mine(observed(seed, quick=(0.6,) * 6, sticky=sticky), MiningOptions(), NOW) for seed in range(10)]
    assert [len(spec.groups) for spec in specs] == [1] * 10


@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 2**31), shift=st.integers(0, 2**31))
def test_the_order_of_paths_does_not_matter(seed, shift):
    case = planted(np.random.default_rng(seed), most=60)
    order = np.random.default_rng(shift).permutation(len(case.paths))
    effective = case.counts.sum(axis=1) * 0.7
    assert found(case.counts, effective)[1][order].tolist() == found(case.counts[order], effective[order])[1].tolist()


def test_rare_paths_do_not_make_groups():
    counts = np.array([[9000, 1000], [1000, 9000], [19, 0], [1, 1], [0, 3]])
    count, labels = found(counts)
    assert count == 2
    assert labels[:3].tolist() in ([0, 1, 0], [1, 0, 1])
    assert labels[3] == -1  # as near to the one as to the other
    assert found(np.array([[3, 1], [0, 2]]))[1].tolist() == [0, 0]
    assert found(np.zeros((0, 2), dtype=int))[1].size == 0
