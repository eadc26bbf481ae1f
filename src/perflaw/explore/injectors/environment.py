"""``env``: a variable of the target's environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.process import environments
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value


class Environment:
    """``{env: GOMAXPROCS}``, or with more around the value: ``{env: MALLOC_CONF, text: "narenas:{}"}``."""

    name = "env"
    options = ("text",)
    verifies_itself = True
    when = "process"

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Set it; an empty ``text`` of a false setting unsets nothing, it sets an empty variable."""
        context.environment[str(how["env"])] = str(how.get("text", "{}")).replace("{}", text_of(value))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """The variable as a started process has it, without what ``text`` puts around it."""
        name = str(how["env"])
        before, _, after = str(how.get("text", "{}")).partition("{}")
        wanted = context.environment.get(name)
        found = [one[name] for one in environments(context) if name in one]
        if not found:
            return None
        told = wanted if wanted in found else found[0]
        return told.removeprefix(before).removesuffix(after) if told is not None else None
