"""``http``: settings of servers that are configured over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.errors import TargetError
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.told import told_in
from perflaw.explore.target.commands import text_of
from perflaw.types.studies import Value


class Http:
    """``{http: "PUT http://127.0.0.1:9200/_settings", body: '{"refresh": "{}"}'}``; verify: ``{http: "GET …", path: a.b}``."""

    name = "http"
    options = ("body", "type", "path", "regex")

    def apply(self, how: Mapping[str, Any], value: Value, context: Context) -> None:
        """Send the request, the value in the place of ``{}`` in address and body."""
        method, address = _request(how, "PUT")
        text = text_of(value)
        body = str(how.get("body", "")).replace("{}", text)
        context.http(method, address.replace("{}", text), body, str(how.get("type", "application/json")))

    def verify(self, how: Mapping[str, Any], context: Context) -> Value | None:
        """What the answer says, at ``path`` of its JSON or by ``regex``; all of its text without either."""
        method, address = _request(how, "GET")
        return told_in(context.http(method, address), how)


def _request(how: Mapping[str, Any], default: str) -> tuple[str, str]:
    words = str(how["http"]).split()
    if len(words) == 1:
        return default, words[0]
    if len(words) != 2 or not words[0].isupper():
        raise TargetError(f"http {how['http']!r}", "a method and an address were expected", 'http: "PUT http://…"')
    return words[0], words[1]
