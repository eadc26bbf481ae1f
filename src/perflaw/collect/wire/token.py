"""The secret that both sides have: read from a file, shown first of all, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import stat
from pathlib import Path
from typing import Final

from perflaw.errors import UsageError

LEAST: Final = 16
"""Characters that a token has at least."""
MOST: Final = 1024
"""Characters that it has at most."""


def read_token(path: Path) -> str:
    """The token in a file; UsageError where it cannot be read, is open to others, or is too short to be a secret."""
    make = f"(umask 077; openssl rand -hex 32 > {path})"
    try:
        with path.open("rb") as file:
            mode, text = stat.S_IMODE(path.stat().st_mode), file.read(MOST + 2)
    except OSError as error:
        raise UsageError(f"{path}: the token cannot be read", error.strerror or str(error), make) from error
    if mode & 0o077:
        raise UsageError(f"{path}: others may read the token", f"its mode is {mode:03o}", f"chmod 600 {path}")
    token = text.decode(errors="replace").strip()
    if not LEAST <= len(token) <= MOST or not token.isprintable():
        raise UsageError(f"{path}: not a token", f"wanted: one line of {LEAST} to {MOST} characters", make)
    return token


def same(shown: object, token: str) -> bool:
    """Whether what a peer showed is the token; takes the same time whatever it showed."""
    text = shown if isinstance(shown, str) else ""
    return hmac.compare_digest(_digest(text), _digest(token))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
