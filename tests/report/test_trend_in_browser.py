"""The trend view in a real browser: list, slider, plots, sources, links, keys; it asks the network for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from . import factory, trends_factory
from .shown import Shown

FITTED = "() => document.querySelectorAll('#fit-chart .main-svg').length > 0"
ROWS = "[...document.querySelectorAll('#clusters tbody tr:not([hidden])')].map((row) => Number(row.dataset.rank))"
LISTED = "() => document.querySelectorAll('#listing .src').length > 0"


class Trends(Shown):
    """A page whose trend view is shown."""

    def cluster(self) -> str:
        self.tab.wait_for_selector("#cluster h2")
        return self.tab.inner_text("#cluster h2")

    def pick(self, rank: int) -> None:
        """Select a cluster by its row; waits for its plots."""
        self.tab.click(f"#clusters tr[data-rank='{rank}'] .t-cluster")
        self.tab.wait_for_function(
            f"() => document.querySelector('#clusters tr[data-rank=\"{rank}\"]').ariaSelected === 'true'"
        )
        self.tab.wait_for_function(FITTED)

    def rows(self) -> list[int]:
        ranks: list[int] = self.tab.evaluate(ROWS)
        return ranks

    def marked(self) -> list[int]:
        """Lines of the listing that stand out."""
        self.tab.wait_for_function(LISTED)
        lines: list[int] = self.tab.evaluate(
            "[...document.querySelectorAll('#listing .mine')].map((line) => Number(line.dataset.line))"
        )
        return lines


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trends]:
    made = Trends(browser, tmp_path_factory.mktemp("trend") / "trend.html", [], trend=trends_factory.bubble())
    made.tab.wait_for_function(FITTED)
    yield made
    made.close()


def test_the_costliest_cluster_is_selected_and_drawn(shown: Trends) -> None:
    shown.pick(1)
    assert "bubble.py:8 in bubble_sort()" in shown.cluster()
    assert shown.trace("runs", "markers", "fit-chart")["x"][:4] == [60, 60, 60, 200]
    law, power = (shown.trace(name, "lines", "fit-chart") for name in ("law", "power law"))
    assert law["y"][0] == pytest.approx(1.5 * 60**2, rel=0.01)
    assert power["dash"] == "dot"
    assert {"95 % of the mean", "95 % of a new run"} <= {one["name"] for one in shown.traces("fit-chart")}
    assert shown.tab.evaluate("document.getElementById('fit-chart').layout.xaxis.type") == "log"


def test_residuals_of_the_law_and_of_the_power_law(shown: Trends) -> None:
    shown.pick(1)
    of_law = shown.traces("rest-chart")[0]["y"]
    assert max(map(abs, of_law)) < 0.01
    shown.tab.click("[data-choice=trend-residuals] >> text=the power law")
    of_power = shown.traces("rest-chart")[0]["y"]
    assert of_power != of_law
    shown.tab.click("[data-choice=trend-residuals] >> text=the law")


def test_the_size_says_what_dominates(shown: Trends) -> None:
    shown.tab.fill("#size", "60")
    shown.tab.wait_for_function("() => document.querySelector('#dominates').textContent.includes('n = 60')")
    assert "within the data" in shown.tab.inner_text("#dominates")
    costs = {row: shown.tab.text_content(f"#clusters tr[data-rank='{row}'] .t-cost") or "" for row in (1, 3)}
    assert costs[1].startswith("5,400")
    assert costs[3].startswith("180")
    shown.tab.click("[data-times='100']")
    shown.tab.wait_for_function("() => document.querySelector('#dominates').textContent.includes('400,000')")
    assert "100 times the largest seen" in shown.tab.inner_text("#dominates")
    assert shown.tab.input_value("#size") == "400000"
    shown.tab.fill("#size", "40000")


def test_the_slider_spans_the_orders_of_magnitude(shown: Trends) -> None:
    shown.tab.evaluate("document.getElementById('size-slider').value = 0")
    shown.tab.dispatch_event("#size-slider", "input")
    assert shown.tab.input_value("#size") == "60"
    shares = shown.tab.evaluate("document.getElementById('share-chart').data.map((one) => one.y.at(-1))")
    assert sum(shares) == pytest.approx(100)
    shown.tab.fill("#size", "40000")


def test_lines_carry_their_cluster_and_its_count(shown: Trends) -> None:
    shown.pick(1)
    assert shown.marked() == [8, 9, 11]
    line = "#listing [data-line='10']"
    assert shown.tab.text_content(f"{line} .chip") == "2"
    assert "M" in (shown.tab.text_content(f"{line} .times") or "")
    assert shown.tab.text_content("#listing [data-line='4'] code") == "def bubble_sort(n, arr):"
    assert "never" in (shown.tab.get_attribute("#listing [data-line='1']", "class") or "")
    shown.tab.click(f"{line} .chip")
    shown.tab.wait_for_function("() => document.querySelector('#cluster h2').textContent.includes('bubble.py:10')")
    assert shown.marked() == [10]


def test_keys_move_through_clusters_and_lines(shown: Trends) -> None:
    shown.pick(2)
    shown.tab.keyboard.press("ArrowDown")
    shown.tab.wait_for_function("() => document.querySelector('#cluster h2').textContent.includes('n (feature)')")
    assert shown.marked() == [6, 7, 13]
    shown.tab.keyboard.press("n")
    here = "Number(document.querySelector('#listing .here').dataset.line)"
    first = shown.tab.evaluate(here)
    shown.tab.keyboard.press("n")
    assert shown.tab.evaluate(here) > first
    shown.tab.keyboard.press("ArrowUp")
    shown.tab.wait_for_function("() => document.querySelector('#cluster h2').textContent.includes('bubble.py:10')")


def test_headings_sort_and_filters_hide(shown: Trends) -> None:
    shown.tab.click("#clusters th[data-column=law] button")
    assert shown.rows() == [2, 1, 3]
    assert shown.tab.get_attribute("#clusters th[data-column=law]", "aria-sort") == "descending"
    shown.tab.fill("#trend-text", "BUBBLE.PY:10")
    assert shown.rows() == [2]
    shown.tab.keyboard.press("Escape")
    assert len(shown.rows()) == 3
    shown.tab.click("#clusters th[data-column=now] button")
    assert shown.rows() == [1, 2, 3]


def test_an_overtaking_point_can_be_asked_at(shown: Trends) -> None:
    shown.pick(2)
    assert "1,200,000" in shown.tab.inner_text("#cluster .at-link")
    shown.tab.click("#cluster .at-link")
    assert shown.tab.input_value("#size") == "1200000"
    shown.tab.fill("#size", "40000")


def test_a_link_shows_the_same(shown: Trends, browser: Browser, tmp_path: Path) -> None:
    link = "#view=trend&cluster=bubble.py%3A10&size.n=5000&residuals=power&theme=dark&sort=-law"
    other = Trends(browser, tmp_path / "link.html", [], link, trend=trends_factory.bubble())
    other.tab.wait_for_function(FITTED)
    assert "bubble.py:10" in other.cluster()
    assert other.tab.input_value("#size") == "5000"
    assert other.tab.get_attribute("html", "data-theme") == "dark"
    assert other.rows() == [2, 1, 3]
    other.pick(1)
    other.tab.wait_for_function("() => location.hash.includes('/trend/bubble.py%3A8')")
    assert "size.n=5000" in other.tab.url
    other.close()


def test_beside_the_laws_stand_the_clusters(browser: Browser, tmp_path: Path) -> None:
    both = Trends(browser, tmp_path / "both.html", [factory.quadratic()], trend=trends_factory.bubble())
    both.wait_for("index.build")
    assert not both.tab.is_visible("#trend")
    both.tab.click("#views >> text=clusters of lines")
    both.tab.wait_for_function(FITTED)
    assert not both.tab.is_visible("#laws")
    assert "#/trend/" in both.tab.url
    both.tab.keyboard.press("ArrowDown")
    both.tab.wait_for_function("() => document.querySelector('#cluster h2').textContent.includes('bubble.py:10')")
    both.tab.click("#views >> text=components")
    assert both.tab.is_visible("#laws")
    assert "#/component/index.build" in both.tab.url
    both.close()


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    page = Trends(browser, tmp_path / "hostile.html", [], trend=trends_factory.hostile())
    page.tab.wait_for_function(FITTED)
    assert factory.HOSTILE in (page.tab.text_content("#cluster h2") or "")
    assert factory.HOSTILE in (page.tab.text_content("#listing") or "")
    assert page.tab.evaluate("document.querySelectorAll('main script, [onload], a[href^=javascript]').length") == 0
    width = page.tab.evaluate("document.documentElement.scrollWidth")
    assert width <= 1300
    page.close()


def test_one_cluster_without_a_law_or_source(browser: Browser, tmp_path: Path) -> None:
    page = Trends(browser, tmp_path / "one.html", [], trend=trends_factory.one_cluster())
    page.tab.wait_for_function(FITTED)
    assert "no law in n" in page.tab.inner_text("#cluster")
    assert page.tab.query_selector("#listing") is None
    assert "app.f" in page.tab.inner_text("#cluster table")
    page.close()


def test_functions_in_two_features(browser: Browser, tmp_path: Path) -> None:
    page = Trends(browser, tmp_path / "functions.html", [], trend=trends_factory.functions())
    page.tab.wait_for_function(FITTED)
    page.tab.select_option("#trend-feature", "k")
    page.tab.wait_for_function("() => document.querySelector('#cluster').textContent.includes('no law in k')")
    assert "feature=k" in page.tab.url
    page.close()


def test_odd_features_are_drawn_without_a_complaint(browser: Browser, tmp_path: Path) -> None:
    page = Trends(browser, tmp_path / "odd.html", [], trend=trends_factory.odd_features())
    page.tab.wait_for_function(FITTED)
    for name in ("zero", "negative", "unsaid", "n"):
        page.tab.select_option("#trend-feature", name)
        page.tab.wait_for_function(
            "(name) => document.querySelector('#fit-chart .xtitle')?.textContent === name", arg=name
        )
        for axes in ("linear", "log–log"):
            page.tab.click(f"[data-choice=trend-axes] >> text={axes}")
        page.tab.click("[data-times='10']")
    page.pick(2)
    page.close()


def test_nothing_varies(browser: Browser, tmp_path: Path) -> None:
    view = trends_factory.bubble(clusters=(), by_prediction=())
    page = Trends(browser, tmp_path / "nothing.html", [], trend=view)
    assert "No count varies" in page.tab.inner_text("#trend")
    page.close()


@pytest.mark.slow
def test_fifteen_hundred_clusters_open(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    page = Trends(browser, path, [], trend=trends_factory.many())
    page.tab.wait_for_function(FITTED)
    assert path.stat().st_size < 10_000_000
    assert "small clusters not shown" in page.tab.inner_text("#trend-shown")
    page.tab.click("#trend-shown >> text=show all")
    page.tab.click("#clusters th[data-column=cost] button")
    assert len(page.rows()) == 1500
    page.close()


@pytest.mark.slow
def test_in_the_papers_reading_power_laws_predict(browser: Browser, tmp_path: Path) -> None:
    view = replace(trends_factory.bubble(), paper=True)
    page = Trends(browser, tmp_path / "paper.html", [], "#size.n=1000", trend=view)
    page.tab.wait_for_function(FITTED)
    assert (page.tab.text_content("#clusters tr[data-rank='1'] .t-cost") or "").startswith("1.5 M")  # 1.4 · 1000^2.01
    page.close()
