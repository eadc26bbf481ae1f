"""`perflaw serve` in a real browser: the index and a page open and follow what is recorded; axe finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from perflaw.mine.journal import Journal
from perflaw.store.checks import keep_check
from perflaw.store.experiment import open_experiment
from tests.cli.test_serve import COMMAND, RECORD, damage, serving
from tests.conftest import run_perflaw, started_perflaw
from tests.explore.tiny import ONE_SHOT, write

PATIENCE_MS = 60_000
VERDICTS = [{"verdict": "violated", "component": "app.f"}, {"verdict": "holds", "component": "app.g"}]


@pytest.mark.slow
def test_index_and_page_open_and_follow(browser: Browser, tmp_path: Path) -> None:
    run_perflaw(tmp_path, *RECORD, *COMMAND)
    keep_check(tmp_path / ".perflaw" / "default", "perf.law", {"verdicts": VERDICTS, "runs": []})
    damage(tmp_path)
    problems: list[str] = []
    with serving(tmp_path) as server:
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]  # a literal
            tab.set_default_timeout(PATIENCE_MS)
            tab.on("pageerror", lambda error: problems.append(str(error)))
            tab.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
            tab.goto(server.address)
            tab.wait_for_selector("tr[data-experiment=cut] .error")
            tab.wait_for_selector("text=1 violated · 1 holds")
            assert tab.evaluate("document.documentElement.scrollWidth") <= 360
            assert found(tab) == []
            tab.click("tr[data-experiment=cut] a")
            expect(tab.locator(".live-error")).to_contain_text("truncated or damaged")
            assert found(tab) == []
            tab.click("text=all experiments")
            tab.click("tr[data-experiment=default] a")
            tab.wait_for_selector("#matters")
            expect(tab.locator(".live-text")).to_contain_text("up to date", timeout=PATIENCE_MS)
            assert found(tab) == []
            tab.close()
        # What is recorded meanwhile appears in both, and what was selected stays.
        index, tab = browser.new_page(), browser.new_page()
        for one in (index, tab):
            one.set_default_timeout(PATIENCE_MS)
        index.goto(server.address)
        tab.goto(f"{server.address}/experiments/default#/components")
        tab.wait_for_selector("#laws tbody tr")
        tab.click("#laws tbody tr:nth-child(2)")
        selected, version = tab.inner_text("#detail h2"), tab.get_attribute("#live", "data-version")
        untouched = index.query_selector("tr[data-experiment=cut]")
        run_perflaw(tmp_path, *RECORD, *COMMAND)
        expect(index.locator("tr[data-experiment=default]")).to_contain_text("6 runs", timeout=PATIENCE_MS)
        assert untouched and untouched.is_visible()  # it is the same row
        # On a busy machine a page is also made while the runs are recorded one by one.
        expect(tab.locator(".recorded")).to_contain_text("6 runs", timeout=PATIENCE_MS)
        assert tab.get_attribute("#live", "data-version") != version
        assert tab.inner_text("#detail h2").split()[0] == selected.split()[0]
        # Whoever types is not interrupted.
        tab.fill("#text", "shifting")
        version = tab.get_attribute("#live", "data-version")
        run_perflaw(tmp_path, *RECORD[:-1], "n=200", *COMMAND)
        tab.click("text=show what is new")
        tab.wait_for_function("(old) => document.querySelector('#live')?.dataset.version !== old", arg=version)
        assert tab.input_value("#text") == "shifting"
        # A server that has gone is told.
        server.process.kill()
        expect(index.locator("#late")).to_be_visible(timeout=PATIENCE_MS)
        expect(tab.locator(".live-error")).to_contain_text("does not answer", timeout=PATIENCE_MS)
    assert problems == []


@pytest.mark.slow
def test_decisions_of_mining_are_shown_before_anything_is_recorded(browser: Browser, tmp_path: Path) -> None:
    target = open_experiment("live", tmp_path)
    target.make()
    request = {"kind": "samples", "functions": ["shop.<lambda>"], "callers": [], "seconds": 1.0}
    journal, problems = Journal(target.folder), []
    journal.write("begin", {"target": 0.02, "of": "throughput"})
    with serving(tmp_path) as server:
        for number, scheme in enumerate(("light", "dark")):
            why = f"nothing is known of it, told {number}"
            journal.write("decision", {"number": number, "why": why, "utility": 1.0, "expected_calls": 1.0, **request})
            tab = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]  # a literal
            tab.set_default_timeout(PATIENCE_MS)
            tab.on("pageerror", lambda error: problems.append(str(error)))
            tab.goto(server.address)
            expect(tab.locator("tr[data-experiment=live]")).to_contain_text("mining")
            tab.click("tr[data-experiment=live] a")
            expect(tab.locator("#decisions tbody tr:first-child")).to_contain_text(why)
            expect(tab.locator("#decisions")).to_contain_text("shop.<lambda>")
            expect(tab.locator(".live-text")).to_contain_text("no recording yet")
            assert tab.evaluate("document.documentElement.scrollWidth") <= 360
            assert found(tab) == []
            # The next one appears by itself.
            later = {"number": 7, "why": f"later {scheme}", "utility": 0.5, "expected_calls": 1.0, **request}
            journal.write("decision", later)
            expect(tab.locator("#decisions tbody tr:first-child")).to_contain_text(f"later {scheme}")
            tab.screenshot(path=tmp_path / f"{scheme}.png")
            tab.close()
    journal.close()
    assert problems == []


SHOP = """
import time

