"""Noise of clocks: null data gives no Task, interruptions leave CPU time, and planted causes stay."""

import random
from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.variance import analyse
from perflaw.learn.variance.analyse import survey, surveys_of_metrics, variance
from perflaw.learn.variance.interruptions import find_interruptions, find_outliers, remove_interruptions, whole_weights
from perflaw.learn.variance.machine import chance_losses, disturbed, slowdowns
from perflaw.learn.variance.moments import context_weights
from perflaw.learn.variance.tree import Options, Tree
from perflaw.report.variance.text import verdict_text
from perflaw.types import CPU, EVENTS, TIME
from perflaw.types.call_trees import log_bucket
from perflaw.types.recordings import MachineLosses
from tests.conftest import first
from tests.learn.variance_data import Call, Recorder

REQUESTS = 400
STEPS = 5
NOISE_NS = 50.0


def server(interrupted=(), slow=(), culprit=0, seed=None, preempted=(), dear=(), marked=True):
    """Requests of five steps, each in a function of its own; ``interrupted`` are (request, step, ns) of lost CPU time.

    Where ``marked``, the thread was pushed off the CPU for a millisecond as well.

    While the machine is slow (``dear``) all takes three times as long.
    """
    recorder, noise = Recorder(), random.Random(seed)
    lost = {(request, step): ns for request, step, ns in interrupted}

    def spent(ns):
        factor = 3 if request in dear else 1
        return ns * factor if seed is None else round(ns * factor * noise.uniform(0.9, 1.1))

    for request in range(REQUESTS):
        steps = []
        for step in range(STEPS):
            hit = lost.get((request, step), 0)
            units = 40 if request in slow and step == culprit else 4
            inner = [(2, Call("unit", spent(300))) for _ in range(units)]
            off = 1_000_000 if hit and marked else 0
            work = Call(f"work{step}", spent(700) + hit + off, inner, off=off)
            steps.append((step, Call(f"step{step}", spent(100), [(1, work)])))
        off = 5_000_000 if request in preempted else 0
        recorder.add(Call("handle", spent(2000) + off, steps, off=off))
    return recorder


HITS = [(7, 1, 9_000), (130, 4, 6_000)]
SLOW = range(37, REQUESTS, 100)


def sums(tree):
    """All sums of a tree in CPU time, by what they are of."""
    moments = tree.moments["cpu"]
    links = zip(*(getattr(tree.links, name).tolist() for name in type(tree.links).__slots__), strict=True)
    pairs = zip(tree.pairs.node, tree.pairs.i, tree.pairs.j, tree.pairs.sum_yy, strict=True)
    return moments.sum_x.tolist(), moments.sum_xx.tolist(), sorted(links), sorted(pairs)


def test_what_was_interrupted_is_as_if_it_had_not_been():
    tree = server(HITS, SLOW).tree(CPU, noise=NOISE_NS)
    assert [(one.excess, one.times) for one in find_interruptions(tree)] == [(9_000, 1), (6_000, 1)]
    clean, expected = remove_interruptions(tree), server((), SLOW).tree(CPU, noise=NOISE_NS)
    assert clean.notes == (
        "CPU time leaves out 2 interruptions of 0.015 ms (--keep-outliers keeps them): "
        "work1 1 of 0.009 ms, work4 1 of 0.006 ms",
    )
    x, xx, links, pairs = sums(expected)
    found = sums(clean)
    assert (found[0], found[1], found[3]) == (x, xx, pairs)
    assert [row[:2] for row in found[2]] == [row[:2] for row in links]
    np.testing.assert_allclose(
        np.array(found[2], dtype=float), np.array(links, dtype=float), rtol=1e-3
    )  # deep links of other steps are derived
    np.testing.assert_array_equal(clean.samples.cpu, expected.samples.cpu)


def test_time_keeps_its_sums_and_knows_what_was_interrupted():
    tree = server(HITS, SLOW).tree(TIME, noise=NOISE_NS)
    clean = remove_interruptions(tree)
    assert clean.links is tree.links
    assert clean.moments["time"] is tree.moments["time"]
    expected = server((), SLOW).tree(CPU, noise=NOISE_NS)
    assert clean.moments["cpu"].sum_xx.tolist() == expected.moments["cpu"].sum_xx.tolist()


def test_a_clock_without_noise_has_no_interruptions():
    assert find_interruptions(server(HITS).tree(CPU)) == []


