"""``--per FUNCTION`` of compiled programs: each call of a function is an observation, by hooks, injected, and attached."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_per import costs
from tests.conftest import Run, first
from tests.record.test_hooks import HOOKS, built

SIZES = (1, 2, 5, 10, 20, 50, 100)
ITEMS = "shop::total.items.len"


def require_laws(perflaw: Run, folder: Path) -> None:
    """Calls within an order are those of its size, and laws of an order are over it, though its argument does not tell it."""
    found = costs(folder)
    assert found.per
    assert found.per.name == "shop::order"
    names = {component.name for component in found.components}
    assert names >= {"shop::order", "shop::total", "shop::price"}
    for function, calls in (("price", SIZES), ("total", (1,) * 7), ("order", (1,) * 7)):
        [place] = [place for place, one in enumerate(found.components) if one.name == f"shop::{function}"]
        by_size: dict[float, set[float]] = {}
        for run, of_run in zip(found.runs, found.calls, strict=True):
            by_size.setdefault(run.features[ITEMS], set()).add(float(of_run[place]))
        assert by_size == {size: {count} for size, count in zip(SIZES, calls, strict=True)}
    assert "events in a call of order" in perflaw("annotate", "--metric", "events").stdout
    at = json.loads(perflaw("annotate", "--metric", "events", "--at", f"{ITEMS}=1000", "--json").stdout)
    by_name = {one["component"]: one for one in at["annotations"]}
    assert at["program"]["per"] == "shop::order"
    assert by_name["shop::price"]["predicted"]["mean"] == pytest.approx(1000)
    assert by_name["shop::order"]["run_law"]["family"] == "linear"


@pytest.mark.parametrize(
    "flags",
    first(1, map(pytest.param, [(HOOKS, "-finstrument-functions-exclude-file-list=/usr"), ()])),
    ids=["hooks", "injected"],
)
def test_calls_of_a_function_are_observations_of_a_run(perflaw: Run, tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = built(tmp_path, "orders.cc", "-O1", *flags)
    said = perflaw("record", "--per", "order", "--", program).stderr
    assert "7 observations" in said
    require_laws(perflaw, tmp_path)


@pytest.mark.slow
def test_requests_of_a_running_service_are_observations(perflaw: Run, tmp_path: Path) -> None:
    program = built(tmp_path, "orders.cc", "-O1")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout
        assert service.stdout.readline() == "ready\n"
        # The one that is named is recorded though it is not selected.
        said = perflaw(
            "attach", service.pid, "--per", "shop::order", "--select", "shop::[pt]*", "--seconds", "0.7"
        ).stderr
        assert " observations" in said
        assert service.communicate("")[0] == "0 wrong\n"
    require_laws(perflaw, tmp_path)
