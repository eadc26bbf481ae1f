"""The native core: the library that recorders load, and a folder where tests build others from the same sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflaw.record.build import build, core
from tests.conftest import Once
from tests.native.building import make


@pytest.fixture(scope="session")
def native(made_once: Once) -> Path:
    """Where tests build with sanitizers; every C file that stands alone has passed all warnings."""
    return made_once("native", lambda folder: make(folder, "warnings", "unit"))


@pytest.fixture(scope="session")
def library() -> Path:
    return build(core())
