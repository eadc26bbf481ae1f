"""``perflaw check`` as a person runs it: verdicts, exit statuses, the formats of other tools, and bad input."""

import json
from pathlib import Path

import pytest

from tests.conftest import PROGRAMS, first

JSON_PAGE = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture
def check(perflaw, shifted):
    """Run ``perflaw check`` where the recordings are."""

    def run(*arguments, status=0):
        return perflaw("check", *arguments, status=status, cwd=shifted)

    return run


def verdicts(done):
    document = json.loads(done.stdout)
    assert document["schema"] == "perflaw.check/1"
    return {one["component"]: one for one in document["verdicts"]}


@pytest.mark.parametrize("laws", first(1, ["perf.law", "perf.law.json", "default"]))
def test_the_same_program_holds(check, laws):
    done = check(laws, "-e", "same", "--json")
    found = verdicts(done)
    assert {one["verdict"] for one in found.values()} == {"holds"}
    assert found["shifting.build"]["effect_low"] < 1 < found["shifting.build"]["effect_high"]
    assert check(laws, "-e", "same").stdout == f"holds {len(found)}\n"


def test_a_slower_function_is_violated_from_a_size_on(check):
    done = check("perf.law", "-e", "slow", "--json", status=1)
    found = verdicts(done)
    build = found["shifting.build"]
    assert build["verdict"] == "violated"
    assert build["metric"] == "time"
    assert build["p"] < 0.01
    assert 1.6 < build["effect_low"] < 1.8 < build["effect_high"] < 2.0
    assert build["since"] == "docs.len = 400"
    assert build["runs_beyond"] == build["runs"] == 2
    assert found["shifting.tokens"]["verdict"] == found["shifting.lookup"]["verdict"] == "holds"


def test_the_table_fits_80_columns_and_says_it_in_one_entry(check):
    text = check("perf.law", "-e", "slow", status=1).stdout
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    assert "violated shifting.build(docs) time 1." in flat
    assert "what the law says from docs.len = 400 on, 2 runs of 2" in flat
    assert "violated 1 · holds" in flat


def test_one_run_alone_violates_nothing(check):
    build = verdicts(check("perf.law", "-e", "one", "--json"))["shifting.build"]
    assert build["verdict"] == "inconclusive"
    assert "one run" in build["message"]
    check("perf.law", "-e", "one", "--single-run", status=1)


def test_inputs_that_were_not_learnt_from_are_out_of_scope(check):
    found = verdicts(check("perf.law", "-e", "far", "--json"))
    assert found["shifting.build"]["verdict"] == found["shifting.tokens"]["verdict"] == "out of scope"
    assert found["shifting.lookup"]["verdict"] == "holds"
    assert "out of scope" in check("perf.law", "-e", "far").stdout


def test_runs_that_the_law_was_learnt_from_are_refused(check):
    for arguments in (["perf.law"], ["perf.law", "0002"], ["perf.law.json"], ["default"]):
        error = check(*arguments, status=2).stderr
        assert "learnt from" in error or "no run is left" in error


