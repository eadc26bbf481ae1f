"""How large the report's page is, and how long a browser takes until the first chart is drawn.

    python benchmarks/report_page.py [--components 5000]

Needs Debian's Chromium. The components are made up: each has a law, and the hundred with the largest shares have points.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.report import factory
from tests.report.test_html import page

from perflaw.report.page.page import render


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, default=5000)
    count = parser.parse_args().components
    print(f"without data: {len(render(page([], runs=[])).encode()) / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(render(page(factory.many(count, size=40))))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        times = []
        for _ in range(5):
            tab = browser.new_page(viewport={"width": 1280, "height": 800})
            began = time.perf_counter()
            tab.goto(path.as_uri(), wait_until="commit")
            tab.wait_for_selector("#law-chart .main-svg")
            times.append(time.perf_counter() - began)
            tab.close()
        size = path.stat().st_size / 1e6
        print(
            f"{count} components: {size:.1f} MB, first chart after {min(times):.2f} s (of {len(times)} times the shortest)"
        )


if __name__ == "__main__":
    main()
