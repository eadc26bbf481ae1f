"""``perflaw diff`` as a person runs it: what changed, by how much, and nothing where nothing did."""

import json

import pytest


@pytest.fixture
def diff(perflaw, shifted):
    """Run ``perflaw diff`` where the recordings are."""

    def run(*arguments, status=0):
        return perflaw("diff", *arguments, status=status, cwd=shifted)

    return run


def verdicts(done):
    document = json.loads(done.stdout)
    assert document["schema"] == "perflaw.diff/1"
    return {one["component"]: one for one in document["verdicts"]}


@pytest.mark.parametrize("old", ["perf.law", "default"])
def test_two_recordings_of_the_same_program_do_not_differ(diff, old):
    found = verdicts(diff(old, "same", "--json"))
    assert {one["verdict"] for one in found.values()} == {"holds"}
    assert not any(one["changes"] for one in found.values())


def test_a_slower_function_is_told_with_its_ratio(diff):
    found = verdicts(diff("default", "slow", "--json", status=1))
    build = found["shifting.build"]
    assert build["verdict"] == "violated"
    assert 1.6 < build["effect_low"] < 1.8 < build["effect_high"] < 2.1
    assert build["message"] == "from docs.len = 400 on"
    assert found["shifting.tokens"]["verdict"] == found["shifting.lookup"]["verdict"] == "holds"
    text = diff("default", "slow", status=1).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "shifting.build" in text


@pytest.mark.slow
def test_a_faster_function_is_no_violation(diff):
    build = verdicts(diff("slow", "default", "--json"))["shifting.build"]
    assert build["verdict"] == "holds"
    assert build["better"]
    assert build["effect_high"] < 0.8
    assert "shifting.build" in diff("slow", "default").stdout


OLD = """mysql_execute_command.time(thd) [us] {
  Norm(168.65 + 0.86*len, 2489.04);
}
"""
NEW = """mysql_execute_command.time(thd) [us] {
  uint dvv = thd->variables.dynamic_variable_version;
  Norm(168.65 + 4.94*len + 1886.87*dvv, 2489.04);
}
"""


def test_the_regression_of_mysql_as_the_paper_prints_it(diff, tmp_path):
    (tmp_path / "5.7.law").write_text(OLD)
    (tmp_path / "8.0.law").write_text(NEW)
    [found] = verdicts(diff(tmp_path / "5.7.law", tmp_path / "8.0.law", "--json", status=1)).values()
    assert found["verdict"] == "violated"
    [slope] = [one for one in found["changes"] if one["what"] == "coefficient"]
    assert slope["name"] == "len"
    assert slope["ratio"] == pytest.approx(4.94 / 0.86)
    assert [one["name"] for one in found["changes"] if one["what"] == "feature"] == [
        "thd->variables.dynamic_variable_version"
    ]
    text = " ".join(diff(tmp_path / "5.7.law", tmp_path / "8.0.law", status=1).stdout.split())
    assert "5.7x" in text
    [back] = verdicts(diff(tmp_path / "8.0.law", tmp_path / "5.7.law", "--json")).values()
    assert back["verdict"] == "holds"
    assert back["better"]


def test_the_same_law_in_another_unit_is_the_same(diff, tmp_path):
    (tmp_path / "a.law").write_text("f.time(n) [us] { Norm(3*n, 1) }")
    (tmp_path / "b.law").write_text("f.time(n) { Norm(3000*n, 1000) }")
    [found] = verdicts(diff(tmp_path / "a.law", tmp_path / "b.law", "--json")).values()
    assert found["verdict"] == "holds"


def test_what_stands_on_one_side_alone_is_said(diff, tmp_path):
    (tmp_path / "a.law").write_text("f.time() { Norm(3, 1) }\ng.time() { Norm(3, 1) }")
    (tmp_path / "b.law").write_text("g.time() { Norm(3, 1) }\nh.time() { Norm(3, 1) }")
    found = verdicts(diff(tmp_path / "a.law", tmp_path / "b.law", "--json"))
    assert found["f"]["message"] == "only in the old laws"
    assert found["h"]["message"] == "only in the new laws"
    assert {name: one["verdict"] for name, one in found.items()} == {
        "f": "out of scope",
        "g": "holds",
        "h": "out of scope",
    }


def test_a_new_scope_is_told(diff, tmp_path):
    (tmp_path / "a.law").write_text("f.time(n) { Norm(3*n, 1) }")
    (tmp_path / "b.law").write_text("f.time(n) { [n > 5] Norm(3*n, 1); [n <= 5] Norm(8*n, 1) }")
    [found] = verdicts(diff(tmp_path / "a.law", tmp_path / "b.law", "--json")).values()
    assert "scope" in [one["what"] for one in found["changes"]]


def test_bad_input(diff, tmp_path):
    (tmp_path / "bad.law").write_text("f.time( { }")
    assert "bad.law:1:" in diff(tmp_path / "bad.law", "default", status=2).stderr
    assert "no such law file" in diff("default", "nothing", status=2).stderr
