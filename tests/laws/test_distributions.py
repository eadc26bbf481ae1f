"""The four distributions against SciPy's, mixtures against their parts and their samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perflaw.laws import distributions
from perflaw.laws.reading import parse, parse_distribution

Y = np.array([-1.0, 0.0, 0.5, 1.0, 3.0, 5.5, 6.0, 20.0, 21.0, 90.0, 100.0, 130.0, 1e6])
P = np.array([0.0, 1e-6, 0.025, 0.1, 0.5, 0.9, 0.975, 1 - 1e-6, 1.0])
REFERENCE = {
    "Norm(100, 10)": stats.norm(100, 10),
    "LogNorm(100, 0.5)": stats.lognorm(0.5, scale=100 * np.exp(-0.125)),
    "Exp(7)": stats.expon(scale=7),
    "Binom(20, 0.3)": stats.binom(20, 0.3),
    "Binom(1, 0.5)": stats.binom(1, 0.5),
}


def clause(text):
    return parse(f"f.time(n) {{ {text} }}").blocks[0].clauses[0]


MIXTURE = clause("{0.2} Norm(10*n, n); {0.5} Exp(n); {0.3} LogNorm(3*n, 0.4)")


@pytest.mark.parametrize("text", REFERENCE)
def test_formulas(text):
    law, reference = parse_distribution(text), REFERENCE[text]
    density = reference.logpmf if text.startswith("Binom") else reference.logpdf
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(distributions.cdf(law, Y, {}), reference.cdf(Y), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(distributions.log_density(law, Y, {}), density(Y), rtol=1e-10)
    inner = P[1:-1]
    np.testing.assert_allclose(distributions.quantile(law, inner, {}), reference.ppf(inner), rtol=1e-9)
    assert distributions.mean(law, {}) == pytest.approx(reference.mean())


@pytest.mark.parametrize("text", REFERENCE)
def test_samples_follow_the_law(text):
    law = parse_distribution(text)
    drawn = distributions.sample(law, {"any": np.zeros(20_000)}, np.random.default_rng(1))
    again = distributions.sample(law, {"any": np.zeros(20_000)}, np.random.default_rng(1))
    assert (drawn == again).all()
    for y in np.quantile(drawn, [0.1, 0.5, 0.9]):
        assert np.mean(drawn <= y) == pytest.approx(float(distributions.cdf(law, y, {})), abs=0.015)
    assert drawn.mean() == pytest.approx(REFERENCE[text].mean(), rel=0.03)


def test_arguments_are_features():
    n = np.array([1.0, 10.0, 100.0])
    law = parse_distribution("Norm(50*n + 1, 0.2*n)")
    np.testing.assert_allclose(distributions.mean(law, {"n": n}), 50 * n + 1)
    np.testing.assert_allclose(distributions.quantile(law, 0.975, {"n": n}), 50 * n + 1 + 1.959964 * 0.2 * n, rtol=1e-6)
    assert distributions.cdf(law, np.zeros((2, 1)), {"n": n}).shape == (2, 3)


def test_a_mixture_is_its_parts():
    n = np.array([1.0, 5.0])
    parts = [part.distribution for part in MIXTURE.parts]
    y = np.array([2.0, 30.0])
    each = [distributions.cdf(one, y, {"n": n}) for one in parts]
    np.testing.assert_allclose(distributions.cdf(MIXTURE, y, {"n": n}), 0.2 * each[0] + 0.5 * each[1] + 0.3 * each[2])
    np.testing.assert_allclose(distributions.mean(MIXTURE, {"n": n}), 2 * n + 0.5 * n + 0.9 * n)
    density = [np.exp(distributions.log_density(one, y, {"n": n})) for one in parts]
    found = np.exp(distributions.log_density(MIXTURE, y, {"n": n}))
    np.testing.assert_allclose(found, 0.2 * density[0] + 0.5 * density[1] + 0.3 * density[2])
    drawn = distributions.sample(MIXTURE, {"n": np.full(20_000, 3.0)}, np.random.default_rng(2))
    assert np.mean(drawn <= 6) == pytest.approx(float(distributions.cdf(MIXTURE, 6.0, {"n": 3.0})), abs=0.015)


@given(st.floats(1e-6, 1e9), st.floats(1e-9, 1 - 1e-9))
@settings(deadline=None)
def test_quantiles_of_mixtures_undo_probabilities(n, p):
    y = distributions.quantile(MIXTURE, p, {"n": n})
    assert float(distributions.cdf(MIXTURE, y, {"n": n})) == pytest.approx(p, abs=1e-9)


def test_quantiles_in_the_gap_of_a_mixture_are_the_smallest():
    law = clause("{0.5} Norm(0, 0); {0.5} Norm(100, 0)")
    found = distributions.quantile(law, np.array([0.1, 0.5, 0.50001, 1.0]), {})
    assert found.tolist() == [0.0, 0.0, 100.0, 100.0]
    assert distributions.cdf(law, np.array([-1.0, 0.0, 99.0, 100.0]), {}).tolist() == [0, 0.5, 0.5, 1]
    two = clause("{0.5} Binom(10, 0.5); {0.5} Binom(30, 0.5)")
    p = np.linspace(0.01, 0.99, 9)
    y = distributions.quantile(two, p, {})
    assert (y == np.floor(y)).all()
    assert (distributions.cdf(two, y, {}) >= p).all()
    assert (distributions.cdf(two, y - 1, {}) < p).all()


def test_ends():
    for text in REFERENCE:
        law = parse_distribution(text)
        assert np.isnan(distributions.quantile(law, [-0.1, 1.1, np.nan], {})).all(), text
        low, high = distributions.quantile(law, [0.0, 1.0], {})
        assert low <= high
    assert distributions.quantile(parse_distribution("Norm(1, 2)"), 1.0, {}) == np.inf


def test_parameters_that_no_distribution_has_give_no_numbers():
    for text in ("Norm(1, n)", "LogNorm(n, 1)", "Exp(n)", "Binom(5, n)", "LogNorm(1, n)", "Binom(n, 0.5)"):
        law = parse_distribution(text)
        values = {"n": np.array([-1.0, np.nan])}
        for found in (
            distributions.mean(law, values),
            distributions.cdf(law, 1.0, values),
            distributions.quantile(law, 0.5, values),
            distributions.log_density(law, 1.0, values),
            distributions.sample(law, values, np.random.default_rng(0)),
        ):
            assert np.isnan(found).all(), text


def test_no_scatter_is_the_mean():
    for text in ("Norm(5, 0)", "LogNorm(5, 0)", "Binom(5, 1)"):
        law = parse_distribution(text)
        assert distributions.quantile(law, [0.01, 0.5, 0.99], {}) == pytest.approx([5, 5, 5])
        assert distributions.sample(law, {}, np.random.default_rng(0)) == pytest.approx(5)
        assert distributions.cdf(law, [4.9, 5.1], {}).tolist() == [0, 1]


def test_many_trials():
    law = parse_distribution("Binom(n, 0.5)")
    n = {"n": np.array([1e6, 1e18])}
    assert distributions.quantile(law, 0.5, n) == pytest.approx(n["n"] / 2, rel=1e-6)
    assert distributions.sample(law, n, np.random.default_rng(0)) == pytest.approx(n["n"] / 2, rel=0.01)