def test_what_comes_again_at_one_place_is_the_programs_own():
    often = [(request, 2, 500_000) for request in SLOW]
    assert len(often) > REQUESTS * 0.005
    found = variance(server(often, seed=1).tree(CPU, noise=NOISE_NS))
    assert found.patterns[0].contributions
    assert found.explanation.budget.rows[0].component.name == "work2"


def test_what_no_mark_explains_stays_in_the_sums():
    """A call in 80 sorts in C, without a call that is recorded: most of the time, and no interruption."""
    often = [(request, 2, 45_000_000) for request in range(37, REQUESTS, 80)]
    tree = server(often, seed=1, marked=False).tree(CPU, noise=NOISE_NS)
    assert find_interruptions(tree) == []
    found = variance(tree)
    assert found.notes == ()
    assert "work2" in {node.component.name for node in found.patterns[0].nodes if node.kind == "Task"}


def test_slow_calls_that_are_pushed_off_the_cpu_stay_slow():
    """They are so long that others take the CPU from nearly all of them."""
    often = [(request, 2, 1_500_000) for request in range(37, REQUESTS, 40)]
    tree = server(often, seed=1).tree(CPU, noise=NOISE_NS)
    assert find_interruptions(tree) == []
    assert "work2" in {node.component.name for node in variance(tree).patterns[0].nodes if node.kind == "Task"}


@pytest.mark.slow
def test_slow_calls_that_recur_periodically_are_the_programs_own():
    """Every hundredth call flushes, and others take the CPU from each of these; as many at random are interruptions."""
    periodic = [(request, 2, 3_500) for request in range(37, REQUESTS, 100)]
    assert find_interruptions(server(periodic, SLOW).tree(CPU, noise=NOISE_NS)) == []
    missed = [one for one in [(request, 2, 2_500) for request in range(37, REQUESTS, 60)] if one[0] != 217]
    assert find_interruptions(server(missed).tree(CPU, noise=NOISE_NS)) == []
    at_random = [(request, 2, 3_500) for request in (7, 130, 165, 390)]
    assert len(find_interruptions(server(at_random).tree(CPU, noise=NOISE_NS))) == 4


@pytest.mark.slow
def test_what_happened_once_is_left_out_where_it_is_little_of_the_program():
    tree = server([(7, 1, 50_000)], SLOW, marked=False).tree(CPU, noise=NOISE_NS)
    assert [one.excess for one in find_interruptions(tree)] == [50_000]
    assert sums(remove_interruptions(tree))[0] == sums(server((), SLOW).tree(CPU, noise=NOISE_NS))[0]
    twice = server([(7, 1, 50_000), (99, 1, 60_000)], SLOW, marked=False)
    assert find_interruptions(twice.tree(CPU, noise=NOISE_NS)) == []


def test_what_happened_once_and_is_most_of_the_cost_stays_but_is_no_pattern():
    found = variance(server([(7, 1, 38_000_000)], seed=1, marked=False).tree(CPU, noise=NOISE_NS))
    assert (found.patterns, found.notes) == ((), ())


def test_outliers_are_kept_on_demand():
    tree = server([(7, 1, 50_000)], marked=False).tree(CPU, noise=NOISE_NS)
    found = variance(tree, Options(keep_outliers=True))
    assert found.notes == ()
    assert {node.component.name for node in found.patterns[0].nodes} >= {"work1"}


def test_an_invocation_that_calls_more_is_not_interrupted():
    tree = server((), slow=(37,)).tree(CPU, noise=NOISE_NS)
    assert find_interruptions(tree) == []


@pytest.mark.parametrize("seed", first(2, range(2)))
@pytest.mark.parametrize("metric", [CPU, EVENTS])
def test_null_data_has_no_task(metric, seed):
    hits = [(random.Random(seed).randrange(REQUESTS), step, 9_000) for step in (0, 3)]
    found = variance(server(hits, seed=seed).tree(metric, noise=NOISE_NS))
    assert found.patterns == ()


def test_a_slow_phase_of_the_machine_is_no_task():
    phase = range(150, 230)
    assert variance(server(seed=5, dear=phase).tree(CPU)).patterns
    assert variance(server(seed=5, dear=phase).tree(CPU, noise=NOISE_NS)).patterns == ()


def test_outliers_are_those_of_all_metrics(monkeypatch):
    recorder, searches = server([(100, 2, 9_000)], seed=5), list[str]()
    trees = [recorder.tree(metric, noise=NOISE_NS) for metric in (TIME, CPU)]
    alone = survey(trees[1]).variance

    def counted(tree):
        searches.append(tree.metric.name)
        return find_outliers(tree)

    monkeypatch.setattr(analyse, "find_outliers", counted)
    assert surveys_of_metrics(trees)[1].variance == alone
    assert searches == ["time"]


