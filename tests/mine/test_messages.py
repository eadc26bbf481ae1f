"""Requests and measurements keep everything in their JSON form, and what does not fit is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from perflaw.errors import DataError
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.mine import mine
from perflaw.mine.messages import Measurement, ProbeCost, Request, merge_observed
from perflaw.types import Platform
from tests.learn.duration_data import observed_of


def observed(seed, run="1", host="host"):
    rng = np.random.default_rng(seed)
    durations = np.where(rng.random(4000) < 0.6, rng.lognormal(8, 0.2, 4000), rng.lognormal(12, 0.2, 4000))
    found = observed_of([(part, 0) for part in np.array_split(durations, 3)], 1.0, run)
    return replace(found, platforms=(Platform(host, "build", 1.0),), share=0.25, queued_ns={run: 7})


def test_a_request_survives_its_json_form():
    request = Request(7, "paths", ("app.load",), ("app.page", "app.main"), 2.5, 0.25)
    text = request.to_json()
    assert "\n" not in text
    assert Request.from_json(text, "journal") == request


def test_a_measurement_survives_its_json_form():
    stacks = {("main", "serve"): 3, ("main",): 1}
    before = Measurement(
        3, "durations", 10, 20, 0.5, stacks, (observed(1),), ProbeCost(100, 31.5, 10**9, 2.5), "", ("main",)
    )
    text = before.to_json()
    after = Measurement.from_json(text, "stub")
    assert "\n" not in text
    assert after.to_json() == text
    assert (after.stacks, after.cost, after.sampling, after.idle) == (before.stacks, before.cost, 0.5, ("main",))
    earlier = {name: value for name, value in json.loads(text).items() if name != "idle"}
    assert Measurement.from_json(json.dumps(earlier), "an earlier stub").idle == ()
    specs = [mine(one.observed[0], MiningOptions(), 10**18) for one in (before, after)]
    assert specs[0].borders == specs[1].borders
    assert len(specs[0].borders) == 1


def test_merging_adds_observations_whatever_their_order():
    several = [observed(1, "1", "one"), observed(2, "2", "other"), observed(3, "3", "one")]
    merged, turned = merge_observed(several), merge_observed(several[::-1])
    assert len(merged.observations) == sum(len(one.observations) for one in several)
    assert {one.host for one in merged.platforms} == {"one", "other"}
    assert merged.queued_ns == {"1": 7, "2": 7, "3": 7}
    specs = [mine(one, MiningOptions(), 10**18) for one in (merged, turned)]
    assert specs[0].quantiles == pytest.approx(specs[1].quantiles)
    assert specs[0].points == specs[1].points == 12_000


def test_the_share_of_a_cost_is_that_of_the_cpu_time():
    assert ProbeCost(1000, 50.0, 1_000_000).share == 0.05
    assert ProbeCost().share == 0.0


def test_what_does_not_fit_is_refused_with_its_place():
    good = json.loads(Measurement(3, "durations", 10, 20, observed=(observed(1),)).to_json())
    wrong = {
        "kind": lambda whole: whole.update(kind="code"),
        "sampling": lambda whole: whole.update(sampling=2),
        "request": lambda whole: whole.update(request=-1),
        "paths": lambda whole: whole["observed"][0]["observations"][0]["paths"].update({"99": {}}),
        "platform": lambda whole: whole["observed"][0]["observations"][0].update(platform=1),
        "counts": lambda whole: whole["observed"][0]["observations"][0]["paths"]["0"].update(counts=[1] * 641),
        "unknown": lambda whole: whole.update(unknown=1),
    }
    for key, spoil in wrong.items():
        damaged = json.loads(json.dumps(good))
        spoil(damaged)
        with pytest.raises(DataError, match=key):
            Measurement.from_json(json.dumps(damaged), "stub-7")
    with pytest.raises(DataError, match="stub-7"):
        Measurement.from_json("{", "stub-7")
