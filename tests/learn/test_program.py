"""The cost model on generated programs whose answer is known, and on programs whose input does not matter."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.laws.printing import show
from perflaw.learn.program import RunLaws, forecast, learn_program
from perflaw.types import Clock
from tests.conftest import examples
from tests.learn.program_data import Node, Program, random_program

SIZES = [20, 50, 120, 250, 500] * 2
FAR = {"n": 5000.0}


def constant(value):
    return lambda n: np.full_like(n, float(value))


@pytest.mark.parametrize("seed", range(5))
def test_a_program_without_noise_is_predicted_exactly(seed):
    program = random_program(np.random.default_rng(seed))
    model = learn_program(program.record(SIZES, np.random.default_rng(seed)))
    forecasts = forecast(model, FAR)
    assert forecasts.whole == pytest.approx(program.cost(5000), rel=0.02)
    for place, component in enumerate(model.components):
        assert forecasts.inclusive[place] == pytest.approx(
            program.inclusive(component.name, 5000), rel=0.1, abs=forecasts.whole / 1000
        )
    assert model.composed() == pytest.approx(model.measured(), rel=0.01)


@pytest.mark.slow
def test_noise_disturbed_calls_and_run_speeds_do_not_bend_growth():
    errors, held = [], []
    for seed in range(examples(40)):
        rng = np.random.default_rng(seed)
        program = random_program(rng)
        model = learn_program(program.record(SIZES, rng, noise=0.1, speeds=0.35, lumps=0.003))
        whole = forecast(model, FAR).of_whole(FAR)
        truth = program.cost(5000)
        errors.append(abs(whole.mean / truth - 1))
        held.append(whole.mean_low <= truth <= whole.mean_high)
    assert np.median(errors) < 0.15
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("seed", range(5))
def test_costs_are_coherent_in_every_draw(seed):
    rng = np.random.default_rng(seed)
    costs = random_program(rng).record(SIZES, rng, noise=0.2, speeds=0.2, lumps=0.01)
    model = learn_program(costs)
    forecasts = forecast(model, FAR)
    callers = {}
    for active, context in zip(costs.active, costs.context.tolist(), strict=True):
        for above in active:
            callers.setdefault(context, set()).add(above)
    main = next(i for i, one in enumerate(costs.components) if one.name == "main")
    for of_one in (forecasts.inclusive[:, None], forecasts.draws):
        assert (of_one <= of_one[main] * (1 + 1e-9)).all()
    assert forecasts.draws[main] == pytest.approx(forecasts.whole_draws)
    whole = model.inclusive_terms()[main]
    assert sum(whole.values()) == pytest.approx(model.coefficients.sum())


def test_a_function_costs_no_more_than_its_only_caller():
    nodes = [
        Node("main", -1, constant(1), constant(5e5)),
        Node("outer", 0, lambda n: n, constant(900)),
        Node("inner", 1, lambda n: n * n, constant(120)),
    ]
    rng = np.random.default_rng(0)
    forecasts = forecast(learn_program(Program(nodes).record(SIZES, rng, noise=0.3)), FAR)
    _, outer, inner = forecasts.draws
    assert (inner <= outer).all()


def test_growth_in_c_code_of_a_call_is_carried_by_the_unit_cost():
    nodes = [
        Node("main", -1, constant(1), constant(5e5)),
        Node("look_up", 0, lambda n: n, lambda n: 60 + 9.0 * n),
    ]
    program = Program(nodes)
    model = learn_program(program.record(SIZES, np.random.default_rng(1), noise=0.05))
    assert forecast(model, FAR).whole == pytest.approx(program.cost(5000), rel=0.1)
    laws = RunLaws(model, FAR)
    assert laws.of(1).slope["n"] == pytest.approx(2, abs=0.1)


@pytest.mark.slow
def test_input_that_does_not_matter_gives_constants():
    found = wide = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        nodes = [Node("main", -1, constant(1), constant(1e6))]
        nodes += [Node(f"f{i}", 0, constant(100 + i), constant(500 + 10 * i)) for i in range(40)]
        model = learn_program(Program(nodes).record(SIZES, rng, noise=0.2, speeds=0.2, lumps=0.01))
        found += any(law.established for law in model.units.laws)
        whole = forecast(model, FAR).of_whole(FAR)
        wide += whole.mean_high > 2.0 * whole.mean
    assert found <= 2
    assert wide <= 2


def test_contexts_of_a_helper_have_their_own_unit_costs():
    nodes = [
        Node("main", -1, constant(1), constant(1e6)),
        Node("small", 0, lambda n: 5 * n, constant(300)),
        Node("large", 0, constant(4), constant(300)),
        Node("join", 1, lambda n: 5 * n, constant(90)),
        Node("join", 2, constant(4), lambda n: 30.0 * n * n),
    ]
    program = Program(nodes)
    model = learn_program(program.record(SIZES, np.random.default_rng(2), noise=0.05))
    assert forecast(model, FAR).whole == pytest.approx(program.cost(5000), rel=0.1)
    [small] = [i for i, one in enumerate(model.components) if one.name == "small"]
    assert RunLaws(model, FAR).of(small).slope["n"] == pytest.approx(1, abs=0.05)


def test_the_law_of_a_run_says_what_it_predicts():
    rng = np.random.default_rng(3)
    model = learn_program(random_program(rng).record(SIZES, rng, noise=0.05))
    laws = RunLaws(model, FAR)
    for place in range(len(model.components)):
        law = laws.of(place)
        [prediction] = law.predictions
        value = eval(show(law.mean).replace("^", "**"), {"n": 5000.0, "log": np.log})  # the text itself, not our reader
        assert value == pytest.approx(prediction.mean, rel=0.01)


def test_growth_at_the_largest_size_is_that_of_the_law_that_goes_on_from_there(monkeypatch):
    """Calls that follow no law exactly go on from their count at the largest size: there was "now n^0.00" beside n^1.43."""
    calls = dict(zip(SIZES, [70.0, 290, 800, 3100, 8700], strict=False))

    def often(n):
        return np.reshape([calls.get(float(x), float(x) ** 1.46) for x in np.atleast_1d(n)], np.shape(n))

    monkeypatch.setattr("perflaw.learn.program.laws.TOLERANCE", 0.0)  # a short law would have no step there
    program = Program([Node("main", -1, constant(1), constant(1e4)), Node("step", 0, often, constant(5000))])
    laws = RunLaws(learn_program(program.record(SIZES, np.random.default_rng(1), noise=0.05)), FAR)
    law = laws.of(next(i for i, one in enumerate(laws.model.components) if one.name == "step"))
    assert "n > 500" in show(law.mean)
    assert law.slope["n"] == pytest.approx(1.4, abs=0.25)
    assert law.slope_low["n"] > 0.5


def test_a_loop_costs_in_proportion_to_the_calls_it_makes():
    """The loop's own clock readings allow n², its counts do not: it makes n calls."""
    steps = Node("step", 1, lambda n: n, constant(200))
    program = Program(
        [Node("main", -1, constant(1), constant(5e5)), Node("loop", 0, constant(1), lambda n: 4000 + 80 * n), steps]
    )
    rng = np.random.default_rng(4)
    costs = program.record(SIZES, rng, noise=0.02)
    costs.own[4::5, 1] *= 1.5  # the largest runs were disturbed
    costs.context_own[4::5, 1] *= 1.5
    model = learn_program(costs)
    assert RunLaws(model, FAR).of(1).slope["n"] == pytest.approx(1, abs=0.1)
    assert forecast(model, FAR).whole == pytest.approx(program.cost(5000), rel=0.4)


