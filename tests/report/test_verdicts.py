"""Verdicts as text, SARIF and GitHub's commands: names that are hostile stay names, and nothing leaves 80 columns."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perflaw.report.documents import check_document, diff_document
from perflaw.report.reviews import github, markdown, sarif
from perflaw.report.tables import printable
from perflaw.report.verdicts import law_verdicts_text, ratio_text
from perflaw.types import TIME, Change, CheckVerdict, Component, DiffVerdict
from perflaw.types.documents import dumps

OUTCOMES = ["holds", "violated", "inconclusive", "out of scope"]


def verdict(name="index.build", outcome="violated", file="/src/index.py", message=""):
    component = Component(name, file, 7, parameters=("docs",))
    return CheckVerdict(
        component, TIME, "", outcome, 1e-5, 1.84, 1.6, 2.1, 1e5, "docs.len = 500", 3, 3, 900, 0.02, message
    )


def of(*verdicts):
    return check_document(verdicts, ["0001"], [])


def test_a_violation_reads_as_designed():
    text = law_verdicts_text(of(verdict(), *(verdict(f"f{i}", "holds") for i in range(3))))
    flat = " ".join(text.split())
    assert flat.startswith(
        "violated index.build(docs) time 1.8x (1.6–2.1) what the law says from docs.len = 500 on, 3 runs of 3"
    )
    assert text.splitlines()[-1] == "violated 1 · holds 3"
    assert law_verdicts_text(of()) == "no laws to check\n"


def test_a_diff_tells_the_ratio_of_the_slope():
    change = Change("coefficient", "len", "0.86", "4.94", 5.744, 5.2, 6.3)
    one = DiffVerdict(Component("mysql_execute_command"), TIME, "", "violated", 1e-6, 5.6, 5.1, 6.2, (change,))
    flat = " ".join(law_verdicts_text(diff_document([one])).split())
    assert "coefficient len 0.86 -> 4.94 (5.7x (5.2–6.3))" in flat


@given(st.text(max_size=60), st.sampled_from(OUTCOMES), st.text(max_size=40), st.text(max_size=60))
def test_any_name_stays_one_entry(name, outcome, file, message):
    one = verdict(name, outcome, file, message)
    for line in law_verdicts_text(of(one), every=True).splitlines():
        assert all(c.isprintable() for c in line)
    commands = github(of(one)).splitlines()
    assert len(commands) <= 1
    assert all(command.startswith(("::error ", "::warning ")) for command in commands)
    log = json.loads(dumps(sarif(of(one), "1.0", "/src")))
    [result] = log["runs"][0]["results"]
    assert (result["kind"] == "fail") == (outcome == "violated")
    assert json.loads(dumps(of(one)))["verdicts"][0]["component"] == name


@given(st.lists(st.text(min_size=1, max_size=30).map(str.strip).filter(bool), min_size=1, max_size=3))
def test_a_comment_has_a_row_for_each_violation_whatever_the_names(names):
    document = of(*(verdict(name, file="/src/a b.py") for name in names), verdict("other", "inconclusive"))
    tokens = MarkdownIt().enable("table").parse(markdown(document, "/src"))
    cells = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 3 * len(names)
    shown = ["".join(part.content for part in token.children) for token in tokens if token.content in cells[::3]]
    assert shown == [printable(f"{name}(docs)") for name in names]
    assert "<summary>1 inconclusive</summary>" in markdown(document)


def test_a_comment_on_a_diff_says_what_is_worse_and_what_is_better():
    old = Component("app.f", "/src/app.py", 3)
    worse = DiffVerdict(old, TIME, "", "violated", 1e-6, 5.6, 5.1, 6.2)
    better = DiffVerdict(Component("app.g"), TIME, "", "holds", 1e-6, 0.5, 0.4, 0.6, better=True)
    text = markdown(diff_document([worse, better]), "/src")
    assert "1 worse · 1 not worse · 1 better" in text
    assert "| app.f | app.py:3 | time 5.6x (5.1–6.2) the old cost |" in text
    assert "| app.g |  | time 0.50x (0.40–0.60) the old cost |" in text


def test_files_are_told_relative_to_the_root():
    [result] = sarif(of(verdict()), "1.0", "/src")["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "index.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 7},
    }


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((1.0, 0.98, 1.03), "1.00x (0.98–1.03)"), ((12, 9.96, 2e7), "12x (10–2.0e+07)"), ((0.5, None, None), "0.50x")],
)
def test_ratios(numbers, text):
    assert ratio_text(*numbers) == text
