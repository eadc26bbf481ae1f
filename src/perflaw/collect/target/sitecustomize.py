"""Run by the target's interpreter at start: begins recording, then leaves no trace of itself.

It stands first on PYTHONPATH, so ``import sitecustomize`` in ``site`` finds it. It restores what it changed (environment,
``sys.path``, ``sys.modules``), starts the tracer that ``PERFLAW_TRACER`` names, and hands over to the target's own
sitecustomize, or reports that there is none exactly as Python would.
"""

from __future__ import annotations

import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _restore_environment(here: str) -> dict[str, str]:
    """Undo what the recorder put into the environment; children of the target are not recorded by inheritance."""
    settings = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PERFLAW_TARGET_")}
    original = settings.pop("PERFLAW_TARGET_PYTHONPATH", None)
    if original is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = original
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    return settings


def _load_tracer(here: str, name: str) -> Any:
    """Load the one module of ours that enters the target, by its path: ``sys.path`` stays the target's.

    Its builtins are a copy, so that a target that replaces some does not meet us. The files it is written in import
    each other by name while they load, and stand in ``sys.modules`` no longer than that.
    """
    from importlib.util import module_from_spec, spec_from_file_location

    for part in _PARTS[name]:
        spec = spec_from_file_location(part, f"{here}/{part}.py")
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        module.__dict__["__builtins__"] = dict(vars(builtins))
        sys.modules[part] = module
        spec.loader.exec_module(module)
    for part in _PARTS[name][:-1]:
        del sys.modules[part]
    return module


_PARTS = {
    "_perflaw_tracer": ("_perflaw_spool", "_perflaw_functions", "_perflaw_tracer"),
    "_perflaw_nothing": ("_perflaw_spool", "_perflaw_nothing"),
}


def _hand_over() -> None:
    """Import the target's own sitecustomize in our place; raises the ImportError that ``site`` expects if it has none."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    settings = _restore_environment(here)
    name = settings.pop("PERFLAW_TARGET_TRACER", None)
    if name:
        _load_tracer(here, name).start(settings)


_begin()
_hand_over()
