"""``perflaw predict`` as a person runs it: intervals, scopes, refusals."""

import json

import pytest


@pytest.fixture
def predict(perflaw, shifted):
    """Run ``perflaw predict`` where the recordings are."""

    def run(*arguments, status=0):
        return perflaw("predict", *arguments, status=status, cwd=shifted)

    return run


def predictions(done, of):
    document = json.loads(done.stdout)
    assert document["schema"] == "perflaw.predict/1"
    return {one["component"]: one for one in document["predictions"] if one["of"] == of}


@pytest.mark.parametrize("laws", ["perf.law", "perf.law.json", "default"])
def test_a_call_inside_what_was_learnt(predict, laws):
    build = predictions(predict(laws, "docs.len=1000", "--json"), "call")["shifting.build"]
    assert build["mean"] == pytest.approx(2_000_000, rel=0.1)
    assert build["new_low"] <= build["mean_low"] < build["mean"] < build["mean_high"] <= build["new_high"]
    assert build["inside"]
    assert build["unit"] == "ns"


@pytest.mark.parametrize("laws", ["perf.law", "default"])
def test_a_run_outside_what_was_learnt_has_a_wider_interval(predict, laws):
    near = predictions(predict(laws, "n=1000", "--json"), "run")["shifting.build"]
    far = predictions(predict(laws, "n=1e5", "--json"), "run")["shifting.build"]
    assert far["mean_low"] < 2000 * 8 * 1.75 * 1e5 < far["mean_high"]
    assert near["inside"]
    assert not far["inside"]
    assert "outside the range of the data" in far["message"]
    assert far["mean_high"] / far["mean"] >= near["mean_high"] / near["mean"] * 0.99


def test_the_experiment_is_the_default_one_or_that_of_the_option(predict):
    named = predict("default", "n=1e5").stdout
    assert predict("n=1e5").stdout == predict("-e", "default", "n=1e5").stdout == named
    assert "nosuch" in predict("-e", "nosuch", "n=1e5", status=2).stderr
    assert "there is no point" in predict("perf.law", status=2).stderr


def test_the_table(predict):
    text = predict("perf.law", "n=1e5").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "n = 100,000" in text
    assert "shifting.build" in text


def test_an_experiment_tells_a_whole_run(predict):
    """A file has no law of it."""
    document = json.loads(predict("default", "n=1e4", "n=1e5", "--json").stdout)
    costs = [max(one["mean"] for one in predictions_at(document, size)) for size in (1e4, 1e5)]
    assert [one["features"] for one in document["whole"]] == [{"n": 1e4}, {"n": 1e5}]
    assert all(one["mean"] >= cost for one, cost in zip(document["whole"], costs, strict=True))
    assert predict("default", "n=1e5").stdout.splitlines()[2].startswith("whole program")
    assert json.loads(predict("perf.law", "n=1e5", "--json").stdout)["whole"] == []


def predictions_at(document, n):
    return [one for one in document["predictions"] if one["of"] == "run" and one["features"] == {"n": n}]


def test_a_text_has_the_scatter_it_states(predict, tmp_path):
    file = tmp_path / "hand.law"
    file.write_text("f.time(n) [us] { [n < 10] Norm(5*n, 1); [n < 20] {{0.5} Norm(10, 1); {0.5} Norm(20, 1)} }")
    [found] = predictions(predict(file, "n=4", "--json"), "call").values()
    assert found["mean"] == pytest.approx(20_000)
    assert found["mean_low"] is None
    assert found["new_low"] == pytest.approx(20_000 - 1_960, rel=1e-3)
    assert found["condition"] == "n < 10"
    assert "text alone" in found["message"]
    [mixed] = predictions(predict(file, "n=15", "--json"), "call").values()
    assert mixed["mean"] == pytest.approx(15_000)
    [refused] = predictions(predict(file, "n=30", "--json"), "call").values()
    assert refused["mean"] is None
    assert "no forecast" in refused["message"]


def test_several_points_and_features(predict, tmp_path):
    file = tmp_path / "hand.law"
    file.write_text("f.time(n, m) { Norm(5*n*m, 1) }")
    done = predict(file, "n=4,m=2", "n=1e3,m=3", "--json")
    assert [one["mean"] for one in json.loads(done.stdout)["predictions"]] == [40, 15_000]


def test_a_function_without_an_answer_says_why(predict, shifted, tmp_path):
    file = tmp_path / "hand.law"
    file.write_text("f.time(n) { Norm(5*n, 1) } g.time(n, m) { Norm(5*n*m, 1) }")
    text = predict(file, "n=4").stdout
    assert "no answer for 1 function\ng: not asked: laws of other features (--all lists them)" in text
    assert "g: not asked: its law needs m" in predict(file, "n=4", "--all").stdout
    unanswered = predictions(predict(file, "n=4", "--json"), "call")["g"]
    assert (unanswered["mean"], unanswered["features"]) == (None, {})
    assert unanswered["message"] == "not asked: its law needs m"


