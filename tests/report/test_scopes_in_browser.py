"""Laws with scopes in a real browser: regions, mixtures, branches, types, call edges, several features, breakpoints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from . import factory, scopes_factory
from .shown import DRAWN, Shown


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    made = Shown(browser, tmp_path_factory.mktemp("page") / "scopes.html", scopes_factory.all_scopes())
    made.tab.wait_for_function(DRAWN)
    yield made
    made.close()


def answer(shown: Shown, **values: str) -> str:
    for name, value in values.items():
        shown.tab.fill(f".ask-inputs [data-feature='{name}']", value)
    return shown.tab.inner_text("#answer")


def test_numeric_conditions_are_regions_with_a_curve_each(shown: Shown) -> None:
    shown.select("app.regimes")
    small, large = (shape for shape in shown.shapes() if shape["type"] == "rect")
    assert small["x1"] == pytest.approx(500)
    assert large["x0"] == pytest.approx(500)
    below, above = shown.trace("n ≤ 500"), shown.trace("n > 500")
    assert max(below["x"]) == pytest.approx(500)
    assert below["y"][-1] == pytest.approx(400 * 500e-9)
    inside = [(x, y) for x, y in zip(above["x"], above["y"], strict=True) if y is not None]
    assert inside[0][1] == pytest.approx(2 * inside[0][0] ** 2 * 1e-9)
    assert inside[0][0] == pytest.approx(501, abs=1)
    points = shown.trace("n > 500", "markers")
    assert min(points["x"]) > 500
    assert points["colour"] != shown.trace("n ≤ 500", "markers")["colour"]


def test_points_may_be_coloured_by_run_instead(shown: Shown) -> None:
    shown.select("app.regimes")
    shown.tab.click("text=by run")
    names = [trace["name"] for trace in shown.traces() if trace["mode"] == "markers"]
    assert names == [f"run-{i}" for i in range(1, 10)]
    shown.tab.click("text=by law")


def test_laws_not_told_apart_are_drawn_on_demand(shown: Shown) -> None:
    shown.select("app.regimes")
    names = [trace["name"] for trace in shown.traces()]
    assert "equally good: power" not in names
    shown.tab.check("#alternatives")
    other = shown.trace("equally good: power")
    assert other["y"][-1] == pytest.approx(2.9 * other["x"][-1] ** 1.95 * 1e-9)
    shown.tab.wait_for_url("**alternatives=1**")
    shown.tab.uncheck("#alternatives")


def test_mixtures_are_densities_of_their_parts(shown: Shown) -> None:
    shown.select("app.lottery")
    shown.tab.wait_for_function("() => document.querySelectorAll('#density-chart .main-svg').length > 0")
    traces = shown.traces("density-chart")
    assert [trace["name"] for trace in traces] == [
        "points", "30 % of the calls", "40 % of the calls", "30 % of the calls",
    ]  # fmt: skip
    peaks = [trace["x"][trace["y"].index(max(trace["y"]))] for trace in traces[1:]]
    assert peaks == pytest.approx([9e-4, 6e-4, 3e-4], rel=0.05)
    # six values a bar: the areas are the probabilities
    assert [sum(trace["y"]) / 6 for trace in traces[1:]] == pytest.approx([0.3, 0.4, 0.3], abs=0.03)
    assert "30 % of the calls: 900 µs" in shown.tab.inner_text("#detail .words")


def test_branches_types_and_call_edges_are_readable(shown: Shown) -> None:
    shown.select("app.branches")
    assert "branch at line 12 taken: " in shown.tab.inner_text("#detail .words")
    assert len(shown.trace("branch at line 12 never taken", "markers")["x"]) > 100
    shown.select("app.types")
    assert {"x is int", "x is not int"} <= {trace["name"] for trace in shown.traces()}
    shown.select("app.cached")
    names = {trace["name"] for trace in shown.traces()}
    assert {"calls db.<locals>.query · 80 %", "does not call db.<locals>.query"} <= names


def test_the_law_is_asked_at_a_typed_size(shown: Shown) -> None:
    shown.select("app.regimes")
    assert answer(shown, n="100").startswith("40 µs")
    told = answer(shown, n="1e5")
    assert told.startswith("20 s")
    assert "beyond the data: n was 501–10,000 in the data" in told
    mark = shown.trace("asked", "markers")
    assert (mark["x"], mark["y"]) == ([1e5], [pytest.approx(20)])
    shown.select("app.types")
    shown.tab.select_option("[data-feature='x.type']", "str")
    assert answer(shown, **{"x.len": "10"}).startswith("600 ns")
    shown.select("app.cached")
    told = answer(shown, **{"calls.db.<locals>.query": "1", "n": "5"})
    assert told.startswith("1.0 ms on average")
    assert "20 %: 5.0 ms" in told


def test_other_features_are_held_by_sliders(shown: Shown) -> None:
    shown.select("app.product")
    shown.tab.fill("[data-held=b]", "10")
    law = shown.trace("law")
    assert law["y"][0] == pytest.approx(40e-9 * law["x"][0] * 10**2)
    shown.tab.focus("[data-slider=b]")
    shown.tab.keyboard.press("End")
    law = shown.trace("law")
    highest = float(shown.tab.input_value("[data-held=b]"))
    assert highest > 150
    assert law["y"][0] == pytest.approx(40e-9 * law["x"][0] * highest**2)
    shown.tab.select_option("#feature", "b")
    law = shown.trace("law")
    assert law["y"][0] / law["x"][0] ** 2 == pytest.approx(law["y"][5] / law["x"][5] ** 2)
    shown.tab.wait_for_url("**x=b**held.b=**")
    shown.tab.click("#axes >> text=linear")
    assert shown.tab.evaluate("document.getElementById('law-chart').layout.xaxis.type") == "linear"
    shown.tab.click("#axes >> text=log–log")


def test_breakpoints_have_their_interval(shown: Shown) -> None:
    shown.select("app.piecewise")
    [band] = [shape for shape in shown.shapes() if shape.get("name") == "breakpoint"]
    assert (band["x0"], band["x1"]) == (880, 1130)
    assert "breaks at 1,000 (880–1,130)" in (shown.tab.text_content("#law-chart") or "")
    assert answer(shown, n="2000").startswith("320 µs")


def test_exponential_growth_is_drawn_and_asked(shown: Shown) -> None:
    shown.select("app.tower")
    assert answer(shown, n="50").startswith("5.5 ms")
    shown.sound()


def test_what_is_not_of_the_language_is_only_left_out(shown: Shown) -> None:
    shown.select("app.unreadable")
    assert [trace["name"] for trace in shown.traces() if trace["mode"] == "markers"][-1] == "in no scope"
    shown.sound()


def test_a_link_shows_the_same_again(browser: Browser, shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = "#component=app.regimes&axes=linear&alternatives=1&at.n=1000&theme=dark&sort=-function&filter=app.r"
    again = Shown(
        browser, tmp_path_factory.mktemp("page") / "again.html", scopes_factory.all_scopes(), link=link
    )  # fmt: skip
    again.wait_for("app.regimes")
    again.tab.wait_for_function(DRAWN)
    assert again.tab.evaluate("document.getElementById('law-chart').layout.yaxis.type") == "linear"
    assert again.trace("equally good: power")
    assert again.tab.inner_text("#answer").startswith("2.0 ms")
    assert again.tab.get_attribute("html", "data-theme") == "dark"
    assert again.tab.inner_text("[data-choice=theme] [aria-pressed=true]") == "dark"
    assert again.tab.get_attribute("th[data-column=function]", "aria-sort") == "descending"
    assert again.tab.input_value("#text") == "app.r"
    assert again.names() == ["app.regimes"]
    again.close()


def test_a_bare_link_names_a_component_and_a_broken_one_nothing(browser: Browser, shown: Shown) -> None:
    tab = shown.tab
    tab.evaluate("location.hash = '#app.product'")
    shown.wait_for("app.product")
    tab.evaluate("location.hash = '#component=%E0%A4%A&held.=x&axes=evil&theme=__proto__&at.n=NaN&=&sort=toString'")
    tab.evaluate("location.hash = '#component=app.tower'")
    shown.wait_for("app.tower")
    shown.sound()


def test_keys_reach_everything(shown: Shown) -> None:
    tab = shown.tab
    tab.click("#laws tbody tr >> nth=0")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "text"
    tab.keyboard.type("lottery")
    assert shown.names() == ["app.lottery"]
    tab.keyboard.press("Escape")
    assert len(shown.names()) == len(scopes_factory.all_scopes())
    tab.click("#laws tbody tr >> nth=0")
    tab.keyboard.press("End")
    shown.wait_for("app.unreadable")
    tab.keyboard.press("Home")
    shown.wait_for("app.regimes")
    tab.focus("#alternatives")
    tab.keyboard.press("Space")
    assert shown.trace("equally good: power")
    tab.keyboard.press("Space")


def test_colours_follow_the_choice(shown: Shown) -> None:
    shown.select("app.product")
    background = "getComputedStyle(document.body).backgroundColor"
    shown.tab.click("[data-choice=theme] >> text=dark")
    assert shown.tab.evaluate(background) == "rgb(20, 23, 27)"
    assert (
        shown.tab.evaluate("document.getElementById('law-chart').data.find((t) => t.name === 'law').line.color")
        == "#f0f3f6"
    )
    shown.tab.click("[data-choice=theme] >> text=light")
    assert shown.tab.evaluate(background) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_intervals_come_from_the_learner_s_curve(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    shown = Shown(browser, tmp_path_factory.mktemp("page") / "one.html", [factory.linear()])
    shown.tab.wait_for_function(DRAWN)
    assert answer(shown, **{"text.len": "1000"}).startswith("15 µs 95 % of the mean 14 µs–15 µs")
    assert "perflaw predict" in answer(shown, **{"text.len": "1e9"})
    shown.close()
