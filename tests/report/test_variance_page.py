"""The variance page as a document: numbers that JSON has, nothing from the network, screens deflated."""

from __future__ import annotations

import math
from typing import Any

import pytest

from perflaw.report.page.page import render
from tests.conftest import first

from . import variance_factory
from .test_html import chart_of, data_of, page


def numbers(value: Any) -> list[float]:
    """All numbers of a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize(
    "made",
    first(2, [variance_factory.server, variance_factory.hostile, variance_factory.alone, variance_factory.since]),
)
def test_every_number_is_finite(made: Any) -> None:
    rendered = render(page([], variance=made()))
    for metric in data_of(rendered)["variance"]["metrics"]:
        assert all(map(math.isfinite, numbers(metric["patterns"])))
        for packed in metric["screens"].values():
            assert all(map(math.isfinite, numbers(chart_of(packed))))


def test_the_page_needs_no_chart_library_and_no_network() -> None:
    rendered = render(page([], variance=variance_factory.server()))
    assert len(rendered) < 400_000
    assert "http://" not in rendered
    assert "https://" not in rendered


def test_the_budget_adds_up() -> None:
    rendered = render(page([], variance=variance_factory.server()))
    variance = data_of(rendered)["variance"]
    screen = chart_of(variance["metrics"][1]["screens"]["0"])
    assert sum(row["share"] for row in screen["budget"]["rows"]) == pytest.approx(1)
    assert (
        sum(part["mechanism"] == "trip count" for part in chart_of(variance["metrics"][1]["screens"]["2"])["parts"])
        == 1
    )


def test_a_page_without_variance_has_no_view() -> None:
    assert data_of(render(page([])))["variance"] is None
