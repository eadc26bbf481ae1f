"""The controller's page in a real browser: what a person does there survives that its tables come anew."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from perflaw.report.fleet import fleet_page, fleet_tables
from tests.report.test_fleet import fleet


def document(heard_s: float) -> dict[str, object]:
    one = fleet()
    name = "a.long.name.of.a.function." * 6
    service = one["services"][0]
    service["stubs"][0].update(heard_s=heard_s, program=name, refused=[])
    service["service"] = "shop"
    return one


@pytest.fixture
def address() -> Iterator[str]:
    """A server whose tables differ each time."""

    class Handler(http.server.BaseHTTPRequestHandler):
        asked = 0

        def do_GET(self) -> None:
            Handler.asked += 1
            text = fleet_tables(document(Handler.asked)) if self.path == "/tables" else fleet_page(document(0.0))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_scrolled_tables_focus_and_selected_text_stay_when_tables_come_anew(browser: Browser, address: str) -> None:
    tab = browser.new_page(viewport={"width": 360, "height": 700})
    tab.add_init_script("window.setInterval = (ask) => { window.refresh = ask; }")
    tab.goto(address)
    tables = tab.locator("[role=region]")
    assert [one.get_attribute("aria-label") for one in tables.all()] == [
        "Processes, shop",
        "What they measure, shop",
        "Specifications, shop",
        "Decisions, shop",
    ]
    tables.first.evaluate("one => { one.scrollLeft = 120; one.focus(); }")
    tab.evaluate("scrollTo(0, 200)")
    tab.evaluate("refresh()")
    assert "2 s ago" in tables.first.inner_text() or "3 s ago" in tables.first.inner_text()
    assert tables.first.evaluate("one => [one.scrollLeft, one === document.activeElement]") == [120, True]
    assert tab.evaluate("scrollY") == 200
    before = tables.first.inner_text()
    tab.evaluate("getSelection().selectAllChildren(document.querySelector('td'))")
    tab.evaluate("refresh()")
    assert tables.first.inner_text() == before
    tab.close()
