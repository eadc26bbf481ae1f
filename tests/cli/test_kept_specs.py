"""Specifications that were mined are there for the next verb; only functions with new observations are mined anew."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from perflaw.api import kept, mining
from perflaw.learn.paths import MiningOptions
from perflaw.mine.knowledge import Knowledge
from perflaw.types import Histogram
from tests.learn.path_models import observed
from tests.learn.test_paths_selection import both, seen

NOW = 10**18
MIXED = replace(both(seen(1, "semop write"), seen(2, "semop write headers")), component="a.mixed", share=0.3)
PLAIN = replace(observed(3, n=6_000), component="a.plain", share=0.2)


def mine(*found, now=NOW, verb=mining.mine_specs):
    """What is mined of functions, and the names of those that were mined anew."""
    request = mining.MiningRequest("default", "time", (), (), MiningOptions(), now)
    with (
        mock.patch.object(mining, "_read", return_value=([], list(found))),
        mock.patch.object(mining, "_mine_each", wraps=mining._mine_each) as mined,
    ):
        made = verb(request)
    return made, {each.component for call in mined.call_args_list for each in call.args[0]}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder and a cache of its own, in which whatever is mined is kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "MIN_LEARNING_S", 0.0)
    return tmp_path


@pytest.mark.parametrize("later", [0, 10**13])
def test_what_is_kept_is_what_is_mined_to_the_last_bit(place, later):
    assert mine(MIXED, PLAIN)[1] == {"a.mixed", "a.plain"}
    again, anew = mine(MIXED, PLAIN, now=NOW + later)
    assert not anew
    next((place / "cache").iterdir()).unlink()
    fresh, anew = mine(MIXED, PLAIN, now=NOW + later)
    assert anew == {"a.mixed", "a.plain"}
    assert repr(again) == repr(fresh)
    assert len({one.spec.utility for one in fresh.file.specs}) > later // 10**14


def test_only_functions_with_new_observations_are_mined_anew():
    mine(MIXED, PLAIN)
    more = replace(PLAIN, observations=(*PLAIN.observations, *observed(4, n=2_000).observations))
    changed, anew = mine(MIXED, more)
    assert anew == {"a.plain"}
    assert repr(changed) == repr(mine(MIXED, more)[0])
    assert mine(MIXED, PLAIN)[1] == {"a.plain"}, "what is not used is not kept"


def test_a_share_is_that_of_now():
    mine(PLAIN)
    made, anew = mine(replace(PLAIN, share=0.9))
    assert not anew
    assert [one.spec.share for one in made.file.specs] == [0.9]


@pytest.mark.parametrize(
    "change",
    [
        {"probe_ns": 1.0},
        {"notes": ("another",)},
        {"queued_ns": {"1": 5}},
        {"paths": PLAIN.paths[::-1]},
        {"observations": PLAIN.observations[1:]},
        {"observations": (replace(PLAIN.observations[0], run="other"), *PLAIN.observations[1:])},
        {
            "observations": (
                replace(PLAIN.observations[0], paths={0: Histogram(3, 40, np.arange(1, 2000))}),
                *PLAIN.observations[1:],
            )
        },
    ],
)
def test_whatever_was_observed_otherwise_has_a_function_mined_anew(change):
    mine(PLAIN)
    assert mine(replace(PLAIN, **change))[1] == {"a.plain"}


def test_mining_that_takes_a_moment_is_not_kept(monkeypatch):
    monkeypatch.setattr(kept, "MIN_LEARNING_S", 60.0)
    mine(PLAIN)
    assert mine(PLAIN)[1] == {"a.plain"}


def test_a_loop_that_starts_again_knows_the_same_as_from_all_that_is_mined():
    specs = [one.spec for one in mine(MIXED, PLAIN)[0].file.specs]
    known, anew = mine(MIXED, PLAIN, verb=mining.known_specs)
    assert not anew
    loops = Knowledge(), Knowledge()
    for loop, one in zip(loops, (specs, known), strict=True):
        loop.start_from(one, NOW)
    assert loops[0].functions == loops[1].functions
    assert loops[0].functions["a.plain"].groups > 1
