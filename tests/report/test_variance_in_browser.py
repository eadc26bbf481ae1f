"""The variance view in a real browser: list, graph, screen, metrics, links, keys; it asks the network for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from . import factory, trends_factory, variance_factory
from .shown import Shown

TITLED = "(name) => document.querySelector('#screen h2')?.textContent.includes(name)"
SELECTED = "Number(document.querySelector('#patterns [aria-selected=true]').dataset.pattern)"


class Patterns(Shown):
    """A page whose variance view is shown."""

    def wait_for_screen(self, name: str) -> None:
        self.tab.wait_for_function(TITLED, arg=name)

    def choose(self, node: int, name: str) -> None:
        """A node of the graph by a click; waits for its screen."""
        self.tab.click(f"#graph [data-node='{node}']")
        self.wait_for_screen(name)

    def panel(self, title: str) -> str:
        return self.tab.inner_text(f"#screen .panel:has(h3:text('{title}'))")

    def metric(self, name: str) -> None:
        self.tab.click(f"[data-choice=metric] >> text={name}")


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patterns]:
    made = Patterns(browser, tmp_path_factory.mktemp("variance") / "v.html", [], variance=variance_factory.server())
    made.wait_for_screen("app.handle")
    yield made
    made.close()


def test_the_graph_has_the_papers_shapes_and_shares(shown: Patterns) -> None:
    shown.metric("wall time")
    nodes = shown.tab.locator("#graph .node")
    assert nodes.count() == 4
    assert shown.tab.locator("#graph .is-Task rect").count() == 3
    assert shown.tab.locator("#graph .is-Contributor rect").count() == 1
    shares = shown.tab.locator("#graph .back-share").all_text_contents()
    assert shares
    assert all(share.endswith("%") for share in shares)
    assert shown.tab.locator("#graph .back").count() == len(shares)


def test_no_boxes_overlap(shown: Patterns) -> None:
    boxes = shown.tab.evaluate(
        """[...document.querySelectorAll('#graph .node > rect, #graph .node > ellipse')]
           .map((e) => e.getBoundingClientRect()).map((b) => [b.left, b.right, b.top, b.bottom])"""
    )
    overlaps = [
        (a, b) for a, b in combinations(boxes, 2) if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]
    assert boxes
    assert overlaps == []


def test_a_click_shows_a_functions_screen(shown: Patterns) -> None:
    shown.metric("CPU time")
    shown.choose(1, "app.parse")
    budget = shown.panel("What a slow call spends more")
    assert "token:12" in budget
    assert "trip count" in budget
    widths = shown.tab.evaluate(
        "[...document.querySelectorAll('.stacked .stack')].map((e) => parseFloat(e.style.width))"
    )
    assert sum(widths) == pytest.approx(100, abs=0.3)
    assert "token:12" in shown.panel("Mechanism")
    assert "P(cost > d)" in shown.panel("Deadlines")
    assert shown.tab.locator("#screen .curve-seen").count() == 1


def test_wall_time_names_interference(shown: Patterns) -> None:
    shown.metric("wall time")
    look_up = shown.tab.locator("#graph .node", has_text="look_up")
    look_up.click()
    shown.wait_for_screen("app.look_up")
    assert "100 % off the CPU" in (look_up.text_content() or "")
    assert "interference, 100 %" in shown.panel("Work, waiting or interference")
    shown.metric("CPU time")
    shown.tab.wait_for_function(
        "() => document.querySelector('#screen .reason')?.textContent.includes('In no pattern')"
    )
    assert "steady" in shown.tab.inner_text("#screen .verdict")
    shown.tab.click("#patterns .pattern")


def test_the_metrics_stand_side_by_side(shown: Patterns) -> None:
    shown.metric("wall time")
    shown.tab.click("#patterns .pattern")
    shown.wait_for_screen("app.handle")
    beside = shown.panel("Work, waiting or interference")
    for label in ("wall time", "CPU time", "recorded calls"):
        assert label in beside


def test_calls_are_downloaded_for_perfetto(shown: Patterns, tmp_path: Path) -> None:
    with shown.tab.expect_download() as waiting:
        shown.tab.click("#screen .download")
    path = tmp_path / "trace.json"
    waiting.value.save_as(path)
    assert waiting.value.suggested_filename == "app.handle.perfetto.json"
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    assert any(event["ph"] == "X" and event["name"] == "app.handle" for event in events)


def test_the_curve_is_read_by_pointing(shown: Patterns) -> None:
    shown.tab.hover("#screen .curve")
    assert "by Chebyshev" in shown.tab.inner_text("#screen .told")


def test_keys_move_through_nodes(shown: Patterns) -> None:
    shown.tab.click("#patterns .pattern")
    shown.wait_for_screen("app.handle")
    shown.tab.keyboard.press("n")
    shown.tab.wait_for_function("() => !document.querySelector('#screen h2').textContent.includes('app.handle')")
    shown.tab.keyboard.press("p")
    shown.wait_for_screen("app.handle")
    shown.tab.focus("#graph [data-node='2']")
    shown.tab.keyboard.press("Enter")
    shown.tab.wait_for_function("() => location.hash.includes('node=2')")


def test_a_link_shows_the_same(browser: Browser, tmp_path: Path) -> None:
    link = "#view=variance&metric=cpu&function=app.parse&theme=dark"
    page = Patterns(browser, tmp_path / "link.html", [], link, variance=variance_factory.server())
    page.wait_for_screen("app.parse")
    assert page.tab.get_attribute("html", "data-theme") == "dark"
    assert page.tab.get_attribute("[data-choice=metric] >> text=CPU time", "aria-pressed") == "true"
    page.tab.evaluate("location.hash = '#view=variance&metric=time&function=app.look_up'")
    page.wait_for_screen("app.look_up")
    page.close()


def test_the_three_views_stand_beside_each_other(browser: Browser, tmp_path: Path) -> None:
    views = {"trend": trends_factory.bubble(), "variance": variance_factory.server()}
    page = Patterns(browser, tmp_path / "all.html", [factory.quadratic()], **views)
    page.wait_for("index.build")
    assert not page.tab.is_visible("#variance")
    page.tab.click("#views >> text=variance")
    page.wait_for_screen("app.handle")
    assert not page.tab.is_visible("#laws")
    assert "#/variance/" in page.tab.url
    page.tab.click("#views >> text=clusters of lines")
    assert not page.tab.is_visible("#variance")
    assert page.tab.is_visible("#trend")
    page.tab.click("#views >> text=components")
    assert page.tab.is_visible("#laws")
    page.close()


def test_hundreds_of_patterns(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    page = Patterns(browser, path, [], variance=variance_factory.many())
    page.tab.wait_for_selector("#graph .node")
    assert path.stat().st_size < 3_000_000
    assert "50 of 333" in page.tab.inner_text("#patterns-shown")
    assert page.tab.locator("#graph .node").count() == 40
    page.tab.click("#graph >> text=draw all")
    assert page.tab.locator("#graph .node").count() == 270
    test_no_boxes_overlap(page)
    assert "perflaw variance lib.part0.f0" in page.tab.inner_text("#screen")
    page.tab.fill("#variance-text", "part300.f1")
    page.tab.click("#patterns .pattern:not([hidden]):has-text('part300')")
    assert page.tab.evaluate(SELECTED) == 300
    page.tab.press("#variance-text", "Escape")
    page.tab.click("#patterns-shown >> text=show all")
    assert page.tab.locator("#patterns .pattern:not([hidden])").count() == 333
    page.tab.focus("#patterns [data-pattern='300']")
    page.tab.keyboard.press("ArrowUp")
    assert page.tab.evaluate(SELECTED) == 299
    page.close()


def test_what_is_not_known_is_said_so(browser: Browser, tmp_path: Path) -> None:
    page = Patterns(browser, tmp_path / "alone.html", [], variance=variance_factory.alone())
    page.wait_for_screen("app.handle")
    assert "Unknown: no sampled call" in page.panel("What a slow call spends more")
    assert "unknown" in page.panel("Deadlines")
    assert page.tab.locator("#graph .node").count() == 1
    page.close()


def test_nothing_varies(browser: Browser, tmp_path: Path) -> None:
    page = Patterns(browser, tmp_path / "nothing.html", [], variance=variance_factory.nothing())
    assert "No function's wall time varies highly" in page.tab.inner_text("#variance")
    page.close()


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    page = Patterns(browser, tmp_path / "hostile.html", [], variance=variance_factory.hostile())
    page.wait_for_screen(factory.HOSTILE)
    assert page.tab.evaluate("document.querySelectorAll('main script, [onload], a[href^=javascript]').length") == 0
    page.choose(2, "x" * 300)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 1300
    assert "NaN" not in page.tab.inner_text("body")
    page.close()


@pytest.mark.slow
def test_what_changed_stands_below_the_patterns_and_leads_to_them(browser: Browser, tmp_path: Path) -> None:
    made = Patterns(browser, tmp_path / "since.html", [], variance=variance_factory.since())
    made.metric("CPU time")
    panel = made.tab.locator("#variance .panel.since")
    text = panel.inner_text()
    assert "What changed since last week" in text
    assert "app.handle" in text
    assert "variance of app.handle from app.parse > app.token: none before, 100 % now" in text
    assert set(panel.locator(".badge").all_text_contents()) == {"changed"}
    panel.get_by_role("button", name="app.handle").click()
    made.wait_for_screen("app.handle")
    made.close()
    plain = Patterns(browser, tmp_path / "plain.html", [], variance=variance_factory.server())
    assert plain.tab.locator("#variance .panel.since").count() == 0
    plain.close()
