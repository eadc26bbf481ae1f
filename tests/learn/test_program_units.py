"""Forms of unit costs: kinks, two features, blends and exponentials are found, and a drift is no growth."""

import numpy as np
import pytest

from perflaw.learn.program import forecast, learn_program
from perflaw.learn.program.terms import values
from perflaw.learn.program.units import learn_units
from tests.conftest import first
from tests.learn.program_data import Node, Program

N = np.repeat([100.0, 200, 400, 800, 1500, 3000], 2)
K = np.repeat([3.0, 4, 5, 6, 7, 8], 2)
A, B = (one.ravel() for one in np.meshgrid([100.0, 300, 1000, 2000, 3000], [100.0, 200, 500, 1500, 3000]))


def law_of(unit, features, noise=0.02):
    """The law of a function that is called once, beside others of constant cost."""
    rng = np.random.default_rng(5)
    own = np.stack([unit, *[np.full_like(unit, float(np.median(unit)))] * 4], axis=1)
    own = own * np.exp(rng.normal(0, noise, own.shape))
    none = np.zeros(own.shape[1], dtype=bool)
    return learn_units(np.ones_like(own), np.zeros_like(own), own, features, none).laws[0]


def at(law, **point):
    terms, once, _ = law.terms()
    keys = list(terms)
    basis = values(keys, {name: np.array([value]) for name, value in point.items()}, 1)[:, 0]
    return once + float(np.array([terms[key] for key in keys]) @ basis)


@pytest.mark.parametrize(
    "cost",
    [
        lambda n: np.where(n < 500, 840 * n, 115 * n),
        lambda n: 150 * n + 11 * n**1.5,
        lambda n: 80 * n * np.log(n),
        lambda n: 2e4 + 90 * n + 0.23 * n**2,
        lambda n: 1500 * np.sqrt(n),
        lambda n: 3e4 * np.log(n),
    ],
)
def test_costs_of_one_feature_are_predicted_at_ten_times_the_data(cost):
    assert at(law_of(cost(N), {"n": N}), n=30000.0) == pytest.approx(cost(30000.0), rel=0.35)


@pytest.mark.parametrize(
    "cost",
    [
        # Each of n steps looks at all that there is, of which there are 200 at most, as files in a tree of dulwich.
        lambda n: 300 * np.where(n < 200, (n + 1) / 2, 200 - 199 * 100 / n),
        # Of 300 different words, n random ones are so many.
        lambda n: 20000 * (1 - np.exp(-n / 300)),
        lambda n: 1000 * n**0.7,
    ],
)
def test_a_cost_that_settles_or_grows_by_less_than_its_feature_is_no_straight_line(cost):
    n = np.repeat([20.0, 60, 150, 300, 500], 2)
    assert at(law_of(cost(n), {"n": n}), n=5000.0) == pytest.approx(cost(5000.0), rel=0.6)


@pytest.mark.parametrize(
    "cost",
    [
        lambda a, b: 80 * np.maximum(a, b),
        lambda a, b: 26 * a + 130 * b,
        lambda a, b: 11 * a * b,
        lambda a, b: 130 * a * np.log(b),
        lambda a, b: 97 * a + 0 * b,
    ],
)
def test_costs_of_two_features_are_predicted_at_ten_times_the_data(cost):
    law = law_of(cost(A, B), {"a": A, "b": B})
    assert at(law, a=30000.0, b=10000.0) == pytest.approx(cost(30000.0, 10000.0), rel=0.2)


def test_an_exponential_is_told_only_where_no_power_fits():
    def written(law):
        return str(law.terms()[0])

    assert "exp" in written(law_of(23 * 4.0**K, {"k": K}))
    for cost in (0.3 * N**2, 90 * N + 0.3 * N**2, 2e-4 * N**3):
        law = law_of(cost, {"n": N}, noise=0.05)
        assert "exp" not in written(law)
        assert at(law, n=30000.0) < 1e13


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_a_factorial_is_steeper_than_an_exponential_and_an_exponential_is_not_a_factorial(noise):
    factorial = np.array([6.0, 24, 120, 720, 5040, 40320]).repeat(2)
    assert at(law_of(8.0 * factorial, {"k": K}, noise), k=10.0) == pytest.approx(8.0 * 3628800, rel=0.3)
    assert at(law_of(23 * 4.0**K, {"k": K}, noise), k=10.0) == pytest.approx(23 * 4.0**10, rel=0.3)


def test_a_cost_that_drifts_by_a_few_percent_is_a_constant_with_an_interval():
    law = law_of(430 * (N / 100) ** 0.06, {"n": N})
    assert not law.established
    assert law.drift >= 0.1


SIZES = np.repeat([4.0, 6, 8, 11, 16, 23], 2)


