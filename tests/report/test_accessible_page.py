"""The report for everyone: axe finds nothing, in light and dark; nothing is cut off at 360 px; every mark stands out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from perflaw.report.explore.page import explore_data
from perflaw.report.mine.text import MineView
from perflaw.report.page.page import Page, render
from tests.report import factory, outcomes_factory, specs_factory, trends_factory, variance_factory
from tests.report.test_explore_page import result
from tests.report.test_flame_in_browser import page_document
from tests.report.test_html import page
from tests.report.test_mine_in_browser import JOURNAL

LEAST_CONTRAST = 3.0
"""Of a mark with what it stands on (WCAG 1.4.11)."""


def luminance(colour: str) -> float:
    """Relative luminance of a colour ``rgb(1, 2, 3)`` or ``#010203``."""
    found = [int(one) for one in re.findall(r"\d+", colour)[:3]] if colour.startswith("rgb") else []
    parts = found or [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (one / 255 for one in parts)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def everything() -> Page:
    """A page with every view."""
    return page(
        factory.all_kinds()[:8],
        trend=trends_factory.bubble(),
        verdicts=outcomes_factory.checked(),
        profile=page_document(),
        variance=variance_factory.server(),
        mine=MineView(specs_factory.specs(), specs_factory.steps(), JOURNAL),
        exploration=explore_data(result(), 7),
        overview=OVERVIEW,
        checks=[CHECK],
    )


ROW = {"component": "index.build", "law": "3.1 µs · n^1.98", "grows": "n^1.98", "now": "61 %", "then": "97 %"}
OVERVIEW = {
    "matters": {
        "point": "n = 1,000, ten times what was recorded",
        "metric": "time",
        "whole": "2.0 s",
        "interval": "(1.6–3.8)",
        "recorded": "run (n = 100) cost 33 ms",
        "rows": [{**ROW, "key": "index.build", "share": 0.97, "cost": "1.9 s (1.6–3.7)"}],
        "sources": [
            {"place": "app.py:25", "caller": "app.main", "callee": "f", "share": "49 %", "growth": "more often"}
        ],
        "around": "",
    },
    "next": {"why": "", "command": ""},
    "changed": {
        "text": "run 0001 → run 0002: time 81 ms → 69 ms (0.85x)",
        "rows": [{"component": "index.build", "before": "1 ms", "after": "2 ms", "factor": "2.0x", "calls": "1"}],
    },
}
CHECK = {
    "when": "2026-05-04 12:00",
    "commit": "abc1234",
    "laws": "app.law",
    "counts": {"violated": 1, "holds": 8},
    "text": "1 violated · 8 holds",
    "violated": ["index.build"],
}
VIEWS = ("overview", "components", "trends", "variance", "specifications", "exploration", "profile", "checks")


@pytest.mark.slow
def test_every_view_is_accessible_and_reached_by_its_link(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render(everything()))
    for scheme in ("light", "dark"):
        tab = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]  # a literal
        tab.goto(path.as_uri())
        assert [one.get_attribute("data-view") for one in tab.query_selector_all("#views a")] == list(VIEWS)
        drawn = set()
        for name in VIEWS:
            tab.evaluate("(name) => { location.hash = `#/${name}`; }", name)
            tab.wait_for_selector(f"#views a[data-view={name}][aria-current=page]")
            tab.wait_for_selector(MARKS[name])
            if name == "overview":
                best = everything().exploration["best"]["text"]["measured"]
                assert all(value in tab.inner_text("#configured .reached") for value in best.values())
            assert tab.evaluate("document.documentElement.scrollWidth") <= 360, name
            found = [(one["id"], one["nodes"][0]["html"][:200]) for one in Axe().run(tab).response["violations"]]
            assert found == [], (name, scheme)
            marks = "[...document.querySelectorAll('.main-svg .points')].map((one) => one.getAttribute('fill'))"
            drawn |= {mark for mark in tab.evaluate(marks) if mark != "none"}
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert drawn
        assert all(contrast(mark, ground) >= LEAST_CONTRAST for mark in drawn), (ground, drawn)
        tab.fill("#search", "merge")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**#/component/sort.merge")
        tab.wait_for_function("() => document.querySelector('#detail h2')?.textContent.includes('sort.merge')")
        tab.keyboard.press("1")
        tab.wait_for_url("**#/overview")
        tab.go_back()
        tab.wait_for_url("**#/component/sort.merge")
        tab.close()


MARKS = {
    "overview": "#configured",
    "components": "#law-chart .main-svg",
    "trends": "#fit-chart .main-svg",
    "variance": "#variance .panel svg",
    "specifications": "#spec .panel",
    "exploration": "#trials tbody tr",
    "profile": "#flames button",
    "checks": "#forest",
}
"""What shows that a view is drawn."""
