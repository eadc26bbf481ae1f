"""Begins recording when the program's interpreter starts, then leaves no trace of itself.

``sitecustomize`` beside it imports it. It restores what the recorder changed (environment, ``sys.path``,
``sys.modules``), starts the tracer that ``PERFLAW_TARGET_TRACER`` names, and imports the program's own sitecustomize, or
raises exactly what Python would if there is none.

It uses the frozen modules of the import system, which every interpreter has loaded. ``importlib.util`` and the like would
add modules to the program's ``sys.modules``.
"""

from __future__ import annotations

import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _restore_environment(here: str) -> dict[str, str]:
    """Remove the recorder's settings from the environment and return them; a tracer passes them on to Python children."""
    settings = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PERFLAW_TARGET_")}
    original = settings.get("PERFLAW_TARGET_PYTHONPATH")
    if original is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = original
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    return settings


def _load_tracer(here: str, name: str) -> Any:
    """Load the one module of perflaw that stays in the program, by its path, without changing ``sys.path``.

    Its builtins are a copy, so that a program that replaces some does not affect it. Its files import each other by name
    while they load, and are in ``sys.modules`` only for that time.
    """
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    for part in _PARTS[name]:
        spec = spec_from_file_location(part, f"{here}/{part}.py")
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        module.__dict__["__builtins__"] = dict(vars(builtins))
        sys.modules[part] = module
        spec.loader.exec_module(module)
    for part in _PARTS[name][:-1]:
        del sys.modules[part]
    return module


_PARTS = {
    "_perflaw_tracer": ("_perflaw_spool", "_perflaw_functions", "_perflaw_tracer"),
    "_perflaw_nothing": ("_perflaw_spool", "_perflaw_nothing"),
}


def _load_extension(name: str, path: str) -> Any:
    """Load the tracer that is an extension; None if it was built for another interpreter than this one.

    It reads structures of the interpreter, so it fits one exact version, which is in its file's name
    (``record/build.py``). A child of a recorded program may run any version; it is then not recorded.
    """
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import EXTENSION_SUFFIXES, spec_from_file_location

    version = ".".join(map(str, sys.version_info[:3]))
    if not path.endswith(EXTENSION_SUFFIXES[0]) or not os.path.basename(path).startswith(f"{name}-{version}-"):
        return None
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _start_extension(name: str, settings: dict[str, str]) -> None:
    """Start the native tracer. Failures are reported to the recorder, never to the program."""
    try:
        tracer = _load_extension(name, settings["PERFLAW_TARGET_TRACER_FILE"])
        if tracer is not None:
            tracer.start(settings)
    except Exception as error:
        sys.modules.pop(name, None)
        try:
            why = str(error) if type(error) is OSError else f"{type(error).__name__}: {error}"
            _report(settings["PERFLAW_TARGET_SPOOL"], why)
        except OSError:
            pass  # the recorder sees that nothing began


def _report(spool: str, why: str) -> None:
    """Write the reason where the recorder looks for the definitions of this process."""
    folder = f"{spool}/{os.getpid()}-0"
    os.mkdir(folder, 0o700)
    file = os.open(f"{folder}/definitions", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{('failed', why)!r}\n".encode("utf-8", "backslashreplace"))
    finally:
        os.close(file)


def _name_child(settings: dict[str, str]) -> None:
    """Name the main module of a child as the recorder names the program's (``record/launch.py``).

    Children of multiprocessing run the main module of their parent and keep its name.
    """
    words, arguments = sys.orig_argv, sys.argv
    what = words[-len(arguments)] if 0 < len(arguments) <= len(words) else ""
    if arguments[:1] == ["-m"]:
        settings["PERFLAW_TARGET_MAIN"] = what.split("m", 1)[1] if what.startswith("-") else what
        settings["PERFLAW_TARGET_OWN"] = settings["PERFLAW_TARGET_MAIN"].split(".")[0]
    elif arguments[:1] == ["-c"]:
        if not what.startswith(_WORKERS):
            settings["PERFLAW_TARGET_MAIN"] = "__main__"
    elif arguments and arguments[0]:
        name = os.path.basename(os.path.abspath(arguments[0]))
        settings["PERFLAW_TARGET_MAIN"] = name if os.path.isdir(arguments[0]) else os.path.splitext(name)[0]


_HELPER, _WORKERS = "from multiprocessing.resource_tracker", "from multiprocessing."


def hand_over() -> None:
    """Import the program's own sitecustomize instead; raises the ImportError that ``site`` expects if there is none."""
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def begin(entered_ns: int) -> None:
    """Begin the recording; ``entered_ns``: the CPU time of the process before anything of perflaw was loaded."""
    here = os.path.dirname(os.path.abspath(__file__))
    settings = _restore_environment(here)
    name = settings.get("PERFLAW_TARGET_TRACER")
    # Multiprocessing starts a helper for itself, in which none of the program's code runs.
    if not name or (sys.argv[:1] == ["-c"] and any(word.startswith(_HELPER) for word in sys.orig_argv)):
        return
    if "PERFLAW_TARGET_PARENT" in settings:
        _name_child(settings)
    settings["PERFLAW_TARGET_FOLDER"], settings["PERFLAW_TARGET_PARENT"] = here, str(os.getpid())
    settings["PERFLAW_TARGET_ENTERED_NS"] = str(entered_ns)
    if name in _PARTS:
        _load_tracer(here, name).start(settings)
    else:
        _start_extension(name, settings)
