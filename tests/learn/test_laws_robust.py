"""Whatever finite numbers come, a law comes back with finite numbers in it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.learn.series import Series, learn
from perflaw.types.documents import document
from tests.conftest import examples

NUMBERS = st.one_of(
    st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-100),
    st.integers(-5, 5).map(float),
    st.floats(1, 1e6),
)


def finite(value: Any) -> bool:
    """No NaN or infinity anywhere."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    return (
        all(finite(getattr(value, f.name)) for f in dataclasses.fields(value))
        if dataclasses.is_dataclass(value)
        else True
    )


@st.composite
def series(draw: st.DrawFn) -> Series:
    n = draw(st.integers(1, 12))
    column = st.lists(NUMBERS, min_size=n, max_size=n).map(np.array)
    runs = draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=n, max_size=n).map(np.array)))
    weights = draw(st.one_of(st.none(), st.lists(st.floats(0.01, 10), min_size=n, max_size=n).map(np.array)))
    names = draw(st.lists(st.sampled_from(["n", "a.len", "z"]), unique=True))
    return Series("s", draw(column), {name: draw(column) for name in names}, runs, weights)


@settings(max_examples=examples(150), deadline=None)
@given(series())
def test_any_finite_numbers(one: Series) -> None:
    learnt = learn([one])[0]
    assert finite(learnt.law)
    assert np.isfinite(learnt.residuals()).all()
    assert document(learnt.law)["verdict"] in ("law", "none", "inconclusive")
    for p in learnt.law.predictions:
        assert 0 <= p.mean_low <= p.mean_high
        assert 0 <= p.new_low <= p.new_high
