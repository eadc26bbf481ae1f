"""Properties of a program's interpreter: one start of it tells them all, and they are remembered for the session."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.rights import User

OLDEST: Final = (3, 11)
_QUESTION: Final = """
import sys, sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
version = '.'.join(map(str, sys.version_info[:3]))
print(sys.implementation.name, version, EXTENSION_SUFFIXES[0], sysconfig.get_path('include'))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can run a program."""

    path: str
    """Its executable."""
    implementation: str
    """``cpython``."""
    version: str
    """``3.13.0``."""
    suffix: str
    """Suffix of its extension modules: ``.cpython-313-x86_64-linux-gnu.so``."""
    include: str
    """Folder of its ``Python.h``, whether that is installed or not."""

    @property
    def short(self) -> str:
        """``3.13``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def numbers(self) -> tuple[int, int]:
        """``(3, 13)``."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def free_threaded(self) -> bool:
        """Whether it is a build without the global interpreter lock, which has another ABI."""
        return f"-{self.numbers[0]}{self.numbers[1]}t" in self.suffix


@cache
def probe(python: str, user: User | None = None) -> Interpreter:
    """Start an interpreter to learn what it is; TargetError if it does not start or perflaw cannot record it.

    ``user``: who starts it, because what another user runs may be that user's own.
    """
    command, options = [python, "-I", "-S", "-c", _QUESTION], user.options() if user else {}
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **options
        )
        name, version, *rest = answer.stdout.strip().split(" ", 3)
        suffix, include = [*rest, "", ""][:2]
        interpreter = Interpreter(python, name, version, suffix, include)
        numbers = interpreter.numbers
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"{python}: does not start", str(error), f"{python} --version") from error
    if name != "cpython" or numbers < OLDEST:
        raise TargetError(f"{python}: {name} {version}", "perflaw records CPython 3.11 and newer", "perflaw doctor")
    return interpreter
