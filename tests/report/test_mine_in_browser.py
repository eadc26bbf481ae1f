"""The call-path view in a real browser: list, table, graph, durations, merging, links, keys; the network is not asked."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from perflaw.report.mine.text import MineView

from . import factory, specs_factory, variance_factory
from .shown import Shown

TITLED = "(name) => document.querySelector('#spec h2')?.textContent.includes(name)"


class Specs(Shown):
    """A page whose call-path view is shown."""

    def wait_for_spec(self, name: str) -> None:
        self.tab.wait_for_function(TITLED, arg=name)

    def card(self, title: str) -> str:
        return self.tab.inner_text(f"#spec .panel:has(h3:text-is('{title}'))")


AT = 1_700_000_000_000_000_000
JOURNAL = [
    {"at_ns": AT, "event": "begin", "pid": 7, "program": "httpd", "target": 0.02},
    {
        "at_ns": AT, "event": "decision", "why": "callers of level 1, not settled yet", "utility": 1.0, "number": 2,
        "kind": "paths", "functions": ["semop"], "callers": ["acquire", "release"], "expected_calls": 9.0, "seconds": 1.0,
    },
    {"at_ns": AT, "event": "measurement", "request": 2, "calls": 1234, "spent_ms": 5.25, "seconds": 1.0, "run": "0001"},
    {"at_ns": AT, "event": "finding", "request": 2, "what": "semop: 1 border (stable)"},
    {
        "at_ns": AT, "event": "budget", "start_s": 0.0, "seconds": 10.0, "cpu_ns": 5_000_000_000, "spent_ns": 9.0e7,
        "own_ns": 400_000_000, "counts_own": False,
        "probes_s": 1.0, "measurements": 1, "paired": 0.04, "action": "semop is observed 1/2 as long", "share": 0.018,
    },
]  # fmt: skip


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Specs]:
    view = MineView(specs_factory.specs(), specs_factory.steps(), JOURNAL)
    made = Specs(browser, tmp_path_factory.mktemp("mine") / "m.html", [], mine=view)
    made.wait_for_spec("semop")
    yield made
    made.close()


def choose(shown: Specs, place: int, name: str) -> None:
    shown.tab.click(f"#specs [data-spec='{place}']")
    shown.wait_for_spec(name)


def test_the_journal_says_what_was_decided_and_what_it_cost(shown: Specs) -> None:
    assert "How it was measured in the running program" in shown.tab.inner_text("#mine")
    text = shown.tab.text_content("#mine .panel:has(h3:text-is('How it was measured in the running program'))")
    for words in (
        "semop is observed 1/2 as long",
        "1.8 %",
        "paths with 2 callers",
        "1,234 calls, 5.2 ms",
        "1 border (stable)",
        "Budget: 2.0 % of the program's throughput",
    ):
        assert words in text, text


def test_a_phone_shows_names_and_does_not_scroll_sideways(shown: Specs) -> None:
    before = shown.tab.viewport_size
    shown.tab.set_viewport_size({"width": 360, "height": 800})
    try:
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= 360
        name = shown.tab.locator("#specs .name").first.bounding_box()
        title = shown.tab.locator("h3:text-is('How it was measured in the running program')").bounding_box()
        assert name["width"] > 100, name
        assert title["x"] + title["width"] <= 360, title
    finally:
        shown.tab.set_viewport_size(before)


def test_the_table_is_the_papers(shown: Specs) -> None:
    choose(shown, 0, "semop")
    text = shown.card("Expected of each group")
    for words in (
        "all other callers: proc_mutex_sysv_release",
        "e1 and not e2",
        "99 %",
        "41 %",
        "65 %",
        "t <= 70 ms",
        "t > 70 ms",
    ):
        assert words in text
    assert "e1 child_main -> proc_mutex_sysv_acquire" in " ".join(text.split())


def test_calls_of_one_behaviour_are_coloured_and_those_of_several_are_not(shown: Specs) -> None:
    choose(shown, 0, "semop")
    told = "all => all.map(e => [e.getAttribute('class').split(' ')[1], e.dataset.groups])"
    classes = shown.tab.eval_on_selector_all("#spec .calls", told)
    assert {kind for kind, groups in classes if groups in ("0", "1", "2")} == {"g0", "g1", "g2"}
    assert {kind for kind, groups in classes if " " in groups} == {"mixed"}
    assert [kind for kind, groups in classes if groups == "-1"] == ["unknown", "unknown"]
    assert shown.tab.locator("#spec .call-name text").all_text_contents() == ["e1", "e2"]
    strokes = "all => [...new Set(all.map(e => getComputedStyle(e).stroke))]"
    kinds = "#spec .calls.g0, #spec .calls.g1, #spec .calls.mixed"
    assert len(shown.tab.eval_on_selector_all(kinds, strokes)) == 3


def test_no_boxes_overlap(shown: Specs) -> None:
    choose(shown, 0, "semop")
    boxes = shown.tab.evaluate(
        """[...document.querySelectorAll('#spec .call > rect')].map((e) => e.getBoundingClientRect())
           .map((b) => [b.left, b.right, b.top, b.bottom])"""
    )
    assert len(boxes) == 7
    overlaps = [
        (a, b) for a, b in combinations(boxes, 2) if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]
    assert overlaps == []


def test_a_graph_too_large_begins_at_the_function(shown: Specs) -> None:
    style = shown.tab.add_style_tag(content=".calls-scroll { max-height: 130px !important; width: 260px; }")
    choose(shown, 1, "app.steady")
    choose(shown, 0, "semop")
    left, right, top, bottom = (shown.tab.evaluate(
        "(end) => document.querySelector('.call.target rect').getBoundingClientRect()[end]"
        " - document.querySelector('.calls-scroll').getBoundingClientRect()[end]", end,
    ) for end in ("left", "right", "top", "bottom"))  # fmt: skip
    style.evaluate("(e) => e.remove()")
    assert left >= 0 >= right
    assert top >= 0 >= bottom


def test_durations_stand_beside_their_border(shown: Specs) -> None:
    choose(shown, 0, "semop")
    assert shown.tab.locator("#spec .border-text").all_text_contents() == ["70 ms"]
    at = "(e) => e.getBoundingClientRect().x"
    border = shown.tab.locator("#spec .border").first.evaluate(at)
    bars = shown.tab.eval_on_selector_all("#spec .duration.g1", "all => all.map((e) => e.getBoundingClientRect().x)")
    assert min(bars) < border < max(bars)


def test_odd_names_and_standings_are_plain_text(shown: Specs) -> None:
    choose(shown, 2, "operator->")
    text = shown.card("Expected of each group")
    assert "(inseparable)" in text
    assert "by machine" in text
    assert "there" in text
    choose(shown, 1, "app.steady")
    assert "always" in shown.card("Expected of each group")


def test_merging_is_drawn_as_boxes_beside_chance(shown: Specs) -> None:
    assert shown.tab.locator("#mine .box-plot").count() == 2
    assert shown.tab.locator("#mine .box").count() == 8
    assert shown.tab.locator("#mine .box .chance").count() == 8
    assert "not compared, missing on one side: gone" in shown.tab.inner_text("#mine")


def test_keys_filter_and_links_lead_to_functions(shown: Specs) -> None:
    choose(shown, 0, "semop")
    shown.tab.keyboard.press("ArrowDown")
    shown.wait_for_spec("app.steady")
    assert "/specification/app.steady" in shown.tab.evaluate("location.hash")
    shown.tab.keyboard.press("/")
    shown.tab.keyboard.type("sem")
    assert shown.tab.inner_text("#specs-shown") == "1 of 3"
    shown.tab.keyboard.press("Escape")
    assert shown.tab.inner_text("#specs-shown") == "3 functions"
    shown.tab.evaluate("location.hash = '#view=mine&function=semop&theme=dark'")
    shown.wait_for_spec("semop")
    assert shown.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    shown.tab.evaluate("location.hash = '#view=mine&function=semop&theme=auto'")


@pytest.mark.slow
def test_it_is_one_view_among_others(browser: Browser, tmp_path: Path) -> None:
    view = MineView(specs_factory.specs())
    laws = [factory.quadratic(), factory.linear()]
    made = Specs(browser, tmp_path / "all.html", laws, mine=view, variance=variance_factory.server())
    made.tab.click("#views >> text=call paths")
    made.wait_for_spec("semop")
    assert made.tab.locator("#variance").is_hidden()
    made.tab.click("#views >> text=variance")
    assert made.tab.locator("#mine").is_hidden()
    made.close()
