"""perflaw: learns the laws of a program's performance from its runs."""

from perflaw.decorator import law
from perflaw.listening import listen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from perflaw.api.experiments import Experiment, load
    from perflaw.api.magic import load_ipython_extension
    from perflaw.api.recording import record

__all__ = ["Experiment", "__version__", "law", "listen", "load", "load_ipython_extension", "record"]

__version__ = "0.1.0"

_LAZY = {
    "Experiment": "perflaw.api.experiments",
    "load": "perflaw.api.experiments",
    "load_ipython_extension": "perflaw.api.magic",
}
"""Name → the module that has it, imported when it is first asked for: a program may only want ``law``."""


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module 'perflaw' has no attribute {name!r}")
    from importlib import import_module

    if name == "record":  # the room, which is callable; importing it makes it an attribute
        return import_module("perflaw.record")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value
