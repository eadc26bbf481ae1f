"""`perflaw variance -o` and the variance view of `perflaw report`: real recordings on a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROGRAMS, Run


@pytest.fixture
def experiment(perflaw: Run) -> None:
    perflaw(
        "record",
        "--tracer",
        "python",
        "--clock",
        "fake",
        "--metric",
        "cpu",
        "--",
        str(PROGRAMS / "requests.py"),
        "slow",
    )


def variance_of(page: Path) -> Any:
    return json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])["variance"]


@pytest.mark.slow
@pytest.mark.usefixtures("experiment")
def test_all_recorded_metrics_stand_on_the_page(perflaw: Run, tmp_path: Path) -> None:
    perflaw("variance", "-o", "page.html", "--metric", "cpu")
    found = variance_of(tmp_path / "page.html")
    assert [one["name"] for one in found["metrics"]] == ["cpu", "time", "events"]
    root = found["metrics"][0]["patterns"][0]["nodes"][0]
    assert found["functions"][root["function"]]["name"] == "requests.handle"
    screens = [set(one["screens"]) for one in found["metrics"]]
    assert screens[0] == screens[1] == screens[2]
    assert str(root["function"]) in screens[0]


@pytest.mark.slow
@pytest.mark.usefixtures("experiment")
def test_the_page_opens_with_the_function_asked_for(perflaw: Run, tmp_path: Path) -> None:
    perflaw("variance", "parse", "-o", "page.html")
    found = variance_of(tmp_path / "page.html")
    assert found["functions"][found["opens"]]["name"] == "requests.parse"


@pytest.mark.slow
@pytest.mark.usefixtures("experiment")
def test_the_report_shows_it_beside_the_laws(perflaw: Run, tmp_path: Path) -> None:
    perflaw("report")
    assert variance_of(tmp_path / "report.html")["metrics"][0]["name"] == "time"


@pytest.mark.usefixtures("experiment")
def test_a_page_that_cannot_be_written(perflaw: Run) -> None:
    done = perflaw("variance", "-o", "no/such/page.html", status=2)
    assert "cannot be written" in done.stderr
