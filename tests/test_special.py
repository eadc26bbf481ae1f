"""The special functions against SciPy's, over wide ranges, at their edges, and against one another."""

import numpy as np
import pytest
import scipy.special as scipy
from hypothesis import given
from hypothesis import strategies as st

from perflaw import special

SIZE = 2000
USUAL, EXTREME = (-1.0, 5.0), (-3.0, 7.0)
"""Common logarithms of degrees of freedom."""
CLOSE = {USUAL: 1e-12, EXTREME: 3e-11}
"""Relative error. At the extremes the last digit of an argument already changes the result by as much."""


def powers(rng, least, most, size=SIZE):
    return 10.0 ** rng.uniform(least, most, size)


def near_mean(rng, first, second):
    """Values of F about 1, from half of its usual distance to many times it."""
    distance = rng.normal(size=SIZE) * rng.choice([0.5, 2.0, 8.0], SIZE)
    return np.exp(np.clip(distance * np.sqrt(2.0 / first + 2.0 / second), -300.0, 300.0))


def assert_close(ours, theirs, relative):
    """Where the reference is no denormal number."""
    usual = ~(np.abs(theirs) < 1e-290)
    np.testing.assert_allclose(ours[usual], theirs[usual], rtol=relative, atol=0.0)


@pytest.mark.parametrize("degrees", [USUAL, EXTREME])
def test_tails_are_those_of_scipy(degrees):
    rng = np.random.default_rng(1)
    first, second = powers(rng, *degrees), powers(rng, *degrees)
    t = powers(rng, -6.0, 2.5) * rng.choice([-1.0, 1.0], SIZE)
    assert_close(special.stdtr(first, t), scipy.stdtr(first, t), CLOSE[degrees])
    f = near_mean(rng, first, second)
    assert_close(special.fdtrc(first, second, f), scipy.fdtrc(first, second, f), CLOSE[degrees])
    x = f * first / (f * first + second)
    inside = (x > 0) & (x < 1)
    a, b, x = first[inside] / 2, second[inside] / 2, x[inside]
    assert_close(special.betainc(a, b, x), scipy.betainc(a, b, x), CLOSE[degrees])


def test_chi_square_is_that_of_scipy():
    """Of many degrees SciPy is the one that is wrong, see below; of many standard deviations, both by the last digit of x."""
    rng = np.random.default_rng(2)
    degrees = powers(rng, -1.0, 4.0)
    x = degrees * near_mean(rng, degrees, 1e9)
    assert_close(special.chdtrc(degrees, x), scipy.chdtrc(degrees, x), 3e-11)
    degrees, p = np.round(powers(rng, 0.0, 3.0)), powers(rng, -12.0, 0.0)
    assert_close(special.chdtri(degrees, p), scipy.chdtri(degrees, p), 1e-12)


@pytest.mark.parametrize(
    ("degrees", "x", "expected"),
    [
        # mpmath with 40 digits: the density's integral over log x from x on, or 1 less that up to x.
        (8.59969e06, 8.58103e06, 0.99999664213038437128),
        (8.59969e06, 8.60303e06, 0.21028967694188333144),
    ],
)
def test_chi_square_of_many_degrees(degrees, x, expected):
    assert special.chdtrc(degrees, x) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("degrees", [USUAL, EXTREME])
def test_quantiles_are_those_of_scipy(degrees):
    rng = np.random.default_rng(3)
    freedom = powers(rng, max(degrees[0], -1.0), degrees[1], 500)
    p = np.where(rng.random(500) < 0.5, powers(rng, -12.0, -0.4, 500), rng.uniform(0.01, 0.99, 500))
    assert_close(special.stdtrit(freedom, p), scipy.stdtrit(freedom, p), 1e-12)
    a, b = powers(rng, 0.0, 4.0, 500), powers(rng, 0.0, 4.0, 500)
    assert_close(special.betaincinv(a, b, p), scipy.betaincinv(a, b, p), 1e-12)


def test_the_normal_distribution_is_that_of_scipy():
    x = np.concatenate([np.linspace(-37.0, 9.0, SIZE), np.linspace(-1e-3, 1e-3, 9)])
    assert_close(special.ndtr(x), scipy.ndtr(x), 1e-12)
    p = np.concatenate([np.logspace(-300, -0.001, SIZE), np.linspace(0.001, 0.999, SIZE)])
    np.testing.assert_allclose(special.ndtri(p), scipy.ndtri(p), rtol=1e-12, atol=1e-15)
    assert special.stdtr(1e20, -1.5) == pytest.approx(special.ndtr(-1.5), rel=1e-13)
    assert special.stdtrit(np.inf, 0.9) == pytest.approx(special.ndtri(0.9), rel=1e-13)


