"""What the learner writes is of the language, and says what the learner says."""

import numpy as np
import pytest

from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate, names
from perflaw.laws.printing import learnt_text, show
from perflaw.laws.reading import parse_distribution
from perflaw.learn.series import Series, learn

X = np.geomspace(10, 10_000, 30)
MEANS = {
    "constant": lambda x: 0 * x + 7e4,
    "linear": lambda x: 3e4 + 250 * x,
    "nlogn": lambda x: 12 * x * np.log(x),
    "sqrt": lambda x: 900 * np.sqrt(x),
    "power": lambda x: 3.1 * x**1.7,
    "cubic": lambda x: 0.002 * x**3,
    "falling": lambda x: 1e6 + 0 * x - 90 * x,
    "piecewise": lambda x: np.where(x < 300, 100 * x, 0.9 * x**2),
}


@pytest.mark.parametrize("name", ["n", "docs.len", "hi-lo", "a.shape[0]", "file size", "inf", "`", "1st"])
@pytest.mark.parametrize("family", MEANS)
def test_every_family_and_any_name(family, name):
    noise = np.random.default_rng(3).normal(1, 0.01, X.size)
    series = Series("y", MEANS[family](X) * noise, {name: X}, np.arange(X.size).astype(str))
    (learnt,) = learn([series])
    law = learnt.law.expression
    assert names(law.arguments[0]) == set(learnt.law.features)
    assert learnt.law.mean == law.arguments[0]
    for text in (show(law), learnt_text(law)):
        assert parse_distribution(text) == law
    values = {name: X}
    np.testing.assert_allclose(evaluate(law.arguments[0], values), MEANS[family](X), rtol=0.2, atol=2e3)
    np.testing.assert_allclose(
        distributions.mean(law, values), np.broadcast_to(learnt.mean(values), X.shape), rtol=1e-4
    )


def test_several_features():
    rng = np.random.default_rng(5)
    x, z = rng.uniform(10, 1000, (2, 80))
    series = Series("y", 3 * x * z + 5 * x, {"hi-lo": x, "docs.len": z}, np.arange(80).astype(str))
    (learnt,) = learn([series])
    law = learnt.law.expression
    assert parse_distribution(show(law)) == parse_distribution(learnt_text(law)) == law
    values = {"hi-lo": x, "docs.len": z}
    assert names(law.arguments[0]) == set(values)
    np.testing.assert_allclose(distributions.mean(law, values), 3 * x * z + 5 * x, rtol=1e-3)
