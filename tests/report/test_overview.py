"""The overview: no part of a larger run is told where the run's cost, or that of the part, is not known."""

import pytest

from perflaw.report.overview import overview_data
from perflaw.types.laws import Prediction
from perflaw.types.programs import Outlook

POINT = {"n": 1000.0}


def laws(**part):
    predicted = {
        "features": POINT,
        "mean": 4e9,
        "mean_low": 3e9,
        "mean_high": 5e9,
        "new_low": 3e9,
        "new_high": 5e9,
    } | part
    shown = {"per": "run", "laws": [{"law": "n^2"}], "growth": "n^2"}
    one = {"component": "app.f", "unit": "ns", "metric": "time", "share": 0.3, "self_share": 0.3, "shown": shown}
    one |= {"run_law": {"predictions": [predicted], "expression": "n^2"}, "predicted": None}
    return {"annotations": [one], "program": {"features": {}, "measured": 1e9}, "per": "run", "at": None}


def parts(document, low, high):
    outlook = Outlook(Prediction(POINT, 8e9, low, high, low, high))
    matters = overview_data(document, ["app.f"], outlook, None, "")["matters"]
    return matters["whole"], [row["then"] for row in matters["rows"]]


def test_a_part_of_a_known_cost_is_told():
    assert parts(laws(), 7e9, 9e9) == ("8.0 s", ["50 %"])


@pytest.mark.parametrize("part", [{"mean_low": 1e6, "mean_high": 9e12}, {"mean_high": None}])
def test_a_part_whose_own_cost_is_unknown_is_not(part):
    assert parts(laws(**part), 7e9, 9e9) == ("8.0 s", [])


def test_no_part_is_told_of_an_unknown_cost():
    assert parts(laws(), 1e6, 9e12) == ("unknown", [])


def test_a_suite_of_tests_has_no_size():
    without = {"program": None, "annotations": []}
    suite = overview_data(without, (), None, None, "perflaw annotate -e pytest")["next"]
    assert suite["why"].startswith("A suite of tests has no size")
    other = overview_data(without, (), None, None, "perflaw record --vary n=1,2 -- app.py {n}")["next"]
    assert other["why"].endswith("every recorded run has the same size.")