def test_sarif(check, tmp_path):
    file = tmp_path / "out.sarif"
    check("perf.law", "-e", "slow", "--sarif", file, status=1)
    log = json.loads(file.read_text())
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert run["tool"]["driver"]["name"] == "perflaw"
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["kind"] in {"pass", "fail", "review", "notApplicable", "open", "informational"}
        assert result["level"] == ("error" if result["kind"] == "fail" else "none")
        assert result["message"]["text"]
    [build] = [one for one in run["results"] if one["partialFingerprints"]["component/v1"] == "shifting.build.time"]
    place = build["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("shifting.py")
    assert place["region"]["startLine"] > 1


def test_github(check):
    text = check("perf.law", "-e", "slow", "--github", status=1).stdout
    [line] = [one for one in text.splitlines() if one.startswith("::error") and "shifting.build" in one]
    assert ",line=" in line
    assert line.startswith("::error file=")
    assert "what the law says from docs.len = 400 on" in line


HAND = "shifting.build.time(docs) {{ {} }}\n"


@pytest.mark.parametrize(
    ("law", "status", "verdict"),
    [
        ("Norm(2000*docs.len, 0.2)", 0, "holds"),
        ("LogNorm(1000*docs.len, 0.1)", 1, "violated"),
        ("[docs.len > 5e6] Norm(1, 1)", 0, "out of scope"),
        ("Norm(2000*docs.size, 1)", 0, "inconclusive"),
    ],
)
def test_laws_written_by_hand(check, tmp_path, law, status, verdict):
    file = tmp_path / "hand.law"
    file.write_text(HAND.format(law))
    [found] = verdicts(check(file, "-e", "same", "--json", status=status)).values()
    assert found["verdict"] == verdict


def test_a_text_that_was_edited_is_taken_at_its_word(check, shifted, tmp_path):
    text = (shifted / "perf.law").read_text()
    start = text.index("shifting.lookup.time")
    edited = text[:start] + "shifting.lookup.time(key) { Norm(9us, 1us) }" + text[text.index("}", start) + 1 :]
    (tmp_path / "perf.law").write_text(edited)
    (tmp_path / "perf.law.json").write_text((shifted / "perf.law.json").read_text())
    done = check(tmp_path / "perf.law", "-e", "same", "--json", status=1)
    assert verdicts(done)["shifting.lookup"]["verdict"] == "violated"
    assert verdicts(done)["shifting.build"]["verdict"] == "holds"
    assert "their text counts" in done.stderr


@pytest.mark.slow
def test_of_components_of_one_name_the_dearest_counts(perflaw, tmp_path):
    """Code made by exec within a module has the module's name too, and may be called more often."""
    program = (PROGRAMS / "fake_clock.py").read_text() + "advance(10**9)\nfor _ in range(9): exec('advance(10)')\n"
    (tmp_path / "app.py").write_text(program)
    for name in ("default", "new"):
        perflaw("record", "-e", name, "--clock", "fake", "--repeat", "3", "--", "app.py")
    perflaw("annotate", "-o", "app.law")
    done = perflaw("check", "app.law", "-e", "new", "--json")
    assert "their text counts" not in done.stderr
    assert verdicts(done)["app.<module>"]["verdict"] != "violated"


def test_a_component_that_is_gone_is_told_with_similar_names(check, tmp_path):
    file = tmp_path / "hand.law"
    file.write_text("shifting.biuld.time(docs) { Norm(1, 1) }")
    [found] = verdicts(check(file, "-e", "same", "--json")).values()
    assert found["verdict"] == "inconclusive"
    assert "shifting.build" in found["message"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shifting.build.time(docs) { Nrom(1, 1) }", ["bad.law:1:", "Norm"]),
        ("shifting.build.time(docs) {\n  Norm(1 1)\n}", ["bad.law:2:"]),
        ("", ["no laws"]),
        ("# nothing\n", ["no laws"]),
        ("shifting.build.tme(docs) { Norm(1, 1) }", ["tme", "not measured"]),
        ("shifting.build.time(docs) [MB] { Norm(1, 1) }", ["MB", "time"]),
        ("shifting.build.events(docs) [ns] { Norm(1, 1) }", ["unit"]),
        ("shifting.build.time(docs) { {0.5} Norm(1, 1); {0.6} Norm(2, 1) }", ["1.1"]),
        ("shifting.build.time(docs) { Norm(1e999, 1) }", ["bad.law:1:"]),
        ("shifting.build.time(docs) { Norm(nan, 1) }", ["bad.law:1:", "finite"]),
        ("shifting.build.time(docs) { Norm(" + "(" * 5000 + "1" + ")" * 5000 + ", 1) }", ["bad.law:1:"]),
    ],
)
def test_bad_laws_are_told_with_their_place(perflaw, shifted, tmp_path, text, words):
    file = tmp_path / "bad.law"
    file.write_text(text)
    error = perflaw("check", file, "-e", "same", status=2, cwd=shifted).stderr
    assert all(word in error for word in words), error


def test_files_that_are_no_laws(perflaw, shifted, tmp_path):
    (tmp_path / "bytes.law").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "other.json").write_text('{"schema": "perflaw.annotate/9"}')
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "torn.json").write_text('{"schema": "perflaw.annotate/1", "annotations": [{"component": 3}]}')
    (tmp_path / "half.json").write_text('{"schema": ')
    for name in ("bytes.law", "other.json", "list.json", "torn.json", "half.json", "none.law", "."):
        error = perflaw("check", tmp_path / name, "-e", "same", status=2, cwd=shifted).stderr
        assert error.startswith("perflaw: ")
        assert "unexpected" not in error
    assert "no recordings" in perflaw("check", "perf.law", "-e", "nothing", status=2, cwd=shifted).stderr
    assert "no run 0099" in perflaw("check", "perf.law", "-e", "same", "99", status=2, cwd=shifted).stderr


def test_every_field_is_described(perflaw, shifted):
    described = JSON_PAGE.read_text()
    for arguments, status in (
        (["check", "perf.law", "-e", "slow"], 1),
        (["diff", "default", "slow"], 1),
        (["predict", "perf.law", "n=3"], 0),
    ):
        document = json.loads(perflaw(*arguments, "--json", status=status, cwd=shifted).stdout)
        assert f"`{document['schema']}`" in described
        for one in document.get("verdicts", []) + document.get("predictions", []):
            for name in [*one, *(field for change in one.get("changes", []) for field in change)]:
                assert f"`{name}`" in described, f"{arguments[0]}: {name}"
