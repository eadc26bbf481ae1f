"""A study's laws as files: what predicts any configuration, and what a slower target violates while the same one holds."""

import json

import pytest

TARGET = """
import json, os, random, sys
asked = dict(word.lstrip("-").split("=") for word in sys.argv[1:])
fast = 1.5 if asked["mode"] == "fast" else 1.0
rate = 1e6 * int(asked["threads"]) ** 0.8 * fast * random.gauss(1, 0.02) / float(os.environ.get("SLOW", "1"))
print(json.dumps({"rate": rate}))
"""
STUDY = """
target: {run: "python3 target.py {args}", result: {json: stdout}}
knobs:
  threads: {type: int, range: [1, 8], apply: {arg: "--threads={}"}}
  mode: {type: categorical, values: [safe, fast], apply: {arg: "--mode={}"}}
metrics: {rate: {path: rate, goal: max, unit: rows/s}}
policy: random
trials: 14
"""


@pytest.fixture
def folder(tmp_path, perflaw):
    (tmp_path / "target.py").write_text(TARGET)
    (tmp_path / "toy.yaml").write_text(STUDY)
    done = perflaw("explore", "toy.yaml", "--seed", "1", "-o", "toy.law", "--page", "toy.html", "--json")
    (tmp_path / "out.json").write_text(done.stdout)
    return tmp_path


@pytest.mark.slow
def test_laws_predict_and_hold_later_trials(folder, perflaw, monkeypatch):
    document = json.loads((folder / "out.json").read_text())
    assert document["schema"] == "perflaw.explore/1"
    assert document["laws"]["rate"]["verdict"] == "law"
    assert document["best"]["configuration"]["mode"] == "fast"
    assert "<!doctype html>" in (folder / "toy.html").read_text()
    assert list(folder.glob(".toy.html*")) == []
    assert "toy.rate() [rows/s]" in (folder / "toy.law").read_text()

    asked = json.loads(perflaw("predict", "toy.law", "threads=4,mode=safe=0", "--json").stdout)
    assert asked["predictions"][0]["mean"] == pytest.approx(1.5e6 * 4**0.8, rel=0.1)

    by_name = json.loads(perflaw("predict", "toy", "threads=4,mode=safe=0", "--json").stdout)
    assert by_name["predictions"] == asked["predictions"]

    perflaw("explore", "toy.yaml", "--seed", "2", "--trials", "8", "-e", "same")
    assert "violated" not in perflaw("check", "toy.law", "-e", "same").stdout
    monkeypatch.setenv("SLOW", "1.7")
    perflaw("explore", "toy.yaml", "--seed", "3", "--trials", "8", "-e", "slow")
    broken = perflaw("check", "toy.law", "-e", "slow", "--json", status=1)
    verdict = json.loads(broken.stdout)["verdicts"][0]
    assert (verdict["component"], verdict["metric"], verdict["verdict"]) == ("toy", "rate", "violated")
    assert verdict["effect"] == pytest.approx(1 / 1.7, rel=0.1)
