"""The law that stands for a cluster: sizes before other numbers, several features only where they predict better."""

import numpy as np
import pytest

from perflaw.learn.trend import TrendOptions, trend
from tests.learn.trend_data import cluster

RUN = np.arange(1.0, 13)


@pytest.mark.parametrize("seed", range(10))
def test_a_number_of_the_runs_is_not_the_headline(seed):
    """Files of geometrically growing size: what numbers them grows in step, and an exponential in it fits as well."""
    rng = np.random.default_rng(seed)
    lines = np.rint(20 * rng.uniform(1.3, 1.7) ** RUN)
    size = np.rint(lines * rng.normal(30, 0.3, 12))
    counts = np.array([lines + 1, 5 * lines, 5 * lines - rng.integers(0, 3, 12)])
    found = trend(counts, ["a", "b", "c"], {"i": RUN, "argv1.bytes": size, "argv1.lines": lines})
    first = found.clusters[0]
    assert first.law.features == ("argv1.lines",)
    assert first.law.family == "linear"
    assert first.predicted.mean == pytest.approx(10.0 * first.costs[-1], rel=0.25)
    assert found.features[-1] == "i"


def test_a_number_is_the_headline_if_it_alone_varies_or_predicts():
    alone = trend([2.0**RUN * 50], ["a"], {"i": RUN}).clusters[0]
    assert alone.law.features == ("i",)
    rng = np.random.default_rng(3)
    work, size = 10 ** rng.uniform(1, 3, 14), 10 ** rng.uniform(3, 5, 14)
    found = trend(np.rint([400 * work]), ["a"], {"argv2.bytes": size, "work": work}).clusters[0]
    assert found.law.features == ("work",)


@pytest.mark.slow
def test_a_law_in_several_features_predicts_left_out_runs_better_or_is_not_told():
    rng = np.random.default_rng(8)
    n, k = 10 ** rng.uniform(1, 3, 24), 10 ** rng.uniform(1, 3, 24)
    both = trend(np.rint([5 * n * k, 7 * n]), ["both", "one"], {"n": n, "k": k})
    assert set(cluster(both, "both").law.features) == {"n", "k"}
    assert cluster(both, "n").law.features == ("n",)
    told = 0
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        noise = np.exp(0.3 * rng.standard_normal(14))
        size, percent = 10 ** rng.uniform(2, 4, 14), rng.uniform(0, 100, 14)
        one = trend(np.rint([30 * size * noise]), ["a"], {"n": size, "mixed": percent}).clusters[0]
        told += len(one.law.features) > 1
    assert told <= 1


def test_clusters_that_are_not_learnt_in_full_prefer_sizes():
    rng = np.random.default_rng(8)
    lines = np.rint(20 * 1.45**RUN)
    counts = np.rint(lines * 10 ** rng.uniform(0, 1, 3)[:, None] * np.exp(0.3 * rng.standard_normal((3, 12))))
    found = trend([*counts, 1e6 * lines], "abcd", {"i": RUN, "argv1.lines": lines}, options=TrendOptions(full=1))
    assert all(one.law.features == ("argv1.lines",) for one in found.clusters if not one.curves)
    assert any(not one.curves for one in found.clusters)
