"""Clusters (trend-prof §4.1): planted ones found exactly, none in noise, the guarantee of §4.1.1 as a property."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from perflaw.learn.trend import TrendOptions, clusters, trend
from perflaw.learn.trend.data import check_data
from tests.conftest import examples
from tests.learn.trend_data import by_name, cluster, planted, r2


def cluster_only(counts, names, features=None, **options):
    """Representative → sorted names of members, without any law."""
    chosen = TrendOptions(**options)
    found = clusters.find_clusters(check_data(counts, names, features or {}, chosen), chosen)
    return {group.name: tuple(sorted(names[m] for m in group.members)) for group in found.clusters}


@pytest.mark.parametrize("block", [1, 7, 512])
def test_planted_clusters_are_found_exactly(block, monkeypatch):
    monkeypatch.setattr(clusters, "BLOCK", block)
    exponents = np.linspace(0.3, 1.2, 30)
    counts, names, size = planted(60, exponents, 0.4, 5, seed=1)
    found = cluster_only(counts, names, {"bytes": size})
    assert found == {f"c{c}:0": tuple(f"c{c}:{m}" for m in range(5)) for c in range(30)}


@pytest.mark.parametrize("paper", [False, True])
def test_blocks_give_what_one_location_after_the_other_gives(monkeypatch, paper):
    # Rows between clusters: some fit several representatives, some only later ones.
    rng = np.random.default_rng(4)
    base = rng.standard_normal((6, 12))
    counts = 5000 + 100 * (rng.random((200, 6)) ** 6 @ base + 0.1 * rng.standard_normal((200, 12)))
    names = [f"f:{row}" for row in range(200)]
    features = {"a": base[0] * 10, "b": base[1] + 0.1 * base[0]}
    many = cluster_only(counts, names, features, paper=paper)
    assert many == _one_by_one(counts, names, features, paper)
    monkeypatch.setattr(clusters, "BLOCK", 1)
    assert many == cluster_only(counts, names, features, paper=paper)


def _one_by_one(counts, names, features, paper):
    """The paper's text, word by word."""
    heads = {name: (x, []) for name, x in features.items()}
    for row in sorted(range(len(counts)), key=lambda row: -counts[row].std(ddof=1)):
        y = counts[row]
        if y.std(ddof=1) < 10:
            continue
        fits = [name for name, (x, _) in heads.items() if r2(x, y) > 0.98 and (paper or np.corrcoef(x, y)[0, 1] > 0)]
        if not fits:
            heads[names[row]] = (y, [])
            fits = [names[row]]
        for name in fits:
            heads[name][1].append(names[row])
    return {name: tuple(sorted(members)) for name, (_, members) in heads.items() if members}


def test_independent_noise_makes_no_cluster():
    rng = np.random.default_rng(5)
    counts = rng.poisson(10_000, (400, 30)).astype(float)
    found = cluster_only(counts, [f"f:{row}" for row in range(400)], {"n": rng.random(30)})
    assert all(len(members) == 1 for members in found.values())
    assert len(found) == 400


def test_the_filter_takes_the_bias_corrected_deviation_and_counts_what_it_leaves_out():
    at_ten = np.array([-1.0, 1, -1, 1, -1]) * 10 / np.std([-1, 1, -1, 1, -1], ddof=1) + 50
    counts = np.array([at_ten * (1 + 1e-9), at_ten * 0.99, np.full(5, 9.0), np.zeros(5), 100 * np.arange(5.0)])
    found = trend(counts, list("abcde"), {"n": np.arange(5.0)})
    assert by_name(found) == {"n": ("e",), "a": ("a",)}
    assert (found.constant, found.zero) == (2, 1)
    assert found.constant_share == pytest.approx((counts[1].sum() + 45) / counts.sum())
    everything = trend(counts, list("abcde"), {"n": np.arange(5.0)}, options=TrendOptions(sigma=0.0))
    assert by_name(everything) == {"n": ("e",), "a": ("a", "b")}
    assert (everything.constant, everything.zero) == (1, 1)


def test_a_location_may_be_in_several_clusters():
    u, v = np.array([1.0, -1, 1, -1, 0, 0]), np.array([1.0, 1, -1, -1, 0, 0])
    turn = [np.cos(a) * u + np.sin(a) * v for a in (0.0, 0.13, 0.26)]
    counts = 1000 + 100 * np.array([3 * turn[0], turn[1], 2 * turn[2]])
    found = trend(counts, list("abc"), {})
    assert by_name(found) == {"a": ("a", "b"), "c": ("b", "c")}
    assert sum(one.share for one in found.clusters) > 1