def answers(cost, x=SIZES, far=100.0, noise=0.05, seeds=12):
    """Told over true cost at a size, with the ends of the interval: (seeds, 3)."""
    out = []
    for seed in range(seeds):
        nodes = [Node("main", -1, np.ones_like, lambda n: np.full_like(n, 1e6)), Node("f", 0, np.ones_like, cost)]
        nodes += [Node(f"g{i}", 0, np.ones_like, lambda n: np.full_like(n, 2e6)) for i in range(20)]
        model = learn_program(Program(nodes).record(list(x), np.random.default_rng(seed), noise=noise))
        told = forecast(model, {"n": far}).of_functions({"n": far})[1]
        out.append(np.array([told.mean, told.mean_low, told.mean_high]) / cost(np.array([far]))[0])
    return np.array(out)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cost",
    first(
        1,
        first(
            1,
            [
                # A cube above a fixed cost that small sizes do not have yet, as in LAPACK.
                lambda n: 7e4 * np.minimum(1.0, (n / 7) ** 1.5) + 1e6 * (n / 23) ** 3,
                lambda n: 1e6 * (n / 23) * np.where(n < 7, 0.2, 1.0),
                lambda n: 1e6 * (n / 23) * np.where(n < 7, 5.0, 1.0),
            ],
        ),
    ),
)
def test_small_sizes_may_follow_another_law(cost):
    told = answers(cost)
    assert np.median(told[:, 0]) == pytest.approx(1.0, rel=0.1)
    assert ((told[:, 1] <= 1.05) & (told[:, 2] >= 0.95)).mean() >= 0.8
    assert np.median(told[:, 2] / told[:, 1]) < 3.0


@pytest.mark.parametrize(
    "cost",
    first(
        1,
        first(
            1,
            [
                lambda n: 1e6 * ((n / 23) + (n / 23) ** 2),
                lambda n: 1e6 * ((n / 23) ** 2 + (n / 23) ** 3),
                lambda n: 1e6 * (1 + (n / 23)),
            ],
        ),
    ),
)
def test_intervals_hold_a_term_that_begins_to_govern_at_the_largest_size(cost):
    told = answers(cost)
    assert ((told[:, 1] <= 1.0) & (told[:, 2] >= 1.0)).mean() >= 0.75


@pytest.mark.parametrize("power", first(1, [0.0, 1.0, 2.0, 3.0]))
def test_intervals_of_plain_powers_stay_narrow(power):
    told = answers(lambda n: 1e6 * (n / 23) ** power)
    assert ((told[:, 1] <= 1.0) & (told[:, 2] >= 1.0)).all()
    assert np.median(told[:, 2] / told[:, 1]) < 2.2


def test_runs_of_one_size_that_share_their_residual_count_as_little_more_than_one():
    """A law is not excluded because each size was run often, where no form meets the sizes."""
    own = np.array([1.0, 1.6, 1.1, 1.9, 1.2, 2.1]).repeat(8)[:, None] * np.ones((1, 4)) * 1e6
    sizes = np.array([4.0, 6, 8, 11, 16, 23]).repeat(8)
    law = learn_units(np.ones_like(own), np.zeros_like(own), own, {"n": sizes}, np.zeros(4, bool)).laws[0]
    assert max(one.weight for one in law.forms) < 0.9


def test_a_form_without_finite_squares_is_not_tried():
    """As 190!; warnings are errors here."""
    x = np.array([20.0, 60, 110, 150, 190])
    own = np.exp(np.random.default_rng(1).normal(0, 0.3, (5, 4)) + np.log(1e6) * np.eye(5)[-1][:, None]) * 1e4
    for law in learn_units(np.ones_like(own), np.zeros_like(own), own, {"n": x}, np.zeros(4, bool)).laws:
        assert np.isfinite([at(law, n=1.1 * x.max()), law.forms[0].spread]).all()


def test_what_is_counted_at_several_sizes_has_no_error_and_no_drift():
    n = np.repeat([30.0, 80.0, 200.0, 400.0, 1000.0], 2)
    calls = np.stack([n * (n + 1) / 2, n], axis=1)
    none = np.zeros(2, dtype=bool)
    counted = learn_units(calls, np.zeros_like(calls), calls * [1.0, 24.0], {"n": n}, none).laws
    assert [at(law, n=1e4) for law in counted] == [1.0, 24.0]
    assert [(law.drift, law.forms[0].deviations.max()) for law in counted] == [(0.0, 0.0)] * 2
    few = n == 1000.0
    seen_once = learn_units(calls[few], np.zeros((2, 2)), calls[few] * 24.0, {"n": n[few]}, none).laws
    assert all(law.drift > 0 for law in seen_once), "one size tells nothing of others"


@pytest.mark.parametrize(("step", "kinked"), [(1.07, False), (2.0, True)])
def test_a_kink_counts_by_how_far_it_is_from_a_smooth_law_and_not_by_how_costs_scatter(step, kinked):
    """Requests of a web server that costs 50 ns a number, 7 % more above 5,000: nobody needs two laws."""
    rng = np.random.default_rng(3)
    n = np.repeat(np.round(np.geomspace(300, 30_000, 15)), 20)
    own = 50 * n * np.where(n > 5_000, step, 1.0) * np.exp(0.12 * rng.normal(size=n.size))
    [law] = learn_units(np.ones((300, 1)), np.zeros((300, 1)), own[:, None], {"n": n}, np.zeros(1, dtype=bool)).laws
    assert law.forms[0].form.kinked == kinked
    assert law.established
