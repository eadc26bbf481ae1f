"""A report opened in a browser's tab, for the tests of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from perflaw.report.page.page import render
from perflaw.types import Annotation

from .test_html import page

DRAWN = "() => document.querySelectorAll('#law-chart .main-svg').length > 0"


class Shown:
    """A report opened in a tab, with what the tab asked for and complained about."""

    def __init__(
        self, browser: Browser, path: Path, annotations: Sequence[Annotation], link: str = "", **more: Any
    ) -> None:
        path.write_text(render(page(annotations, **more)), encoding="utf-8")
        self.address = path.as_uri()
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.tab: Tab = browser.new_page(viewport={"width": 1300, "height": 900})
        self.tab.set_default_timeout(60_000)  # a busy machine may take long
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        self.tab.goto(self.address + link)

    def select(self, name: str) -> None:
        """The component, by its link; waits for its chart."""
        self.tab.evaluate("(name) => { location.hash = `#/component/${encodeURIComponent(name)}`; }", name)
        self.wait_for(name)

    def title(self) -> str:
        return self.tab.inner_text("#detail h2")

    def names(self) -> list[str]:
        """Names in all rows listed, in their order: the table is scrolled through, as it makes the rows in sight alone."""
        names: list[str] = self.tab.evaluate(
            """async () => {
                 const box = document.getElementById("scroll"), found = new Map(), here = box.scrollTop;
                 for (let top = 0; top < box.scrollHeight; top += box.clientHeight / 2) {
                   box.scrollTop = top;
                   await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                   for (const row of document.querySelectorAll("#laws tbody tr"))
                     found.set(Number(row.getAttribute("aria-rowindex")), row.querySelector(".name").textContent);
                 }
                 box.scrollTop = here;
                 return [...found].sort((a, b) => a[0] - b[0]).map(([, name]) => name);
               }"""
        )
        return names

    def wait_for(self, name: str) -> None:
        self.tab.wait_for_function(
            "(name) => document.querySelector('#detail h2')?.textContent.includes(name)", arg=name
        )

    def traces(self, chart: str = "law-chart") -> list[dict[str, Any]]:
        """What the chart draws: name, mode, colour of the markers, and values, a trace each."""
        traces: list[dict[str, Any]] = self.tab.evaluate(
            """(id) => document.getElementById(id).data.map((one) => ({name: one.name, mode: one.mode, x: [...one.x],
                 y: [...one.y], colour: one.marker?.color, dash: one.line?.dash, fill: one.fill}))""",
            chart,
        )
        # Charts read entities; so names reach them escaped.
        return [{**one, "name": unescape(one["name"] or "")} for one in traces]

    def trace(self, name: str, mode: str = "lines", chart: str = "law-chart") -> dict[str, Any]:
        """The first trace of that name and mode."""
        return next(one for one in self.traces(chart) if one["name"] == name and one["mode"] == mode)

    def shapes(self) -> list[dict[str, Any]]:
        """Rectangles and lines behind the chart's points."""
        shapes: list[dict[str, Any]] = self.tab.evaluate("document.getElementById('law-chart').layout.shapes ?? []")
        return shapes

    def sound(self) -> None:
        """The page asked for nothing and complained of nothing."""
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith("file:")] == []

    def close(self) -> None:
        self.sound()
        self.tab.close()
