"""``path`` and ``regex``: settings that the target tells with its result. They verify alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.told import at_path, by_regex
from perflaw.types.studies import Value


class Path:
    """``verify: {path: settings.cache}``: at a path of the JSON that the program or workload prints."""

    name = "path"
    options: tuple[str, ...] = ()
    when = "result"

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """The value there."""
        return at_path(context.document, str(how["path"]))


class Regex:
    r"""``verify: {regex: "cache=(\\d+)"}``: in what it prints, the last match."""

    name = "regex"
    options: tuple[str, ...] = ()
    when = "result"

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """The group of the last match."""
        return None if context.output is None else by_regex(context.output, str(how["regex"]))
