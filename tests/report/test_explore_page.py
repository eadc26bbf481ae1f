"""A study's page in a real browser: maps, bars, sliders, progress, front, trials; it follows a study and keeps the place."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from perflaw.learn.exploring.result import study_result
from perflaw.report.explore.page import render_study
from perflaw.types.explored import StudyResult
from tests import studies_factory as made

STUDY = made.study(made.THROUGHPUT, made.MEMORY, knobs=made.THREADED)


def result(unfinished: bool = False) -> StudyResult:
    trials = [
        replace(one, metrics={**one.metrics, "memory": 3e7 + 1e6 * float(one.configuration["threads"])})
        for one in made.collapsing()
    ]
    trials[5] = replace(trials[5], stopped="cannot win any more", measured_s=0.5)
    trials[12] = replace(trials[12], valid=False, metrics={}, reason="page_size: asked 2097152, the target says 4096")
    trials[20] = replace(trials[20], contaminated="others used 1.8 CPUs")
    return study_result(STUDY, trials, made.space(STUDY), unfinished=unfinished)


class Opened:
    """The page in a tab, with what it asked for and complained about."""

    def __init__(self, browser: Browser, path: Path, found: StudyResult) -> None:
        path.write_text(render_study(found, 7), encoding="utf-8")
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.tab: Tab = browser.new_page(viewport={"width": 1300, "height": 900}, color_scheme="light")
        self.tab.set_default_timeout(60_000)
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.as_uri())
        self.tab.wait_for_selector("#trials tbody tr")

    def count(self, selector: str) -> int:
        return self.tab.locator(selector).count()

    def close(self) -> None:
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith("file:")] == []
        self.tab.close()


@pytest.fixture(scope="module")
def found() -> StudyResult:
    return result()


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory, found: StudyResult) -> Iterator[Opened]:
    made_page = Opened(browser, tmp_path_factory.mktemp("explore") / "study.html", found)
    yield made_page
    made_page.close()


def test_the_best_and_the_warnings_are_told(shown: Opened) -> None:
    assert "sure that no configuration is better by more than 5 %" in shown.tab.inner_text("#best")
    notices = shown.tab.inner_text("#notices")
    for words in ("hidden lock?", "asked 2097152, the target says 4096", "disturbed by other programs", "ended early"):
        assert words in notices


def test_maps_are_of_one_scale_and_tell_their_trials(shown: Opened) -> None:
    assert shown.count("#maps svg.map") == 2
    assert shown.count("#maps .cell.best") == 1
    assert shown.count("#maps .cell") == 2 * 8 * 4
    title = shown.tab.locator("#maps .cell:not(.expected) title").first.text_content()
    assert title is not None
    assert "trial" in title
    shown.tab.locator("#maps .cell:not(.expected)").first.click()
    assert shown.count("#trials tr.pointed") == 1


def test_the_person_chooses_the_axes_of_the_maps(shown: Opened) -> None:
    shown.tab.select_option("[data-axis=facet]", "")
    assert shown.count("#maps svg.map") == 1
    shown.tab.select_option("[data-axis=facet]", "memory_status")
    assert shown.count("#maps svg.map") == 2


def test_shares_have_intervals(shown: Opened) -> None:
    assert "threads" in shown.tab.inner_text("#importance .share-row >> nth=0")
    assert shown.count("#importance .share-whisker") == shown.count("#importance .share-row") >= 2


def test_sliders_ask_the_law(shown: Opened, found: StudyResult) -> None:
    before = shown.tab.inner_text("#study-answer b")
    shown.tab.evaluate(
        """() => { const one = document.querySelector('[data-knob=threads]');
           one.value = 7; one.dispatchEvent(new Event('input')); }"""
    )
    after = shown.tab.inner_text("#study-answer b")
    assert before != after
    assert "% of what the law gives the best configuration" in shown.tab.inner_text("#study-answer")


def test_progress_marks_what_became_of_trials(shown: Opened) -> None:
    assert shown.count("#progress .mark.early") == 1
    assert shown.count("#progress .mark.invalid") == 1
    assert shown.count("#progress .mark.disturbed") == 1
    assert shown.count("#progress .best-line") == 1


def test_the_front_is_drawn_and_listed(shown: Opened, found: StudyResult) -> None:
    assert shown.count("#front .front-point") == len(found.pareto)


def test_trials_sort_and_filter(shown: Opened) -> None:
    numbers = "all => all.map(e => Number(e.dataset.trial))"
    shown.tab.click("#trials th button:has-text('throughput')")
    shown.tab.click("#trials th button:has-text('throughput')")
    order: list[int] = shown.tab.eval_on_selector_all("#trials tbody tr", numbers)
    assert order != sorted(order)
    shown.tab.fill("#trials-text", "2097152")
    assert shown.tab.eval_on_selector_all("#trials tbody tr", numbers) == [13]
    assert shown.tab.inner_text("#trials-shown") == "1 of 60"
    shown.tab.fill("#trials-text", "")


def test_another_metric_and_the_dark_are_chosen(shown: Opened) -> None:
    shown.tab.click("[data-choice=metric] [data-value=memory]")
    assert "memory" in shown.tab.inner_text("#maps h2")
    shown.tab.click("[data-choice=metric] [data-value=throughput]")
    shown.tab.click("[data-choice=theme] [data-value=dark]")
    assert shown.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    shown.tab.click("[data-choice=theme] [data-value=light]")


def test_an_unfinished_study_is_followed_without_losing_the_place(
    browser: Browser, tmp_path: Path, found: StudyResult
) -> None:
    path = tmp_path / "live.html"
    live = Opened(browser, path, replace(found, unfinished=True, trials=found.trials[:40]))
    assert live.count("#trials tbody tr") == 40
    live.tab.select_option("[data-axis=facet]", "")
    live.tab.evaluate("document.activeElement.blur(); scrollTo(0, 500)")
    path.write_text(render_study(found, 7), encoding="utf-8")
    live.tab.wait_for_function("() => document.querySelectorAll('#trials tbody tr').length === 60")
    place: Any = live.tab.evaluate("[scrollY, document.querySelectorAll('#maps svg.map').length]")
    assert place[1] == 1
    assert abs(place[0] - 500) < 40
    assert live.count("#live") == 0
    live.close()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_pages_of_few_trials_open(browser: Browser, tmp_path: Path, count: int) -> None:
    study = made.study()
    found = study_result(study, made.trials(made.sample(made.space(), count)), made.space())
    path = tmp_path / "few.html"
    path.write_text(render_study(found), encoding="utf-8")
    tab = browser.new_page()
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto(path.as_uri())
    tab.wait_for_selector("#trials")
    tab.close()
    assert problems == []


def test_the_page_is_small_and_needs_no_network(found: StudyResult) -> None:
    rendered = render_study(found)
    assert len(rendered) < 200_000
    assert "http://" not in rendered
    assert "https://" not in rendered
