"""The report in Debian's Firefox: every view draws at 360 px, light and dark, axe finds nothing, the console stays empty."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest

from perflaw.report.page.page import render
from tests.report.firefox import firefox
from tests.report.test_accessible_page import LEAST_CONTRAST, MARKS, VIEWS, contrast, everything

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


@pytest.mark.slow
def test_every_view_draws_and_is_accessible(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render(everything()))
    with firefox(tmp_path) as browser:
        for scheme in ("light", "dark"):
            browser.open_narrow(path, 360, scheme)
            browser.run(AXE.read_text())
            assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
            drawn: set[str] = set()
            for name in VIEWS:
                browser.run("location.hash = `#/${arguments[0]}`", name)
                shown = "return !!document.querySelector(`#views a[data-view=${arguments[0]}][aria-current=page]`)"
                browser.wait_for(shown, name)
                browser.wait_for("return !!document.querySelector(arguments[0])?.checkVisibility()", MARKS[name])
                assert browser.run("return document.documentElement.scrollWidth") <= 360, name
                found = browser.wait_for_promise("window.axe.run().then((found) => found.violations)")
                assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == [], (name, scheme)
                marks = (
                    "return [...document.querySelectorAll('.main-svg .points')].map((one) => one.getAttribute('fill'))"
                )
                drawn |= {mark for mark in browser.run(marks) if mark != "none"}
            ground = browser.run("return getComputedStyle(document.body).backgroundColor")
            assert drawn
            assert all(contrast(mark, ground) >= LEAST_CONTRAST for mark in drawn), (ground, drawn)
        assert browser.complaints() == []
        browser.run("console.error('planted')")
        assert browser.complaints() == ["planted"]
