"""Answers what programs with hooks ask while they run (native/compiled/questions.c).

The hooks know addresses; the recorder knows names and types. When a program meets code for the first time, it puts a question
``<digest>.ask`` into the spool's folder ``answers`` and waits for the answer ``<digest>``.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from perflaw.record.compiled.branches import branch_table
from perflaw.record.compiled.features.tables import feature_table, prepare_registers
from perflaw.record.compiled.inject import frida
from perflaw.record.compiled.inject.choice import Injection, all_functions
from perflaw.record.compiled.inject.tables import NO_PATCHES
from perflaw.record.compiled.inlining import may_be_inlined
from perflaw.record.compiled.selection import Globs, chosen, functions
from perflaw.record.rights import OWN, Rights, read_regular, write_new

FOLDER: Final = "answers"
"""Folder of the spool for questions and answers."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers the questions of recorded processes; one serves all runs of a session."""

    globs: Globs
    """The functions that the person chose."""
    injection: Injection | None = None
    """What is injected into the programs; None for programs that were built with hooks."""
    _known: dict[str, bytes] = field(default_factory=dict)
    """Question → its answer."""

    def prepare(self, module: Path) -> None:
        """Work out what a program will ask about a file, which may take seconds, before it waits for the answer."""
        for text in (f"patches {module}", f"functions {module}")[: 1 + bool(self.globs)]:
            self._answer_to(text)

    def decode(self, program: Path) -> None:
        """Work out what is the same whichever functions of the program are chosen, so that ``prepare`` takes a moment."""
        if self.injection:
            self.injection.table(program.resolve())
            prepare_registers(program.resolve(), ())

    def answer(self, spool: Path, rights: Rights = OWN) -> int:
        """Answer the questions that have come since the last call; their number. ``rights``: those of the program's user."""
        questions: list[Path] = []
        with suppress(OSError):  # the program removed its spool, or a full disk: what waits for the answer gives up
            with rights:
                questions = list((spool / FOLDER).glob("*.ask"))
            for question in questions:
                with rights:
                    text = read_regular(question).decode(errors="surrogateescape")
                    may_know = not rights.user or self._may_know(text)
                answer = self._answer_to(text) if may_know else _nothing_for(text)
                with rights:
                    part = question.with_suffix(".part")
                    write_new(part, answer)
                    part.replace(question.with_suffix(""))
                    question.unlink()
        return len(questions)

    def _may_know(self, text: str) -> bool:
        """Whether the user whose rights we have may read the file that a question is about, or runs it."""
        file = re.fullmatch(r"(?:functions|patches|\w+ [0-9a-f]+) (/.*)", text, re.DOTALL)
        with suppress(OSError):  # it may not
            if file and self.injection and Path(file[1]) != self.injection.program:
                os.close(os.open(file[1], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            return bool(file)
        return False

    def _answer_to(self, text: str) -> bytes:
        """The answer to a question, worked out once. The loader's path of a file may be a link to the one that is mapped."""
        kind, _, rest = text.partition(" ")
        if kind == frida.NAME:  # about one process, and what is done there is the answer
            return frida.attach_frida(text, self.injection) if self.injection else b""
        if kind in ("functions", "patches"):
            text = f"{kind} {Path(rest).resolve()}"
        if text not in self._known:
            self._known[text] = self._answer(text)
        return self._known[text]

    def _answer(self, text: str) -> bytes:
        kind, _, rest = text.partition(" ")
        if kind == "functions":
            module = Path(rest)
            if self.injection:
                # Of a file with nothing to patch nothing is called: decoding it would take long for no answer.
                return chosen(all_functions(module) if self.injection.chosen(module) else {}, self.globs)
            return chosen(functions(module), self.globs, partial(may_be_inlined, module))
        if kind == "patches":
            patches = self.injection.table(Path(rest)) if self.injection else b""
            if self.injection and patches != NO_PATCHES:
                prepare_registers(Path(rest), self.injection.wanted[Path(rest)])
            return patches
        offset, _, name = rest.partition(" ")
        if kind == "branches":
            return branch_table(Path(name), int(offset, 16))
        injected = self.injection.wanted.get(Path(name).resolve()) if self.injection else None
        return feature_table(Path(name), int(offset, 16), bool(self.globs.select), injected)


def _nothing_for(text: str) -> bytes:
    """The answer about a file of which nothing was chosen; without any for patches, a program does not record at all."""
    return NO_PATCHES if text.startswith("patches ") else b""
