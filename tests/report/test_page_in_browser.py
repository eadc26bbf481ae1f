"""The page in a real browser: it draws, sorts, filters, links, and asks the network for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from perflaw.laws.build import number, product
from perflaw.laws.tree import Name
from perflaw.learn.series.law import distribution
from perflaw.report.annotations import annotations_table
from perflaw.report.documents import annotate_document
from perflaw.types import Component, ProgramForecast, Scope
from perflaw.types.programs import OUTSIDE, ProgramPart
from perflaw.types.recordings import COLLECTING

from . import factory
from .shown import DRAWN, Shown


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    made = Shown(browser, tmp_path_factory.mktemp("page") / "report.html", factory.all_kinds())
    yield made
    made.tab.close()


@pytest.fixture(autouse=True)
def nothing_asked_nothing_wrong(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "shown" in request.fixturenames:
        report: Shown = request.getfixturevalue("shown")
        report.sound()


def test_the_first_row_is_selected_and_drawn(shown: Shown) -> None:
    shown.tab.wait_for_function(DRAWN)
    assert "index.build" in shown.title()
    axis: str = shown.tab.evaluate("document.getElementById('law-chart').layout.xaxis.type")
    assert axis == "log"
    shown.tab.click("#axes >> text=linear")
    assert shown.tab.evaluate("document.getElementById('law-chart').layout.yaxis.type") == "linear"
    shown.tab.click("#axes >> text=log–log")


def test_no_button_of_the_charts_leaves_the_page(shown: Shown) -> None:
    titles = "[...document.querySelectorAll('#law-chart .modebar-btn')].map((button) => button.dataset.title)"
    kept = ["Download plot as a PNG", "Download plot as an SVG"]
    assert shown.tab.evaluate(titles) == [*kept, "Zoom", "Pan", "Reset axes"]
    for name, head in zip(kept, (b"\x89PNG", b"<svg"), strict=True):
        with shown.tab.expect_download() as download:
            shown.tab.click(f"#law-chart .modebar-btn[data-title='{name}']")
        assert download.value.path().read_bytes().startswith(head)
    shown.sound()


def test_headings_sort_and_say_so(shown: Shown) -> None:
    by_share = shown.names()
    shown.tab.click("th[data-column=function] button")
    assert shown.tab.get_attribute("th[data-column=function]", "aria-sort") == "ascending"
    assert shown.names() == sorted(by_share, key=str.lower)
    shown.tab.click("th[data-column=share] button")
    assert shown.tab.get_attribute("th[data-column=share]", "aria-sort") == "descending"
    assert shown.names()[:3] == by_share[:3]


def test_filters_hide_rows(shown: Shown) -> None:
    shown.tab.fill("#text", "CACHE.")
    assert shown.names() == ["cache.fetch", "cache.get"]
    shown.tab.fill("#text", "")
    shown.tab.click("#filters >> text=1 inconclusive")
    assert shown.names() == ["load.rows"]
    shown.tab.click("#shown >> text=show all")
    assert len(shown.names()) == len(factory.all_kinds())


def test_keys_move_the_selection_and_links_name_it(shown: Shown) -> None:
    shown.tab.click("#laws tbody tr >> nth=0")
    shown.tab.keyboard.press("ArrowDown")
    shown.wait_for("sort.merge")
    assert "#/component/sort.merge" in shown.tab.url
    shown.tab.evaluate("location.hash = '#component=pkg.mod12.Class4.method_199'")
    shown.wait_for("method_199")
    assert shown.tab.get_attribute("#laws tr[aria-selected=true]", "data-index") == "206"


def test_hostile_names_are_text(shown: Shown) -> None:
    shown.tab.evaluate("document.getElementById('scroll').scrollTop = 0")
    shown.tab.click("#laws tr[data-index='6'] .c-verdict")
    shown.wait_for("alert(1)")
    title = shown.tab.text_content("#detail h2") or ""
    assert factory.HOSTILE in title
    drawn = shown.tab.text_content("#law-chart .xtitle") or ""
    assert drawn.startswith("<script>alert(1)</script></script><b onload")
    legend = shown.tab.text_content("#law-chart .legend") or ""
    assert "<script>alert(1)</script></script><b onload" in legend
    assert (
        shown.tab.evaluate("document.querySelectorAll('#detail script, #detail [onload], a[href^=javascript]').length")
        == 0
    )


def test_constant_laws_are_drawn_against_every_feature(shown: Shown) -> None:
    shown.tab.evaluate("document.getElementById('scroll').scrollTop = 0")
    shown.tab.click("#laws tr[data-index='4'] .c-verdict")
    shown.wait_for("cache.get")
    shown.tab.select_option("#feature", "k")
    assert "without a value" in shown.tab.inner_text("#chart-note")
    means = "document.getElementById('law-chart').data.find((trace) => trace.name === 'law').y"
    assert shown.tab.evaluate(means) == pytest.approx([4e-7, 4e-7])


@pytest.mark.parametrize("at", [None, {"n": 1e6}])
def test_rows_hold_the_laws_of_the_terminals_table(
    browser: Browser, tmp_path: Path, at: dict[str, float] | None
) -> None:
    asked = [factory.quadratic(), factory.n_log_n(), factory.linear(), factory.constant(), factory.inconclusive()]
    if at:
        asked = [replace(one, predicted=factory.prediction(at, 41e9 * one.share)) for one in asked]
    annotations = [*asked, factory.two_modes()]
    table = annotations_table(annotate_document(annotations, [], at), False, every=True)
    shown = Shown(browser, tmp_path / "rows.html", annotations, at=at)
    columns = ["share", "self", "function .name", "law", "grows", "predicted"]
    cells = "(one) => [...document.querySelectorAll(`#laws tbody .c-${one}`)].map((cell) => cell.textContent)"
    page = {name: [re.sub(r"[\s\xa0]", "", text) for text in shown.tab.evaluate(cells, name)] for name in columns}
    share, name, law, growth, last = cells_of(table)
    assert (share, name, growth) == (page["share"], page["function .name"], page["grows"])
    assert law == [one.replace("·{", "{") for one in page["law"]]  # several laws stand below each other in the terminal
    assert last == page["predicted" if at else "self"]
    heading = shown.tab.inner_text("th.c-law")
    assert heading == "law of time per run"
    assert heading.removeprefix("law of ") in table
    shown.close()


def cells_of(table: str) -> list[list[str]]:
    """The columns of a terminal's table, without the spaces in its cells."""
    head, *lines = table.splitlines()
    starts = [0, *(head.index(name) for name in ("function", "time per", "grows as")), head.rindex("  ") + 2]
    columns: list[list[str]] = [[] for _ in starts]
    for line in lines:
        if line.startswith("? "):
            break
        if line[: starts[1]].strip():
            for column in columns:
                column.append("")
        for column, start, end in zip(columns, starts, [*starts[1:], None], strict=True):
            column[-1] += re.sub(r"\s", "", line[start:end])
    return columns