def test_intervals_reach_down_by_what_the_tracer_may_have_caused():
    program = Program(
        [Node("main", -1, constant(1), constant(1e5)), Node("work", 0, lambda n: 1000 * n, constant(400))]
    )
    costs = program.record(SIZES, np.random.default_rng(3))
    exact = forecast(learn_program(costs), FAR).of_whole(FAR)
    measured = [replace(run, clock=Clock("perf_counter", 1, 50, 0)) for run in costs.runs]
    wide = forecast(learn_program(replace(costs, runs=tuple(measured))), FAR).of_whole(FAR)
    assert wide.mean == pytest.approx(exact.mean)
    assert 0.85 * exact.mean_high < wide.mean_high <= exact.mean_high
    per_call = (exact.mean_low - wide.mean_low) / (1000 * FAR["n"])
    assert 20.0 < per_call <= 100.0, "up to twice the 50 ns of an event"


def test_laws_are_over_the_features_that_a_person_varied_whether_a_size_is_asked_for_or_not():
    """The size of a file follows from what was varied; a number that does not stays a feature."""
    program = random_program(np.random.default_rng(4))
    costs = program.record(SIZES, np.random.default_rng(4), noise=0.05)

    def with_features(**more):
        runs = [
            replace(
                run,
                features=run.features | {name: value(run.features["n"], place) for name, value in more.items()},
                configuration={"n": str(run.features["n"])},
            )
            for place, run in enumerate(costs.runs)
        ]
        return replace(costs, runs=tuple(runs))

    derived = with_features(**{"text.bytes": lambda n, place: 7.0 * n + 90 * (n > 50)})
    asked, unasked = learn_program(derived, ("n",)), learn_program(derived)
    assert unasked.features.keys() == {"n"}
    assert forecast(unasked, FAR).of_functions(FAR) == forecast(asked, FAR).of_functions(FAR)
    assert learn_program(derived, ("text.bytes",)).features.keys() == {"text.bytes"}
    printed = with_features(rounds=lambda n, place: 5.0 + place % 3)
    assert learn_program(printed).features.keys() == {"n", "rounds"}


