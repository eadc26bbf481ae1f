"""The explanation of one function: budget, deadlines, contexts, and what is unknown is said to be."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import perflaw.learn.series
from perflaw.learn.series import Options as LawOptions
from perflaw.learn.series import Series, learn
from perflaw.learn.variance.analyse import variance
from perflaw.learn.variance.drivers import Response, _driver_by_law, drivers
from perflaw.learn.variance.moments import Stats
from perflaw.learn.variance.parts import parts_of
from perflaw.learn.variance.tail import CostDistribution, cost_distribution, exceeded_deadline, missed_deadlines
from perflaw.learn.variance.tree import Options, Tree
from perflaw.types import CPU, EVENTS
from perflaw.types.call_trees import OTHER, PairMoments, log_bucket
from tests.conftest import first
from tests.learn.variance_data import Call, Recorder, objects


def made(n=1000):
    """Slow for a known reason: 20 calls in 1,000 make 40 calls of item instead of 2; store always costs the same."""
    recorder = Recorder()
    for number in range(n):
        items = [(1, Call("item", 100))] * (40 if number % 50 == 0 else 2)
        recorder.add(Call("handle", 1000, [(2, Call("loop", 10, items)), (3, Call("store", 500 + number % 3))]))
    return recorder


def explained(recorder=None, metric=None, **options):
    tree = (recorder or made()).tree(*([metric] if metric else []))
    handle = next(one for one in tree.components if one.name == "handle")
    return variance(tree, Options(**options), handle).explanation


def test_the_budget_says_what_a_slow_call_spends_more():
    budget = explained().budget
    assert (budget.tail - budget.median) == pytest.approx(38 * 100, abs=3)
    first = budget.rows[0]
    assert [step.callee for step in first.path] == ["loop", "item"]
    assert first.share == pytest.approx(1.0, abs=0.01)
    assert first.mechanism == "trip count"
    assert sum(row.share for row in budget.rows) == pytest.approx(1.0)
    assert sum(row.tail - row.median for row in budget.rows) == pytest.approx(budget.tail - budget.median)
    assert first.share_low <= first.share <= first.share_high


def test_a_stratified_sample_gives_the_budget_of_all():
    """Of the fast calls a tenth is kept and weighs ten: quantiles and means stay."""
    tree = made(3000).tree()
    samples = tree.samples
    handle = samples.node == 1
    slow = samples.x > np.median(samples.x[handle]) + 1000
    keep = ~handle | slow | (np.arange(len(samples.x)) % 10 == 0)
    weight = np.where(handle & ~slow, 10.0, 1.0)
    new = np.cumsum(keep) - 1
    rows = keep[samples.of]
    arrays = ("sequence", "node", "started", "x", "time", "cpu", "events", "stratum", "uniform")
    thin = replace(
        samples,
        run=tuple(run for run, kept in zip(samples.run, keep, strict=True) if kept),
        weight=weight[keep],
        of=new[samples.of[rows]],
        **{name: getattr(samples, name)[keep] for name in arrays},
        **{name: getattr(samples, name)[rows] for name in ("callee", "k", "y", "y_time", "y_cpu")},
    )
    component = next(one for one in tree.components if one.name == "handle")
    full, part = (variance(one, Options(), component).explanation.budget for one in (tree, replace(tree, samples=thin)))
    assert (part.p99, part.p50) == (full.p99, pytest.approx(full.p50, abs=2))
    assert part.rows[0].share == pytest.approx(full.rows[0].share, abs=0.01)


def test_metrics_without_samples_of_callees_are_estimated():
    recorder = made()
    tree = recorder.tree(EVENTS)
    tree = replace(tree, samples=replace(tree.samples, y=np.full(len(tree.samples.y), np.nan)))
    component = next(one for one in tree.components if one.name == "handle")
    budget = variance(tree, Options(), component).explanation.budget
    assert all(row.estimated and row.share_low is None for row in budget.rows)
    assert budget.rows[0].share == pytest.approx(1.0)


@pytest.mark.parametrize(("slow", "tail"), first(1, [(200, 3623), (100, 3623), (20, 3623), (300, 3623)]))
def test_calls_of_equal_cost_are_not_beyond_the_percentile(slow, tail):
    """One call in ``slow`` makes 3,622 calls, all others 22: the budget is of those, not of all that are at p99."""
    recorder = Recorder()
    for number in range(1800):
        calls = [(1, Call("item", 5))] * 22
        if number % slow == slow - 1:
            calls = [*calls, *[(2, Call("flush", 5))] * 3600]
        recorder.add(Call("handle", 10, calls))
    found = explained(recorder, EVENTS)
    assert (found.budget.tail, found.budget.median) == (tail, 23)
    assert found.budget.p99 == (23 if slow >= 100 else 3623)
    assert found.budget.rows[0].component.name == "flush"
    assert found.budget.rows[0].share == pytest.approx(1)
    [bound] = [one for one in found.bounds if one.probability == 0.01]
    assert bound.observed == found.budget.p99


def test_a_single_call_beyond_many_of_equal_cost_is_not_the_tail_alone():
    recorder = Recorder()
    for number in range(3000):
        items = 400 if number % 50 == 0 else 22
        recorder.add(Call("handle", 10, [(1, Call("item", 5))] * (items + (number == 100))))
    found = explained(recorder, EVENTS)
    assert found.budget.samples == 60
    assert found.budget.tail == pytest.approx(401, abs=0.1)


def test_deadlines_at_a_value_that_many_calls_share():
    x = np.sort(np.where(np.arange(4000) % 200 == 0, 3623.0, 23.0))
    seen = CostDistribution(x, np.ones(len(x)), np.array([log_bucket(int(v)) for v in x], dtype=float))
    sums = Stats(len(x), int(x.sum()), sum(int(v) ** 2 for v in x))
    [found] = missed_deadlines([((22.9, 23, 100, 3622, 3623), sums, seen)])
    observed = [one.observed for one in found]
    assert observed == pytest.approx([1, 0.005, 0.005, 0.005, 0])
    bounds = [exceeded_deadline(p, sums, seen) for p in (0.004, 0.006, 0.01)]
    assert [(one.observed, one.high) for one in bounds] == [(3623, 3623), (23, 3623), (23, 23)]


def test_without_samples_there_is_no_budget():
    tree = replace(made().tree(), samples=None)
    component = next(one for one in tree.components if one.name == "handle")
    one = variance(tree, Options(), component).explanation
    assert (one.budget, one.exemplars, one.bounds) == (None, (), ())
    assert one.sources[0].component.name == "item"


def test_groups_that_cancel_and_vary_in_step():
    recorder = Recorder()
    for number in range(100):
        one, even = 100 * (number % 5), number % 2
        calls = [(1, Call("a", one)), (2, Call("b", one)), (3, Call("c", 300 * even)), (4, Call("d", 300 * (1 - even)))]
        recorder.add(Call("handle", 10, calls))
    found = explained(recorder)
    relations = {
        frozenset(found.parts[place].component.name for place in block.parts): block.relation
        for block in found.blocks
        if len(block.parts) > 1
    }
    assert relations == {frozenset("ab"): "in step", frozenset("cd"): "cancel"}


def test_contexts_are_held_against_each_other():
    recorder = Recorder()
    for number in range(60):
        wild, calm = Call("handle", 100 * (1 + 9 * (number % 2))), Call("handle", 500)
        recorder.add(Call("a", 1, [(1, wild)]))
        recorder.add(Call("b", 1, [(1, calm)]))
    found = explained(recorder)
    assert [(one.path[0].callee, one.high) for one in found.contexts] == [("a", True), ("b", False)]
    assert found.n == 120


def test_the_worst_calls_come_first_and_some_at_random():
    found = explained()
    worst = [one for one in found.exemplars if one.reason == "worst"]
    assert [one.x for one in worst] == sorted((one.x for one in worst), reverse=True)
    assert len(worst) == 8
    assert len(found.exemplars) == 12
    assert worst[0].callees[0].component.name == "loop"


def test_deadlines_of_a_known_distribution():
    x = np.random.default_rng(4).exponential(1e6, 20_000).astype(int).astype(float)
    x.sort()
    seen = CostDistribution(x, np.ones(len(x)), np.array([log_bucket(int(v)) for v in x], dtype=float))
    sums = Stats(len(x), int(x.sum()), sum(int(v) ** 2 for v in x))
    [[found]] = missed_deadlines([([3e6], sums, seen)])
    assert found.low < np.exp(-3) < found.high
    assert found.low < found.observed < found.high
    assert found.chebyshev == pytest.approx(0.25, abs=0.02)
    clopper = stats.binomtest(int((x > 3e6).sum()), len(x)).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == (pytest.approx(clopper.low), pytest.approx(clopper.high))
    limit = exceeded_deadline(0.01, sums, seen)
    assert limit.low < -np.log(0.01) * 1e6 < limit.high
    assert limit.observed == pytest.approx(-np.log(0.01) * 1e6, rel=0.05)
    assert limit.chebyshev == pytest.approx(sums.mean * (1 + sums.cov / 0.1))


def test_few_calls_bound_no_rare_deadline():
    x = np.arange(1.0, 31.0)
    seen = CostDistribution(x, np.ones(30), np.array([log_bucket(int(v)) for v in x], dtype=float))
    sums = Stats(30, 465, 9455)
    limit = exceeded_deadline(0.01, sums, seen)
    assert limit.observed is None
    assert limit.high is None
    [[found]] = missed_deadlines([([100], sums, seen)])
    assert (found.observed, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 30))


def test_the_histogram_counts_what_samples_only_stand_for():
    recorder = made()
    tree = recorder.tree()
    handle = tree.samples.node == 1
    buckets, counts = np.unique([log_bucket(int(x)) for x in tree.samples.x[handle]], return_counts=True)
    tree = replace(tree, histogram=(np.full(len(buckets), 1), buckets, counts * 7))
    seen = cost_distribution(Tree(tree), [1])
    assert seen.weight.sum() == 7 * handle.sum()


def test_products_that_were_put_together_are_unknown():
    tree = made().tree()
    pairs = tree.pairs
    apart = (pairs.node == 1) & (pairs.i >= 0) & (pairs.i != pairs.j)
    rest = PairMoments(
        np.append(pairs.node[~apart], 1),
        np.append(pairs.i[~apart], OTHER),
        np.append(pairs.j[~apart], OTHER),
        objects([*pairs.sum_yy[~apart].tolist(), 2 * sum(pairs.sum_yy[apart].tolist())]),
    )
    parts = parts_of(Tree(replace(tree, pairs=rest)), [1])
    known = parts_of(Tree(tree), [1])
    assert parts.net == known.net
    assert parts.covariance[1][2] is None
    assert parts.covariance[1][1] == known.covariance[1][1]


def test_other_metrics_are_told_beside():
    found = explained(metric=CPU)
    assert set(found.covs) == {"time", "cpu", "events"}
    assert (found.cause, found.off_cpu) == ("steady", None)
    assert explained(metric=CPU, high=0.2).cause == "work"
    assert explained(high=0.2).cause == "work"
    assert explained().off_cpu == pytest.approx(0.0)


def test_a_driver_beside_a_feature_that_decides_whether_there_is_a_cost():
    """``b`` decides whether a call costs anything, ``a`` how much: the law of a driver has both."""
    rng = np.random.default_rng(1)
    features = {"a": rng.integers(1, 200, 300).astype(float), "b": rng.integers(1, 100, 300).astype(float)}
    cost = np.where(
        rng.random(300) < features["b"] / 100, features["a"] * 1000 * np.exp(0.05 * rng.normal(size=300)), 0
    )
    [learnt] = learn([Series("y", cost, features)], options=LawOptions(several=False, regimes=False))
    assert set(learnt.law.features) == {"a", "b"}
    driver = _driver_by_law("own time", "ns", learnt.law, 0.9, features)
    values = [mean for _, mean in driver.means]
    assert driver.feature == "a"
    assert values == sorted(values)
    assert values[-1] > 5 * values[0]


def test_drivers_of_all_functions_are_learnt_in_one_call(monkeypatch):
    calls = list[int]()

    def counted(series, **options):
        calls.append(len(series))
        return learn(series, **options)

    monkeypatch.setattr(perflaw.learn.series, "learn", counted)
    x = np.arange(1.0, 41.0)
    linear, steady = (
        Response(name, "ns", Series(name, y, {"n": x})) for name, y in [("own time", 7 * x), ("loop", x % 2)]
    )
    first, none, both = drivers([[linear], [], [steady, linear]])
    assert calls == [3]
    assert [one.of for one in first] == [one.of for one in both] == ["own time"]
    assert none == ()


def test_limits_of_many_functions_are_those_of_each():
    rng, asked = np.random.default_rng(3), []
    for size in (40, 3, 500):
        x = np.sort(rng.lognormal(8.0, 1.0, size).round())
        seen = CostDistribution(x, np.full(size, 7.0), np.array([log_bucket(int(v)) for v in x], dtype=float))
        sums = Stats(7 * size, 7 * int(x.sum()), 7 * sum(int(v) ** 2 for v in x))
        asked.append((np.geomspace(x[0] / 2, 2 * x[-1], 9).tolist(), sums, seen))
    together = missed_deadlines([*asked, ((), asked[0][1], asked[0][2])])
    alone = [one for each in asked for one in missed_deadlines([each])]
    assert [len(one) for one in together] == [9, 9, 9, 0]
    for one, other in zip([each for of_one in together for each in of_one], [e for a in alone for e in a], strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-12)
