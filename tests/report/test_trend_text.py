"""What a person reads of trends in a terminal, and where clusters are."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.report.documents import trend_document
from perflaw.report.trend.table import trend_table
from perflaw.report.trend.view import places_of, title
from perflaw.types import Location
from perflaw.types.documents import dumps

from . import factory, trends_factory

GOLD = Path(__file__).parent / "gold"


@pytest.mark.parametrize("name", ["bubble", "one_cluster", "functions"])
def test_the_table(name: str) -> None:
    """Gold files: look at what changed, then write it there."""
    view = getattr(trends_factory, name)()
    gold = GOLD / f"trend_{name}.txt"
    if os.environ.get("PERFLAW_UPDATE_GOLD"):
        gold.write_text(trend_table(trend_document(view), False), encoding="utf-8")
    assert trend_table(trend_document(view), False) == gold.read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal_whatever_the_names(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for view in (trends_factory.bubble(), trends_factory.hostile(), trends_factory.functions()):
        text = trend_table(trend_document(view), False)
        assert max(len(line) for line in text.split("\n")) <= columns
        assert "\u202e" not in text


def test_small_clusters_are_counted_unless_all_are_asked_for() -> None:
    view = trends_factory.many(clusters=40, locations=400)
    table = trend_table(trend_document(view), False)
    assert "more of small counts, together" in table
    assert "more of small counts" not in trend_table(trend_document(view), False, every=True)


def test_doubts_are_told_once() -> None:
    view = trends_factory.bubble()
    first = view.trends.clusters[0]
    unsure = replace(first.laws["n"], verdict="inconclusive", reason="too few sizes, 3 distinct: add --vary n=…")
    clusters = (replace(first, laws={"n": unsure}), *view.trends.clusters[1:])
    table = trend_table(trend_document(replace(view, trends=replace(view.trends, clusters=clusters))), False)
    assert "1.5 · n^2 ?" in table
    assert "? 1 inconclusive: too few sizes: add --vary n=…" in table


def test_the_table_is_rendered_from_the_printed_document() -> None:
    for view in (trends_factory.bubble(), trends_factory.hostile()):
        document = trend_document(view)
        assert trend_table(json.loads(dumps(document)), False, True) == trend_table(document, False, True)


def test_no_clusters_at_all() -> None:
    view = trends_factory.bubble(clusters=(), by_prediction=(), notes=("nothing varies",))
    assert trend_table(trend_document(view), False).endswith("nothing varies\n")


@pytest.mark.parametrize("name", ["bubble", "one_cluster", "hostile", "functions"])
def test_json_has_the_fields_of_the_contract_and_no_nan(name: str) -> None:
    view = getattr(trends_factory, name)()
    clusters = tuple(replace(one, max_cost=float("nan")) for one in view.trends.clusters)
    text = dumps(trend_document(replace(view, trends=replace(view.trends, clusters=clusters))))
    document = json.loads(text, parse_constant=pytest.fail)
    assert document["schema"] == "perflaw.trend/1"
    for cluster in document["clusters"]:
        wanted = {"rank", "representative", "locations", "share", "max_cost", "laws", "powers", "overtakes"}
        assert wanted <= cluster.keys()
        assert cluster["max_cost"] is None
        assert all({"family", "expression", "slope", "predictions"} <= law.keys() for law in cluster["laws"].values())


def test_json_names_lines_and_overtaking_points() -> None:
    compares, swaps, size = trend_document(trends_factory.bubble())["clusters"]
    assert compares["locations"] == ["bubble.py:8", "bubble.py:9", "bubble.py:11"]
    assert compares["places"] == ["bubble.py:8-9, 11 in bubble_sort()"]
    assert swaps["overtakes"][0]["rank"] == 1
    assert swaps["overtakes"][0]["feature"] == "n"
    assert (size["representative"], size["is_feature"]) == ("n", True)
    assert compares["powers"]["n"]["exponent"] == pytest.approx(2.01)


def test_every_json_field_is_described() -> None:
    described = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    document = trend_document(trends_factory.bubble())
    power = document["clusters"][0]["powers"]["n"]
    overtake = document["clusters"][1]["overtakes"][0]
    assert f"`{document['schema']}`" in described
    for name in (*document, *document["clusters"][0], *power, *overtake):
        assert f"`{name}`" in described, name


def test_ranges_reach_over_what_is_no_location_alone() -> None:
    lines = [trends_factory.line(number) for number in (1, 2, 4, 9, 10)]
    places = places_of(lines)
    assert places.texts([0, 1, 2], [1.0] * 5) == ["bubble.py:1-4 in bubble_sort()"]
    assert places.texts([0, 2], [1.0] * 5) == ["bubble.py:1, 4 in bubble_sort()"]
    assert places.texts([3, 4, 0], [1.0] * 5) == ["bubble.py:1, 9-10 in bubble_sort()"]


def test_blocks_are_told_where_their_line_is_not() -> None:
    one = trends_factory.line(3)
    taken, other = (replace(one, kind="block", name=f"bubble.py:3{way}") for way in (" taken", "_2 not taken"))
    places = places_of([one, taken, other])
    assert places.texts([0, 1], [1.0] * 3) == ["bubble.py:3 in bubble_sort()"]
    assert places.texts([1, 2], [1.0] * 3) == ["bubble.py:3 taken, 3_2 not taken in bubble_sort()"]


def test_functions_come_by_weight_and_c_keeps_its_names() -> None:
    slow = Location("line", "a.c:7", "/x/a.c", 7, "std::sort<int>(int*)", "c++")
    assert places_of([slow, trends_factory.line(8)]).texts([0, 1], [1.0, 5.0]) == [
        "bubble.py:8 in bubble_sort()",
        "a.c:7 in std::sort<int>(int*)",
    ]


def test_titles_say_what_a_representative_is() -> None:
    view = trends_factory.bubble()
    compares, _, size = view.trends.clusters
    counted = replace(size, representative="swaps", features=("swaps", "bytes"))
    view = replace(view, counted={"swaps": "bubble.py:10"})
    told = [title(one, view) for one in (compares, size, counted)]
    assert told == ["bubble.py:8 in bubble_sort()", "n (feature)", "swaps (count of bubble.py:10, bytes)"]


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40), st.integers(0, 10**6))
def test_any_location_has_words(name: str, file: str, function: str, line: int) -> None:
    for kind in ("line", "block", "function", "edge", "column"):
        place = Location(kind, name, file, line, function, "python")
        [told] = places_of([place]).texts([0], [1.0])
        assert isinstance(told, str)


def test_hostile_names_reach_the_document_as_they_are() -> None:
    document = trend_document(trends_factory.hostile())
    assert document["clusters"][0]["representative"] == f"{factory.HOSTILE}:8"


def test_a_narrow_screen_keeps_laws_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of predictions and numbers of lines, which stand elsewhere as well, make room for them."""
    monkeypatch.setenv("COLUMNS", "60")
    view = trends_factory.bubble()
    document = trend_document(view)
    table = trend_table(document, False)
    [power] = [one["power"] for one in document["clusters"][0]["shown"]["laws"] if one["feature"]]
    assert re.search(re.escape(power.split(" (")[0]), table), table
    assert re.search(r"\(\d[\d.]*–\d[\d.]*\)", table), "an interval is not broken"
