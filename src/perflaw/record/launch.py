"""What a command means: which interpreter runs which script, whether it can be recorded, and under which environment."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perflaw.errors import TargetError
from perflaw.record.python.interpreter import Interpreter, probe

# ---- What a Python interpreter's command line runs: a script, a module or code, and where the program's own
# arguments begin.

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


TARGET_FOLDER = Path(__file__).parent / "python" / "target"
_PYTHON_NAMES = ("python", "pypy")
_NEXT = "perflaw record -- python app.py"


class NotPython(TargetError):  # noqa: N818 (what it is, not what went wrong)
    """A program that can be executed and is not Python's: compiled, or a script of another language."""

    def __init__(self, path: Path, what: str, why: str, next_command: str) -> None:
        super().__init__(f"{path}: {what}", why, next_command)
        self.path = path


@dataclass(frozen=True, slots=True)
class Launch:
    """A command understood."""

    argv: tuple[str, ...]
    """What to execute."""
    arguments: tuple[str, ...]
    """The program's own arguments."""
    name: str
    """Short name of the target: ``app.py``, ``-m json.tool``."""
    main: str
    """Module name that functions of the main script are shown under."""
    own: str
    """Top-level package that is the person's own wherever it is installed, empty if none."""
    interpreter: Interpreter
    """What runs it."""

    @property
    def python(self) -> str:
        """Version of the interpreter."""
        return self.interpreter.version


def understand(command: tuple[str, ...]) -> Launch:
    """Find out what ``command`` runs; TargetError with the reason where it cannot be recorded."""
    if not command:
        raise TargetError("no command to record", "nothing stands after --", _NEXT)
    head, rest = command[0], command[1:]
    if head in ("-m", "-c"):
        return _python((_default_python(), *command))
    path = Path(head)
    if path.is_dir() or path.suffix in (".py", ".pyw"):
        _readable(path)
        return _python((_default_python(), *command))
    found = shutil.which(head)
    if found is None:
        _readable(path)
        raise TargetError(
            f"{head}: not executable", "it is no Python script by its name", f"perflaw record -- python {head}"
        )
    if Path(found).name.startswith(_PYTHON_NAMES):
        return _python((found, *rest))
    return _script(found, rest)


def _readable(path: Path) -> None:
    try:
        if not path.is_dir():
            path.open("rb").close()
    except FileNotFoundError:
        raise TargetError(f"{path}: no such file or command", f"looked in {Path.cwd()} and on PATH", _NEXT) from None
    except OSError as error:
        raise TargetError(f"{path}: cannot be read", error.strerror or str(error), f"ls -l {path}") from error


def _default_python() -> str:
    """The active virtual environment's interpreter, else perflaw's own."""
    active = os.environ.get("VIRTUAL_ENV")
    candidate = Path(active) / "bin" / "python" if active else None
    return str(candidate) if candidate and candidate.exists() else sys.executable


def _script(found: str, arguments: tuple[str, ...]) -> Launch:
    """A console script or another file with a ``#!`` line that names Python."""
    path = Path(found)
    _readable(path)
    with path.open("rb") as file:
        text = file.read(1024)
    if text.startswith(b"\x7fELF"):
        raise _compiled(found, arguments)
    lines = text.split(b"\n")
    # pip writes "#!/bin/sh" and then "'''exec' /a/long/path/python ..." where the interpreter's path is too long.
    interpreter = lines[0][2:] if text.startswith(b"#!") else b""
    if interpreter.strip() == b"/bin/sh" and len(lines) > 1 and lines[1].startswith(b"'''exec'"):
        interpreter = lines[1][len(b"'''exec'") :]
    words = interpreter.decode(errors="replace").replace('"', " ").split()
    if not any(Path(word).name.startswith(_PYTHON_NAMES) for word in words[:3]):
        raise NotPython(
            path, "not a Python program", "its first line names no Python", f"perflaw record -- python {path}"
        )
    python = next(word for word in words if Path(word).name.startswith(_PYTHON_NAMES))
    run_by = probe(shutil.which(python) or python)
    return Launch((found, *arguments), arguments, path.name, path.stem, _entry_package(text), run_by)


def _compiled(found: str, arguments: tuple[str, ...]) -> NotPython:
    """What a compiled program is told without ``--collect lines``."""
    why = "perflaw counts what C and C++ execute: build it with gcc's --coverage"
    return NotPython(
        Path(found), "a compiled program", why, f"perflaw record --collect lines -- {shlex.join([found, *arguments])}"
    )


def _entry_package(text: bytes) -> str:
    """The package a console script starts (``from pip._internal.cli.main import main``), empty if it is no such script."""
    for line in text.decode(errors="replace").splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == "from" and words[2] == "import":
            return words[1].split(".")[0]
    return ""


def _python(argv: tuple[str, ...]) -> Launch:
    """An interpreter with options, then a script, ``-m module`` or ``-c code``."""
    line = parse(argv)
    if line.isolating:
        raise TargetError(
            f"{' '.join(argv[:3])} …: option -{line.isolating} shuts the recorder out",
            "the interpreter then ignores PYTHONPATH, through which recording begins",
            f"leave -{line.isolating} out",
        )
    if line.kind == "nothing":
        raise TargetError("an interpreter without a script", "an interactive session cannot be recorded", _NEXT)
    if line.kind == "module" and not line.what:
        raise TargetError("-m without a module", "the module's name is missing", "perflaw record -- -m json.tool")
    main, own, name = "__main__", "", line.name
    if line.kind == "module":
        main, own = line.what, line.what.split(".")[0]
    elif line.kind == "script":
        script = Path(line.what)
        _readable(script)
        name = script.resolve().name
        main = name if script.is_dir() else script.stem
    return Launch(argv, argv[line.used :], name, main, own, probe(argv[0]))


def environment(launch: Launch, tracer: str, settings: dict[str, str]) -> dict[str, str]:
    """The environment that lets the tracer begin before the program's first line. Settings become ``PERFLAW_TARGET_*``."""
    env = dict(os.environ)
    original = env.get("PYTHONPATH")
    if original is not None:
        env["PERFLAW_TARGET_PYTHONPATH"] = original
    env["PYTHONPATH"] = str(TARGET_FOLDER) + (os.pathsep + original if original else "")
    settings = {"TRACER": tracer, "MAIN": launch.main, "OWN": launch.own, **settings}
    env.update({f"PERFLAW_TARGET_{name}": value for name, value in settings.items()})
    return env