def test_edges_are_drawn_without_a_complaint(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path / "edges.html", factory.edges())
    for index, annotation in enumerate(factory.edges()):
        shown.tab.click(f"#laws tr[data-index='{index}'] .c-verdict")
        shown.wait_for(annotation.component.name.replace("\udcff", ""))
        for axes in ("linear", "log–log"):
            if shown.tab.query_selector("#law-chart"):
                shown.tab.click(f"#axes >> text={axes}")
    assert shown.problems == []
    shown.tab.close()


def test_an_empty_experiment_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path / "empty.html", [], runs=[])
    assert "perflaw record" in shown.tab.inner_text("#components")
    assert shown.problems == []
    shown.tab.close()


@pytest.mark.slow
def test_two_thousand_components_open_and_sort(browser: Browser, tmp_path: Path) -> None:
    shown = Shown(browser, tmp_path / "many.html", factory.many(2000, size=3))
    shown.tab.wait_for_function(DRAWN)
    shown.tab.click("#shown >> text=show all")
    shown.tab.click("th[data-column=calls] button")
    assert len(shown.names()) == 2000
    shown.tab.close()


@pytest.mark.slow
def test_whole_runs_and_what_is_no_function_stand_below_the_table(browser: Browser, tmp_path: Path) -> None:
    law = factory.quadratic().scopes[0].law
    at = dict.fromkeys(law.features, 100.0)
    outside = replace(law.predictions[0], features=at, mean=2e9, mean_low=1e9, mean_high=3e9)
    collecting = replace(outside, mean=5e8, mean_low=4e8, mean_high=6e8)
    parts = (
        ProgramPart(Component(COLLECTING, "", 0), 0.04, law, collecting),
        ProgramPart(Component(OUTSIDE, "", 0), 0.12, law, outside),
    )
    whole = replace(outside, mean=9e9, mean_low=8e9, mean_high=1e10)
    program = ProgramForecast({}, 3e8, 3.1e8, 1e8, 12, whole, 0.0, parts)
    shown = Shown(browser, tmp_path / "report.html", factory.all_kinds(), program=program, at=at)
    rows = shown.tab.locator("#whole tbody tr")
    assert rows.count() == 2
    assert [rows.nth(i).locator("td").nth(1).inner_text() for i in range(2)] == [OUTSIDE, COLLECTING]
    assert rows.nth(0).locator("td").nth(0).inner_text() == "12 %"
    assert rows.nth(0).locator("td").nth(4).inner_text() == "2.0 s (1.0–3.0)"
    assert shown.tab.inner_text("#whole p").startswith("whole program at docs.len = 100: 9.0 s (8.0–10)")
    shown.sound()
    shown.tab.close()
    without = Shown(browser, tmp_path / "report.html", factory.all_kinds())
    assert not without.tab.is_visible("#whole")
    without.tab.close()


@pytest.mark.slow
def test_a_function_called_once_a_run_costs_what_the_run_does_in_it(browser: Browser, tmp_path: Path) -> None:
    law = factory.quadratic().scopes[0].law
    [name] = law.features
    far = replace(law.predictions[-1], features={name: 5000.0}, mean=7.5e9, mean_low=7e9, mean_high=8e9)
    run_law = replace(factory.n_log_n().scopes[0].law, features=(name,), range=law.range, runs=9, predictions=(far,))
    mean = product([number(1.5e6), Name(name)])
    run_law = replace(run_law, mean=mean, expression=distribution(mean, run_law.noise))
    once = replace(factory.quadratic(), calls=9, run_law=run_law, scopes=(Scope(None, 1.0, run_law),))
    shown = Shown(browser, tmp_path / "report.html", [once])
    shown.tab.wait_for_function(DRAWN)
    shown.tab.fill(f"#detail .ask input[data-feature='{name}']", "5000")
    assert shown.tab.inner_text("#answer b") == "7.5 s"
    assert "of the mean 7.0 s–8.0 s" in shown.tab.inner_text("#answer")
    assert shown.tab.locator("#detail section.law").count() == 1  # one law, of calls and of runs
    shown.sound()
    shown.tab.close()
