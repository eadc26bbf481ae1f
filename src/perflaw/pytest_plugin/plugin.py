"""The hooks: they record the suite, check it against laws, and give tests the ``perflaw`` fixture.

Every pytest run of the environment imports this file, so it imports nothing but pytest until an option or test needs more.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from perflaw.pytest_plugin import RECORDED_VARIABLE

if TYPE_CHECKING:
    from perflaw.pytest_plugin.scales import Perflaw

_recorded = os.environ.pop(RECORDED_VARIABLE, None) is not None

_OPTIONS_WITHOUT_TESTS = (
    "help", "version", "collectonly", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow",
)  # fmt: skip
"""Options of pytest with which no test runs, so that there is nothing to record."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of perflaw."""
    group = parser.getgroup("perflaw", "laws of the suite's performance")
    group.addoption("--perflaw", action="store_true", help="record this run, for perflaw annotate and report")
    group.addoption(
        "--perflaw-libraries", action="store_true", help="record functions of libraries too, not the project's alone"
    )
    group.addoption("--perflaw-check", metavar="FILE.law", help="check this run against laws; fail if one is violated")
    group.addoption(
        "--perflaw-runs", type=int, metavar="N", help="run the suite N times (default 1, with --perflaw-check 3)"
    )
    group.addoption(
        "--perflaw-experiment", default="pytest", metavar="NAME", help="experiment under .perflaw/ (default pytest)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run the same command under the recorder instead, if an option asks for it."""
    wanted = config.option.perflaw or config.option.perflaw_check
    if not wanted or _recorded or hasattr(config, "workerinput"):
        return None
    if any(getattr(config.option, name, None) for name in _OPTIONS_WITHOUT_TESTS):
        return None
    from perflaw.pytest_plugin.session import run_recorded

    return run_recorded(config)


@pytest.fixture
def perflaw() -> Perflaw:
    """Assertions about how code grows: ``perflaw.assert_scales(function, sizes, at_most="n log n")``."""
    from perflaw.pytest_plugin.scales import Perflaw

    return Perflaw()
