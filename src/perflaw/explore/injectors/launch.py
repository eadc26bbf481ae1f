"""Settings that a process is started with: ``arg``, an argument, and ``env``, a variable of its environment.

Both are looked for in the processes themselves: ``/proc/PID/cmdline`` and ``/proc/PID/environ`` of those that run, else the
arguments and the environment that they were started with. That shows what a process was given, not what it made of it, so
such a setting is set and not verified, unless the study says how the target tells.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from perflaw.explore.injectors.context import Context
from perflaw.explore.target.proc import family
from perflaw.explore.target.process import text_of
from perflaw.types.studies import Value

_LOOKS: Final = 20
"""Number of times that an empty file of /proc is read: it is empty for an instant within execve(2)."""


class Argument:
    """``{arg: "--threads={}"}``; an argument without ``{}`` is given where the setting is true."""

    name = "arg"
    options: tuple[str, ...] = ()
    shows_launch = True
    when = "process"

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Append the words of the argument."""
        context.arguments += words_of(str(how["arg"]), value)
        context.given.append((how, text_of(value)))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the value, where a process was started with the words of the argument."""
        template = str(how["arg"])
        # Several knobs may have the same template, `{}`; a verification may repeat that of the knob.
        given_here = [text for one, text in context.given if one is how]
        value = next(iter(given_here or [text for one, text in context.given if one["arg"] == template]), None)
        if value is None or not context.launched:
            return None
        wanted = words_of(template, value)
        words = wanted or shlex.split(template)
        # They are a part of a command, or of one of its words that is a shell script.
        given = any(
            any(command[at : at + len(words)] == words for at in range(len(command)))
            or any(len(word.split()) > 1 and shlex.join(words) in word for word in command)
            for command in commands(context)
        )
        return value if given == bool(wanted) else None


def words_of(template: str, value: Value) -> list[str]:
    """Return the words of an argument for a value.

    >>> words_of("--threads {}", 4), words_of("--fast", False), words_of("--fast", True)
    (['--threads', '4'], [], ['--fast'])
    """
    words = shlex.split(template)
    if "{}" not in template:
        return words if text_of(value).lower() not in ("false", "0", "") else []
    return [word.replace("{}", text_of(value)) for word in words]


class Environment:
    """``{env: GOMAXPROCS}``, or with text around the value: ``{env: MALLOC_CONF, text: "narenas:{}"}``."""

    name = "env"
    options = ("text",)
    shows_launch = True
    when = "process"

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Set the variable."""
        context.environment[str(how["env"])] = str(how.get("text", "{}")).replace("{}", text_of(value))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """Return the variable as a started process has it, without the text around the value."""
        name = str(how["env"])
        before, _, after = str(how.get("text", "{}")).partition("{}")
        found = [variables[name] for variables in environments(context) if name in variables]
        if not found:
            return None
        wanted = context.environment.get(name)
        text = wanted if wanted is not None and wanted in found else found[0]
        return text.removeprefix(before).removesuffix(after)


# ---- What processes of the target were given.


def commands(context: Context) -> Iterator[list[str]]:
    """Give the commands of the trial's processes: of each started one and its descendants now, and as it was started."""
    for process in context.launched:
        for pid in (process.pid, *family(process.pid)):
            yield _words(f"/proc/{pid}/cmdline")
        yield list(process.command)


def environments(context: Context) -> Iterator[dict[str, str]]:
    """Give the environments of the trial's processes: of each and its descendants now, and as it was started."""
    for process in context.launched:
        for pid in (process.pid, *family(process.pid)):
            yield dict(word.split("=", 1) for word in _words(f"/proc/{pid}/environ") if "=" in word)
        yield dict(process.environment)


def _words(path: str) -> list[str]:
    for _ in range(_LOOKS):
        try:
            text = Path(path).read_bytes()
        except OSError:  # the process has gone, or belongs to another user
            break
        if text:
            return text.decode(errors="replace").removesuffix("\0").split("\0")
        time.sleep(0.001)
    return []
