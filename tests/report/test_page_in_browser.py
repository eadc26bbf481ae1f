"""The page in a real browser: it draws, sorts, filters, links, and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from . import factory
from .shown import DRAWN, Shown


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    made = Shown(browser, tmp_path_factory.mktemp("page") / "report.html", factory.all_kinds())
    yield made
    made.tab.close()


@pytest.fixture(autouse=True)
def nothing_asked_nothing_wrong(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "shown" in request.fixturenames:
        report: Shown = request.getfixturevalue("shown")
        report.sound()


def test_the_first_row_is_selected_and_drawn(shown: Shown) -> None:
    shown.tab.wait_for_function(DRAWN)
    assert "index.build" in shown.title()
    axis: str = shown.tab.evaluate("document.getElementById('law-chart').layout.xaxis.type")
    assert axis == "log"
    shown.tab.click("#axes >> text=linear")
    assert shown.tab.evaluate("document.getElementById('law-chart').layout.yaxis.type") == "linear"
    shown.tab.click("#axes >> text=log–log")


def test_no_button_of_the_charts_leaves_the_page(shown: Shown) -> None:
    titles = "[...document.querySelectorAll('#law-chart .modebar-btn')].map((button) => button.dataset.title)"
    assert shown.tab.evaluate(titles) == ["Download plot as a PNG", "Zoom", "Pan", "Reset axes"]
    assert shown.tab.evaluate("document.getElementById('law-chart')._context.showSendToCloud") is False


def test_headings_sort_and_say_so(shown: Shown) -> None:
    by_share = shown.names()
    shown.tab.click("th[data-column=function] button")
    assert shown.tab.get_attribute("th[data-column=function]", "aria-sort") == "ascending"
    assert shown.names() == sorted(by_share, key=str.lower)
    shown.tab.click("th[data-column=share] button")
    assert shown.tab.get_attribute("th[data-column=share]", "aria-sort") == "descending"
    assert shown.names()[:3] == by_share[:3]


def test_filters_hide_rows(shown: Shown) -> None:
    shown.tab.fill("#text", "CACHE.")
    assert shown.names() == ["cache.fetch", "cache.get"]
    shown.tab.fill("#text", "")
    shown.tab.click("#filters >> text=1 inconclusive")
    assert shown.names() == ["load.rows"]
    shown.tab.click("#shown >> text=show all")
    assert len(shown.names()) == len(factory.all_kinds())


def test_keys_move_the_selection_and_links_name_it(shown: Shown) -> None:
    shown.tab.click("#laws tbody tr >> nth=0")
    shown.tab.keyboard.press("ArrowDown")
    shown.wait_for("sort.merge")
    assert "#component=sort.merge" in shown.tab.url
    shown.tab.evaluate("location.hash = '#component=pkg.mod12.Class4.method_199'")
    shown.wait_for("method_199")
    assert shown.tab.get_attribute("#laws tr[aria-selected=true]", "data-index") == "206"


def test_hostile_names_are_text(shown: Shown) -> None:
    shown.tab.click("#laws tr[data-index='6'] .c-verdict")
    shown.wait_for("alert(1)")
    title = shown.tab.text_content("#detail h2") or ""
    assert factory.HOSTILE in title
    drawn = shown.tab.text_content("#law-chart .xtitle") or ""
    assert drawn.startswith("<script>alert(1)</script></script><b onload")
    legend = shown.tab.text_content("#law-chart .legend") or ""
    assert "<script>alert(1)</script></script><b onload" in legend
    assert (
        shown.tab.evaluate("document.querySelectorAll('#detail script, #detail [onload], a[href^=javascript]').length")
        == 0
    )


def test_constant_laws_are_drawn_against_every_feature(shown: Shown) -> None:
    shown.tab.click("#laws tr[data-index='4'] .c-verdict")
    shown.wait_for("cache.get")
    shown.tab.select_option("#feature", "k")
    assert "without a value" in shown.tab.inner_text("#chart-note")
    means = "document.getElementById('law-chart').data.find((trace) => trace.name === 'law').y"
    assert shown.tab.evaluate(means) == pytest.approx([4e-7, 4e-7])


def test_edges_are_drawn_without_a_complaint(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path / "edges.html", factory.edges())
    for index, annotation in enumerate(factory.edges()):
        shown.tab.click(f"#laws tr[data-index='{index}'] .c-verdict")
        shown.wait_for(annotation.component.name.replace("\udcff", ""))
        for axes in ("linear", "log–log"):
            if shown.tab.query_selector("#law-chart"):
                shown.tab.click(f"#axes >> text={axes}")
    assert shown.problems == []
    shown.tab.close()


def test_an_empty_experiment_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path / "empty.html", [], runs=[])
    assert "perflaw record" in shown.tab.inner_text("#overview")
    assert shown.problems == []
    shown.tab.close()


def test_two_thousand_components_open_and_sort(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path / "many.html", factory.many(2000, size=3))
    shown.tab.wait_for_function(DRAWN)
    shown.tab.click("#shown >> text=show all")
    shown.tab.click("th[data-column=calls] button")
    assert len(shown.names()) == 2000
    shown.tab.close()