def price(n):
    return sum(number * number for number in range(n))

def serve(number):
    return price(200) if number % 5 else price(2000)

number, end = 0, time.monotonic() + 30
while time.monotonic() < end:
    serve(number := number + 1)
"""


@pytest.mark.slow
def test_a_program_that_is_mined_and_a_study_are_followed_while_they_go_on(browser: Browser, tmp_path: Path) -> None:
    """Rows and pages change by themselves, from the first decision and trial to the last."""
    (tmp_path / "shop.py").write_text(SHOP)
    write(tmp_path, ONE_SHOT + "policy: random\ntrials: 9\n")
    mine = ("mine", "-e", "live", "--budget", "50%", "--", "shop.py")
    problems: list[str] = []
    with serving(tmp_path) as server, started_perflaw(tmp_path, *mine) as loop:
        index, tab = browser.new_page(), browser.new_page(viewport={"width": 360, "height": 800})
        for one in (index, tab):
            one.set_default_timeout(PATIENCE_MS)
            one.on("pageerror", lambda error: problems.append(str(error)))
            one.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        index.goto(server.address)
        expect(index.locator("tr[data-experiment=live]")).to_contain_text("mining", timeout=PATIENCE_MS)
        tab.goto(f"{server.address}/experiments/live")
        expect(tab.locator("#decisions")).to_contain_text("shop.", timeout=PATIENCE_MS)
        with started_perflaw(tmp_path, "explore", "study.yaml", "-e", "study") as study:
            expect(index.locator("tr[data-experiment=study]")).to_contain_text("exploring", timeout=PATIENCE_MS)
            _, told = study.communicate(timeout=120)
            assert study.returncode == 0, told
        expect(index.locator("tr[data-experiment=study]")).to_contain_text("9 trials", timeout=PATIENCE_MS)
        _, told = loop.communicate(timeout=120)
        assert loop.returncode == 0, told
        expect(index.locator("tr[data-experiment=live]")).not_to_contain_text("mining,", timeout=PATIENCE_MS)
        expect(tab.locator("body")).to_contain_text("shop.price", timeout=PATIENCE_MS)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        assert found(tab) == []
        tab.screenshot(path=tmp_path / "mined.png")
        index.screenshot(path=tmp_path / "index.png")
    assert problems == []


def found(tab: object) -> list[tuple[str, str]]:
    """What axe finds."""
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in Axe().run(tab).response["violations"]]
