"""The table of laws: 80 columns, few laws, nothing broken within a quantity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.laws.reading import parse_expression
from perflaw.report import tables
from perflaw.report.annotations import MAX_LAWS, annotations_table
from perflaw.report.documents import annotate_document
from perflaw.report.tables import broken, clipped, paragraph, text_table
from perflaw.types import Annotation

from . import factory

CALLEE = "`calls.package.module.Class.method` > 0 && data.length <= 10"


def several(count: int, condition: str = "") -> Annotation:
    """A function of so many modes."""
    made = factory.two_modes()
    where = parse_expression(condition) if condition else None
    return replace(made, scopes=(replace(made.scopes[0], probability=1.0 / count, condition=where),) * count)


def table_of(annotations: Sequence[Annotation], at: Mapping[str, float] | None = None) -> str:
    return annotations_table(annotate_document(annotations, [], at), False, every=True)


def test_at_most_four_laws_are_listed() -> None:
    for count in range(2, 9):
        table = table_of([several(count)])
        assert table.count("400 ns") == min(count, MAX_LAWS)
        assert (f"… {count - MAX_LAWS} more" in table) == (count > MAX_LAWS)


def test_a_condition_stands_before_its_laws_once_and_callees_are_short() -> None:
    table = table_of([several(3, CALLEE)])
    assert table.count("[calls.…Class.method > 0 &&") == 1
    assert table.count("{33 %} 400 ns") == 3


def test_a_long_condition_is_cut() -> None:
    table = table_of([several(2, " && ".join([CALLEE] * 9))])
    assert "…]" in table
    assert len(table.splitlines()) < 10


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    long = "a.very.long.module_name_that_does_not_end.Class.and_a_method_of_some_length"
    made = [several(3, CALLEE), factory.quadratic(), factory.linear(), several(2)]
    renamed = [replace(one, component=replace(one.component, name=long)) for one in made]
    for at in (None, {"n": 1e6}):
        table = table_of([*made, *renamed], at)
        assert max(map(len, table.splitlines())) <= columns


@given(st.text("ab.·&{} 19%ns", max_size=80), st.integers(8, 40))
def test_nothing_is_lost_and_lines_are_short(text: str, width: int) -> None:
    found = broken(text, [" && ", " · ", " ", "."], width)
    assert re.sub(r"\s", "", found) == re.sub(r"\s", "", text)
    assert max(map(len, found.split("\n"))) <= width


def test_quantities_stay_whole() -> None:
    assert "14 ns" in broken("some words 14 ns more", [" "], 13)
    assert "{9 %}" in broken("some words {9 %} more", [" "], 14)
    assert "n <= 20" in broken("[a && n <= 20]", [" && ", " "], 9)


CELL = st.text("ab c.·µ–²_[]()é\n", max_size=14)


@given(st.data())
def test_a_table_that_fits_is_the_one_that_rich_makes(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 5))
    row = st.lists(CELL, min_size=columns, max_size=columns)
    headings = [text.replace("\n", "") for text in data.draw(row)]
    rows = data.draw(st.lists(row, max_size=4))
    right = [index for index in range(columns) if data.draw(st.booleans())]
    with mock.patch.object(tables, "_plain_table", return_value=None):
        wrapped = text_table(headings, rows, right, False)
    assert text_table(headings, rows, right, False) == wrapped


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(40, "markdown.inlines.LinkProcessor.handle"), (24, "….LinkProcessor.handle"), (12, "….handle"), (5, "…ndle")],
)
def test_names_are_clipped_before_a_whole_part(columns: int, shown: str) -> None:
    assert clipped("markdown.inlines.LinkProcessor.handle", columns) == shown


@pytest.mark.parametrize(("columns", "longest"), [(60, 60), (80, 80), (140, 140), (300, 140)])
def test_sentences_use_the_screen_up_to_what_a_person_reads(
    monkeypatch: pytest.MonkeyPatch, columns: int, longest: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = paragraph("a sentence of several words " * 40).splitlines()
    assert longest - 12 < max(map(len, lines)) <= longest


def test_names_in_forecasts_break_at_their_parts():
    from perflaw.report.annotations import forecast_table

    cost = {"mean": 6e9, "mean_low": 4e9, "mean_high": 7e9, "new_low": 3e9, "new_high": 9e9, "unit": "ns"}
    name = "pycparser.c_parser.CParser._parse_translation_unit_or_empty"
    one = {"of": "run", "features": {"n": 4000.0}, "metric": "time", "component": name, "condition": "", "message": ""}
    text = forecast_table({"whole": [], "predictions": [one | cost], "per": ""}, False)
    names = [line.split()[0] for line in text.splitlines()[2:6]]
    assert "".join(names) == name
    assert all(part.endswith((".", "_", "empty")) for part in names), names
