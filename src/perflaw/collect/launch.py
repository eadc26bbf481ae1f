"""What a command means: which interpreter runs which script, whether it can be recorded, and under which environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from perflaw.errors import TargetError

TARGET_FOLDER = Path(__file__).parent / "target"
OLDEST = (3, 11)
_PYTHON_NAMES = ("python", "pypy")
_VALUE_OPTIONS = "WX"
_ISOLATING = "IES"
_NEXT = "perflaw record -- python app.py"


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
    python: str
    """Version of the interpreter."""


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
        raise TargetError(
            f"{path}: a compiled program",
            "this version records Python programs only",
            "perflaw record -- python app.py",
        )
    lines = text.split(b"\n")
    # pip writes "#!/bin/sh" and then "'''exec' /a/long/path/python ..." where the interpreter's path is too long.
    interpreter = lines[0][2:] if text.startswith(b"#!") else b""
    if interpreter.strip() == b"/bin/sh" and len(lines) > 1 and lines[1].startswith(b"'''exec'"):
        interpreter = lines[1][len(b"'''exec'") :]
    words = interpreter.decode(errors="replace").replace('"', " ").split()
    if not any(Path(word).name.startswith(_PYTHON_NAMES) for word in words[:3]):
        raise TargetError(
            f"{path}: not a Python program", "its first line names no Python", f"perflaw record -- python {path}"
        )
    python = next(word for word in words if Path(word).name.startswith(_PYTHON_NAMES))
    version = _probe(shutil.which(python) or python)
    return Launch((found, *arguments), arguments, path.name, path.stem, _entry_package(text), version)


def _entry_package(text: bytes) -> str:
    """The package a console script starts (``from pip._internal.cli.main import main``), empty if it is no such script."""
    for line in text.decode(errors="replace").splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == "from" and words[2] == "import":
            return words[1].split(".")[0]
    return ""


def _python(argv: tuple[str, ...]) -> Launch:
    """An interpreter with options, then a script, ``-m module`` or ``-c code``."""
    index = 1
    while index < len(argv):
        word = argv[index]
        if word == "-" or not word.startswith("-"):
            break
        if word.startswith("--"):
            index += 2 if word == "--check-hash-based-pycs" else 1
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter in _ISOLATING:
                raise TargetError(
                    f"{' '.join(argv[:3])} …: option -{letter} shuts the recorder out",
                    "the interpreter then ignores PYTHONPATH, through which recording begins",
                    "leave -" + letter + " out",
                )
            if letter in "mc":
                value = word[position + 1 :] or (argv[index + 1] if index + 1 < len(argv) else "")
                used = index + (1 if word[position + 1 :] else 2)
                return _module(argv, value, used) if letter == "m" else _code(argv, used)
            if letter in _VALUE_OPTIONS:
                index += not word[position + 1 :]
                break
        index += 1
    if index >= len(argv) or argv[index] == "-":
        raise TargetError("an interpreter without a script", "an interactive session cannot be recorded", _NEXT)
    script = Path(argv[index])
    _readable(script)
    name = script.resolve().name
    main = name if script.is_dir() else script.stem
    return Launch(argv, argv[index + 1 :], name, main, "", _probe(argv[0]))


def _module(argv: tuple[str, ...], module: str, used: int) -> Launch:
    if not module:
        raise TargetError("-m without a module", "the module's name is missing", "perflaw record -- -m json.tool")
    return Launch(argv, argv[used:], f"-m {module}", module, module.split(".")[0], _probe(argv[0]))


def _code(argv: tuple[str, ...], used: int) -> Launch:
    return Launch(argv, argv[used:], "-c", "__main__", "", _probe(argv[0]))


def _probe(python: str) -> str:
    """Version of an interpreter; TargetError where it does not run or is too old."""
    question = "import sys; print(sys.implementation.name, '.'.join(map(str, sys.version_info[:3])))"
    try:
        answer = subprocess.run([python, "-I", "-S", "-c", question], capture_output=True, text=True, timeout=60)
        name, version = answer.stdout.split()
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"{python}: does not start", str(error), f"{python} --version") from error
    if name != "cpython" or tuple(map(int, version.split(".")))[:2] < OLDEST:
        raise TargetError(f"{python}: {name} {version}", "perflaw records CPython 3.11 and newer", "perflaw doctor")
    return version


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