@pytest.mark.parametrize("seed", range(10))
def test_steep_and_noisy_costs_are_told_without_overflow(seed):
    """Exponentials over few sizes, asked for far beyond these; warnings of NumPy are errors here."""
    rng = np.random.default_rng(seed)
    low = 10 ** rng.uniform(0, 5)
    sizes = np.round(np.sort(low * 10 ** rng.uniform(0, 1.5, rng.integers(2, 9))))
    span = max(np.ptp(sizes), 1.0)
    shapes = [(10 ** rng.uniform(2, 9), rng.choice([0, 1, 3]), rng.choice([0, 8, 40])) for _ in range(4)]
    nodes = [Node("main", -1, np.ones_like, lambda n: np.full_like(n, 1e6))]
    for k, (cost, power, rate) in enumerate(shapes):
        unit = lambda n, c=cost, p=power, r=rate: c * (n / low) ** p * np.exp(r * (n - sizes[0]) / span)  # noqa: E731
        nodes.append(Node(f"f{k}", k, lambda n, k=k: np.round((n / sizes[0]) ** (k % 3)), unit))
    model = learn_program(Program(nodes).record(sizes, rng, noise=rng.choice([0.02, 2.0]), speeds=0.1))
    for at in (None, {"n": float(200 * sizes[-1])}):
        laws = RunLaws(model, at)
        for place in range(len(model.components)):
            law = laws.of(place)
            assert np.isfinite([one.mean_high for one in law.predictions]).all()
            assert all(np.isfinite(curve.mean_high).all() for curve in laws.curves(place, law, 40))


def test_intervals_reach_down_by_what_events_took_in_the_run_itself():
    """Where other processes empty the caches, an event takes more than in the calibration, and so does the program."""
    program = Program(
        [
            Node("main", -1, lambda n: np.ones_like(n), lambda n: 1e6 + 0 * n),
            Node("step", 0, lambda n: 10 * n, lambda n: 1000 + 0 * n),
        ]
    )
    costs = program.record([100, 200, 400, 800, 1500], np.random.default_rng(1), noise=0.01)

    def lower(event_in_run_ns: float) -> float:
        calls = costs.calls.sum(axis=1)
        clocks = [Clock("perf_counter", 1, 50, round(2 * event_in_run_ns * n) + 500, 500) for n in calls]
        runs = tuple(replace(run, clock=clock) for run, clock in zip(costs.runs, clocks, strict=True))
        answer = forecast(learn_program(replace(costs, runs=runs)), {"n": 1500.0}).of_whole({"n": 1500.0})
        return answer.mean_low / answer.mean

    assert lower(50.0) == lower(10.0) > 0.87
    assert lower(150.0) < 0.8
