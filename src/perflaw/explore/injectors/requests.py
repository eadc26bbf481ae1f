"""One HTTP request, bounded in time and size, past any proxy."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Final

from perflaw.errors import TargetError

REQUEST_S: Final = 10.0
"""Longest wait for each part of an answer."""
MOST_BYTES: Final = 2**20
"""Of an answer."""


def request(method: str, address: str, body: str, kind: str) -> str:
    """The answer's text; TargetError where there is none or its status is no success."""
    if not address.startswith(("http://", "https://")):
        raise TargetError(f"request to {address!r}", "an address begins with http:// or https://")
    data = body.encode() if body else None
    headers = {"Content-Type": kind} if body else {}
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        asked = urllib.request.Request(address, data, headers, method=method)
        with direct.open(asked, timeout=REQUEST_S) as answer:
            told: bytes = answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace").strip()
        error.close()
        raise TargetError(f"{method} {address}: status {error.code}", said or str(error.reason)) from error
    except (OSError, HTTPException, ValueError) as error:
        raise TargetError(f"{method} {address}", str(getattr(error, "reason", error)) or "no answer") from error
    return told.decode(errors="replace")
