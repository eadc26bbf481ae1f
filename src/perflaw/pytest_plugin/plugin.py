"""The hooks: records the suite, holds it against laws, and gives tests the ``perflaw`` fixture.

Every pytest run of the environment imports this file, so it imports nothing but pytest until it is asked for something.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from perflaw.pytest_plugin.inner import INNER

if TYPE_CHECKING:
    from perflaw.pytest_plugin.fixture import Perflaw

_recorded = os.environ.pop(INNER, None) is not None

_NO_RUN = ("help", "version", "collectonly", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""pytest's options with which no test runs: there is nothing to record."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our options."""
    group = parser.getgroup("perflaw", "laws of the suite's performance")
    group.addoption("--perflaw", action="store_true", help="record this run, for perflaw annotate and report")
    group.addoption(
        "--perflaw-check", metavar="FILE.law", help="hold this run against laws; fails where one is violated"
    )
    group.addoption(
        "--perflaw-runs", type=int, metavar="N", help="run the suite N times (default 1, with --perflaw-check 3)"
    )
    group.addoption(
        "--perflaw-experiment", default="pytest", metavar="NAME", help="experiment under .perflaw/ (default pytest)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run the same command under the recorder instead, where we are asked to."""
    asked = config.option.perflaw or config.option.perflaw_check
    if not asked or _recorded or hasattr(config, "workerinput"):
        return None
    if any(getattr(config.option, name, None) for name in _NO_RUN):
        return None
    from perflaw.pytest_plugin.session import run_recorded

    return run_recorded(config)


@pytest.fixture
def perflaw() -> Perflaw:
    """Assertions about how code grows: ``perflaw.assert_scales(function, sizes, at_most="n log n")``."""
    from perflaw.pytest_plugin.fixture import Perflaw

    return Perflaw()