def test_ties_of_variance_go_by_name_and_numbers_count_as_such():
    n = np.array([3.0, 50, 170, 300, 801])
    names = ["b.c:12", "b.c:9", "b.c:10"]
    assert list(cluster_only(np.array([n, n + 1, n / 1 + 2]), names)) == ["b.c:9"]


def test_what_falls_while_the_representative_rises_is_a_cluster_of_its_own():
    n = np.array([100.0, 200, 400, 800, 1600])
    hits, misses = n, 2000 - n
    assert cluster_only([hits, misses], ["hit", "miss"], {"n": n}) == {"n": ("hit",), "miss": ("miss",)}
    assert cluster_only([hits, misses], ["hit", "miss"], {"n": n}, paper=True) == {"n": ("hit", "miss")}


def test_features_that_say_the_same_share_a_cluster():
    n = np.array([100.0, 200, 400, 800, 1600, 3000])
    features = {"chars": n, "nodes": 3 * n + 5, "other": np.array([5.0, 1, 4, 2, 3, 9])}
    found = trend(np.array([7 * n, n**2]), ["f:1", "f:2"], features)
    chars = cluster(found, "chars")
    assert chars.features == ("chars", "nodes")
    assert by_name(found) == {"chars": ("f:1",), "f:2": ("f:2",)}
    paper = trend(np.array([7 * n, n**2]), ["f:1", "f:2"], features, options=TrendOptions(paper=True))
    assert {"chars", "nodes"} <= set(by_name(paper))


MATRICES = st.tuples(
    st.integers(3, 25), st.integers(4, 15), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.4])
)


def _matrix(rows, runs, seed):
    """Rows near a few directions, so that there are clusters to find."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((3, runs))
    weight = rng.random((rows, 3)) ** 8
    return np.rint(1e4 + 1e3 * (weight @ base + 0.05 * rng.standard_normal((rows, runs))))


@settings(deadline=None, max_examples=examples(60))
@given(MATRICES, st.booleans())
def test_any_two_members_fit_each_other_as_the_theorem_says(shape, paper):
    rows, runs, seed, alpha = shape
    counts, options = _matrix(rows, runs, seed), TrendOptions(alpha=alpha, paper=paper)
    data = check_data(counts, [f"f:{row}" for row in range(rows)], {}, options)
    for group in clusters.find_clusters(data, options).clusters:
        for i, x in enumerate(group.members):
            assert r2(counts[x], counts[group.row]) > 1 - alpha - 1e-9
            for y in group.members[:i]:
                assert r2(counts[x], counts[y]) > 1 - 4 * alpha * (1 - alpha)
                assert paper or np.corrcoef(counts[x], counts[y])[0, 1] > 0


def test_the_guarantee_at_the_papers_alpha_is_092():
    assert 1 - 4 * 0.02 * 0.98 > 0.92


@settings(deadline=None, max_examples=examples(40))
@given(MATRICES)
def test_every_location_that_varies_is_in_some_cluster_and_representatives_vary_most(shape):
    rows, runs, seed, alpha = shape
    counts, options = _matrix(rows, runs, seed), TrendOptions(alpha=alpha)
    data = check_data(counts, [f"f:{row}" for row in range(rows)], {}, options)
    found = clusters.find_clusters(data, options)
    deviation = counts.std(axis=1, ddof=1)
    assert {m for group in found.clusters for m in group.members} == set(np.flatnonzero(deviation >= 10).tolist())
    for group in found.clusters:
        assert deviation[group.row] >= deviation[group.members].max() * (1 - 1e-9)


@settings(deadline=None, max_examples=examples(40))
@given(MATRICES, st.randoms(use_true_random=False))
def test_neither_units_of_features_nor_the_order_of_rows_or_runs_changes_clusters(shape, random):
    rows, runs, seed, alpha = shape
    counts = _matrix(rows, runs, seed)
    names = [f"f:{row}" for row in range(rows)]
    feature = counts[0] ** 2 + 1.0
    before = cluster_only(counts, names, {"x": feature}, alpha=alpha)
    row, run = random.sample(range(rows), rows), random.sample(range(runs), runs)
    mixed = counts[np.ix_(row, run)]
    after = cluster_only(mixed, [names[r] for r in row], {"x": 1e-6 * feature[run] - 3.0}, alpha=alpha)
    assert before == after


@settings(deadline=None, max_examples=examples(40))
@given(MATRICES, st.floats(0.5, 1e6), st.floats(0, 1e6))
def test_membership_does_not_change_with_scale_or_offset(shape, scale, offset):
    rows, runs, seed, alpha = shape
    counts = _matrix(rows, runs, seed)
    names = [f"f:{row}" for row in range(rows)]
    before = cluster_only(counts, names, alpha=alpha, sigma=0.0)
    assert before == cluster_only(counts * scale + offset, names, alpha=alpha, sigma=0.0)
