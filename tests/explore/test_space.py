"""The space: samples are valid, places and settings round trip, constraints are obeyed, counting is exact."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.errors import UsageError
from perflaw.explore.space import Space
from perflaw.types import Knob
from tests.conftest import examples

PAGES = Knob("page", "ordinal", (1024, 4096, 16384, 65536), unit="B", default=4096)
CACHE = Knob("cache", "int", low=2**21, high=2**33, scale="log2", unit="B")
THREADS = Knob("threads", "int", low=1, high=8, default=4)
MODE = Knob("mode", "categorical", ("wal", "delete", "off"))
RATIO = Knob("ratio", "float", low=0.01, high=100.0, scale="log10")
SYNC = Knob("sync", "bool", (False, True))
ALL = (PAGES, CACHE, THREADS, MODE, RATIO, SYNC)
MACHINE = {"host.mem": 8 * 2**30, "host.cpus": 4}


@st.composite
def knobs(draw):
    found = []
    for at in range(draw(st.integers(1, 5))):
        name, kind = f"k{at}", draw(st.sampled_from(["int", "float", "ordinal", "categorical", "bool"]))
        if kind in ("int", "float"):
            scale = draw(st.sampled_from(["linear", "log2", "log10"]))
            low = draw(st.integers(-(10**6) if scale == "linear" else 1, 10**6))
            high = low + draw(st.integers(1, 10**9))
            step = draw(st.none() | st.integers(1, high - low))
            found.append(Knob(name, kind, low=low, high=high, scale=scale, step=step))
        elif kind == "ordinal":
            values = draw(st.lists(st.integers(-100, 10**6), min_size=2, max_size=9, unique=True))
            found.append(Knob(name, kind, tuple(sorted(values))))
        elif kind == "categorical":
            found.append(
                Knob(name, kind, tuple(draw(st.lists(st.text(max_size=5), min_size=2, max_size=5, unique=True))))
            )
        else:
            found.append(Knob(name, kind))
    return found


def test_settings_of_a_range_with_a_step():
    space = Space([Knob("size", "int", low=10, high=100, step=25), Knob("share", "float", low=0.0, high=1.0, step=0.1)])
    assert [one["size"] for one in space.grid({"share": 1})] == [10, 35, 60, 85]
    assert space.size == 4 * 11
    assert [one["share"] for one in space.grid({"size": 1, "share": 11})] == [k / 10 for k in range(11)]
    drawn = [space.sample(np.random.default_rng(seed))["size"] for seed in range(400)]
    assert all(70 < drawn.count(size) < 130 for size in (10, 35, 60, 85))


@settings(max_examples=examples(150), deadline=None)
@given(knobs(), st.integers(0, 2**32))
def test_samples_are_valid_and_round_trip(which, seed):
    space = Space(which, (), MACHINE)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        drawn = space.sample(rng)
        assert space.valid(drawn) == ""
        at = space.unit(drawn)
        assert at.shape == (len(which),) and (at >= 0).all() and (at <= 1).all()
        assert space.configuration(at) == drawn
        assert space.key(json.loads(json.dumps(drawn))) == space.key(drawn)


@settings(max_examples=examples(60), deadline=None)
@given(knobs(), st.lists(st.floats(0, 1), min_size=5, max_size=5), st.integers(1, 6))
def test_every_place_is_a_configuration_and_levels_are_settings(which, places, most):
    space = Space(which, (), MACHINE)
    assert space.valid(space.configuration(places[: len(which)])) == ""
    for knob in which:
        levels = space.levels(knob.name, most)
        assert len(set(levels)) == len(levels) <= (max(most, len(knob.values), 2))
        assert all(space.valid({**space.defaults(), knob.name: level}) == "" for level in levels)


@pytest.mark.parametrize("share", [3e-4, 1e-3, 0.01, 0.5])
@pytest.mark.parametrize("factor", [1, 4, 32])
def test_samples_obey_constraints_however_thin(share, factor):
    space = Space(
        ALL, [f"cache >= {factor}*page", f"threads*cache < {share}*host.mem", "mode != 'off' or sync"], MACHINE
    )
    rng = np.random.default_rng(1)
    for _ in range(5):
        assert space.valid(space.sample(rng)) == ""
        assert space.valid(space.configuration(rng.random(len(ALL)))) == ""


def test_the_nearest_of_a_small_space_is_the_nearest():
    space = Space([THREADS, PAGES], ["threads*page <= 65536"], MACHINE)
    rng = np.random.default_rng(1)
    valid = [{"threads": t, "page": p} for t, p in itertools.product(range(1, 9), PAGES.values) if t * p <= 65536]
    for at in rng.random((200, 2)):
        best = min(((space.unit(one) - at) ** 2).sum() for one in valid)
        found = space.configuration(at)
        decoded = space.decoded(at)
        assert found == decoded or math.isclose(((space.unit(found) - at) ** 2).sum(), best)


def test_draws_are_even_along_the_scale():
    space = Space([CACHE, THREADS, MODE], (), MACHINE)
    drawn = [space.sample(np.random.default_rng(seed)) for seed in range(4000)]
    octave = np.bincount([one["cache"].bit_length() - 22 for one in drawn], minlength=12)[:12]
    assert octave.min() > 250 and octave.max() < 420
    assert min(np.bincount([one["threads"] for one in drawn])[1:]) > 400
    assert min(sum(one["mode"] == mode for one in drawn) for mode in MODE.values) > 1200


@pytest.mark.parametrize(
    "constraint",
    [
        "a + b + c == 100",
        "a*cache == 48MiB",
        "a == b and b == c",
        "c == 7 or a + b == 199",
        "cache == 2*page and a == 3",
    ],
)
def test_equalities_are_met_though_no_draw_meets_them(constraint):
    parts = [Knob(name, "int", low=1, high=100) for name in "abc"]
    space = Space([*parts, CACHE, PAGES, MODE], [constraint.replace("2*page", "512*page")], MACHINE)
    rng = np.random.default_rng(1)
    drawn = [space.sample(rng) for _ in range(10)]
    assert all(space.valid(one) == "" for one in drawn)
    assert len({space.key(one) for one in drawn}) > 5


def test_counting_is_exact_where_it_can_be():
    assert Space([THREADS, PAGES, MODE, SYNC]).size == 8 * 4 * 3 * 2
    expected = sum(t * p <= 65536 for t, p in itertools.product(range(1, 9), PAGES.values))
    assert Space([THREADS, PAGES], ["threads*page <= 65536"], MACHINE).size == expected
    assert Space([RATIO]).size is None
    assert Space([CACHE]).size == 2**33 - 2**21 + 1
    assert Space([CACHE], ["cache > 5"], MACHINE).size is None


def test_grids():
    space = Space([THREADS, CACHE], ["threads*cache <= 4GiB"], MACHINE)
    grid = space.grid({"threads": 8, "cache": 13})
    assert {one["cache"] for one in grid} <= {2**power for power in range(21, 34)}
    assert len(grid) == sum(t * 2**p <= 2**32 for t in range(1, 9) for p in range(21, 34))
    assert all(space.valid(one) == "" for one in grid)
    assert Space([CACHE]).levels("cache", 3) == [2**21, 2**27, 2**33]
    assert Space([RATIO]).levels("ratio", 3) == [0.01, 1.0, 100.0]
    many = [Knob(f"k{at}", "int", low=1, high=100) for at in range(9)]
    with pytest.raises(UsageError, match="134,217,728 configurations"):
        Space(many).grid(8)


NOT_LISTED, NOT_WHOLE = "not one of its values", "not a whole number"


def test_what_is_no_configuration():
    space = Space(ALL, ["cache >= 2*page"], MACHINE)
    fine = space.defaults()
    assert space.valid(fine) == ""
    for change, why in [
        ({"page": 2048}, NOT_LISTED), ({"cache": 1}, "not between"), ({"cache": 2**22 + 0.5}, NOT_WHOLE),
        ({"threads": "4"}, NOT_WHOLE), ({"threads": True}, NOT_WHOLE), ({"mode": "x"}, NOT_LISTED),
        ({"ratio": "x"}, "not a number"), ({"ratio": float("nan")}, "not between"), ({"sync": 2}, NOT_LISTED),
        ({"other": 1}, "no knob other"), ({"page": None}, NOT_LISTED), ({"mode": [1]}, NOT_LISTED),
    ]:  # fmt: skip
        assert why in space.valid({**fine, **change}), change
    assert "missing" in space.valid({name: one for name, one in fine.items() if name != "page"})
    tight = Space(ALL, ["cache >= 2*page", "ratio/(threads-4) > 0"], MACHINE)
    assert "division by zero" in tight.valid({**fine, "threads": 4})


def test_numbers_in_other_coats_are_the_same():
    space = Space(ALL, (), MACHINE)
    fine = {"page": 4096, "cache": 2**22, "threads": 2, "mode": "wal", "ratio": 1.0, "sync": True}
    coat = {
        "sync": np.bool_(True),
        "ratio": 1,
        "mode": "wal",
        "threads": np.int64(2),
        "cache": 4194304.0,
        "page": np.float64(4096),
    }
    assert space.normal(coat) == fine and space.key(coat) == space.key(fine) and space.valid(coat) == ""
    assert [type(one) for one in space.normal(coat).values()] == [int, int, int, str, float, bool]


def test_columns_for_a_law():
    space = Space(ALL, (), MACHINE)
    rows = [
        {**space.defaults(), "mode": mode, "sync": mode == "wal", "threads": at + 1}
        for at, mode in enumerate(MODE.values)
    ]
    columns = space.columns(rows)
    assert list(columns) == ["page", "cache", "threads", "mode=wal", "mode=delete", "mode=off", "ratio", "sync"]
    assert columns["mode=delete"].tolist() == [0, 1, 0] and columns["sync"].tolist() == [1, 0, 0]
    assert columns["threads"].tolist() == [1, 2, 3] and columns["threads"].dtype == np.float64


def test_defaults_obey_the_constraints():
    space = Space([THREADS, PAGES], ["threads*page <= 8192"], MACHINE)
    assert space.valid(space.defaults()) == ""
    assert Space([PAGES, THREADS, MODE, SYNC]).defaults() == {"page": 4096, "threads": 4, "mode": "wal", "sync": False}


def test_an_empty_space_says_how_it_was_established():
    with pytest.raises(UsageError, match=r"all 32 combinations were tried"):
        Space([THREADS, PAGES], ["threads > 8"], MACHINE).sample(np.random.default_rng(1))
    with pytest.raises(UsageError, match="searched, not proven"):
        Space([CACHE, THREADS], ["cache < 5"], MACHINE).sample(np.random.default_rng(1))
