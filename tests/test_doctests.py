"""Every example in a docstring is what the function gives."""

import doctest
import importlib
from pathlib import Path

import pytest

import perflaw

ROOT = Path(perflaw.__file__).parent
MODULES = [
    ".".join(("perflaw", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text() and "target" not in path.parts
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
