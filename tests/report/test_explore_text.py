"""The result of a study in the terminal and as JSON: everything a person needs, in 80 columns, odd names and all."""

import json
from dataclasses import replace

import pytest

from perflaw.learn.exploring.result import study_result
from perflaw.report.documents import explore_document
from perflaw.report.explore.page import render_study
from perflaw.report.explore.text import explore_text, setting_text
from perflaw.types.documents import dumps
from tests import studies_factory as made


@pytest.fixture(scope="module")
def locked():
    study = made.study(knobs=made.THREADED)
    trials = made.collapsing()
    trials[7] = replace(trials[7], valid=False, metrics={}, reason="page_size: asked 2097152, the target says 4096")
    trials[9] = replace(trials[9], stopped="cannot win any more", measured_s=0.5)
    return study_result(study, trials, made.space(study), ended="all 60 trials are done")


@pytest.mark.slow
def test_the_table_says_what_a_person_needs(locked):
    text = explore_text(explore_document(locked))
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    for told in (
        "sqlite: 60 trials of 59 configurations, 1 invalid, 1 ended early, policy law, finished: all 60 trials are done",
        "best: page_size = 64 KiB, threads = 3",
        "sure that no configuration is better by more than 5 %",
        "what matters for throughput: share of its log-variance over the space",
        "threads across, page_size upwards",
        "! 1 of 60 trials is invalid: page_size: asked 2097152, the target says 4096",
        "hidden lock? threads: the objective gets worse beyond 3",
        "law of throughput: LogNorm(exp(",
        "-o sqlite.law",
    ):
        assert told in words, told


def test_the_interaction_is_printed():
    text = explore_text(
        explore_document(study_result(made.study(), made.trials(made.sample(made.space(), 40)), made.space()))
    )
    assert "page_size × cache" in text


@pytest.mark.parametrize("count", [0, 1, 4])
def test_little_is_told_as_little(count):
    found = study_result(made.study(), made.trials(made.sample(made.space(), count)), made.space())
    text = explore_text(explore_document(found))
    assert "sure that no configuration" not in text or "<1 % sure" in text
    assert "next" in text
    json.loads(dumps(explore_document(found)))
    render_study(found)


def test_the_document_is_the_contracts(locked):
    document = json.loads(dumps(explore_document(locked, 7)))
    assert (document["schema"], document["seed"]) == ("perflaw.explore/1", 7)
    assert {"configuration", "metrics", "n", "valid", "reason", "stopped"} <= document["trials"][0].keys()
    assert document["best"]["configuration"]["threads"] == 3
    assert 0 <= document["best"]["within_margin"]["probability"] <= 1
    assert document["laws"]["throughput"]["verdict"] == "law"
    assert [one["kind"] for one in document["warnings"]][:2] == ["invalid", "hidden lock"]
    assert document["importance"][0]["shares"][0]["knobs"] == ["threads"]


def test_every_field_is_described(locked):
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    section = page[page.index("`perflaw.explore/1`") :]
    document = explore_document(locked)
    names = (
        (set(document) - {"schema"})
        | set(document["trials"][0])
        | set(document["best"])
        | set(document["importance"][0])
    )
    names |= set(document["importance"][0]["shares"][0]) | set(document["surface"]) | set(document["warnings"][0])
    assert [name for name in sorted(names) if f"`{name}`" not in section] == []


def test_settings_are_written_with_their_units():
    assert [setting_text("B", one) for one in (512, 4096, 3 << 29)] == ["512 B", "4 KiB", "1.5 GiB"]
    assert [setting_text("", one) for one in (True, "lru", 0.125, 20000, 3e9)] == [
        "yes",
        "lru",
        "0.125",
        "20,000",
        "3e9",
    ]


def test_foreign_texts_stay_texts(locked):
    hostile = replace(locked.trials[7], reason="</script><script>alert(1)</script>\x1b[31m")
    found = replace(locked, trials=(*locked.trials[:7], hostile, *locked.trials[8:]))
    assert "<script>alert" not in render_study(found)
    assert "\x1b" not in explore_text(explore_document(found))
