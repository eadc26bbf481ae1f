"""The result of a study: best, robust, front, hidden locks, warnings; truth is found, and nothing where there is none."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from perflaw.learn.exploring.best import undominated
from perflaw.learn.exploring.hidden_locks import collapses, like_threads
from perflaw.learn.exploring.observations import levels_of
from perflaw.learn.exploring.result import study_result
from perflaw.types.studies import Conditions, Knob
from tests import studies_factory as made


@pytest.fixture(scope="module")
def forty():
    return study_result(made.study(), made.trials(made.sample(made.space(), 40)), made.space())


def regret(found):
    top = max(map(made.log_throughput, made.space().all()))
    return 1 - np.exp(made.log_throughput(found.best.configuration) - top)


def test_the_best_is_near_the_true_one_and_its_interval_holds_the_truth(forty):
    assert regret(forty) <= 0.05
    expected = forty.best.metrics["throughput"]
    assert expected.low <= np.exp(made.log_throughput(forty.best.configuration)) <= expected.high
    assert 0.2 < forty.best.probability < 1


def test_the_lucky_trial_is_not_believed():
    """Twenty configurations alike, noise 30 %: what is expected of the winner is the common value, not its luck."""
    trials = made.trials(made.sample(made.space(), 30), lambda one: 12.0, 0.3, 4)
    found = study_result(made.study(), trials, made.space())
    assert found.best.measured["throughput"] / np.exp(12.0) > 1.25
    assert found.best.metrics["throughput"].value / np.exp(12.0) < 1.25


def test_the_same_trials_give_the_same_result(forty):
    again = study_result(made.study(), made.trials(made.sample(made.space(), 40)), made.space())
    assert repr(again) == repr(forty)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_few_trials_claim_nothing(count):
    found = study_result(made.study(), made.trials(made.sample(made.space(), count)), made.space(), unfinished=True)
    assert (found.best is None) == (count == 0)
    assert not found.best or not found.best.probability
    assert all(not one.shares for one in found.importance)
    assert found.left["trials"] == 60 - count


def test_invalid_trials_are_counted_by_their_reason_and_are_no_data(forty):
    trap = "page_size: asked 2097152, the target says 4096"
    trials = list(forty.trials)
    for place in (3, 8):
        trials[place] = replace(trials[place], valid=False, reason=trap, metrics={"throughput": 1e12})
    found = study_result(made.study(), trials, made.space())
    assert [(one.words, one.trials) for one in found.notices if one.kind == "invalid"] == [
        (f"2 of 40 trials are invalid: {trap}", (4, 9))
    ]
    assert found.best.metrics["throughput"].value < 1e7
    assert len(found.tried) == 38


def test_contaminated_trials_do_not_win(forty):
    trials = list(forty.trials)
    lucky = trials[0]
    trials.append(
        replace(lucky, number=41, metrics={"throughput": 1e8}, contaminated="others used 3 CPUs", repetition=1)
    )
    found = study_result(made.study(), trials, made.space())
    assert found.best.metrics["throughput"].value < 1e7
    assert any(one.kind == "contaminated" for one in found.notices)


@pytest.mark.slow
def test_two_goals_have_a_front():
    study = made.study(made.THROUGHPUT, made.MEMORY)
    trials = [
        replace(one, metrics={**one.metrics, "memory": 1e7 + float(one.configuration["cache"])})
        for one in made.trials(made.sample(made.space(), 40))
    ]
    found = study_result(study, trials, made.space())
    assert len(found.pareto) >= 2
    rates = [one.metrics["throughput"].value for one in found.pareto]
    assert rates == sorted(rates, reverse=True)
    assert found.best.configuration in [one.configuration for one in found.pareto]
    assert {one.metric.name for one in found.laws} == {"throughput", "memory"}


def test_the_front_is_that_of_its_definition():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (30, 3)).astype(float)
    for i, kept in enumerate(undominated(scores)):
        beaten = any(np.all(scores[j] >= scores[i]) and np.any(scores[j] > scores[i]) for j in range(30))
        assert kept == (not beaten)


def test_workload_knobs_are_no_part_of_the_best_and_the_robust_choice_hedges():
    knobs = (
        Knob("mode", "categorical", ("steady", "risky")),
        Knob("threads", "int", low=1, high=4),
        Knob("size", "ordinal", (1, 2, 4, 8), workload=True),
    )
    study = made.study(knobs=knobs)
    space = made.space(study)

    def truth(one):
        risky = {1: 0.8, 2: 0.8, 4: 0.8, 8: -1.4}[one["size"]]
        return 10 + 0.05 * one["threads"] + (risky if one["mode"] == "risky" else 0.0)

    found = study_result(study, made.trials(space.all(), truth, 0.02), space)
    assert found.best.configuration == {"mode": "risky", "threads": 4}
    assert found.robust.configuration["mode"] == "steady"
    assert any(one.knobs == ("mode", "size") and one.sure for one in found.importance[0].shares)


@pytest.mark.slow
def test_settings_that_were_not_read_back_are_told(forty):
    study = forty.study
    silent = [replace(trial, verified={}) for trial in forty.trials]
    read = [replace(trial, verified=trial.configuration) for trial in forty.trials]
    told, nothing = (
        [one.words for one in study_result(study, trials, made.space()).notices if one.kind == "unverified"]
        for trials in (silent, read)
    )
    assert not nothing and len(told) == 1
    assert told[0].startswith("set, not verified: ") and all(knob.name in told[0] for knob in study.knobs)


def test_reasons_that_differ_in_numbers_are_one_and_maps_leave_out_what_never_worked(forty):
    sizes = sorted({trial.configuration["page_size"] for trial in forty.trials})
    trials = [
        replace(
            trial,
            valid=False,
            metrics={},
            reason=f"page_size did not take effect: {2**20 + trial.number} was requested",
        )
        if trial.configuration["page_size"] == sizes[-1]
        else trial
        for trial in forty.trials
    ]
    found = study_result(forty.study, trials, made.space())
    (reason,) = [one for one in found.notices if one.kind == "invalid"]
    assert len(reason.trials) > 1 and reason.words.endswith("(the others differ in the numbers only)")
    assert "page_size" in (found.surface.x, found.surface.y)
    across = found.surface.x == "page_size"
    values = found.surface.x_values if across else found.surface.y_values
    for one in found.surface.expected:
        for cell in [row[-1] for row in one] if across else one[-1]:
            assert values[-1] == sizes[-1] and cell is None
    assert any(cell is not None for one in found.surface.expected for row in one for cell in row)


@pytest.mark.slow
def test_maps_leave_out_a_region_that_failed_though_each_of_its_settings_works_elsewhere(forty):
    surface = study_result(forty.study, forty.trials, made.space()).surface

    def corner(place):
        return place[surface.x] > surface.x_values[len(surface.x_values) // 2 - 1] and (
            place[surface.y] > surface.y_values[len(surface.y_values) // 2 - 1]
        )

    trials = [
        replace(one, valid=False, metrics={}, reason="too large") if corner(one.configuration) else one
        for one in forty.trials
    ]
    failed = [one.configuration for one in trials if not one.valid]
    assert 3 < len(failed) < len(trials) / 2
    found = study_result(forty.study, trials, made.space()).surface
    named = (found.facet, found.y, found.x)
    for facet, y, x in itertools.product(found.facet_values, found.y_values, found.x_values):
        here = [
            one
            for one in failed
            if all(one.get(name, value) == value for name, value in zip(named, (facet, y, x), strict=True))
        ]
        if here and not corner(dict(zip(named, (facet, y, x), strict=True))):
            continue
        cell = found.expected[found.facet_values.index(facet)][found.y_values.index(y)][found.x_values.index(x)]
        assert cell is None or not here
    assert any(cell is not None for one in found.expected for row in one for cell in row)


@pytest.mark.slow
def test_a_machine_that_is_busy_in_every_trial_is_told(forty):
    def notices(cores):
        trials = [replace(trial, conditions=replace(trial.conditions, other_cpu=cores)) for trial in forty.trials]
        return [one.words for one in study_result(forty.study, trials, made.space()).notices if "busy" in one.words]

    assert notices(0.05) == []
    assert notices(1.4)[0].startswith("the machine was busy in every trial: other programs used 1.4 CPUs")


def threaded(trials):
    study = made.study(knobs=made.THREADED)
    return collapses(trials, made.space(study), made.THROUGHPUT)


@pytest.mark.slow
def test_a_hidden_lock_is_found_and_explained_by_switches():
    (found,) = threaded(made.collapsing())
    assert (found.knob, found.peak, found.top, found.lock, found.gone) == ("threads", 3, 8, True, "")
    assert found.switches[1] > 100 * found.switches[0]
    assert found.loss == pytest.approx(1 - np.exp(-1.25), abs=0.1)
    study = made.study(knobs=made.THREADED)
    words = study_result(study, made.collapsing(), made.space(study)).notices[0].words
    assert words.startswith("hidden lock? threads: the objective gets worse beyond 3")


@pytest.mark.slow
def test_a_setting_without_the_lock_is_named():
    (found,) = threaded(made.collapsing(locked=lambda one: one["memory_status"] == "on"))
    assert (found.where, found.gone, found.lock) == ("memory_status = on", "memory_status = off", True)


@pytest.mark.slow
def test_a_lock_shows_in_switches_for_the_same_work():
    """Threads that fight switch as often as they can from two on, and do less; those that sleep do so once a piece of work."""

    def switching(rate):
        return [
            replace(one, conditions=Conditions(voluntary=rate(one.configuration["threads"], one.metrics["throughput"])))
            for one in made.collapsing()
        ]

    assert [one.lock for one in threaded(switching(lambda threads, work: 10_000.0 if threads > 1 else 10.0))] == [True]
    assert [one.lock for one in threaded(switching(lambda threads, work: work))] == [False]


@pytest.mark.slow
def test_no_lock_is_suspected_without_evidence():
    assert threaded(made.collapsing(locked=lambda one: False)) == []
    rng = np.random.default_rng(2)
    calm = [replace(one, conditions=Conditions(voluntary=float(50 + rng.normal(0, 5)))) for one in made.collapsing()]
    assert [one.lock for one in threaded(calm)] == [False]
    noisy = [replace(one, metrics={"throughput": float(np.exp(rng.normal(0, 0.4)))}) for one in made.collapsing()]
    assert threaded(noisy) == []
    waiting = [
        replace(one, conditions=Conditions(run_delay=0.02 + 0.2 * max(0, int(one.configuration["threads"]) - 3)))
        for one in made.collapsing()
    ]
    assert [(one.lock, one.processors) for one in threaded(waiting)] == [(False, True)]


def test_settings_of_a_range_need_not_be_those_that_curves_are_drawn_at():
    """Of 1 to 9, curves are drawn at eight settings; these eight trials are others."""
    study = made.study(knobs=(Knob("jobs", "int", low=1, high=9),))
    drawn = {float(level) for level in levels_of(made.space(study), study.knobs[0])}
    left = [jobs for jobs in range(1, 10) if jobs != min(drawn)]
    trials = [made.trial(i, {"jobs": jobs}, throughput=100.0 - (jobs - 4) ** 2) for i, jobs in enumerate(left, 1)]
    [found] = collapses(trials, made.space(study), made.THROUGHPUT)
    assert 3 <= found.peak <= 6


def test_only_counts_of_what_works_at_once_are_like_threads():
    assert like_threads(Knob("workers", "int", low=1, high=64))
    assert not like_threads(Knob("cache", "int", low=1, high=64))
    assert not like_threads(Knob("thread_stack", "ordinal", (4096, 8192), unit="B"))
