"""Compiled programs recorded by a preloaded library: it answers the hooks of ``-finstrument-functions``, or injects itself.

The library appends the same records to the same rings as the native tracer of Python programs. Functions are addresses in
them; their names are looked up when the run has ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError
from perflaw.record.build import BuildError, build, core, hooks, meters
from perflaw.record.compiled.dwarf import HEADERS, FunctionCode, functions_at, type_with_table
from perflaw.record.compiled.elf import calls_hooks, libraries, open_elf
from perflaw.record.compiled.inject import frida
from perflaw.record.compiled.inject.choice import Injection
from perflaw.record.compiled.questions import FOLDER, Answerer
from perflaw.record.compiled.selection import EVERYTHING, NAMELESS, Globs, functions, has_names
from perflaw.record.launch import Launch
from perflaw.record.python.native_reader import NativeReader
from perflaw.record.reader import RecordedProcess
from perflaw.record.rights import OWN, Rights
from perflaw.record.tree.core import clock_tick
from perflaw.types import Component

AUTO, HOOKS, INJECT, GCOV, FRIDA = NATIVE = "auto", "hooks", "inject", "gcov", "frida"
"""Values of ``--native``."""
MACHINE: Final = "EM_X86_64"
"""The machine whose code can be injected."""
METERED: Final = frozenset({"allocated_bytes", "allocated_blocks", "lock_wait", "lock_hold"})
"""Metrics that native/meters counts."""


@dataclass(frozen=True, slots=True)
class HooksTracer:
    """A preloaded library writes records to rings; the recorder's library builds the trees."""

    file: Path
    """The preloaded library."""
    library: Path
    """The recorder's library."""
    answerer: Answerer
    """Answers what the programs ask."""
    injects: str = ""
    """``program`` or ``libraries``: what the library injects itself into; empty: the hooks call it."""
    reason: str = "hooks of -finstrument-functions"
    name: str = "hooks"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """The person's environment with the library preloaded. Programs that the program starts are recorded as well."""
        libraries = [str(self.file)]
        if METERED & set(settings.get("METRICS", "").split("\n")):
            try:
                libraries.append(str(build(meters())))
            except BuildError as error:
                raise TargetError(error.what, error.why, error.next_command) from error
        preloaded = " ".join(filter(None, [*libraries, os.environ.get("LD_PRELOAD", "")]))
        ours = {f"PERFLAW_TARGET_{name}": value for name, value in settings.items()}
        if self.injects:
            ours |= {"PERFLAW_TARGET_INJECT": self.injects, "PERFLAW_TARGET_INJECTOR": self.name}
        return {**os.environ, "LD_PRELOAD": preloaded, **ours}

    def reader(self, spool: Path, seed: int, rights: Rights = OWN) -> HooksReader:
        """A reader of the rings of all processes, which opens them with these rights."""
        return HooksReader(spool, seed, self.library, self.answerer, rights)

    def tick_ns(self) -> float:
        """The step of the clock that the library reads."""
        return clock_tick(self.library)


def hooks_tracer(path: Path, globs: Globs = EVERYTHING, native: str = AUTO) -> HooksTracer:
    """The tracer of a compiled program: by its hooks if it has any, else by injection. ``native`` forces one of them.

    TargetError says why it cannot be recorded so.
    """
    with open_elf(path) as elf:
        if elf is None:
            raise TargetError(f"{path}: not a program", "it is neither a script nor an ELF file", f"file {path}")
        if not elf.is_dynamic:
            why = "it is linked statically, so nothing can be preloaded into it"
            raise TargetError(f"{path}: cannot be recorded", why, "link it without -static")
        has_hooks = calls_hooks(path)
        is_injectable = elf.file["e_machine"] == MACHINE and elf.file.elfclass == 64
    injects = native in (INJECT, FRIDA) or (native == AUTO and not has_hooks)
    if injects and has_hooks:
        why = "it was built with hooks, which record it; injected code would record every call twice"
        raise TargetError(f"{path}: not injected", why, f"leave --native={native} out")
    if not has_hooks and not (injects and is_injectable):
        machine = "" if is_injectable else ", and code is injected into 64-bit x86 programs only"
        raise TargetError(
            f"{path}: a compiled program without hooks",
            f"it was compiled without -finstrument-functions, so it does not tell when a function begins and ends{machine}",
            "make clean && make CFLAGS='-O2 -g -finstrument-functions';"
            " for counts of lines --coverage and --collect lines",
        )
    if (globs.select or globs.per) and has_hooks and not any(map(has_names, [path, *libraries(path)])):
        option, why = (
            "--select" if globs.select else "--per",
            "it was stripped, so nobody knows the names of its functions",
        )
        raise TargetError(f"{path}: {option} cannot be followed", why, "build it without strip and without -s")
    try:
        if native == FRIDA:
            return frida_tracer(path, globs)
        return injecting_tracer(path, globs) if injects else HooksTracer(build(hooks()), build(core()), Answerer(globs))
    except BuildError as error:
        raise TargetError(error.what, error.why, error.next_command) from error


