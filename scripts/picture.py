"""A picture of a report page, for README and docs: picture.py PAGE.html OUT.png [LINK [SELECTOR]].

README's is of `make demo` on a quiet machine:
picture.py demo-out/report.html docs/report.png '#/component/summa.summarizer._set_graph_edge_weights'
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1300, 1180


def picture(page: Path, out: Path, link: str = "", selector: str = "") -> None:
    """The top of the page, or the first element of the selector."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.resolve().as_uri() + link)
        tab.wait_for_selector("#law-chart .main-svg, #trials tbody tr")
        tab.wait_for_timeout(500)
        shown = tab.locator(selector).first if selector else tab
        shown.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    picture(*map(Path, sys.argv[1:3]), *sys.argv[3:5])
