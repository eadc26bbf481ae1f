"""Laws over knobs: what multiplies is fitted as such, bends are found, and data that do not tell are told so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.laws.printing import show
from perflaw.laws.reading import parse_distribution
from perflaw.learn.exploring.laws import candidate_terms, column, metric_law
from tests import studies_factory as made
from tests.conftest import examples


def law_of(trials, space, depends=True):
    columns = space.columns([one.configuration for one in trials])
    y = np.array([one.metrics["throughput"] for one in trials])
    return metric_law("throughput", y, columns, [space.key(one.configuration) for one in trials], depends)


def multiplied(one):
    return 10 + 0.5 * np.log(one["cache"] / 2**21) + (0.4 if one["memory_status"] == "off" else 0.0)


def test_what_knobs_multiply_is_found_with_settings_without_order():
    law = law_of(made.trials(made.sample(made.space(), 60), multiplied), made.space())
    assert (law.family, law.verdict) == ("loglinear", "law")
    assert law.slope["cache"] == pytest.approx(0.5, abs=0.02)
    assert any(name.startswith("memory_status=") for name in law.features)
    assert "shared_cache" not in law.features
    assert law.noise.scale == pytest.approx(0.03, rel=0.4)
    assert parse_distribution(show(law.expression)) == law.expression


def test_the_interaction_is_in_the_law():
    law = law_of(made.trials(made.sample(made.space(), 60)), made.space())
    assert "log(page_size/1024)*log(cache/" in show(law.mean)
    assert law.r2 > 0.97


def test_a_collapse_is_a_bend():
    space = made.space(made.study(knobs=made.THREADED))
    law = law_of(made.collapsing(), space)
    assert "max(0, log(threads/3))" in show(law.mean)
    assert law.slope["threads"] < -0.5


def test_noise_alone_has_no_law():
    space = made.space()
    for seed in range(5):
        trials = made.trials(made.sample(space, 40, seed), lambda one: 12.0, 0.1, seed)
        assert law_of(trials, space, depends=False).verdict != "law"


def test_what_is_not_foreseen_is_inconclusive_and_advises_trials():
    rng = np.random.default_rng(0)
    rough = {made.space().key(one): rng.normal(0, 1) for one in made.space().all()}
    trials = made.trials(made.sample(made.space(), 30), lambda one: 12 + rough[made.space().key(one)])
    law = law_of(trials, made.space())
    assert law.verdict != "law"
    assert "--vary" not in law.reason


@settings(max_examples=examples(15), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "mode=x"]),
        st.lists(st.just(0.0) | st.floats(1e-6, 1e9), min_size=12, max_size=12),
        min_size=1,
    ),
    st.lists(st.floats(0.01, 1e9), min_size=12, max_size=12),
)
def test_any_columns_give_a_law_of_the_language(columns, y):
    features = {name: np.array(values) for name, values in columns.items()}
    law = metric_law("y", np.array(y), features, [str(i) for i in range(12)])
    assert parse_distribution(show(law.expression)) == law.expression
    assert law.verdict in ("law", "inconclusive", "none")


def test_terms_vary_and_products_are_of_different_knobs():
    features = {"n": np.array([1.0, 2, 4, 8]), "zero": np.array([0.0, 1, 2, 3]), "m=a": np.array([0.0, 1, 0, 1]),
                "m=b": np.array([1.0, 0, 1, 0]), "same": np.ones(4)}  # fmt: skip
    terms = candidate_terms(features)
    assert all(np.ptp(column(term, features)) > 0 for term in terms if len(term) == 1)
    pairs = {frozenset(factor.feature for factor in term) for term in terms if len(term) == 2}
    assert frozenset(("m=a", "m=b")) not in pairs
    assert frozenset(("n", "zero")) in pairs