def injecting_tracer(path: Path, globs: Globs, *, only_program: bool = False) -> HooksTracer:
    """The tracer that injects code into a program; ``only_program``: and into none of its libraries."""
    try:
        injection = Injection(path.resolve(), globs, only_program)
        tracer = HooksTracer(build(hooks()), build(core()), Answerer(globs, injection), injection.scope)
        return replace(tracer, name=INJECT, reason="code injected into the program, which has no hooks")
    except BuildError as error:
        raise TargetError(error.what, error.why, error.next_command) from error


def frida_tracer(path: Path, globs: Globs) -> HooksTracer:
    """The tracer that has Frida tell of the beginnings of functions. TargetError if that cannot be."""
    frida.require_frida(path)
    injection = Injection(path.resolve(), globs, by=frida.BY)
    tracer = HooksTracer(build(hooks()), build(core()), Answerer(globs, injection), injection.scope)
    return replace(tracer, name=FRIDA, reason="Frida's Interceptor, asked for by --native")


MOST_NAMED: Final = 100
"""Functions named that were open before the recording."""


class HooksReader(NativeReader):
    """Reads rings while they fill; looks up the names of functions when everything has been read."""

    def __init__(self, spool: Path, seed: int, library: Path, answerer: Answerer, rights: Rights = OWN) -> None:
        super().__init__(spool, seed, library, rights)
        self.answerer = answerer
        with rights:
            (spool / FOLDER).mkdir(mode=0o700)

    def _look(self) -> None:
        """Answer the programs' questions, then look for new processes and rings."""
        if self.answerer.answer(self.spool, self.rights):  # first, because the program waits for the answer
            self.pause_s = self.idle_s  # one question seldom comes alone
        super()._look()

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """See :class:`~perflaw.record.reader.Reader`."""
        for recorded in super().finish(pid):
            # Define the functions at the addresses that the hooks reported.
            by_module: dict[str, dict[int, int]] = {}
            for number, (module, offset, _) in recorded.definitions.addresses.items():
                by_module.setdefault(module, {})[number] = offset
            for module, offsets in by_module.items():
                codes = functions_at(Path(module), sorted(set(offsets.values())))
                for number, offset in offsets.items():
                    symbol = recorded.definitions.addresses[number][2] or f"{Path(module).name}+{offset:#x}"
                    code = codes.get(offset, FunctionCode(symbol))
                    component = Component(code.name, code.file, code.line, code.language, "own", code.parameters)
                    if code.file.startswith(HEADERS):
                        component = replace(component, origin="library")
                    recorded.definitions.define(number, component, code.lines)
            known = recorded.definitions
            earlier = dict.fromkeys(
                known.components[number].name for number in known.earlier if number in known.components
            )
            if earlier:
                known.words["earlier"] = "; ".join(list(earlier)[:MOST_NAMED])
            for number, (module, offset, symbol) in known.virtual_tables.items():
                known.types[number] = type_with_table(Path(module), offset, symbol)
            if recorded.tree.is_empty and known.ended and known.unselected:
                # Name some of the functions that were left out, for a person who selected none by mistake.
                named = {module: functions(Path(module)) for module, _ in known.unselected}
                names = [
                    min(named[module].get(at, NAMELESS)[1], key=len, default="") for module, at in known.unselected
                ]
                known.ended = replace(known.ended, names=tuple(filter(None, names)))
            if self.answerer.injection and (words := self.answerer.injection.described()):
                known.words.setdefault(INJECT, words)
            yield recorded
