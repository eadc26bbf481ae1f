"""What a table says is in the JSON document of the same command: rendered from the printed document it is the same."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from perflaw.laws.evaluation import evaluate
from perflaw.laws.reading import parse_expression
from perflaw.report.annotations import annotations_text, forecast_table, predicted_text, runs_table
from perflaw.report.fits import fit_table
from perflaw.report.verdicts import law_verdicts_text


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(
    ("command", "status", "render"),
    [
        (["annotate"], 0, annotations_text),
        (["annotate", "--at", "n=1e5"], 0, annotations_text),
        (["check", "perf.law", "-e", "slow"], 1, law_verdicts_text),
        (["check", "perf.law", "-e", "far"], 0, law_verdicts_text),
        (["diff", "default", "slow"], 1, law_verdicts_text),
        (["predict", "perf.law", "n=1e5"], 0, forecast_table),
        (["predict", "perf.law", "docs.len=100"], 0, forecast_table),
    ],
)
def test_a_table_is_rendered_from_its_document(perflaw, shifted, command, status, render, every):
    options = ["--all"] * every
    document = json.loads(perflaw(*command, "--json", *options, status=status, cwd=shifted).stdout)
    assert perflaw(*command, *options, status=status, cwd=shifted).stdout == render(document, False, every)


def test_the_list_of_runs_is_rendered_from_its_document(perflaw, shifted):
    document = json.loads(perflaw("runs", "--json", cwd=shifted).stdout)
    assert perflaw("runs", cwd=shifted).stdout == runs_table(document, False)


def test_one_law_predicts_in_the_table_in_predict_and_on_the_page(perflaw, shifted, tmp_path):
    point, law, page = "n=1e5", tmp_path / "at.law", tmp_path / "page.html"
    six_digits = 5e-6  # law files write numbers with six digits
    annotations = json.loads(perflaw("annotate", "--at", point, "--json", "-o", law, cwd=shifted).stdout)["annotations"]
    for source in ("default", law):
        forecasts = json.loads(perflaw("predict", source, point, "--json", cwd=shifted).stdout)["predictions"]
        of_runs = {one["component"]: one for one in forecasts if one["of"] == "run"}
        for one in annotations:
            for end in ("mean", "mean_low", "mean_high"):
                assert of_runs[one["component"]][end] == pytest.approx(one["predicted"][end], rel=six_digits)
        of_calls = {one["component"]: one for one in forecasts if one["of"] == "call"}
        once = [one for one in annotations if one["calls"] == one["run_law"]["runs"] and one["component"] in of_calls]
        assert once
        for one in once:
            assert [scope["law"] for scope in one["scopes"]] == [one["run_law"]]
            assert of_calls[one["component"]]["mean"] == pytest.approx(one["predicted"]["mean"], rel=six_digits)
    perflaw("report", "--at", point, "-o", page, cwd=shifted)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    table = json.loads(data[1])["rows"]
    rows = [dict(zip(table["names"], values, strict=True)) for values in table["values"]]
    texts = [dict(zip(table["words"], words, strict=True)) for words in table["texts"]]
    by_name = {row["component"]: (row["per"], text) for row, text in zip(rows, texts, strict=True)}
    for one in annotations:
        (per, text), [shown] = by_name[one["component"]], one["shown"]["laws"]
        assert (per, text["law"]) == ("run", shown["law"])
        assert text["predicted"] == predicted_text(one["predicted"], one["unit"])


def test_one_law_of_a_function_called_once_is_in_the_table_on_the_chart_and_checked(perflaw, shifted, tmp_path):
    law, page = tmp_path / "perf.law", tmp_path / "page.html"
    annotations = json.loads(perflaw("annotate", "--json", "-o", law, cwd=shifted).stdout)["annotations"]
    once = [one for one in annotations if [scope["law"] for scope in one["scopes"]] == [one["run_law"]]]
    assert "shifting.<module>" in {one["component"] for one in once}
    text = law.read_text()
    perflaw("report", "-o", page, cwd=shifted)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    details = [json.loads(zlib.decompress(base64.b64decode(one))) for one in json.loads(data[1])["annotations"]]
    charts = {one["document"]["component"]: one["chart"] for one in details}
    for one in once:
        law_of_run = one["run_law"]
        assert law_of_run["expression"] in text
        for curve in charts[one["component"]]["curves"]:
            named = evaluate(parse_expression(law_of_run["mean"]), {curve["feature"]: np.array(curve["x"])})
            assert curve["mean"] == pytest.approx(np.broadcast_to(named, len(curve["x"])), rel=1e-3)
            band = zip(*(curve[name] for name in ("mean_low", "mean", "mean_high")), strict=True)
            assert all(low <= mean <= high for low, mean, high in band)


@pytest.mark.parametrize("runs", [1, 3])
def test_of_one_size_nobody_knows_whether_a_run_grows(perflaw, tmp_path, runs):
    (tmp_path / "app.py").write_text("import sys\ndef main(): return sum(range(int(sys.argv[1])))\nmain()\n")
    perflaw("record", "--tracer", "python", "--repeat", runs, "--", "app.py", 500, cwd=tmp_path)
    for one in json.loads(perflaw("annotate", "--json", cwd=tmp_path).stdout)["annotations"]:
        assert one["run_law"]["features"] == []
        assert one["run_law"]["verdict"] == ("inconclusive" if runs == 1 else "none")
        assert "add --vary" in one["run_law"]["reason"]


@pytest.mark.parametrize("by", [[], ["--by", "kind"]])
def test_laws_of_own_numbers_are_rendered_from_their_documents(perflaw, tmp_path, by):
    rows = [f"{n},{3 * n + n % 3},{'ab'[n % 2]}" for n in range(10, 200, 7)]
    (tmp_path / "data.csv").write_text("\n".join(["n,y,kind", *rows]) + "\n")
    command = ["fit", "data.csv", "--response", "y", "--features", "n", *by]
    documents = [json.loads(line) for line in perflaw(*command, "--json").stdout.splitlines()]
    assert perflaw(*command).stdout == fit_table(documents, "y", False)
