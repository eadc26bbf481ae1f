"""Every plot of a report as a file: valid SVG with its words, a PNG that decodes, names that a person understands."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from perflaw.cli.report import write_plots
from perflaw.report.drawing import MAX_BARS, Plot, Series, bar_plot, histogram, line_plot
from perflaw.report.graph_drawing import MAX_PATTERN_NODES, flame_plot, pattern_plot
from perflaw.report.page.page import Page
from perflaw.report.plots import NamedPlot, checks_plot, cost_histogram, law_plot, page_plots, plots_index, plots_text
from tests.report import factory, trends_factory, variance_factory
from tests.report.test_accessible_page import CHECK, everything
from tests.report.test_flame_in_browser import page_document
from tests.report.test_html import page

BARS = "{http://www.w3.org/2000/svg}rect"


def words(plot: Plot) -> str:
    return "\n".join(ElementTree.fromstring(plot.svg).itertext())


@pytest.fixture(scope="module")
def shown() -> Page:
    return everything()


@pytest.fixture(scope="module")
def drawn(shown: Page) -> dict[str, NamedPlot]:
    plots = page_plots(shown)
    found = {one.name: one for one in plots}
    assert len(found) == len(plots)
    return found


@pytest.mark.slow
def test_every_view_with_plots_is_drawn(drawn: dict[str, NamedPlot]) -> None:
    for name, told in {
        "law_index.build": "index.build: time",
        "cluster_1_bubble.py_.*over_n": "executed in a run",
        "variance_app.handle_wall_time_histogram": "wall time of 1,000 calls",
        "variance_app.handle_wall_time_sources": "look_up",
        "variance_pattern_1_app.handle": "γ",
        "paths_semop": "border 70 ms",
        "paths_semop_graph": "proc_mutex_sysv_acquire",
        "profile_flame_graph": "app.load",
        "exploration_throughput_progress": "best so far",
        "exploration_throughput_importance": "threads",
        "exploration_throughput_over_threads": "expected, other knobs as in the best configuration",
        "exploration_throughput_over_memory_status": "off",
        "exploration_memory_over_page_size": "page_size",
        "exploration_Pareto_front_throughput_and_memory": "of the Pareto front",
        "exploration_map_throughput_over_.*": "not measured",
        "checks_history": "abc1234",
    }.items():
        found = [one for one in drawn.values() if re.fullmatch(name, one.name)]
        assert found, (name, list(drawn))
        assert all(told in words(one.plot) for one in found), name


DECODE = """async (url) => {
  const picture = new Image(); picture.src = url; await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
  const drawing = canvas.getContext("2d"); drawing.drawImage(picture, 0, 0);
  const title = drawing.getImageData(0, 10, canvas.width, 34).data, dark = new Set();
  title.forEach((_, i) => { if (i % 4 === 0 && title[i] < 100) dark.add((i / 4) % canvas.width); });
  return [canvas.width, canvas.height, dark.size, title[title.length - 4]];
}"""
"""Size of a PNG, in how many columns its title has dark dots, and the background beside it."""


@pytest.mark.slow
def test_a_browser_shows_all_files(drawn: dict[str, NamedPlot], tmp_path: Path, browser: Browser) -> None:
    some = [one for place, one in enumerate(drawn.values()) if place % 6 == 0]
    write_plots(tmp_path, some, "app.py – plots")
    assert len(list(tmp_path.iterdir())) == 2 * len(some) + 1
    tab = browser.new_page()
    tab.goto((tmp_path / "index.html").as_uri())
    assert tab.evaluate(
        """async () => { const all = [...document.images]; all.forEach(one => { one.loading = "eager"; });
           await Promise.all(all.map(one => one.decode())); return all.map(one => one.alt); }"""
    ) == [one.title for one in some]
    for one in some:
        root = ElementTree.parse(tmp_path / f"{one.name}.svg").getroot()
        content = base64.b64encode((tmp_path / f"{one.name}.png").read_bytes()).decode()
        width, height, dark, background = tab.evaluate(DECODE, f"data:image/png;base64,{content}")
        assert [str(width // 2), str(height // 2)] == root.get("viewBox", "").split()[2:]
        title = str(next(iter(root.itertext())))
        assert dark > 4 * len(title)  # letters are some 14 dots wide
        assert background == 255
    tab.close()


@pytest.mark.slow
def test_what_was_written_is_told_by_subject(drawn: dict[str, NamedPlot]) -> None:
    text = plots_text(list(drawn.values()), "plots")
    assert text.startswith(f"wrote {len(drawn)} plots to plots")
    told = {line.split()[1].rstrip("_…"): int(line.split()[0]) for line in text.splitlines()[1:]}
    assert sum(told.values()) == len(drawn)
    assert list(told) == ["profile", "law", "cluster", "variance", "paths", "exploration", "checks"]


def test_the_bars_of_a_histogram_are_all_calls(shown: Page) -> None:
    """Shares of calls between deadlines add up to all calls; the slow twentieth stands apart."""
    explanation = next(
        one for component, one in shown.variance[0].explanations.items() if component.name == "app.look_up"
    )
    plot = cost_histogram(explanation, "wall time")
    assert plot
    heights = [float(one.get("height", 0)) for one in list(ElementTree.fromstring(plot.svg).iter(BARS))[1:]]
    shares = [height / sum(heights) for height in heights]
    assert max(shares) == pytest.approx(0.95, abs=0.01)
    assert shares[-1] == pytest.approx(0.05, abs=0.01)


def test_the_heights_of_a_histogram_are_its_values() -> None:
    plot = histogram("t", "x", [0, 1, 2], [("a", [1, 2]), ("b", [3, 0])], ticks=[])
    boxes = list(ElementTree.fromstring(plot.svg).iter(BARS))[1:]
    heights = [float(one.get("height", 0)) for one in boxes]
    assert heights[1] / heights[0] == pytest.approx(3, abs=0.01)
    assert heights[2] / heights[0] == pytest.approx(2, abs=0.01)
    # The second value of a bar stands on the first.
    tops = [float(one.get("y", 0)) for one in boxes]
    assert tops[0] == pytest.approx(tops[1] + heights[1], abs=0.2)


def test_the_band_over_a_knob_holds_the_truth(shown: Page) -> None:
    """The expected memory of the made-up study is 30 MB and 1 MB for each thread."""
    assert shown.exploration
    curve = next(one for one in shown.exploration["curves"] if (one["metric"], one["knob"]) == ("memory", "threads"))
    for threads, one in zip(curve["values"], curve["expected"], strict=True):
        assert one["low"] <= one["value"] <= one["high"]
        assert one["value"] == pytest.approx(3e7 + 1e6 * threads, rel=0.05)


def test_hostile_names_stay_text_and_numbers_that_are_none_are_left_out(shown: Page) -> None:
    bad = factory.HOSTILE
    some = replace(
        shown,
        annotations=[factory.hostile()],
        trend=trends_factory.hostile(),
        variance=variance_factory.hostile(),
        checks=[{**CHECK, "commit": bad, "counts": {}}],
    )
    plots = page_plots(some)
    for one in plots:
        root = ElementTree.fromstring(one.plot.svg)
        assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
            *("svg", "rect", "text", "path", "circle", "ellipse", "polyline", "polygon", "defs", "marker"),
        }
        assert not re.search(r'="[^"]*\bnan\b', one.plot.svg), one.name
        assert re.fullmatch(r"[\w.-]+", one.name)
    index = plots_index(plots, bad)
    assert "<script" not in index
    assert len({one.name.lower() for one in plots}) == len(plots)


def test_checks_without_verdicts_are_drawn() -> None:
    assert "2 checks" in words(checks_plot([CHECK, {**CHECK, "counts": {}, "commit": ""}]))


def test_nothing_to_draw_is_no_plot() -> None:
    (view, *_) = variance_factory.alone()
    (explanation,) = view.explanations.values()
    assert cost_histogram(explanation, "wall time") is None
    assert page_plots(page([])) == []
    assert plots_text([], "plots").startswith("wrote 0 plots")


def test_an_interval_down_to_zero_leaves_the_axis_logarithmic() -> None:
    points = Series("calls", [1, 10, 100], [1, 10, 100])
    band = Series("law", [1, 100], [1, 100], line=True, low=[0, 0], high=[2, 200])
    places = [float(one.get("cy", 0)) for one in circles(line_plot("t", "n", "", [points, band]))]
    assert places[0] - places[1] == pytest.approx(places[1] - places[2], abs=0.2)


def test_calls_without_a_law_stand_over_a_feature_that_was_read() -> None:
    known = next(one for one in factory.all_kinds() if one.points and one.curves)
    with_law, without = law_plot(known), law_plot(replace(known, curves=(), run_law=None))
    assert with_law and without
    assert len(circles(without)) == len(circles(with_law)) > 0
    assert "law" not in words(without).split("\n")
    assert law_plot(replace(known, curves=(), run_law=None, points=None)) is None


def circles(plot: Plot) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(plot.svg).iter("{http://www.w3.org/2000/svg}circle"))


def test_a_flame_graph_is_as_wide_as_the_cost() -> None:
    plot = flame_plot(page_document())
    assert plot
    boxes = list(ElementTree.fromstring(plot.svg).iter(BARS))[1:]
    widths = {round(float(one.get("width", 0))) for one in boxes}
    assert widths == {1199, 719, 359}  # all of it, 60 and 30 of 100; a gap between neighbours
    document = page_document()
    assert flame_plot({**document, "whole": {"time": 0}}) is None


@pytest.mark.slow
def test_a_pattern_of_many_nodes_is_drawn_in_part(shown: Page) -> None:
    """Those of the greatest impact, each with its parent; the picture says how many are missing."""
    [root, *_] = shown.variance[0].variance.patterns[0].nodes
    nodes = [root, *(replace(root, id=1000 + i, parent=root.id, vim=root.vim / (i + 2)) for i in range(60))]
    plot = pattern_plot(
        "many", replace(shown.variance[0].variance.patterns[0], nodes=tuple(nodes), contributions=()), "ns"
    )
    assert words(plot).count("γ") == MAX_PATTERN_NODES
    assert f"{61 - MAX_PATTERN_NODES} nodes of less variance not drawn" in words(plot)


def test_a_plot_of_many_bars_has_the_largest_and_the_one_that_was_asked_for():
    """A notebook shows one forecast of a program with 200 functions without 200 bars."""
    bars = [(f"f{place}", float(place % 97)) for place in range(200)]
    few, asked = bar_plot("cost", "ns", bars[:3]).svg, bar_plot("cost", "ns", bars, chosen=97).svg
    assert few.count(">f") == 3
    assert ">cost<" in few
    assert asked.count(">f") == MAX_BARS
    assert ">f97<" in asked, "its value is the smallest"
    assert ">f96<" in asked
    assert f">cost: {MAX_BARS} of 200<" in asked
    height = int(re.search(r'viewBox="0 0 \d+ (\d+)"', asked)[1])
    assert height < 640
