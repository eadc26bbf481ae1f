"""Laws of exact counts: polynomials, kinks, logarithms and maxima are found from counts without noise."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.laws.evaluation import evaluate
from perflaw.learn.program.counts import CountLaw, learn_counts
from perflaw.learn.program.terms import monomial, restricted, values

N = np.repeat([100.0, 200, 400, 800, 1500, 3000], 2)
A, B = (one.ravel() for one in np.meshgrid([100.0, 300, 1000, 2000, 3000], [100.0, 200, 500, 1500, 3000]))
OF_N = {
    "straight": lambda n: 7 + 3 * n,
    "pairs": lambda n: n * (n - 1) / 2,
    "saturated": lambda n: np.minimum(n, 600),
    "from a size on": lambda n: np.where(n < 400, 0, 2 * n - 1),
    "other algorithm": lambda n: np.where(n < 600, np.floor(n * n / 100), 7 * n),
    "beyond a buffer": lambda n: 1 + 9 * np.maximum(n - 500, 0),
    "one step": lambda n: np.where(n > 300, 6000, 500),
}
OF_TWO = {
    "maximum": np.maximum,
    "minimum": lambda a, b: np.minimum(a, b) + 3,
    "sum": lambda a, b: a + 5 * b,
    "product": lambda a, b: a * b / 25,
}


def at(law, **point):
    keys = list(law.terms)
    basis = values(keys, {name: np.array([value]) for name, value in point.items()}, 1)[:, 0]
    return float(np.array([law.terms[key] for key in keys]) @ basis)


def spread(law, point):
    return law.spreads([point])[0]


@pytest.mark.parametrize("name", OF_N)
def test_exact_counts_with_and_without_a_kink_are_predicted_exactly(name):
    [law], _ = learn_counts(OF_N[name](N)[:, None], {"n": N})
    assert law.learnt is None
    for n in (100.0, 30000.0):
        assert at(law, n=n) == pytest.approx(OF_N[name](np.array(n)), rel=1e-3, abs=0.5)


@pytest.mark.parametrize("name", OF_TWO)
def test_counts_of_two_features_are_predicted_exactly(name):
    [law], _ = learn_counts(OF_TWO[name](A, B)[:, None], {"a": A, "b": B})
    assert law.learnt is None
    assert at(law, a=30000.0, b=10000.0) == pytest.approx(OF_TWO[name](30000.0, 10000.0), rel=1e-6)


@pytest.mark.parametrize("steps", [lambda n: np.ceil(np.log2(n / 4)), lambda n: np.floor(np.log2(n)) + 1])
def test_steps_of_a_doubling_are_a_logarithm_and_no_polynomial_of_small_numbers(steps):
    [law], _ = learn_counts(steps(N)[:, None], {"n": N})
    assert at(law, n=30000.0) == pytest.approx(steps(30000.0), abs=1)


def test_counts_that_hardly_vary_establish_no_law():
    rng = np.random.default_rng(0)
    columns = rng.integers(3, 6, (12, 200)).astype(float)
    laws, _ = learn_counts(columns, {"n": N})
    assert np.mean([at(law, n=30000.0) > 20 or at(law, n=30000.0) < 1 for law in laws]) < 0.05


@pytest.mark.parametrize("calls", [lambda k: 2.0**k, lambda k: np.round(1.618 ** (2 * k) / 2.236)])
def test_calls_of_a_recursion_that_branches_are_an_exponential(calls):
    k = np.arange(3.0, 9.0)
    [law], _ = learn_counts(calls(k)[:, None], {"k": k})
    assert at(law, k=12.0) == pytest.approx(calls(12.0), rel=0.2)


def test_counts_that_begin_at_the_largest_sizes_are_no_exponential():
    [law], _ = learn_counts(np.where(N < 800, 0.0, np.round(np.exp(N / 300)))[:, None], {"n": N})
    assert at(law, n=30000.0) < 1e3 * np.exp(10)


def test_a_bend_that_hardly_matters_is_no_regime():
    """Steps of the Collatz sequences of all numbers up to n, each remembered, scatter around a line: 65,144 are right."""
    n = np.array([100.0, 200, 400, 800, 1500, 3000] * 2)
    counts = np.array([250.0, 430, 808, 1831, 3248, 6519] * 2)
    [law], _ = learn_counts(counts[:, None], {"n": n})
    assert at(law, n=30000.0) == pytest.approx(65_144, rel=0.02)
    assert 0.02 < spread(law, {"n": 30000.0}) < 0.6


def test_what_grows_on_after_a_bend_is_not_known_exactly():
    """Three sizes tell the last piece."""
    n = np.array([100.0, 200, 400, 800, 1500, 3000] * 2)
    counts = np.array([250.0, 430, 808, 2100, 4050, 8250] * 2)
    [law], _ = learn_counts(counts[:, None], {"n": n})
    assert law.learnt is not None
    assert spread(law, {"n": 3000.0}) < 0.1
    assert 0.2 < spread(law, {"n": 30000.0}) < 0.6


def test_counts_that_several_laws_fit_are_told_as_no_exponential():
    """Calls of a search that ends where its target lies: irregular, and far more at the largest size."""
    n = np.repeat([100.0, 200, 400, 800, 1600], 2)
    counts = np.repeat([478.0, 634, 620, 654, 3814], 2)
    [law], _ = learn_counts(counts[:, None], {"n": n})
    assert "exp" not in str(law.terms)
    doubling = np.repeat([3.0, 4, 5, 6, 7, 8], 2)
    [law], _ = learn_counts(2.0 ** doubling[:, None] + 7, {"k": doubling})
    assert "exp" in str(law.terms)


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_an_exponential_of_which_the_first_powers_were_seen_is_not_told(repeats):
    """Hashed intervals of a tree that fills up, in intervaltree: 1,452,208 at 30,000."""
    n = np.repeat([100.0, 300, 1000, 2000, 3000], repeats)
    counts = np.repeat([559.0, 1614, 5655, 13780, 25029], repeats)
    [law], _ = learn_counts(counts[:, None], {"n": n})
    assert "exp" not in str(law.terms)
    assert abs(np.log(at(law, n=30000.0) / 1_452_208)) < 2.0 * spread(law, {"n": 30000.0})


@pytest.mark.parametrize("counts", [[4, 4, 4, 4, 8], [12, 30, 70, 160, 420], [64, 614, 5692, 22610, 66776]])
def test_a_law_that_misses_the_count_at_the_largest_size_goes_on_from_that_count(counts):
    n = np.repeat([10.0, 20, 40, 80, 160], 2)
    [law], _ = learn_counts(np.repeat(np.array(counts, dtype=float), 2)[:, None], {"n": n})
    assert at(law, n=161.0) == pytest.approx(counts[-1], rel=0.02)
    assert spread(law, {"n": 1600.0}) > 0.3


@pytest.mark.parametrize(
    ("counts", "true"), [([49, 161, 485, 817, 1728], 13659), ([109, 361, 1085, 1817, 3728], 29659)]
)
def test_a_polynomial_that_hits_a_few_counts_by_chance_is_not_told_as_exact(counts, true):
    """Calls of functions of mistune at five sizes, and at the size asked for (benchmarks/counts_ahead.py)."""
    n = np.repeat([60.0, 200, 600, 1000, 2000], 2)
    [law], _ = learn_counts(np.repeat(np.array(counts, dtype=float), 2)[:, None], {"n": n})
    assert abs(np.log(at(law, n=16000.0) / true)) < 1.96 * spread(law, {"n": 16000.0})


def test_a_further_term_that_the_counts_do_not_show_widens_nothing():
    """Calls of patterns of Python-Markdown: half a percent of them, if it grows as n^3, is half as many again at 30,000."""
    n = np.repeat([100.0, 250, 600, 1500, 3000], 2)
    [law], _ = learn_counts(np.repeat([1203.0, 3077, 6992, 16400, 32243], 2)[:, None], {"n": n})
    assert spread(law, {"n": 30000.0}) < 0.2


def test_laws_that_fit_the_sizes_equally_well_are_no_reason_for_any_growth_beyond_them():
    """Collections of nltk: the cubic that fits them as well as a logarithm says 159,508 at the largest of these sizes."""
    n = np.repeat([300.0, 800, 2000, 5000, 10000], 2)
    [law], _ = learn_counts(np.repeat([120.0, 124, 134, 155, 175], 2)[:, None], {"n": n})
    assert 0.2 < spread(law, {"n": 100000.0}) < 1.0
    assert spread(law, {"n": 10000.0}) < 0.2
    growing = {key: c for key, c in law.terms.items() if key}
    rest = CountLaw(growing, None, follows=(replace(law, terms={**growing, (): 900.0}), growing))
    assert spread(rest, {"n": 20000.0}) > 2.0 * spread(law, {"n": 20000.0}), (
        "what is sure of the sum is not of its part"
    )


def test_a_curve_that_hits_small_counts_by_rounding_is_not_told_as_exact():
    """Calls of a function of python-chess: between neighbours, all curves are nearly straight."""
    n = np.repeat([50.0, 150, 400, 800, 1500], 2)
    [law], _ = learn_counts(np.repeat([7.0, 7, 9, 18, 46], 2)[:, None], {"n": n})
    assert law.learnt is not None
    assert spread(law, {"n": 15000.0}) > 0.5


def test_laws_of_exact_counts_that_the_largest_size_did_not_surprise_have_no_spread():
    [law], _ = learn_counts((7 + 3 * N)[:, None], {"n": N})
    assert spread(law, {"n": 30000.0}) == 0.0


def test_counts_that_are_drawn_about_a_line_are_held_by_the_interval_at_ten_times_the_data():
    rng = np.random.default_rng(3)
    n = np.array([10.0, 20, 40, 80, 160])
    counts = rng.poisson(4 * n[:, None] * np.ones(200)).astype(float)
    laws, places = learn_counts(np.repeat(counts, 2, axis=0), {"n": np.repeat(n, 2)})
    told = [laws[place] for place in places]
    held = [abs(np.log((at(law, n=1600.0) + 0.5) / 6400.5)) <= 1.96 * spread(law, {"n": 1600.0}) for law in told]
    assert np.mean(held) > 0.9
    assert np.median([spread(law, {"n": 1600.0}) for law in told]) < 0.5


def test_a_factor_of_several_monomials_is_computed_once(monkeypatch):
    asked = []

    def counting(base, features):
        asked.append(base)
        return evaluate(base, features)

    monkeypatch.setattr("perflaw.learn.program.terms.evaluate", counting)
    above = restricted({monomial("n", power): 1.0 for power in (0.0, 1.0, 2.0)}, "n", ">", 500.0)
    told = values(list(above), {"n": N}, N.size)
    assert (told == [np.where(N > 500, N**power, 0.0) for power in (0, 1, 2)]).all() and len(asked) == 1


def test_spreads_at_several_points_are_those_at_each():
    rng = np.random.default_rng(5)
    for y in (np.round(40 * N**1.3 * rng.uniform(0.9, 1.1, N.size)), np.where(N < 3000, 0.0, 70.0), N * (N - 1) / 2):
        [law], _ = learn_counts(y[:, None], {"n": N})
        part = replace(law, follows=(law, law.terms))
        points = [{"n": n} for n in (50.0, 3000.0, 9000.0, 40000.0)]
        for one in (law, part):
            assert one.spreads(points) == pytest.approx([spread(one, point) for point in points])
