"""Variance in the terminal: names of calls, and tables that render the JSON document."""

import json
from dataclasses import replace

import pytest

from perflaw.report.documents import variance_document
from perflaw.report.variance.text import changes_text, part_name, variance_screen, variance_table
from perflaw.types import TIME, Component
from perflaw.types.documents import dumps
from perflaw.types.variance import (
    Await,
    Contribution,
    Latency,
    Part,
    Pattern,
    PatternNode,
    Step,
    Variance,
    VaryingLatency,
)

from . import variance_factory


def part(name, line, site):
    return Part(Component(name) if name else None, line, site, 1.0, None, None, 0.0, None)


def test_calls_on_one_line_are_told_apart():
    parts = [part("", 0, -1), part("app.item", 13, 40), part("app.item", 13, 12), part("app.item", 14, 60)]
    assert [part_name(one, parts) for one in parts] == ["own code", "item:13 #2", "item:13 #1", "item:14"]
    assert part_name(parts[1]) == "item:13"


@pytest.mark.slow
def test_table_screen_and_changes_are_rendered_from_the_printed_document():
    views = (*variance_factory.server(), variance_factory.hostile()[0], variance_factory.nothing()[0])
    for view in views:
        for explanation in (None, *view.explanations.values()):
            document = variance_document(replace(view.variance, explanation=explanation), [])
            printed = json.loads(dumps(document))
            assert variance_table(printed, False) == variance_table(document, False)
            assert explanation is None or variance_screen(printed, False) == variance_screen(document, False)
    for view in variance_factory.since():
        document = variance_document(view.variance, [], view.since.changes)
        assert changes_text(json.loads(dumps(document))) == changes_text(document) != ""


@pytest.mark.parametrize("columns", [60, 80])
def test_long_names_keep_whole_words_in_deep_patterns(monkeypatch, columns):
    """Of a name that needs more than three lines the end is shown; few columns have the sources below the names."""
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "asyncio.base_events.BaseEventLoop.call_soon"
    nodes = tuple(
        PatternNode(n, n - 1 if n else None, Component(name), "Task", 5000, 2e4, 0.9, 1e8, 1e6, ((),))
        for n in range(12)
    )
    edges = tuple(Contribution(n, n + 1, (n, n + 1), None, 0.3) for n in range(11))
    found = Variance(TIME, (Pattern(nodes, edges),), (12, 1), (12, 1), 12, 0)
    lines = variance_table(variance_document(found, []), False).splitlines()
    assert max(map(len, lines)) <= columns
    words = {word.strip("…") for line in lines[1:] for word in line.replace(".", " ").split()}
    assert {"BaseEventLoop", "call_soon"} <= words
    pieces = {word for word in words if word in name} - set(name.split("."))
    assert not {word for word in pieces if len(word) > 3}, "no part of a word"
    # The sources are in a column of their own, or below the names.
    assert sum("30 % (1)" in line for line in lines) == sum("30 % (11)" in line for line in lines) == 1
    assert ("comes from" in lines[0]) == (columns == 80)


def test_call_paths_are_broken_between_calls(monkeypatch):
    """Of a budget's row in 60 columns, each line ends behind a call."""
    monkeypatch.setenv("COLUMNS", "60")
    view = variance_factory.server()[0]
    explanation = next(iter(view.explanations.values()))
    path = tuple(Step("app.handle", 0, 0, f"app.__{name}__") for name in ("call", "next", "enter", "len", "iter"))
    row = replace(explanation.budget.rows[0], path=path, component=Component("app.__iter__"))
    budget = replace(explanation.budget, rows=(row, *explanation.budget.rows[1:]))
    found = replace(view.variance, explanation=replace(explanation, budget=budget))
    screen = variance_screen(variance_document(found, []), False)
    assert max(map(len, screen.splitlines())) <= 60
    assert all(f"__{name}__" in screen for name in ("call", "next", "enter", "len", "iter"))


def test_the_latency_of_a_coroutine_is_rendered_from_the_printed_document():
    view = variance_factory.server()[0]
    component, explanation = next(iter(view.explanations.items()))
    awaits = (Await(Component("app.fetch"), 7, 4e3, 0.7), Await(None, 0, 1e3, 0.1))
    latency = Latency(5e3, 0.9, True, 4e3, 2e4, 0.8, awaits)
    found = replace(
        view.variance,
        latencies=(VaryingLatency(component, 40, 1.8e5, latency),),
        explanation=replace(explanation, latency=latency),
    )
    printed = json.loads(dumps(variance_document(found, [])))
    assert "70 % fetch:7" in variance_table(printed, False)
    assert "20 % own time" in variance_table(printed, False)
    screen = variance_screen(printed, False)
    assert f"{component.name}: latency varies highly" in screen
    assert "80 % of its variance is awaiting: fetch:7 70 % (mean 4.0 µs), other" in screen
