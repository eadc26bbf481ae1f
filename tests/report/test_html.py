"""The page as text: self-contained, safe whatever its names are, complete, small."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from perflaw.report.documents import annotate_document
from perflaw.report.page.page import Page, as_json, page_data, render
from perflaw.types import Annotation, Component, Metric

from . import factory, outcomes_factory

RUNS = [
    {"id": f"run-{i + 1}", "features": {"n": 100.0}, "wall_ns": 1.5e9, "complete": i < 8, "calls": 4200}
    for i in range(9)
]


def page(annotations: Sequence[Annotation], **more: Any) -> Page:
    fields: dict[str, Any] = {"target": "app.py", "experiment": "default", "command": "perflaw record -- app.py {n}"}
    fields |= {"created": "2026-05-04T12:00:00", "runs": RUNS, "slowdown": "slowdown 1.4x", "lost": "nothing lost"}
    return Page(annotations=annotations, **{**fields, **more})


def data_of(rendered: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', rendered, re.DOTALL)
    assert found
    data = json.loads(found.group(1))
    rows = data["rows"]
    texts = [dict(zip(rows["words"], one, strict=True)) for one in rows["texts"]]
    joined = [dict(zip(rows["names"], one, strict=True)) for one in rows["values"]]
    return {**data, "rows": [{**row, "text": text} for row, text in zip(joined, texts, strict=True)]}


def chart_of(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_the_page_is_small_and_asks_for_nothing() -> None:
    assert len(render(page([])).encode()) < 1_000_000
    rendered = render(page(factory.all_kinds()))
    assert not re.search(r"https?://", rendered)
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)\b", rendered)
    assert "default-src 'none'" in rendered


def test_names_never_become_markup() -> None:
    plain = render(page([factory.linear()]))
    rendered = render(page([factory.hostile()], target=factory.HOSTILE, command=factory.HOSTILE))
    assert re.findall(r"</?script", rendered) == re.findall(r"</?script", plain)
    assert "<b onload" not in rendered
    assert data_of(rendered)["rows"][0]["component"] == factory.HOSTILE


def test_placeholders_and_backslashes_in_names_stay_what_they_are() -> None:
    name = r"{{css}} \1 \g<0> {{title}}"
    rendered = render(page([replace(factory.linear(), component=Component(name))], target=name))
    assert data_of(rendered)["rows"][0]["component"] == name


def test_an_undecodable_name_can_still_be_written() -> None:
    rendered = render(page([replace(factory.linear(), component=Component("a\udcffb"))], target="a\udcffb"))
    assert data_of(rendered.encode("utf-8").decode("utf-8"))["rows"][0]["component"] == "a\udcffb"


def test_json_in_a_script_element_has_no_character_that_could_end_it() -> None:
    text = "</script><!--&\u2028\u2029\"'\\"
    assert not set(as_json([text])) & set("<>&\u2028\u2029")
    assert json.loads(as_json([text])) == [text]


def test_infinite_and_missing_numbers_become_null() -> None:
    made = factory.linear()
    assert made.points
    odd = replace(made.points, y=(float("nan"), float("inf"), *made.points.y[2:]))
    chart = chart_of(page_data(page([replace(made, points=odd, share=float("nan"))]))["annotations"][0])["chart"]
    assert chart["y"][:2] == [None, None]


def test_rows_say_what_the_terminal_says() -> None:
    rows = page_data(page(factory.all_kinds()))["rows"]
    assert rows[0]["text"]["law"] == "3.1 µs · n^1.98"
    assert (rows[0]["growth"], rows[0]["interval"]) == ("n^1.98", "(1.94–2.02)")
    assert [row["verdict"] for row in rows[:6]] == ["law", "law", "law", "none", "none", "inconclusive"]


def test_predictions_are_of_one_kind() -> None:
    asked = [replace(factory.linear(), predicted=factory.prediction({"n": 1e6}, 41e9, 0.2)), factory.n_log_n()]
    there = page_data(page(asked, at={"n": 1e6}))
    assert there["predicted"] == "run at n = 1,000,000"
    assert there["rows"][0]["text"]["predicted"] == "41 s (33–49)"
    vague = replace(factory.prediction({"n": 1e6}, 41e9), mean_low=1e6, mean_high=9e20)
    there = page_data(page([replace(factory.linear(), predicted=vague)], at={"n": 1e6}))
    assert there["rows"][0]["text"]["predicted"] == "unknown"
    runs = page_data(page([factory.linear(), factory.two_modes()]))
    assert runs["predicted"] == "predicted per run"
    assert [row["per"] for row in runs["rows"]] == ["run", "call"]
    assert [row["text"]["at"] for row in runs["rows"]] == ["n = 100,000", ""]
    calls = page_data(page([replace(factory.linear(), run_law=None)]))
    assert calls["predicted"] == "predicted per call"
    assert [row["text"]["at"] for row in calls["rows"]] == ["text.len = 100,000"]


def test_at_outside_a_law_leaves_its_cell_empty() -> None:
    rows = page_data(page([factory.linear()], at={"n": 1e6}))["rows"]
    assert rows[0]["text"]["predicted"] == "—"


def test_links_tell_same_named_functions_and_metrics_apart() -> None:
    one = factory.linear()
    memory = replace(one, metric=Metric("memory", "bytes"))
    elsewhere = replace(one, component=replace(one.component, line=99))
    keys = [row["key"] for row in page_data(page([one, elsewhere, memory, memory, memory]))["rows"]]
    assert keys[0] == "parse.tokens"
    assert len(set(keys)) == 5


def test_detail_holds_the_evidence() -> None:
    [packed] = page_data(page([factory.n_log_n()]))["annotations"]
    component = chart_of(packed)
    law, text = component["document"]["scopes"][0]["law"], component["text"]["scopes"][0]
    assert ("evidence", "360 points from 9 runs") in [tuple(fact) for fact in text["facts"]]
    assert law["expression"] == "LogNorm(120*items.len*log(items.len), 0.05)"
    assert law["alternatives"][0]["delta"] == 0.7
    assert [cells[0] for cells in text["predictions"]] == ["items.len = 20,000", "items.len = 100,000"]
    assert component["text"]["run"]["law"] == "120 ns · n · log(n)"


def test_a_component_of_the_page_is_its_document() -> None:
    made = factory.n_log_n()
    [packed] = page_data(page([made]))["annotations"]
    told = annotate_document([made], [], None)["annotations"][0]
    shown = told.pop("shown")
    assert chart_of(packed)["document"] == json.loads(json.dumps(told))
    row = page_data(page([made]))["rows"][0]
    assert [part["law"] for part in shown.pop("laws")] == [row["text"]["law"]]
    assert {name: row[name] for name in shown} == shown
    assert {name: row[name] for name in ("component", "unit", "calls", "total", "share", "self_share")} == {
        name: told[name] for name in ("component", "unit", "calls", "total", "share", "self_share")
    }


def test_edges_are_documents_too() -> None:
    shown = page_data(page(factory.edges()))
    assert len(shown["rows"]) == len(shown["annotations"]) == len(factory.edges())
    json.dumps(shown, allow_nan=False)


@pytest.mark.slow
def test_the_first_hundred_keep_all_points_and_no_page_drowns_in_them() -> None:
    packed = page_data(page(factory.many(300, size=500)))["annotations"]
    top, last = chart_of(packed[99])["chart"], chart_of(packed[100])["chart"]
    assert (top["of"], len(top["y"])) == (500, 500)
    assert (last["of"], len(last["y"]), len(last["features"]["k"])) == (500, 250, 250)
    assert set(last["run"]) == set(range(9))


@pytest.mark.slow
def test_five_hundred_components_with_full_charts_stay_under_three_megabytes() -> None:
    assert len(render(page(factory.many(500, size=400))).encode()) < 3_000_000


def test_an_empty_experiment_needs_no_chart_library() -> None:
    rendered = render(page([], runs=[]))
    assert len(rendered) < 300_000
    assert data_of(rendered)["rows"] == []


def test_verdicts_are_ordered_and_linked() -> None:
    shown = page_data(page(factory.all_kinds(), verdicts=outcomes_factory.checked()))["outcomes"]
    assert [row["verdict"] for row in shown["rows"]][:2] == ["violated", "violated"]
    places = {row["component"]: row["index"] for row in shown["rows"]}
    assert places["index.build"] == 0
    assert places["gone.function"] is None
    rendered = render(page([factory.linear()], verdicts=outcomes_factory.checked()))
    assert re.findall(r"</?script", rendered) == re.findall(r"</?script", render(page([factory.linear()])))


def test_odd_numbers_in_verdicts_become_null() -> None:
    odd = outcomes_factory.checked()
    odd["verdicts"] = [
        {**odd["verdicts"][0], "effect": "9", "effect_low": True, "effect_high": None, "p": [], "changes": None}
    ]
    shown = page_data(page([factory.linear()], verdicts=odd))["outcomes"]["rows"][0]
    assert (shown["effect"], shown["effect_low"], shown["text"]) == (None, None, "—")


def test_old_laws_come_with_their_unit() -> None:
    shown = page_data(page(factory.all_kinds(), verdicts=outcomes_factory.changed()))["outcomes"]
    [law] = shown["old"]["2"]
    assert (law["law"]["expression"], law["factor"]) == ("LogNorm(0.9 + 0.0024*text.len, 0.05)", 1000.0)
