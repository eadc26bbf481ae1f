"""What the twin keeps comes back: effects of runs, ranges, a sample of calls."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.check.claims import Baseline, baseline_document, baseline_from
from perflaw.check.evalues import Effects
from perflaw.check.twin import sampled
from tests.check.made import evidence, learnt

NUMBERS = st.lists(st.floats(-1e6, 1e6), max_size=8)


@given(st.dictionaries(st.text(), NUMBERS), st.dictionaries(st.text(), NUMBERS), st.floats(0, 1e9))
def test_a_baseline_survives_json(cuts, effects, scatter):
    made = Baseline(
        {name: tuple(values) for name, values in cuts.items()},
        {view: Effects(np.array(values), np.abs(np.array(values))) for view, values in effects.items()},
        scatter,
    )
    read = baseline_from(json.loads(json.dumps(baseline_document(made))))
    assert read.cuts == made.cuts
    assert read.scatter == pytest.approx(scatter, rel=1e-5)
    for view, one in made.effects.items():
        assert read.effects[view].value == pytest.approx(one.value, rel=1e-5)
        assert read.effects[view].variance == pytest.approx(one.variance, rel=1e-5)


def test_the_sample_has_every_run_and_the_ranges_are_those_of_all_calls():
    made = evidence("f", lambda x, rng: 300 * x + 5_000, np.random.default_rng(1), runs=4)
    [claim] = learnt(made)
    kept = sampled(claim)
    assert set(kept.run) == {"0001", "0002", "0003", "0004"}
    assert kept.cost.size <= 240
    assert kept.weight.sum() == pytest.approx(4000)
    assert claim.ranges["n"] == (made.features["n"].min(), made.features["n"].max())
    expected = (made.cost * made.weight).sum()
    assert (kept.cost * kept.weight).sum() == pytest.approx(expected, rel=0.3)


def test_text_alone_keeps_no_sample():
    assert baseline_from(None) is None
