"""``python``: a function of the person's own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from perflaw.errors import TargetError
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.registry import load_file
from perflaw.types.studies import Value


class PythonCall:
    """``{python: settings:set_pool}`` calls ``set_pool(value, context)``; verify calls ``get_pool(context)``.

    Module or file (``settings.py:set_pool``) are looked for in the target's folder first.
    """

    name = "python"
    options: tuple[str, ...] = ()

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Call it with the value."""
        function_of(str(how["python"]), context)(value, context)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """What it returns."""
        told: Value | None = function_of(str(how["python"]), context)(context)
        return told


def function_of(name: str, context: Context) -> Any:
    """The function; TargetError where there is none."""
    module, _, wanted = name.rpartition(":")
    if not module:
        raise TargetError(f"python {name!r}", "module:function or file.py:function was expected")
    if module.endswith(".py"):
        found = load_file(context.path(module), f"python {name!r}")
    else:
        if context.folder not in sys.path:
            sys.path.insert(0, context.folder)
        found = importlib.import_module(module)
    if not callable(getattr(found, wanted, None)):
        raise TargetError(f"python {name!r}", f"{module} has no function {wanted}")
    return getattr(found, wanted)
