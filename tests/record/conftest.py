"""Programs that are run untraced and recorded, and must not notice."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.record.both_ways import Both, run_both_ways


@pytest.fixture
def both(tmp_path: Path) -> Callable[..., Both]:
    """Run the text of a program as app.py both ways; see :func:`run_both_ways`."""

    def run(program: str, *arguments: object, python: tuple[str, ...] = (), **options: object) -> Both:
        (tmp_path / "app.py").write_text(program)
        return run_both_ways(tmp_path, (*python, "app.py", *arguments), **options)

    return run


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A script of benchmarks/ as a module: tests run small versions of some."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module
