"""Adding a family is one entry of the catalogue."""

import json
import subprocess
import sys

from perflaw.laws.catalogue import FAMILIES, growth_in_words
from perflaw.laws.units import METRICS
from perflaw.record.metrics import CATALOGUE


def test_a_new_family_is_met_everywhere():
    done = subprocess.run(
        [sys.executable, "-m", "tests.learn.new_family"], capture_output=True, text=True, check=True, timeout=300
    )
    met = json.loads(done.stdout)
    assert met["smooth"][:2] == ["n52", "n^2.5"]
    assert met["smooth"][2].endswith("*n^2.5")
    assert met["piece"] == ["constant", "n52"]
    assert "*v^2.5" in met["factor"]
    assert "*u^2.5*v" in met["snap"]
    assert met["paper"] == "n52"


def test_names_are_unique_and_growths_are_told():
    assert len({one.name for one in FAMILIES}) == len(FAMILIES)
    assert all(one.growth for one in FAMILIES if not one.free or one.name == "exponential")
    assert growth_in_words("piecewise") == ""


def test_metrics_and_their_units_are_listed_once():
    assert {name: one.metric.unit for name, one in CATALOGUE.items()} == METRICS
