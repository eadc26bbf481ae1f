"""Small files of perflaw's own that are there as a whole or not at all, whatever is killed."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str | bytes) -> None:
    """Write a file of perflaw's own through to the disk; it exists as a whole or not at all."""
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
        file.flush()
        os.fsync(descriptor)
    part.replace(path)
