"""``command``: any program that configures the target or asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.told import told_in
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value


class Command:
    """``{command: "redis-cli config set maxmemory {}"}``; verify: ``{command: "redis-cli config get maxmemory"}``."""

    name = "command"
    options = ("path", "regex")

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Run it, the value in the place of ``{}``; another exit status than 0 makes the trial invalid."""
        context.run(str(how["command"]).replace("{}", text_of(value)))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """What it prints: at ``path``, by ``regex``, or its last line."""
        return told_in(context.run(str(how["command"])), how)
