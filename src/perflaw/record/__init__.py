"""Programs in, recordings out.

The story of one recording: ``plan`` (which runs) → ``session`` (one after the other) → ``tracers`` (what records the
command that ``launch`` understood) → ``run`` (the program runs while its records are read) → ``saving`` (the manifest and
the tables of each process). How a Python program is recorded is in ``python/``, how a compiled one is in ``compiled/``, how
events become a call tree and its tables in ``tree/``, probes in ``probes/``.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableRoom(ModuleType):
    """The room, which is also the function that programs call: ``with perflaw.record("nightly"): …``.

    A package's module takes the place of a name of the package, whenever it is imported. So it calls what has the name.
    """

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """``perflaw.api.recording.record``, by its name, because the rooms of the recorder know nothing of the API."""
        return import_module("perflaw.api.recording").record(*arguments, **settings)


sys.modules[__name__].__class__ = CallableRoom
