"""The native core, built from its sources once for a whole run of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Once
from tests.native.building import make


@pytest.fixture(scope="session")
def native(made_once: Once) -> Path:
    """The folder of freshly built libraries; tests may build more there."""
    return made_once("native", lambda folder: make(folder, "all"))


@pytest.fixture(scope="session")
def library(native: Path) -> Path:
    return native / "libperflaw_core.so"