@pytest.mark.slow
def test_two_speeds_of_the_machine_that_change_often_are_no_task():
    dear = [request for request in range(REQUESTS) if request // 12 % 2]
    samples = server(seed=5, dear=dear).tree(CPU, noise=NOISE_NS).samples
    found = slowdowns(samples)
    assert np.quantile(found, 0.9) > 2 * np.quantile(found, 0.1)
    assert variance(server(seed=5, dear=dear).tree(CPU)).patterns
    assert variance(server(seed=5, dear=dear).tree(CPU, noise=NOISE_NS)).patterns == ()


def test_a_slow_step_is_found_on_a_machine_of_two_speeds():
    dear = [request for request in range(REQUESTS) if request // 12 % 2]
    found = variance(server((), SLOW, culprit=2, seed=5, dear=dear).tree(CPU, noise=NOISE_NS))
    assert {node.component.name for node in found.patterns[0].nodes} >= {"step2", "work2"}


def test_a_run_of_larger_input_is_no_slow_phase():
    samples = server(seed=5, dear=range(REQUESTS // 2, REQUESTS)).tree(CPU, noise=NOISE_NS).samples
    assert slowdowns(samples).max() > 1.2
    middle = np.median(samples.started)
    runs = tuple("small" if started < middle else "large" for started in samples.started.tolist())
    np.testing.assert_allclose(slowdowns(replace(samples, run=runs)), 1, atol=0.05)


def test_requests_that_are_slow_in_all_steps_are_the_programs_own():
    dear = random.Random(2).sample(range(REQUESTS), 80)
    found = variance(server(seed=5, dear=dear).tree(CPU, noise=NOISE_NS))
    assert found.patterns[0].nodes[0].component.name == "handle"


def test_a_phase_of_the_program_is_its_own():
    """One step does more for a while; the others go on as they did."""
    found = variance(server(slow=range(150, 230), culprit=3, seed=5).tree(CPU, noise=NOISE_NS))
    assert "step3" in {node.component.name for node in found.patterns[0].nodes}


def test_calls_after_a_switch_are_disturbed():
    samples = server(seed=1, preempted=[10]).tree(CPU, noise=NOISE_NS).samples
    [switched] = np.flatnonzero(samples.time > samples.cpu)
    after = disturbed(samples)
    assert after[switched]
    near = samples.started - samples.started[switched] - samples.time[switched]
    assert after[(near > 0) & (near < 50_000)].all()
    assert not after[(near > 60_000) | (near < -10_000_000)].any()


@pytest.mark.parametrize("seed", range(2))
def test_null_data_by_time_is_interference(seed):
    hits = [(random.Random(seed).randrange(REQUESTS), step, 9_000) for step in (0, 3)]
    found = variance(server(hits, seed=seed, preempted=range(0, REQUESTS, 50)).tree(noise=NOISE_NS))
    tasks = [node for pattern in found.patterns for node in pattern.nodes if node.kind == "Task"]
    assert tasks
    assert {node.cause for node in tasks} == {"interference"}


@pytest.mark.parametrize("culprit", first(2, [0, 2, 4]))
@pytest.mark.parametrize("metric", [CPU, EVENTS])
def test_a_planted_cause_is_found_first_for_all_that_happens(metric, culprit):
    hits = [(11 * (1 + culprit), (culprit + 1) % STEPS, 9_000), (333, (culprit + 2) % STEPS, 7_000)]
    made = server(hits, range(37, REQUESTS, 50), culprit, seed=culprit, preempted=range(20, REQUESTS, 45))
    found = variance(made.tree(metric, noise=NOISE_NS))
    assert [step.callee for step in found.explanation.budget.rows[0].path][:1] == [f"step{culprit}"] or (
        found.explanation.component.name == f"step{culprit}"
    )
    first = found.patterns[0]
    names = {node.id: node.component.name for node in first.nodes}
    assert f"step{culprit}" in [names[one] for one in first.contributions[0].path]


def test_variance_below_the_noise_of_the_clock_is_not_high():
    recorder = Recorder()
    for number in range(100):
        recorder.add(Call("handle", 10_000, [(1, Call("tiny", 30 * (number % 2)))]))
    assert variance(recorder.tree(CPU, noise=NOISE_NS)).patterns == ()
    assert variance(recorder.tree(CPU)).patterns


def test_samples_and_sums_stay_of_one_mind():
    """After cleaning, ΣΣP == ΣX² still holds on every node whose invocations are all sampled."""
    tree = Tree(remove_interruptions(server(HITS, SLOW, seed=3).tree(CPU, noise=NOISE_NS)))
    for node in range(1, tree.size):
        total = sum(p if i == j else 2 * p for (i, j), p in tree.pairs[node].items())
        assert total == tree.stats[node].xx


def flicker(seed=3, together=True, culprit=None):
    """Six steps of which each call takes four times as long now and then; ``together``: all calls of a few requests do."""
    recorder, noise = Recorder(), random.Random(seed)
    slow = False
    for request in range(REQUESTS):
        if request % 8 == 0:
            slow = noise.random() < 0.4
        steps = []
        for step in range(6):
            often = 0.5 if together and slow else 0.05 if together else 0.2
            factor = 4 if noise.random() < often else 1
            steps.append(
                (step, Call(f"step{step}", 900 * factor * (20 if step == culprit and request % 50 == 9 else 1)))
            )
        recorder.add(Call("handle", 500, steps))
    return recorder


def tasks_of(found):
    return {node.component.name for pattern in found.patterns for node in pattern.nodes if node.kind == "Task"}


def test_what_all_functions_vary_alike_and_together_is_the_machines():
    assert tasks_of(variance(flicker().tree(CPU)))
    assert tasks_of(variance(flicker().tree(CPU, noise=NOISE_NS))) == set()


def test_what_all_functions_vary_by_chance_is_their_own():
    found = tasks_of(variance(flicker(together=False).tree(CPU, noise=NOISE_NS)))
    assert found >= {f"step{step}" for step in range(6)}


def test_what_varies_more_than_the_machine_is_found():
    found = variance(flicker(culprit=4).tree(CPU, noise=NOISE_NS))
    assert tasks_of(found) & {"step4", "handle"}
    assert "step4" in {node.component.name for node in found.patterns[0].nodes}


@pytest.mark.parametrize("pushed", [False, True])
def test_a_function_that_loses_much_tells_what_others_may_lose_only_where_others_took_the_cpu(pushed):
    """Without a switch, slow calls that take a quarter of a function's time are its own work."""
    recorder, draw = Recorder(), random.Random(5)
    for request in range(1000):
        off = 2_000_000 if pushed and request == 700 else 0
        long = 6500 + off + (30_000 if draw.random() < 0.05 else 0)
        short = 2700 + (30_000 if draw.random() < 0.005 else 0)
        recorder.add(Call("handle", 100 + off, [(1, Call("long", long, off=off)), (2, Call("short", short))], off=off))
    tree = recorder.tree(CPU, noise=NOISE_NS)
    assert tree.samples is not None
    lost = chance_losses(tree, context_weights(tree), disturbed(tree.samples))
    [short] = [node for node, one in enumerate(tree.component) if one >= 0 and tree.components[one].name == "short"]
    assert (lost[tree.samples.node == short].max() > 0) == pushed


def losing(*slow, pushed=True):
    """Two steady functions; ``slow`` are the ns that calls of the first take more, each pushed off the CPU if ``pushed``.

    The second loses 30 µs in five of its calls.
    """
    recorder = Recorder()
    more = {150 * (place + 1): ns for place, ns in enumerate(slow)}
    for request in range(3000):
        off = 2_000_000 if pushed and request in more else 0
        parse = Call("parse", 2800 + more.get(request, 0) + off, off=off)
        render = Call("render", 7000 + (30_000 if request % 600 == 99 else 0))
        recorder.add(Call("handle", 100 + off, [(1, parse), (2, render)], off=off))
    return recorder.tree(CPU, noise=NOISE_NS)


@pytest.mark.parametrize("pushed", [False, True])
def test_as_many_losses_as_others_have_are_the_machines(pushed):
    """The squares of two long losses outweigh all else that a function of some milliseconds does."""
    assert tasks_of(variance(losing(104_000, 73_000, 33_000, pushed=pushed))) == set()


@pytest.mark.parametrize("pushed", [False, True])
def test_more_losses_than_others_have_are_the_functions_own(pushed):
    """Slow calls that recur are pushed off the CPU more often than others, for they are longer: a mark explains nothing."""
    assert "parse" in tasks_of(variance(losing(*[130_000] * 12, pushed=pushed)))


def test_interruptions_stand_for_no_more_invocations_than_there_were():
    assert whole_weights(np.array([1.6] * 5)) == [1, 2, 1, 2, 2]
    assert whole_weights(np.array([1.0, 2.4, 1.0])) == [1, 2, 1]


def alone(*slow, watched=()):
    """A single function; ``slow`` are the ns that calls of it take more.

    ``watched`` are losses that the recorder saw in 10 ms.
    """
    recorder = Recorder()
    more = {150 * (place + 1): ns for place, ns in enumerate(slow)}
    for request in range(3000):
        recorder.add(Call("work", 2800 + more.get(request, 0)))
    return replace(recorder.tree(CPU, noise=NOISE_NS), losses=MachineLosses(10_000_000, tuple(watched)))


def test_what_the_recorder_saw_the_machine_take_is_left_out_where_no_other_function_tells():
    losses = (88_000, 60_000, 50_000, 40_000, 33_000, 27_000, 26_000, 25_000)
    seen = (90_000, 60_000, 45_000, 42_000, 36_000, 30_000, 28_000, 20_000)
    assert tasks_of(variance(alone(*losses, watched=seen))) == set()
    assert tasks_of(variance(alone(*losses))) == {"work"}


def test_more_than_the_recorder_saw_the_machine_take_is_the_functions_own():
    assert tasks_of(variance(alone(*[60_000] * 15, watched=(60_000, 45_000, 30_000, 20_000)))) == {"work"}


def test_what_is_left_without_losses_must_exceed_the_noise_of_the_clock():
    """Calls of 105 ns whose time changes by 90 ns from phase to phase."""
    recorder = Recorder()
    for request in range(3000):
        recorder.add(Call("work", 60 + 90 * (request // 500 % 2) + (40_000 if request == 700 else 0)))
    assert tasks_of(variance(recorder.tree(CPU))) == {"work"}
    tree = recorder.tree(CPU, noise=NOISE_NS)
    assert tasks_of(variance(replace(tree, losses=MachineLosses(10_000_000, (50_000,))))) == set()


def many_items(cost, items=60, seed=1):
    """Calls of a function, each with ``items`` of a generator in each; ``cost`` by request and number of items.

    Recording takes 50 ns for each event.
    """
    recorder, rng, resumes = Recorder(), random.Random(seed), []
    for request in range(2000):
        n = items(request) if callable(items) else items
        recorder.add(Call("handle", round(cost(request, n, rng))))
        resumes.append(float(n))
    tree = recorder.tree(CPU, noise=NOISE_NS)
    return replace(tree, event_ns=50.0, samples=replace(tree.samples, resumes=np.array(resumes)))


def test_what_recording_many_items_may_vary_is_told_of_no_function():
    """In some calls recording an item takes as much less, or more, as the item itself takes."""
    tree = many_items(lambda request, n, rng: n * (30 + rng.choice([-25, 25])))
    found = variance(tree, component=tree.components[0])
    assert tasks_of(found) == set()
    assert any("handle is unknown: recording" in note for note in found.notes)
    assert found.explanation.tracing_ns == pytest.approx(61 * 50)
    assert "unknown variance: recording takes 3.0 µs" in verdict_text(found.explanation)
    assert tasks_of(variance(replace(tree, event_ns=0.0))) == {"handle"}


def test_work_among_many_items_that_exceeds_what_recording_them_takes_is_found():
    found = variance(many_items(lambda request, n, rng: n * 30 + (90_000 if rng.random() < 0.01 else 0)))
    assert tasks_of(found) == {"handle"} and not found.notes


def test_cost_that_follows_the_number_of_items_is_the_programs_own():
    """One call in a hundred has 50 times the items; recording them takes longer than all calls."""
    tree = many_items(lambda request, n, rng: n * 30, items=lambda request: 3000 if request % 100 == 7 else 60)
    assert tasks_of(variance(tree)) == {"handle"}


def test_what_recording_takes_hides_a_leaf_that_only_the_histogram_knows():
    recorder = Recorder()
    costs = [20, 220] * 1000
    for cost in costs:
        recorder.add(Call("handle", 5_000, [(1, Call("leaf", cost))]))
    tree = recorder.tree(CPU, noise=1.0)
    names = [tree.components[each].name if each >= 0 else "" for each in tree.component]
    handle, leaf = names.index("handle"), names.index("leaf")
    buckets, counts = np.unique([log_bucket(cost) for cost in costs], return_counts=True)
    buckets, counts = np.append(buckets, log_bucket(5_120)), np.append(counts, 2000)
    nodes = np.append(np.full(len(buckets) - 1, leaf), handle)
    samples = replace(tree.samples, node=np.full(len(tree.samples.node), handle))
    known = replace(tree, samples=samples, histogram=(nodes, buckets, counts), event_ns=500.0)
    found = variance(known)
    assert tasks_of(found) == set()
    assert any("leaf is unknown: recording" in note for note in found.notes)
