"""What the twin keeps comes back: effects of runs, ranges, a sample of calls."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.api.laws import load_laws
from perflaw.check.claims import Baseline, baseline_document, baseline_from
from perflaw.check.evalues import Effects
from perflaw.check.program_summary import summary_from
from perflaw.check.twin import sampled
from perflaw.errors import StoreError
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


GOOD = {
    "metric": "time",
    "unit": "ns",
    "sizes": [{"n": 1.0}, {"n": 2.0}],
    "runs": [1, 1],
    "run_size": [0, 1],
    "functions": [
        {
            "name": "f",
            "calls": [1, 1],
            "exact": True,
            "call_variance": 0.0,
            "unit": [1.0, None],
            "run_unit": [1.0, 2.0],
            "callers": [[-1, 1, 1]],
            "above": [[0, 1.0]],
        }
    ],
}


def test_a_summary_whose_numbers_are_out_of_range_is_damaged():
    assert summary_from(GOOD).edges.tolist() == [[-1, 0]]
    [function] = GOOD["functions"]
    for wrong in (
        {"run_size": [0, 2]},
        {"run_size": [0, 1 << 70]},
        {"runs": [1]},
        {"functions": [{**function, "callers": [[1, 1, 1]]}]},
        {"functions": [{**function, "above": [[-1, 1.0]]}]},
        {"functions": [{**function, "run_unit": [1.0]}]},
    ):
        with pytest.raises((ValueError, OverflowError)):
            summary_from({**GOOD, **wrong})


@pytest.mark.parametrize("wrong", [{"runs": [1]}, {"program": {**GOOD, "run_size": [1 << 70]}}])
def test_a_damaged_twin_is_refused(tmp_path, wrong):
    twin = tmp_path / "perf.law.json"
    twin.write_text(json.dumps({"schema": "perflaw.annotate/1", "annotations": [], "runs": [], **wrong}))
    with pytest.raises(StoreError, match="damaged"):
        load_laws(str(twin))
