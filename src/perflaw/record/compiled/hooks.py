"""Compiled programs recorded by the hooks of ``-finstrument-functions``: a library that is preloaded answers them.

It appends the same records to the same rings as the tracer of Python programs does; only names are found afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from perflaw.errors import TargetError
from perflaw.record.build import BuildError, build, core, hooks
from perflaw.record.compiled.dwarf import Code, functions_at
from perflaw.record.compiled.elf import libraries, open_elf
from perflaw.record.compiled.selection import EVERYTHING, FOLDER, NAMELESS, Chooser, Globs, functions, has_names
from perflaw.record.python.native import NativeReader
from perflaw.record.recorded import Reader, Recorded
from perflaw.record.records import Definitions
from perflaw.types import Component

_HEADERS = ("/usr/include/", "/usr/lib/")
"""Code that stands there is a library's, though the compiler put it into the person's program."""


@dataclass(frozen=True, slots=True)
class HooksTracer:
    """A preloaded library writes records to rings; the recorder's library builds the trees."""

    file: Path
    library: Path
    """The recorder's side."""
    chooser: Chooser
    """Which functions are recorded."""
    reason: str = "hooks of -finstrument-functions"
    name: str = "hooks"
    module: str = ""

    def environment(self, settings: dict[str, str]) -> dict[str, str]:
        """The person's own, with the library preloaded. Programs that the target starts are recorded as well."""
        env = dict(os.environ)
        env["LD_PRELOAD"] = " ".join(filter(None, [str(self.file), env.get("LD_PRELOAD", "")]))
        return env | {f"PERFLAW_TARGET_{name}": value for name, value in settings.items()}

    def reader(self, spool: Path, seed: int) -> Reader:
        """What reads the rings of all processes."""
        return HooksReader(spool, seed, self.library, self.chooser)


class HooksReader(NativeReader):
    """Reads rings as they fill; names are looked up when all has been read."""

    def __init__(self, spool: Path, seed: int, library: Path, chooser: Chooser) -> None:
        super().__init__(spool, seed, library)
        self.chooser = chooser
        if chooser.globs:
            (spool / FOLDER).mkdir(mode=0o700)

    def _look(self) -> None:
        if self.chooser.globs:  # first of all, for the program waits
            self.chooser.answer(self.spool)
        super()._look()

    def finish(self, pid: int) -> Iterator[Recorded]:
        """See :class:`~perflaw.record.recorded.Reader`."""
        for recorded in super().finish(pid):
            name_functions(recorded.definitions)
            if len(recorded.tree.nodes) < 2:
                name_unselected(recorded.definitions)
            yield recorded


def name_functions(known: Definitions) -> None:
    """Find out what stands at the addresses that the hooks told of."""
    by_module: dict[str, dict[int, int]] = {}
    for number, (module, offset, _) in known.addresses.items():
        by_module.setdefault(module, {})[number] = offset
    for module, offsets in by_module.items():
        found = functions_at(Path(module), sorted(set(offsets.values())))
        for number, offset in offsets.items():
            symbol = known.addresses[number][2] or f"{Path(module).name}+{offset:#x}"
            code = found.get(offset, Code(symbol))
            known.define(number, _component(code), code.lines)


def name_unselected(known: Definitions) -> None:
    """Some of the functions that were left out, for a person who selected none by mistake."""
    if known.ended and known.unselected:
        named = {module: functions(Path(module)) for module, _ in known.unselected}
        found = [min(named[module].get(at, NAMELESS)[1], key=len, default="") for module, at in known.unselected]
        known.ended = replace(known.ended, names=tuple(filter(None, found)))


def _component(code: Code) -> Component:
    origin: Literal["own", "library"] = "library" if code.file.startswith(_HEADERS) else "own"
    return Component(code.name, code.file, code.line, code.language, origin, code.parameters)


def hooked(path: Path, globs: Globs = EVERYTHING) -> HooksTracer:
    """The tracer of a compiled program; TargetError with the flags to build it with where it has no hooks."""
    elf = open_elf(path)
    if elf is None:
        raise TargetError(f"{path}: not a program", "it is neither a script nor an ELF file", f"file {path}")
    with elf:
        if not elf.is_dynamic:
            why = "it is linked statically, so nothing can be preloaded into it"
            raise TargetError(f"{path}: cannot be recorded", why, "link it without -static")
        if not elf.calls_hooks() and not any(map(_calls_hooks, libraries(path))):
            raise _without(path)
    if globs.select and not any(map(has_names, [path, *libraries(path)])):
        raise _nameless(path)
    try:
        return HooksTracer(build(hooks()), build(core()), Chooser(globs))
    except BuildError as error:
        raise TargetError(error.what, error.why, error.next_command) from error


def _calls_hooks(library: Path) -> bool:
    elf = open_elf(library)
    if elf is None:
        return False
    with elf:
        return elf.calls_hooks()


def _nameless(path: Path) -> TargetError:
    why = "it was stripped, so nobody knows the names of its functions"
    return TargetError(f"{path}: --select cannot be followed", why, "build it without strip and without -s")


def _without(path: Path) -> TargetError:
    why = "it was compiled without -finstrument-functions, so it does not tell when a function begins and ends"
    return TargetError(
        f"{path}: a compiled program without hooks",
        why,
        "make clean && make CFLAGS='-O2 -g -finstrument-functions'; for counts of lines --coverage and --collect lines",
    )
