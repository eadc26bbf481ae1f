"""The flame graph in a real browser: what it draws, opens, finds and sums."""

import json

import pytest

from tests.report.shown import Tab


def page_document():
    def node(number, parent, component, total, own):
        return {
            "id": number, "parent": parent, "component": component, "calls": 2, "share": total / 100,
            "total": {"time": total, "cpu": own}, "own": {"time": own, "cpu": own},
        }  # fmt: skip

    tree = [node(0, None, "app.main", 100, 10), node(1, 0, "app.load", 60, 60), node(2, 0, "lib.<b>save</b>", 30, 30)]
    functions = [{**one, "file": "app.py", "line": 1, "own_share": one["own"]["time"] / 100} for one in tree]
    return {
        "schema": "perflaw.show/1", "metric": "time", "unit": "ns", "metrics": {"time": "ns", "cpu": "ns"},
        "runs": [{"id": "0001", "target": "app.py"}], "whole": {"time": 100, "cpu": 100}, "functions": functions,
        "tree": tree, "sites": [], "next": "perflaw record --vary n=1,2 -- app.py {n}",
    }  # fmt: skip


@pytest.mark.slow
def test_the_graph_opens_finds_and_sums(browser, tmp_path):
    from perflaw.report.page.flame import flame_page

    path = tmp_path / "flame.html"
    path.write_text(flame_page(page_document()), encoding="utf-8")
    problems = []
    tab: Tab = browser.new_page(viewport={"width": 360, "height": 700})
    tab.set_default_timeout(60_000)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto(path.as_uri())
    widths = (
        "[...document.querySelectorAll('#flames button')].map((one) => [one.ariaLabel.split(':')[0], one.style.width])"
    )
    assert tab.evaluate(widths) == [["app.main", "100%"], ["app.load", "60%"], ["lib.<b>save</b>", "30%"]]
    tab.click("#flames button >> nth=1")
    assert tab.evaluate(widths) == [["app.main", "100%"], ["app.load", "100%"]]
    tab.keyboard.press("Escape")
    tab.fill("#find", "SAVE")
    assert tab.inner_text("#found-share").split() == ["found:", "30", "%"]
    assert tab.evaluate("document.querySelectorAll('.found').length") == 1
    tab.select_option("#metric", "cpu")
    assert "10 ns" in tab.inner_text("#functions")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert json.loads(tab.inner_text("#data") or tab.evaluate("document.getElementById('data').textContent"))
    assert problems == []
    tab.close()
