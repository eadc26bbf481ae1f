"""What a command runs: which interpreter and which script, and whether it can be recorded as a Python program."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from perflaw.errors import TargetError
from perflaw.record.ahead import Ahead
from perflaw.record.python.interpreter import Interpreter, probe

_VALUE_OPTIONS: Final = "WX"
_ISOLATING: Final = "IES"
_PYTHON_NAMES: Final = ("python", "pypy")
_NEXT: Final = "perflaw record -- python app.py"


@dataclass(frozen=True, slots=True)
class PythonCommandLine:
    """The command line of a Python interpreter."""

    kind: Literal["script", "module", "code", "nothing"]
    """What it runs; ``nothing``: an interactive session, or a program on standard input."""
    what: str
    """Path of the script, name of the module, or the code."""
    used: int
    """Number of words before the program's own arguments."""
    isolating: str = ""
    """The option that makes the interpreter ignore its environment, if there is one."""

    @property
    def name(self) -> str:
        """Short name of the program: ``app.py``, ``-m json.tool``, ``-c``."""
        if self.kind == "module":
            return f"-m {self.what}"
        return Path(self.what).name if self.kind == "script" else "-c"


def parse(argv: Sequence[str]) -> PythonCommandLine:
    """Parse ``argv``, the interpreter first.

    >>> parse(["python", "-um", "json.tool", "x"])
    PythonCommandLine(kind='module', what='json.tool', used=3, isolating='')
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
        attached, used = letters[end + 1 :], index + (1 if letters[end + 1 :] else 2)
        if letters[end : end + 1] in ("m", "c"):
            value = attached or "".join(argv[index + 1 : index + 2])
            return PythonCommandLine("module" if letters[end] == "m" else "code", value, used, isolating)
        index = used if end < len(letters) else index + 1
    if index >= len(argv) or argv[index] == "-":
        return PythonCommandLine("nothing", "", index, isolating)
    return PythonCommandLine("script", argv[index], index + 1, isolating)


class NotPython(TargetError):
    """The program can be executed but is not written in Python: it is compiled, or a script of another language."""

    def __init__(self, path: Path, problem: str, why: str, next_command: str) -> None:
        super().__init__(f"{path}: {problem}", why, next_command)
        self.path = path


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that can be started."""

    argv: tuple[str, ...]
    """Words to execute."""
    arguments: tuple[str, ...]
    """The program's own arguments."""
    name: str
    """Short name of the program: ``app.py``, ``-m json.tool``."""
    main: str = ""
    """Module name under which functions of the main script are shown."""
    own: str = ""
    """Top-level package that belongs to the person wherever it is installed; empty if there is none."""
    interpreter: Interpreter | None = None
    """The Python that runs it; None for a program that is not written in Python."""
    typed: tuple[str, ...] = ()
    """The command as the person typed it; empty if that is ``argv``."""


def understand(command: tuple[str, ...]) -> Launch:
    """Find out which Python program ``command`` runs.

    NotPython if it runs something else; TargetError if it runs nothing that can be recorded.
    """
    return replace(_understood(command), typed=command)


def _understood(command: tuple[str, ...]) -> Launch:
    if not command:
        raise TargetError("no command to record", "nothing follows --", _NEXT)
    head, arguments = command[0], command[1:]
    path = Path(head)
    if head in ("-m", "-c") or path.is_dir() or path.suffix in (".py", ".pyw"):
        if head not in ("-m", "-c"):
            _check_readable(path)
        active = os.environ.get("VIRTUAL_ENV")
        candidate = Path(active) / "bin" / "python" if active else None
        return _python_launch((str(candidate) if candidate and candidate.exists() else sys.executable, *command))
    executable = shutil.which(head)
    if executable is None:
        _check_readable(path)
        why = "its name is not that of a Python script"
        raise TargetError(f"{head}: not executable", why, f"perflaw record -- python {head}")
    if Path(executable).name.startswith(_PYTHON_NAMES):
        return _python_launch((executable, *arguments))
    return _script_launch(executable, arguments)


def understand_ahead(command: tuple[str, ...]) -> Ahead:
    """Ask a command's interpreter what it is, in a thread: :func:`understand` then knows it and raises what is wrong."""
    return Ahead(lambda: understand(command))


def _check_readable(path: Path) -> None:
    try:
        if not path.is_dir():
            path.open("rb").close()
    except FileNotFoundError:
        raise TargetError(f"{path}: no such file or command", f"looked in {Path.cwd()} and on PATH", _NEXT) from None
    except OSError as error:
        raise TargetError(f"{path}: cannot be read", error.strerror or str(error), f"ls -l {path}") from error


def _python_launch(argv: tuple[str, ...]) -> Launch:
    """An interpreter with options, then a script, ``-m module`` or ``-c code``."""
    line = parse(argv)
    if line.isolating:
        why = "the interpreter then ignores PYTHONPATH, through which recording begins"
        remedy = f"leave -{line.isolating} out"
        raise TargetError(f"{' '.join(argv[:3])} …: option -{line.isolating} shuts the recorder out", why, remedy)
    if line.kind == "nothing":
        raise TargetError("an interpreter without a script", "an interactive session cannot be recorded", _NEXT)
    if line.kind == "module" and not line.what:
        raise TargetError("-m without a module", "the module's name is missing", "perflaw record -- -m json.tool")
    main, own, name = "__main__", "", line.name
    if line.kind == "module":
        main, own = line.what, line.what.split(".")[0]
    elif line.kind == "script":
        script = Path(line.what)
        _check_readable(script)
        name = script.resolve().name
        main = name if script.is_dir() else script.stem
    return Launch(argv, argv[line.used :], name, main, own, probe(argv[0]))


def _script_launch(executable: str, arguments: tuple[str, ...]) -> Launch:
    """A console script or another file with a ``#!`` line that names Python."""
    path = Path(executable)
    _check_readable(path)
    with path.open("rb") as file:
        text = file.read(1024)
    if text.startswith(b"\x7fELF"):
        why = "perflaw counts what C and C++ execute: build it with gcc's --coverage"
        remedy = f"perflaw record --collect lines -- {shlex.join([executable, *arguments])}"
        raise NotPython(path, "a compiled program", why, remedy)
    lines = text.split(b"\n")
    interpreter = lines[0][2:] if text.startswith(b"#!") else b""
    # pip writes "#!/bin/sh" and then "'''exec' /a/long/path/python ..." if the path of the interpreter is too long.
    if interpreter.strip() == b"/bin/sh" and len(lines) > 1 and lines[1].startswith(b"'''exec'"):
        interpreter = lines[1][len(b"'''exec'") :]
    words = interpreter.decode(errors="replace").replace('"', " ").split()
    python = next((word for word in words[:3] if Path(word).name.startswith(_PYTHON_NAMES)), None)
    if python is None:
        raise NotPython(
            path, "not a Python program", "its first line names no Python", f"perflaw record -- python {path}"
        )
    python = shutil.which(python) or python
    package = package_of_script(text.decode(errors="replace"))
    return Launch((executable, *arguments), arguments, path.name, path.stem, package, probe(python))


def package_of_script(text: str) -> str:
    r"""The package that a console script starts, from its first lines; empty if it names none.

    >>> package_of_script("#!/usr/bin/python\nfrom pip._internal.cli.main import main")
    'pip'
    """
    imports = (line.split() for line in text.splitlines())
    modules = (words[1] for words in imports if len(words) >= 4 and words[0] == "from" and words[2] == "import")
    return next(modules, "").split(".")[0]