def test_a_law_that_was_not_learnt_answers_why(predict, shifted, tmp_path):
    document = json.loads((shifted / "perf.law.json").read_text())
    [build] = [one for one in document["annotations"] if one["component"] == "shifting.build"]
    build["run_law"] = None
    build["scopes"][0]["law"]["reason"] = "not learnt: KeyError: 'x'"
    (tmp_path / "perf.law.json").write_text(json.dumps(document))
    assert "shifting.build: not learnt: KeyError: 'x'" in predict(tmp_path / "perf.law.json", "n=1000").stdout


@pytest.mark.parametrize("point", ["n", "n=", "n=many", "n=inf", "=3", "n=nan", "nosuch=3"])
def test_bad_points(predict, point):
    assert predict("perf.law", point, status=2).stderr.startswith("perflaw: ")


def test_bad_laws(predict, tmp_path):
    (tmp_path / "bad.law").write_text("f.time(n) { Norm(n, ) }")
    assert "bad.law:1:" in predict(tmp_path / "bad.law", "n=3", status=2).stderr
    assert "no such law file" in predict("nothing.law", "n=3", status=2).stderr
    (tmp_path / "two.law").write_text("f.time(n, m) { Norm(n*m, 1) }")
    assert "depend on m, n" in predict(tmp_path / "two.law", "n=3", status=2).stderr


@pytest.fixture
def with_own_n(tmp_path):
    """Laws of a program whose function ``digits`` has an ``n`` of its own, while ``main`` has that of the run."""
    law = {
        "expression": "Norm(5*n, 1)",
        "range": {"n": [1, 20]},
        "features": ["n"],
        "reason": "",
        "predictions": [],
        "verdict": "law",
    }
    of_runs = {**law, "expression": "Norm(700*n, 1)", "range": {"n": [100, 800]}}
    common = {"metric": "time", "unit": "ns", "file": "app.py", "line": 1, "features": ["n"], "check": None}
    scope = {"condition": "", "probability": 1.0, "law": law}
    annotations = [
        {"component": f"app.{name}", "scopes": [scope], "run_law": of_runs, "own_features": own, **common}
        for name, own in (("digits", ["n"]), ("main", []))
    ]
    file = tmp_path / "own.law.json"
    file.write_text(
        json.dumps({"schema": "perflaw.annotate/1", "runs": [], "program": None, "annotations": annotations})
    )
    return file


def test_the_name_of_a_runs_feature_leaves_a_functions_own_parameter_of_the_name(predict, with_own_n):
    done = predict(with_own_n, "n=4000", "--json")
    assert {name: one["mean"] for name, one in predictions(done, "run").items()} == {
        "app.digits": 2_800_000,
        "app.main": 2_800_000,
    }
    calls = predictions(done, "call")
    assert calls["app.main"]["mean"] == 20_000
    assert (calls["app.digits"]["mean"], calls["app.digits"]["features"]) == (None, {})
    text = predict(with_own_n, "n=4000").stdout
    assert "one call of app.digits: n of a call is not that of the run: FUNCTION.n=… sets it" in " ".join(text.split())
    assert "no answer" not in text


@pytest.mark.parametrize("name", ["digits.n", "app.digits.n"])
def test_a_functions_own_parameter_is_set_by_its_name(predict, with_own_n, name):
    done = predict(with_own_n, "n=4000", f"{name}=10", "--json")
    digits = predictions(done, "call")["app.digits"]
    assert (digits["mean"], digits["features"]) == (50, {"app.digits.n": 10})
    assert predictions(done, "run")["app.digits"]["mean"] == 2_800_000
    alone = predictions(predict(with_own_n, f"{name}=10", "--json"), "call")
    assert alone["app.digits"]["mean"] == 50
    assert alone["app.main"]["message"] == "not asked: its law needs n"


def test_a_name_that_is_no_function_or_several_is_refused(predict, with_own_n):
    assert "has no feature 'igits.n'" in predict(with_own_n, "igits.n=10", status=2).stderr
    document = json.loads(with_own_n.read_text())
    document["annotations"][1]["component"] = "other.digits"
    with_own_n.write_text(json.dumps(document))
    ambiguous = predict(with_own_n, "digits.n=10", status=2).stderr
    assert "digits.n=… is ambiguous" in ambiguous
    assert "app.digits.n, other.digits.n" in ambiguous
