"""``sysctl``: settings of the kernel, and any file of ``/proc`` or ``/sys``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflaw.errors import TargetError
from perflaw.explore.injectors.context import Context
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value


class Sysctl:
    """``{sysctl: vm.swappiness}``, ``{sysctl: /sys/kernel/mm/transparent_hugepage/enabled}``; put back after the study."""

    name = "sysctl"
    options: tuple[str, ...] = ()
    verifies_itself = True

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Write it; the kernel says here where it does not allow it."""
        self.put_back(how, text_of(int(value)) if isinstance(value, bool) else text_of(value), context)

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """What the kernel has; of a choice such as ``always [madvise] never``, the one in brackets."""
        return self.remember(how, context)

    def remember(self, how: Mapping[str, Any], context: Context) -> str:
        """The setting as it stands."""
        path = file_of(str(how["sysctl"]))
        try:
            text = path.read_text().strip()
        except OSError as error:
            raise TargetError(f"{path}", error.strerror or str(error)) from error
        chosen = [word for word in text.split() if word.startswith("[") and word.endswith("]")]
        return chosen[0][1:-1] if chosen else text

    def put_back(self, how: Mapping[str, Any], remembered: str, context: Context) -> None:
        """Write a setting."""
        path = file_of(str(how["sysctl"]))
        try:
            path.write_text(remembered)
        except OSError as error:
            raise TargetError(f"{path}", error.strerror or str(error), "run it as root") from error


def file_of(name: str) -> Path:
    """The file of a setting; only those of ``/proc`` and ``/sys``.

    >>> file_of("vm.swappiness")
    PosixPath('/proc/sys/vm/swappiness')
    """
    path = Path(name) if name.startswith("/") else Path("/proc/sys") / name.replace(".", "/")
    if ".." in path.parts or (not path.is_relative_to("/proc") and not path.is_relative_to("/sys")):
        raise TargetError(f"sysctl {name!r}", "neither a kernel setting nor a file of /proc or /sys")
    return path