def test_logarithms_and_derivatives_of_the_gamma_function_are_those_of_scipy():
    x = np.logspace(-6, 12, SIZE)
    np.testing.assert_allclose(special.gammaln(x), scipy.gammaln(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(special.digamma(x), scipy.psi(x), rtol=1e-12, atol=1e-14)
    assert_close(special.trigamma(x), scipy.zeta(2.0, x), 1e-12)
    wide = np.linspace(-740.0, 740.0, SIZE)
    assert_close(special.expit(wide), scipy.expit(wide), 1e-12)
    assert_close(special.xlogy(x, x[::-1]), scipy.xlogy(x, x[::-1]), 1e-12)
    assert_close(special.xlog1py(x, x[::-1]), scipy.xlog1py(x, x[::-1]), 1e-12)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("betainc", [(0, 1, 0.5), (1, 0, 0.5), (0, 0, 0.5), (0, 1, 0), (1, 0, 1), (2, 3, 0), (2, 3, 1), (2, 3, 2)]),
        ("betainc", [(2, 3, -1), (np.inf, 2, 0.5), (2, np.inf, 0.5), (np.nan, 1, 0.5), (-1, 2, 0.5), (2, 3, np.nan)]),
        ("betaincinv", [(2, 3, 0), (2, 3, 1), (2, 3, 1.1), (2, 3, np.nan), (0, 1, 0.5)]),
        ("chdtrc", [(0, 1), (1, 0), (1, -1), (1, np.inf), (np.inf, 1), (1, np.nan), (-1, 1)]),
        ("chdtri", [(1, 0), (1, 1), (1, 1.5), (1, -0.1), (0, 0.5), (1, np.nan)]),
        ("fdtrc", [(1, 1, 0), (1, 1, -1), (1, 1, np.inf), (0, 1, 1), (1, 0, 1), (1, 1, np.nan)]),
        ("stdtr", [(1, np.inf), (1, -np.inf), (1, 0), (0, 1), (-1, 1), (np.inf, 1), (np.nan, 1), (1, np.nan)]),
        ("stdtrit", [(1, 1), (1, 0.5), (1, 1.1), (0, 0.3), (np.inf, 0.3), (np.nan, 0.3), (-1, 0.3)]),
        ("ndtr", [(np.inf,), (-np.inf,), (np.nan,), (0,)]),
        ("ndtri", [(0,), (1,), (1.1,), (-0.1,), (np.nan,), (5e-324,)]),
        ("gammaln", [(0,), (-1,), (-0.5,), (np.inf,), (np.nan,), (1,), (2,)]),
        ("expit", [(-np.inf,), (np.inf,), (np.nan,), (0,)]),
        ("xlogy", [(0, 0), (0, np.nan), (1, 0), (0, -1), (2, -1), (0, np.inf)]),
        ("xlog1py", [(0, -1), (0, -2), (1, -1), (0, np.nan)]),
    ],
)
def test_edges_are_those_of_scipy(name, arguments):
    """As numbers, and in an array that is long enough to be computed at once."""
    theirs = np.array([getattr(scipy, name)(*map(float, one)) for one in arguments])
    assert_same = np.testing.assert_allclose
    assert_same([getattr(special, name)(*one) for one in arguments], theirs, rtol=1e-14)
    columns = [np.tile(column, 40) for column in np.array(arguments, dtype=float).T]
    assert_same(getattr(special, name)(*columns), np.tile(theirs, 40), rtol=1e-14)


def test_where_scipy_is_wrong():
    assert special.stdtrit(3.0, 0.0) == -np.inf
    assert special.stdtrit(0.001, 0.3) == pytest.approx(-1.11660119096e220, rel=1e-9)
    assert special.digamma(0.0) == -np.inf
    assert np.isnan(special.digamma(-1.5))
    assert special.trigamma(0.0) == np.inf


def test_numbers_and_arrays_agree_and_shapes_broadcast():
    rng = np.random.default_rng(4)
    degrees, t = powers(rng, -2.0, 6.0, (40, 1)), rng.normal(size=(1, 50)) * 5.0
    table = special.stdtr(degrees, t)
    assert table.shape == (40, 50)
    one_by_one = [[special.stdtr(df, one) for one in t[0]] for df in degrees[:, 0]]
    np.testing.assert_allclose(table, one_by_one, rtol=1e-12)
    a, b, p = powers(rng, -2.0, 6.0, 200), powers(rng, -2.0, 6.0, 200), rng.uniform(1e-9, 1.0, 200)
    one_by_one = [special.betaincinv(*three) for three in zip(a, b, p, strict=True)]
    np.testing.assert_allclose(special.betaincinv(a, b, p), one_by_one, rtol=1e-11, atol=1e-300)
    assert special.stdtr(5, np.ones((2, 3))).shape == (2, 3)
    assert special.stdtrit(np.ones(0), 0.5).shape == (0,)
    assert isinstance(special.ndtr(1.0), float)


def test_tails_of_many_calls_take_no_longer_than_of_few():
    """A share of 10¹⁵ trials: no fraction of that many steps."""
    assert special.betainc(5e14, 5e14 + 1.0, 0.5) == pytest.approx(0.5, abs=1e-6)


WIDE = st.floats(-3.0, 7.0).map(lambda power: 10.0**power)
SHARES = st.integers(1, 1023).map(lambda number: number / 1024.0)


@given(WIDE, WIDE, SHARES)
def test_the_two_tails_are_1_together(a, b, x):
    assert special.betainc(a, b, x) == pytest.approx(1.0 - special.betainc(b, a, 1.0 - x), abs=1e-12)
    assert 0.0 <= special.betainc(a, b, x) <= 1.0


@given(WIDE, st.floats(1e-4, 30.0))
def test_t_is_a_root_of_f(df, t):
    assert special.fdtrc(1.0, df, t * t) == pytest.approx(2.0 * special.stdtr(df, -t), rel=1e-11)


@given(st.floats(0.5, 1e7), st.floats(-12.0, -0.01).map(lambda power: 10.0**power))
def test_quantiles_are_inverse_to_probabilities(df, p):
    assert special.stdtr(df, special.stdtrit(df, p)) == pytest.approx(p, rel=1e-11)
    assert special.chdtrc(df, special.chdtri(df, p)) == pytest.approx(p, rel=3e-8 if df > 1e3 else 1e-11)


@given(WIDE, WIDE, SHARES, SHARES)
def test_tails_grow(a, b, x, y):
    low, high = sorted([x, y])
    assert special.betainc(a, b, low) <= special.betainc(a, b, high) * (1.0 + 1e-12)
