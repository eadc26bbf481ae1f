"""What a Python interpreter's command line runs: a script, a module or code, and where the program's own arguments begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_VALUE_OPTIONS = "WX"
_ISOLATING = "IES"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """An interpreter's command line understood."""

    kind: Literal["script", "module", "code", "nothing"]
    """What it runs; ``nothing``: an interactive session, or a program on standard input."""
    what: str
    """The script's path, the module's name or the code."""
    used: int
    """Words before the program's own arguments."""
    isolating: str = ""
    """The option that makes the interpreter ignore its environment, if there is one."""

    @property
    def name(self) -> str:
        """Short name of the target: ``app.py``, ``-m json.tool``, ``-c``."""
        if self.kind == "module":
            return f"-m {self.what}"
        return Path(self.what).name if self.kind == "script" else "-c"


def parse(argv: Sequence[str]) -> CommandLine:
    """Read the words of ``argv``, the interpreter first.

    >>> parse(["python", "-um", "json.tool", "x"])
    CommandLine(kind='module', what='json.tool', used=3, isolating='')
    >>> parse(["python", "-X", "dev", "app.py"]).name
    'app.py'
    """
    index, isolating = 1, ""
    while index < len(argv):
        word = argv[index]
        if word == "-" or not word.startswith("-"):
            break
        if word.startswith("--"):
            index += 2 if word == "--check-hash-based-pycs" else 1
            continue
        letters = word[1:]
        end = next((at for at, letter in enumerate(letters) if letter in _VALUE_OPTIONS + "mc"), len(letters))
        isolating = isolating or next((letter for letter in letters[:end] if letter in _ISOLATING), "")
        attached, taken = letters[end + 1 :], index + (1 if letters[end + 1 :] else 2)
        if letters[end : end + 1] in ("m", "c"):
            value = attached or "".join(argv[index + 1 : index + 2])
            return CommandLine("module" if letters[end] == "m" else "code", value, taken, isolating)
        index = taken if end < len(letters) else index + 1
    if index >= len(argv) or argv[index] == "-":
        return CommandLine("nothing", "", index, isolating)
    return CommandLine("script", argv[index], index + 1, isolating)
