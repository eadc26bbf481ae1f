"""Verdicts of check and diff in the page: the forest plot, marks in the table, old and new curve in one chart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from . import factory, outcomes_factory
from .shown import DRAWN, Shown

Pages = pytest.TempPathFactory


@pytest.fixture(scope="module")
def checked(browser: Browser, tmp_path_factory: Pages) -> Iterator[Shown]:
    path = tmp_path_factory.mktemp("page") / "check.html"
    made = Shown(browser, path, factory.all_kinds(), verdicts=outcomes_factory.checked())
    made.tab.wait_for_function(DRAWN)
    yield made
    made.close()


@pytest.fixture(scope="module")
def changed(browser: Browser, tmp_path_factory: Pages) -> Iterator[Shown]:
    path = tmp_path_factory.mktemp("page") / "diff.html"
    made = Shown(browser, path, factory.all_kinds(), "#parse.tokens", verdicts=outcomes_factory.changed())
    made.wait_for("parse.tokens")
    made.tab.wait_for_function(DRAWN)
    yield made
    made.close()


def test_the_gravest_verdicts_stand_first_with_their_intervals(checked: Shown) -> None:
    rows = checked.tab.query_selector_all("#forest tbody tr")
    texts = [row.text_content() or "" for row in rows]
    assert [row.get_attribute("data-verdict") for row in rows] == [
        "violated", "violated", "inconclusive", "out of scope", "out of scope", "holds", "holds",
    ]  # fmt: skip
    assert texts[1].startswith("index.build")
    assert "1.8x (1.6–2.1)" in (rows[1].text_content() or "")
    assert "2 violated" in (checked.tab.text_content("#outcomes") or "")
    assert "branch at line 12 taken" in (rows[5].text_content() or "")


def test_intervals_stand_where_their_ratios_are(checked: Shown) -> None:
    ends = """(i) => { const svg = document.querySelectorAll('#forest td.effect svg')[i];
        const [one, bar] = svg.querySelectorAll('line'), circle = svg.querySelector('circle');
        const places = [[one, 'x1'], [bar, 'x1'], [bar, 'x2'], [circle, 'cx']];
        return places.map(([drawn, name]) => parseFloat(drawn.getAttribute(name))); }"""
    one, low, high, middle = checked.tab.evaluate(ends, 1)
    assert one < low < middle < high
    one, low, high, _ = checked.tab.evaluate(ends, 3)
    assert low < one < high


def test_verdicts_mark_and_filter_the_table(checked: Shown) -> None:
    checked.tab.click("#filters [data-choice=check] >> text=2 violated")
    assert checked.names() == ["index.build", factory.HOSTILE]
    checked.tab.wait_for_url("**check=violated**")
    checked.tab.click("#filters [data-choice=check] >> text=any verdict")
    row = checked.tab.query_selector("#laws tr[data-index='0']")
    assert row
    assert row.get_attribute("data-outcome") == "violated"


def test_a_component_of_the_forest_is_a_way_to_its_evidence(checked: Shown) -> None:
    checked.tab.click("#views >> text=checks")
    checked.tab.click("#forest >> text=sort.merge")
    checked.wait_for("sort.merge")
    told = checked.tab.inner_text("#detail .outcome")
    assert "out of scope" in told
    assert "items.len up to 1e6; learnt up to 10,000" in told
    assert "40 % of the calls" in told
    checked.tab.go_back()
    checked.tab.click("#forest >> text=index.build")
    checked.wait_for("index.build")
    assert "docs.len = 500" in checked.tab.inner_text("#detail .outcome")
    assert not checked.tab.query_selector("#forest button:has-text('gone.function')")


@pytest.mark.slow
def test_diff_draws_the_old_law_with_the_new_one(changed: Shown) -> None:
    old, new = changed.trace("old law"), changed.trace("law")
    assert old["dash"] == "dash"
    assert old["y"][0] == pytest.approx((0.9 + 0.0024 * old["x"][0]) * 1e-6)  # its text is in µs
    assert new["y"][-1] is None or new["y"][-1] > old["y"][-1]
    told = changed.tab.inner_text("#detail .outcome")
    assert "✗ worse 5.8x (5.5–6.1)" in told
    assert "14 ns" in told
    assert "81 ns" in told
    changed.tab.click("#views >> text=checks")
    changed.tab.click("#forest >> text=sort.merge")
    changed.wait_for("sort.merge")
    assert changed.tab.inner_text("#detail .outcome").startswith("diff: ✓ better")


@pytest.mark.slow
def test_two_thousand_verdicts_are_quick_to_open(browser: Browser, tmp_path_factory: Pages) -> None:
    many = factory.many(2000, size=3)
    document = outcomes_factory.checked()
    holds = next(one for one in document["verdicts"] if one["verdict"] == "holds")
    document["verdicts"] = [{**holds, "component": one.component.name} for one in many]
    shown = Shown(browser, tmp_path_factory.mktemp("page") / "many.html", many, verdicts=document)
    shown.tab.wait_for_function(DRAWN)
    assert len(shown.tab.query_selector_all("#forest tbody tr")) == 60
    shown.tab.click("#views >> text=checks")
    shown.tab.click("#outcomes >> text=show all 2,000")
    assert len(shown.tab.query_selector_all("#forest tbody tr")) == 2000
    shown.close()
