"""Commands of a target: put together, started in sessions of their own, awaited until ready, and ended with all they started.

The agent is made a subreaper, so whatever a target starts stays among the agent's descendants. All of it carries a mark in its
environment, by which the next agent finds it where this one was killed.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from resource import struct_rusage
from typing import Any, Final
from urllib.parse import urlsplit

from perflaw.explore.target.proc import environment_of, family, started_with, stat_of

MARK: Final = "PERFLAW_TRIAL"
"""Environment variable that all processes of a target have."""
_PDEATHSIG, _SUBREAPER = 1, 36
_GRACE_S: Final = 0.5
_ROUNDS: Final = 200
"""Rounds of killing processes, each of which may start others meanwhile."""
_CONNECT_S: Final = 0.5
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SHELL: Final = re.compile(r"[|&;<>`\n]|\$\(|\$\{|\$\w")
_NAME: Final = re.compile(r"\{([A-Za-z_][\w.-]*)\}")


# ---- Commands: templates with settings.


def command_of(template: str, arguments: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Return the words of a command; a shell runs it only where its template is written for one.

    ``{args}`` stands for the arguments, ``{name}`` for a value; braces around other names stay as they are.
    ValueError where the quotes of the template do not match.

    >>> command_of("./prog {args} --size={size} {other}", ["-v", "a b"], {"size": 4})
    ['./prog', '-v', 'a b', '--size=4', '{other}']
    >>> command_of("./prog {args} | tail -1", ["a b"], {})
    ['/bin/sh', '-c', "./prog 'a b' | tail -1"]
    """
    shell = bool(_SHELL.search(template))

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        text = text_of(values[found[1]])
        return shlex.quote(text) if shell else text

    if shell:
        return ["/bin/sh", "-c", _NAME.sub(value, template.replace("{args}", shlex.join(arguments)))]
    words: list[str] = []
    for word in shlex.split(template):
        words += arguments if word == "{args}" else [_NAME.sub(value, word.replace("{args}", " ".join(arguments)))]
    return words


def text_of(value: object) -> str:
    """Return a setting as an argument: whole numbers without a decimal point, truth values as true and false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


# ---- Running commands.


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)


class StartedCommand:
    """A command of the target that was started."""

    def __init__(self, command: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        """Start the command, which is killed when this process ends. OSError where it cannot be started."""
        parent = os.getpid()

        def die_with_parent() -> None:
            _LIBC.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # the parent has gone already
                os.kill(os.getpid(), signal.SIGKILL)

        self.began = time.monotonic()
        self.mark = f"{MARK}={environment[MARK]}" if MARK in environment else ""
        self.process = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, preexec_fn=die_with_parent,
        )  # fmt: skip
        self.status: int | None = None
        """Exit status as ``subprocess`` gives it; None while the command runs."""
        self.usage: struct_rusage | None = None
        """Resources that the command and the children it waited for used; None while it runs."""
        self.seconds = 0.0
        """Duration."""

    @property
    def pid(self) -> int:
        """Number of its first process."""
        return self.process.pid

    def ended(self) -> bool:
        """Return whether its first process has ended; the resources it used are known from then on."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.seconds, self.usage = time.monotonic() - self.began, usage
                self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def gone(self) -> bool:
        """Return whether it works no more; a server that forks away ends with status 0 and leaves processes that work."""
        return self.ended() and (self.status != 0 or not self.session())

    def session(self) -> list[int]:
        """Return its living processes: children, and orphans that were given to this process."""
        alive = [pid for pid in family(os.getpid()) if (stat := stat_of(pid)) and stat.state != "Z"]
        return [pid for pid in alive if self.mark and self.mark in environment_of(pid)]

    def end_text(self) -> str:
        """Return how it ended, in words."""
        if self.status is not None and self.status < 0:
            return f"was killed by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"

    def close(self) -> None:
        """Close this process's ends of its pipes."""
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()


def end(started: StartedCommand, signal_name: str, helpers: Iterable[int], grace_s: float = _GRACE_S) -> None:
    """Send a command a signal, then kill what is left of it and what it started; ``helpers`` are left alone."""
    number = getattr(signal, signal_name, signal.SIGTERM)
    for pid in [] if started.gone() else [started.pid] if not started.ended() else started.session():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, number)
    until = time.monotonic() + grace_s
    while not started.gone() and time.monotonic() < until:
        time.sleep(0.002)
    end_family(helpers, (started,))


def end_alone(started: StartedCommand) -> None:
    """Kill a command and its children, and nothing else."""
    for pid in ([] if started.ended() else [started.pid]) + family(started.pid):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, signal.SIGKILL)
    while not started.ended():
        time.sleep(0.001)


def end_family(helpers: Iterable[int], known: Sequence[StartedCommand] = ()) -> None:
    """Kill every descendant of this process but ``helpers``; commands that are ``known`` note how they ended."""
    commands, spared = {command.pid: command for command in known}, set(helpers)
    for _ in range(_ROUNDS):
        left = family(os.getpid(), spared)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):  # ended, or another user by now
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            if pid in commands:
                commands[pid].ended()
            else:
                with suppress(ChildProcessError):  # it becomes a child of this process when its parent has ended
                    os.wait4(pid, os.WNOHANG)
        if not left:
            break
        time.sleep(0.001)


def end_marked(mark: str) -> int:
    """Kill what an agent that was killed left behind, and return the number of those processes."""
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        left = [pid for pid in started_with(f"{MARK}={mark}") if (stat := stat_of(pid)) and stat.state != "Z"]
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):  # ended, or another user by now
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
        time.sleep(0.002)
    return len(ended)


# ---- Whether a server is ready: a port that accepts, a page, a file, a line that it printed.


def is_ready(ready: Mapping[str, Any], folder: str, printed: str) -> bool:
    """Return whether everything that ``ready`` names is there."""
    if "tcp" in ready and not accepts(ready["tcp"]):
        return False
    if "http" in ready:
        try:
            urllib.request.urlopen(
                str(ready["http"]), timeout=_CONNECT_S
            ).close()  # the study's author chose the address
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                return False
        except (OSError, ValueError):
            return False
    if "file" in ready and not (Path(folder) / str(ready["file"])).exists():
        return False
    return "output" not in ready or re.search(str(ready["output"]), printed, re.MULTILINE) is not None


def occupied(ready: Mapping[str, Any]) -> str:
    """Return in words what answers before the server was started, and would be mistaken for it; empty if nothing does."""
    if "tcp" in ready and accepts(ready["tcp"]):
        return f"something else listens on port {ready['tcp']}"
    if "http" in ready:
        parts = urlsplit(str(ready["http"]))
        if parts.hostname and accepts(f"{parts.hostname}:{parts.port or 80}"):
            return f"something else answers at {ready['http']}"
    return ""


def accepts(address: Any) -> bool:
    """Return whether something accepts connections at ``7000`` or ``host:7000``."""
    host, _, number = str(address).rpartition(":")
    try:
        with socket.create_connection((host or "127.0.0.1", int(number)), timeout=_CONNECT_S):
            return True
    except OSError:
        return False
