"""Reports of experiments made anew while somebody looks at them, each by a process of its own with a low priority.

So a recorder beside it keeps its processor, and a report that fails, hangs or takes all memory is an error of its
experiment alone. Reports may take a third of one processor: the longer one takes, the seldomer it is made.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perflaw.store.watching import ExperimentState, experiment_names, experiment_state, held_locks

MOST_PART: Final = 1 / 3
"""Part of a processor's time that making an experiment's report may take."""
WATCH_PART: Final = 0.05
"""Part of the time that looking for news may take."""
NICENESS: Final = 10
"""Priority of the process that makes a report: beside a program of ordinary priority it gets a tenth of a processor."""
TICK_S: Final = 0.5
"""Time between two looks for news, unless they take long."""
LOOKED_AT_S: Final = 20.0
"""Time after a question about an experiment in which its report is kept up to date."""
LAST_WORDS: Final = 4000
"""Characters of what a failed process said that are kept."""

Command = Callable[[str, Path], Sequence[str]]
"""The command that writes the report of an experiment to a file."""


@dataclass(frozen=True, slots=True)
class MadeReport:
    """The latest report of an experiment."""

    text: str = ""
    """The page; empty where there is none yet."""
    version: str = ""
    """Another text for another page."""
    mark: str = ""
    """Mark of the experiment's state that was last read."""
    notes: tuple[str, ...] = ()
    """What was remarked while it was made."""
    error: str = ""
    """Why the state of this mark has no report; the text is then of an earlier state."""
    seconds: float = 0.0
    """CPU time that making it took."""
    ended: float = -1e9
    """When it was made, on the monotonic clock."""


class ReportMaker:
    """The states of all experiments of a folder, and the reports of those that somebody looks at."""

    def __init__(self, command: Command, folder: Path, names: Sequence[str] = ()) -> None:
        """Reports are written into ``folder``; without ``names``, all experiments of the working folder are watched."""
        self._command, self._folder, self._names = command, folder, tuple(names)
        self.states: dict[str, ExperimentState] = {}
        self.reports: dict[str, MadeReport] = {}
        self.making = ""
        """Name of the experiment whose report is being made; empty if none is."""
        self._asked: dict[str, float] = {}
        self._process: asyncio.subprocess.Process | None = None

    def look(self, name: str) -> MadeReport:
        """The latest report of an experiment, which is kept up to date from now on for a while."""
        self._asked[name] = time.monotonic()
        return self.reports.get(name, MadeReport())

    async def run(self) -> None:
        """Follow the experiments until cancelled; the process that makes a report then ends at once."""
        maker: asyncio.Task[None] | None = None
        try:
            while True:
                began = time.monotonic()
                await asyncio.to_thread(self.watch)
                took = time.monotonic() - began
                if (maker is None or maker.done()) and (name := self._next()):
                    maker = asyncio.create_task(self._make(self.states[name]))
                await asyncio.sleep(max(TICK_S, took / WATCH_PART))
        finally:
            if maker and not maker.done():
                maker.cancel()
                with suppress(asyncio.CancelledError):
                    await maker

    def watch(self) -> None:
        """Look what is new in all experiments."""
        held = held_locks()
        names = self._names or experiment_names()
        self.states = {name: experiment_state(name, None, held, self.states.get(name)) for name in names}

    def _next(self) -> str | None:
        """Of the experiments that are looked at and have news, the one whose report is the oldest."""
        now, due = time.monotonic(), []
        for name, asked in self._asked.items():
            state, made = self.states.get(name), self.reports.get(name, MadeReport())
            is_due = now - made.ended >= made.seconds * (1 / MOST_PART - 1)
            if (
                state
                and state.mark != made.mark
                and now - asked < LOOKED_AT_S
                and is_due
                and (state.runs or state.error)
            ):
                due.append((made.ended, name))
        return min(due)[1] if due else None

    async def _make(self, state: ExperimentState) -> None:
        began, self.making = _children_s(), state.name
        before, path = self.reports.get(state.name, MadeReport()), self._folder / f"{state.name}.html"
        try:
            status, said = await self._run(self._command(state.name, path))
            text = path.read_text(encoding="utf-8") if status == 0 else ""
        except OSError as problem:  # no process or no space on the disk
            status, said, text = -1, str(problem), ""
        finally:
            self.making = ""
        lines = tuple(line.removeprefix("perflaw: ") for line in said.splitlines() if line.strip())
        made = replace(before, mark=state.mark, seconds=_children_s() - began, ended=time.monotonic())
        if status == 0:
            version = hashlib.sha256(text.encode()).hexdigest()[:16]
            made = replace(made, text=text, version=version, notes=lines, error="")
        else:
            why = lines[-1] if lines else f"the process that made it ended with status {status}"
            made = replace(made, error=why)
        self.reports[state.name] = made

    async def _run(self, command: Sequence[str]) -> tuple[int, str]:
        """Exit status and last words of a command, which does not outlive this call."""
        none = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, stdin=none, stdout=none, stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            with suppress(OSError):  # it has ended already
                os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return process.returncode or 0, said.decode(errors="replace")[-LAST_WORDS:]


def _children_s() -> float:
    """CPU time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
