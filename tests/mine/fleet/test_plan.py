"""What the controller asks for: callers that can tell call paths apart, and not those that are on every path."""

from __future__ import annotations

from dataclasses import replace

from perflaw.mine.fleet.ledger import Ledger, Service
from perflaw.mine.fleet.plan import MAX_CALLERS, hot_functions
from perflaw.mine.fleet.status import fleet_status
from perflaw.mine.messages import Measurement

OUTER = tuple(f"shop.outer{number}" for number in range(12))


def samples(*callers: str) -> list[Measurement]:
    stacks = {(*OUTER, f"shop.of_{caller}", caller, "shop.load"): 50 for caller in callers}
    return [Measurement(1, "samples", 0, 1, stacks=stacks)]


def test_the_nearest_callers_are_recorded_and_not_those_that_all_samples_have():
    [hot] = hot_functions(samples("shop.item", "shop.search"), ("shop.*",))
    assert set(hot.callers[:2]) == {"shop.item", "shop.search"}
    assert set(hot.callers[2:4]) == {"shop.of_shop.item", "shop.of_shop.search"}
    assert len(hot.callers) <= MAX_CALLERS


def test_callers_that_may_not_be_recorded_are_not_asked_for():
    hot, *_ = hot_functions(samples("shop.item", "bank.search"), ("shop.load", "shop.item"))
    assert hot.callers == ("shop.item",)


def test_what_waits_until_somebody_asks_is_not_hot():
    [one] = samples("shop.item", "shop.search")
    assert hot_functions([replace(one, idle=("shop.load",))], ("shop.*",)) == []


def test_many_callers_of_the_first_level_leave_no_room_for_others():
    [hot] = hot_functions(samples(*(f"shop.page{number}" for number in range(20))), ("shop.*",))
    assert len(hot.callers) == MAX_CALLERS
    assert all(one.startswith("shop.page") for one in hot.callers)


def test_an_allow_list_that_has_no_hot_function_is_seen_in_the_status(tmp_path):
    """As one of two patterns in one, which matches no name."""
    ledger = Ledger(str(tmp_path / "fleet.db"))
    ledger.enrol(Service("shop", ("shop.load,shop.item",), 0.02), "digest")
    shares = {"shop": {"shop.load": 0.4, "shop.item": 0.1, "shop.rare": 0.001}}
    (service,) = fleet_status(ledger, shares=shares)["services"]
    ledger.close()
    assert [one["component"] for one in service["not_allowed"]] == ["shop.load", "shop.item"]
    assert service["not_allowed"][0]["share"] == 0.4
