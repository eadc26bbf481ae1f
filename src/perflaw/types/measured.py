"""What is measured: components and metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the program whose cost is measured."""

    name: str
    """Qualified name, ``package.module.Class.function``."""
    file: str = ""
    """Source file, empty where there is none."""
    line: int = 0
    """First line of its definition, 0 where unknown."""
    language: str = "python"
    """Language it is written in."""
    origin: Literal["own", "library"] = "own"
    """The person's own code, or the standard library and installed packages."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters, in order."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured of an invocation."""

    name: str
    """Name on the command line and in documents: ``time``."""
    unit: str
    """Unit of its values: ``ns``."""


TIME = Metric("time", "ns")
"""Wall time of an invocation, the tracer's own time taken out."""
CPU = Metric("cpu", "ns")
"""The part of it in which the invocation's thread was on a CPU."""
EVENTS = Metric("events", "calls")
"""Recorded calls: the invocation itself and all below it."""
FEATURE_NAME: Final = re.compile(r"[A-Za-z_][\w.\[\]-]*")
"""What a feature that a person names may be called."""
