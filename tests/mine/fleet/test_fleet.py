"""Stubs and a controller as real processes: what is measured arrives once, whatever is killed or cut meanwhile."""

from __future__ import annotations

import json
import urllib.error

import pytest

from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.mine import mine
from perflaw.mine.fleet.analysis import observed_of_service
from tests.mine.fleet.fleet import Fleet, wait_for


@pytest.fixture
def fleet(tmp_path):
    made = Fleet(tmp_path)
    yield made
    made.close()


def load_spec(fleet):
    """The specification of ``shop.load`` from what all stubs measured."""
    observed = {one.component: one for one in observed_of_service(fleet.folder.database, "shop")}
    return mine(observed["shop.load"], MiningOptions(), 10**19)


def calls_of_load(fleet):
    return sum(one.calls for one in fleet.ledger.coverage("shop") if one.component == "shop.load")


@pytest.mark.slow
def test_hosts_of_different_speed_merge_into_one_specification(fleet):
    fleet.serve()
    for host, speed in (("quick", 1.0), ("slow", 2.5)):
        fleet.stub(host, speed)

    def measured_everywhere():
        hosts = {one.host for one in fleet.ledger.coverage("shop") if one.component == "shop.load" and one.calls > 9000}
        return hosts == {"quick", "slow"}

    wait_for(measured_everywhere)
    spec = load_spec(fleet)
    assert {one.host for one in spec.platforms} == {"quick", "slow"}
    assert len(spec.borders) == 1
    groups = {frozenset(spec.paths[path][1] for path in group.paths) for group in spec.groups}
    assert groups == {frozenset({"shop.item", "shop.overview"}), frozenset({"shop.search"})}
    assert spec.platform_borders is not None
    slower = [
        borders[0] for _, borders in sorted(spec.platform_borders.items(), key=lambda one: spec.platforms[one[0]].host)
    ]
    assert slower[0] < slower[1]
    tables = wait_for(lambda: "specifications with their call paths" in (text := fleet.page("/tables")) and text)
    assert "quick" in tables
    assert "of the time, never measured on" in tables
    assert "budget 50 %" in tables
    assert "fetch(" in fleet.page("/")
    assert "<svg" in wait_for(lambda: "<circle" in (text := fleet.page("/tables")) and text)
    wait_for(lambda: json.loads(fleet.page("/status.json"))["services"][0]["functions"][0]["borders"])
    # The page of specifications is loaded again when there are others.
    wait_for(
        lambda: f'data-version="{json.loads(fleet.page("/specs/shop/state"))["version"]}"' in fleet.page("/specs/shop")
    )
    assert "shop.load" in fleet.page("/specs/shop")
    with pytest.raises(urllib.error.HTTPError, match="400"):  # a foreign name for this machine
        fleet.page("/", host="evil.example")
    # What may not be measured never was, although samples found the program there.
    assert {one.component for one in fleet.ledger.coverage("shop")} <= {"shop.load", "shop.serve"}
    whys = [why for _, _, _, what, why, _ in fleet.ledger.decisions("shop", 100) if "shop.load" in what]
    assert any("of the time, never measured on quick" in why for why in whys)
