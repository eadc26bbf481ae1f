"""The report for everyone: axe finds nothing, in light and dark; nothing is cut off at 360 px; every mark stands out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from perflaw.report.page.page import render
from tests.report import factory, trends_factory
from tests.report.test_html import page

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


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, tmp_path: Path, scheme: str) -> None:
    views = {"laws": page(factory.all_kinds()[:8]), "trends": page([], trend=trends_factory.bubble())}
    for name, view in views.items():
        path = tmp_path / f"{name}.html"
        path.write_text(render(view))
        tab = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
        tab.goto(path.as_uri())
        tab.wait_for_selector("#law-chart .main-svg" if name == "laws" else "#fit-chart .main-svg")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        found = [(one["id"], one["nodes"][0]["html"][:200]) for one in Axe().run(tab).response["violations"]]
        assert found == [], name
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        marks = tab.evaluate(
            "[...document.querySelectorAll('.main-svg .points')].map((one) => one.getAttribute('fill'))"
        )
        drawn = {mark for mark in marks if mark != "none"}
        assert drawn
        assert all(contrast(mark, ground) >= LEAST_CONTRAST for mark in drawn), (ground, drawn)
        tab.close()
